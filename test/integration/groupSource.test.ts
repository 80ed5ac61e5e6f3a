/** Consumer groups on real brokers: transactions, and what the source does to its log while or before we read it. */
import { assert, describe, it } from "@effect/vitest"
import { createTopic, deleteRecords, deleteTopics } from "../kit/admin.ts"
import { load, makeRecords, openLoader } from "../kit/loader.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"
import {
  assertInOrder,
  commitByHand,
  committedOffsets,
  joinGroup,
  type Member,
  type SeenRecord
} from "./groupMember.ts"

const { source } = sharedClusters()

const starting = (seen: ReadonlyArray<SeenRecord>, prefix: string): number =>
  seen.filter(({ value }) => value.startsWith(`${prefix}:`)).length
const reaches = (member: Member, position: number) =>
  until(async () => (await member.partitions())[0]?.position === position, {
    what: () => `position ${position}, has ${member.pieces.at(-1)?.next}`
  })

describe("transactions on the source", () => {
  it("leaves out aborted records and markers, and commits past them", async () => {
    const topic = unique("group-aborted")
    const group = unique("group")
    await createTopic(source, topic)
    const loader = await openLoader(source, { transactionalId: unique("group") })
    const plain = await openLoader(source)
    const transaction = async (prefix: string, end: "commit" | "abort") => {
      await loader.begin()
      await loader.send(makeRecords({ topic, count: 10, prefix: `${prefix}-a` }))
      await plain.send(makeRecords({ topic, count: 5, prefix: "plain" }))
      await loader.send(makeRecords({ topic, count: 10, prefix: `${prefix}-b` }))
      await loader[end]()
    }
    await transaction("aborted", "abort")
    await transaction("committed", "commit")
    await transaction("aborted", "abort")
    const member = await joinGroup(source, { group, topics: [topic] })
    await reaches(member, 3 * 26)
    assert.strictEqual(starting(member.seen, "aborted-a") + starting(member.seen, "aborted-b"), 0)
    assert.strictEqual(starting(member.seen, "committed-a") + starting(member.seen, "committed-b"), 20)
    assert.strictEqual(starting(member.seen, "plain"), 15)
    assertInOrder(member.seen)
    assert.strictEqual(member.pieces.reduce((sum, piece) => sum + piece.abortedRecords, 0), 40)
    await member.close()
    assert.deepStrictEqual(await committedOffsets(source, group, topic, 1), [3 * 26])
    await loader.close()
    await plain.close()
  })

  it("stops before an open transaction, says so in the last stable offset, and goes on when it ends", async () => {
    const topic = unique("group-open")
    await createTopic(source, topic)
    const loader = await openLoader(source, { transactionalId: unique("group") })
    await load(source, makeRecords({ topic, count: 10, prefix: "before" }))
    await loader.begin()
    await loader.send(makeRecords({ topic, count: 10, prefix: "open" }))
    await load(source, makeRecords({ topic, count: 10, prefix: "after" }))
    const member = await joinGroup(source, { group: unique("group"), topics: [topic] })
    await member.sees(10)
    const [partition] = await until(async () => {
      const found = await member.partitions()
      return found[0]?.highWatermark === 30 ? found : null
    }, { what: "the high watermark" })
    assert.strictEqual(partition?.lastStableOffset, 10)
    assert.strictEqual(partition?.position, 10)
    assert.strictEqual(starting(member.seen, "before"), 10)
    await loader.commit()
    await member.sees(30)
    await member.close()
    await loader.close()
  })

  it("reads aborted records too where isolation.level says read_uncommitted", async () => {
    const topic = unique("group-uncommitted")
    await createTopic(source, topic)
    const loader = await openLoader(source, { transactionalId: unique("group") })
    await loader.begin()
    await loader.send(makeRecords({ topic, count: 10, prefix: "aborted" }))
    await loader.abort()
    const member = await joinGroup(source, {
      group: unique("group"),
      topics: [topic],
      settings: { "isolation.level": "read_uncommitted" }
    })
    await reaches(member, 11)
    assert.strictEqual(starting(member.seen, "aborted"), 10)
    await member.close()
  })
})

