/** A source that is older than share groups: Kafka 3.9. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { type Codec, load, makeRecords, openLoader } from "../kit/loader.ts"
import { assertOrdered, judge, mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { mirrorConfig, runOnceover } from "../kit/onceover.ts"
import { versions } from "../kit/paths.ts"
import { sharedClusters, unique } from "../kit/shared.ts"

const { target } = sharedClusters()
const codecs: ReadonlyArray<Codec> = ["none", "gzip", "snappy", "lz4", "zstd"]

describe(`a source of Kafka ${versions.kafkaOld}`, () => {
  let source: KafkaCluster
  beforeAll(async () => {
    source = await startCluster({ name: "old-source", version: versions.kafkaOld })
  })
  afterAll(() => source?.stop())

  it("is mirrored in consumer mode: each record once and in order, aborted ones left out", async () => {
    const topic = unique("old")
    await createTopic(source, topic, { partitions: 2 })
    for (const codec of codecs) {
      await load(source, makeRecords({ topic, count: 200, partitions: 2, prefix: codec }), { codec })
    }
    const loader = await openLoader(source, { transactionalId: unique("t") })
    for (const [prefix, end] of [["bad", "abort"], ["good", "commit"]] as const) {
      await loader.begin()
      await loader.send(makeRecords({ topic, count: 50, partitions: 2, prefix }))
      await loader[end]()
    }
    await loader.close()
    const flow = { topics: [topic], "group.protocol": "consumer", "group.id": unique("old-group"), "tasks.max": 2 }
    await mirrorUntilCaughtUp(source, target, flow)
    assertOrdered((await judge(source, target, [topic])).comparison, 1_050)
    await load(source, makeRecords({ topic, count: 100, partitions: 2, prefix: "later" }))
    await mirrorUntilCaughtUp(source, target, flow)
    assertOrdered((await judge(source, target, [topic])).comparison, 1_150)
  })

  it("is refused in share mode, with the sentence that says what to do, exit 1", async () => {
    const config = mirrorConfig(source, target, { topics: ["anything"], "group.protocol": "share" })
    const { code, output } = await runOnceover({ config })
    assert.strictEqual(code, 1, output)
    assert.match(output, /no share groups.*group\.protocol: consumer/)
  })
})
