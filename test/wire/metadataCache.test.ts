import { assert, describe, it } from "@effect/vitest"
import type { PartitionMetadata, TopicMetadata } from "../../src/wire/cluster.ts"
import { MetadataCache } from "../../src/wire/metadataCache.ts"
import { ZERO_UUID } from "../../src/wire/schema.ts"

const ID = "AAAAAAAAAAAAAAAAAAAAAQ"
const OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAg"

const partition = (n: number, leader: number, leaderEpoch: number): PartitionMetadata => ({
  partition: n,
  leader,
  leaderEpoch,
  replicas: [1, 2],
  isr: [1, 2]
})
const topic = (id: string, ...partitions: ReadonlyArray<PartitionMetadata>): TopicMetadata => ({
  name: "t",
  id,
  internal: false,
  partitions
})
const leaders = (cache: MetadataCache) => cache.topic("t", 0)?.partitions.map((p) => [p.leader, p.leaderEpoch])

const cached = (...partitions: ReadonlyArray<PartitionMetadata>) => {
  const cache = new MetadataCache()
  cache.applyTopic(topic(ID, ...partitions), 1)
  return cache
}

describe("the metadata cache", () => {
  it("never goes back to an older leader epoch, partition by partition", () => {
    const cache = cached(partition(0, 1, 5), partition(1, 1, 5))
    const kept = cache.applyTopic(topic(ID, partition(0, 2, 4), partition(1, 2, 6)), 2)
    assert.deepStrictEqual(leaders(cache), [[1, 5], [2, 6]])
    assert.deepStrictEqual(kept.partitions.map((p) => p.leader), [1, 2], "what is given back is what counts")
  })

  it("keeps that rule when the cache was told to ask anew", () => {
    const cache = cached(partition(0, 1, 5))
    cache.expire("t")
    assert.isNull(cache.topic("t", 0))
    cache.applyTopic(topic(ID, partition(0, 2, 4)), 2)
    assert.deepStrictEqual(leaders(cache), [[1, 5]])
  })

  it("takes an equal epoch, for replicas and a missing leader change within one", () => {
    const cache = cached(partition(0, 1, 5))
    cache.applyTopic(topic(ID, partition(0, -1, 5)), 2)
    assert.deepStrictEqual(leaders(cache), [[-1, 5]])
  })

  it("starts over when the topic was created anew under its name", () => {
    const cache = cached(partition(0, 1, 5))
    cache.applyTopic(topic(OTHER_ID, partition(0, 2, 0)), 2)
    assert.deepStrictEqual(leaders(cache), [[2, 0]])
    assert.isNull(cache.topicById(ID, 0))
    assert.strictEqual(cache.topicById(OTHER_ID, 0)?.name, "t")
  })

  it("takes what a broker without epochs or topic ids says, and keeps the id it knows", () => {
    const cache = cached(partition(0, 1, 5))
    cache.applyTopic(topic(ZERO_UUID, partition(0, 2, -1)), 2)
    assert.deepStrictEqual(leaders(cache), [[2, -1]])
    assert.strictEqual(cache.topic("t", 0)?.id, ID)
  })

  it("learns a leader from another answer only when its epoch is newer", () => {
    const cache = cached(partition(0, 1, 5))
    for (const wrong of [{ id: 2, epoch: 5 }, { id: 2, epoch: 4 }, { id: -1, epoch: 9 }]) {
      cache.learnLeader("t", 0, wrong)
    }
    assert.deepStrictEqual(leaders(cache), [[1, 5]])
    cache.learnLeader("t", 0, { id: 2, epoch: 6 })
    cache.learnLeader("t", 7, { id: 2, epoch: 6 })
    cache.learnLeader("unknown", 0, { id: 2, epoch: 6 })
    assert.deepStrictEqual(leaders(cache), [[2, 6]])
    cache.applyTopic(topic(ID, partition(0, 1, 5)), 2)
    assert.deepStrictEqual(leaders(cache), [[2, 6]], "an answer that is older than what was learnt")
  })

  it("does not use what is older than asked for", () => {
    const cache = cached(partition(0, 1, 5))
    assert.isNotNull(cache.topic("t", 1))
    assert.isNull(cache.topic("t", 2))
    assert.isNull(cache.topicById(ID, 2))
  })

  it("forgets topics that are gone, by name and id", () => {
    const cache = cached(partition(0, 1, 5))
    cache.retain(new Set(["other"]))
    assert.isNull(cache.topic("t", 0))
    assert.isNull(cache.topicById(ID, 0))
  })
})