describe("where a group starts", () => {
  it("latest: skips what is there, not what comes, and not what comes while it is away", async () => {
    const topic = unique("group-latest")
    const group = unique("group")
    await createTopic(source, topic)
    await load(source, makeRecords({ topic, count: 10, prefix: "old" }))
    const options = { group, topics: [topic], settings: { "auto.offset.reset": "latest" } }
    const first = await joinGroup(source, options)
    await first.owns(1)
    await first.close()
    await load(source, makeRecords({ topic, count: 10, prefix: "away" }))
    const second = await joinGroup(source, options)
    await second.sees(10)
    assert.strictEqual(starting(second.seen, "away"), 10)
    assert.strictEqual(starting(second.seen, "old"), 0)
    await second.close()
  })

  it("latest: a topic that appears later is read from its beginning", async () => {
    const [first, second] = [unique("group-latest"), unique("group-latest")]
    await createTopic(source, first)
    const member = await joinGroup(source, {
      group: unique("group"),
      topics: [first],
      settings: { "auto.offset.reset": "latest" }
    })
    await member.owns(1)
    await createTopic(source, second)
    await load(source, makeRecords({ topic: second, count: 10 }))
    await member.run(member.consumer.subscribe([first, second]))
    await member.sees(10)
    await member.close()
  })

  it("none: a partition without a committed offset stands still and says why", async () => {
    const topic = unique("group-none")
    await createTopic(source, topic)
    const member = await joinGroup(source, {
      group: unique("group-none"),
      topics: [topic],
      settings: { "auto.offset.reset": "none" }
    })
    const [partition] = await member.owns(1)
    assert.strictEqual(partition?.problem?._tag, "PositionError")
    assert.match(partition?.problem?.message ?? "", /no committed offset and auto.offset.reset is none/)
    await member.close()
  })
})

describe("records that the source no longer has", () => {
  /** A group that stands at 10 in a topic of two partitions; then the source loses offsets below 60 of partition 0. */
  const expired = async () => {
    const topic = unique("group-expired")
    const group = unique("group")
    await createTopic(source, topic, { partitions: 2 })
    await load(source, makeRecords({ topic, count: 20, partitions: 2, prefix: "early" }))
    const early = await joinGroup(source, { group, topics: [topic] })
    await early.sees(20)
    await early.close()
    await load(source, makeRecords({ topic, count: 200, partitions: 2, prefix: "late" }))
    await deleteRecords(source, topic, 0, 60)
    return { topic, group }
  }

  it("fail: the partition stops and states the gap; the other one goes on", async () => {
    const { group, topic } = await expired()
    const member = await joinGroup(source, { group, topics: [topic] })
    await member.sees(100)
    const [stopped, other] = await until(async () => {
      const found = (await member.partitions()).toSorted((a, b) => a.partition - b.partition)
      return found[0]?.problem != null && found[1]?.position === 110 ? found : null
    }, { what: "partition 0 to stop and partition 1 to reach its end" })
    assert.strictEqual(other?.stage, "ready")
    assert.strictEqual(stopped?.stage, "stopped")
    assert.deepInclude(stopped?.problem, {
      _tag: "GapError",
      kind: "expired",
      topic,
      partition: 0,
      from: 10,
      to: 60,
      count: 50
    })
    assert.match(stopped?.problem?.message ?? "", /offsets 10 to 59 \(at most 50 records\) are gone from the source/)
    assert.isTrue(member.seen.every(({ partition }) => partition === 1))
    await member.close()
    assert.deepStrictEqual(await committedOffsets(source, group, topic, 2), [10, 110])
  })

  it("continue: the gap is counted, reading goes on after it, and a restart does not meet it again", async () => {
    const { group, topic } = await expired()
    const member = await joinGroup(source, { group, topics: [topic], onSourceGap: "continue" })
    await member.sees(150)
    assert.strictEqual(member.gaps.length, 1)
    assert.deepInclude(member.gaps[0], { kind: "expired", topic, partition: 0, from: 10, to: 60, count: 50 })
    assert.deepStrictEqual(
      member.seen.filter(({ partition }) => partition === 0).map(({ offset }) => offset),
      Array.from({ length: 50 }, (_, i) => 60 + i)
    )
    await member.close()
    const again = await joinGroup(source, { group, topics: [topic], onSourceGap: "continue" })
    await again.owns(2)
    await load(source, makeRecords({ topic, count: 2, partitions: 2 }))
    await again.sees(2)
    assert.deepStrictEqual(again.gaps, [])
    await again.close()
  })

  it("continue: a gap to the very end of a log is committed too", async () => {
    const { group, topic } = await expired()
    await deleteRecords(source, topic, 0, 110)
    const member = await joinGroup(source, { group, topics: [topic], onSourceGap: "continue" })
    await until(() => member.gaps.length === 1, { what: "the gap" })
    await member.sees(100)
    await member.close()
    assert.deepStrictEqual(await committedOffsets(source, group, topic, 2), [110, 110])
  })

  it("a hole that an aborted transaction or a marker leaves is no gap", async () => {
    const topic = unique("group-hole")
    await createTopic(source, topic)
    const loader = await openLoader(source, { transactionalId: unique("group") })
    for (let n = 0; n < 3; n++) {
      await loader.begin()
      await loader.send(makeRecords({ topic, count: 5 }))
      await (n === 1 ? loader.abort() : loader.commit())
    }
    // The log now begins inside the aborted transaction.
    await deleteRecords(source, topic, 0, 8)
    const member = await joinGroup(source, { group: unique("group"), topics: [topic] })
    await reaches(member, 18)
    assert.strictEqual(member.seen.length, 5)
    assert.deepStrictEqual(member.gaps, [])
    await member.close()
    await loader.close()
  })

  it("a topic created anew while we run is noticed, with positions that fit and those that do not", async () => {
    for (const records of [30, 3]) {
      const topic = unique("group-recreated")
      await createTopic(source, topic)
      await load(source, makeRecords({ topic, count: 10, prefix: "old" }))
      const member = await joinGroup(source, { group: unique("group"), topics: [topic], onSourceGap: "continue" })
      await member.sees(10)
      await deleteTopics(source, [topic])
      await createTopic(source, topic)
      await load(source, makeRecords({ topic, count: records, prefix: "new" }))
      await until(() => starting(member.seen, "new") === records, {
        what: () =>
          `${records} new records, has ${starting(member.seen, "new")}, gaps ${JSON.stringify(member.gaps)} ${
            String(member.failure())
          }`
      })
      assert.strictEqual(starting(member.seen, "old"), 10)
      await member.close()
    }
  })

  it("a position above the end of the log is never taken back in silence", async () => {
    const topic = unique("group-beyond")
    const group = unique("group")
    await createTopic(source, topic)
    await load(source, makeRecords({ topic, count: 10 }))
    const first = await joinGroup(source, { group, topics: [topic] })
    await first.owns(1)
    await first.stopReading()
    await first.close()
    await commitByHand(source, group, topic, 50)
    const member = await joinGroup(source, { group, topics: [topic] })
    const [partition] = await until(async () => {
      const found = await member.partitions()
      return found[0]?.problem != null ? found : null
    }, { what: "the problem" })
    assert.deepInclude(partition?.problem, { _tag: "GapError", kind: "beyond", from: 50, to: 0 })
    assert.strictEqual(member.seen.length, 0)
    await member.close()
    const going = await joinGroup(source, { group, topics: [topic], onSourceGap: "continue" })
    await going.sees(10)
    assert.deepInclude(going.gaps[0], { kind: "beyond", from: 50, to: 0 })
    await going.close()
    assert.deepStrictEqual(await committedOffsets(source, group, topic, 1), [10])
  })
})
