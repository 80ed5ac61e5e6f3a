/** What records look like on the other side, in both modes: bytes, headers, nulls, codecs, sizes, transactions, holes. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { alterTopic, createTopic, createTopics, growTopic, listTopics } from "../kit/admin.ts"
import { type AuditRecord, identityOf, readTopics } from "../kit/auditor.ts"
import { type Codec, load, type LoadRecord, makeRecords, openLoader } from "../kit/loader.ts"
import { assertExact, assertOrdered, judge, mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"

const { source, target } = sharedClusters()
const codecs: ReadonlyArray<Codec> = ["none", "gzip", "snappy", "lz4", "zstd"]
const expectAll = { share: assertExact, consumer: assertOrdered }

for (const mode of ["share", "consumer"] as const) {
  const flow = (topics: ReadonlyArray<string>, more = {}) => ({
    topics,
    "group.protocol": mode,
    "group.id": unique(`g-${mode}`),
    "tasks.max": 2,
    // What a topic on the target takes is set here by hand.
    "sync.topic.configs.enabled": false,
    ...more
  })

  describe(`${mode} mode`, () => {
    it("every codec comes over whole, with the same codec's batches untouched", async () => {
      const prefix = unique("codecs")
      const topics = codecs.map((codec) => `${prefix}-${codec}`)
      await createTopics(source, topics.map((topic) => ({ topic, partitions: 2 })))
      for (const codec of codecs) {
        await load(source, makeRecords({ topic: `${prefix}-${codec}`, count: 400, partitions: 2 }), { codec })
      }
      await mirrorUntilCaughtUp(source, target, flow([`${prefix}-.*`]))
      expectAll[mode]((await judge(source, target, topics)).comparison, 2000)
    })

    it("headers, nulls and empty values are byte-identical; timestamps too", async () => {
      const topic = unique("odd")
      await createTopic(source, topic)
      const records: ReadonlyArray<LoadRecord> = [
        {
          topic,
          partition: 0,
          key: null,
          value: "null-key|",
          headers: [["h", "1"], ["h", ""], ["h", Buffer.from([0xff, 0x00, 0xfe])]],
          timestamp: 1_600_000_000_123
        },
        { topic, partition: 0, key: "", value: "empty-key|", timestamp: 1_600_000_000_001 },
        {
          topic,
          partition: 0,
          key: Buffer.from([0xc3, 0x28, 0x00]),
          value: Buffer.from([0x7c, 0xff, 0xfe, 0x00]),
          headers: [["kit-id", "binary"]]
        },
        { topic, partition: 0, key: "tombstone", value: null, headers: [["kit-id", "tombstone"]] },
        { topic, partition: 0, key: "empty", value: "", headers: [["kit-id", "empty"]] }
      ]
      await load(source, records)
      await mirrorUntilCaughtUp(source, target, flow([topic]))
      const { comparison, target: got } = await judge(source, target, [topic])
      expectAll[mode](comparison, 5)
      const by = (id: string): AuditRecord | undefined => got.find((record) => identityOf(record) === id)
      assert.isNull(by("tombstone")?.value)
      assert.strictEqual(by("empty")?.value?.length, 0)
      assert.isNull(by("null-key")?.key)
      assert.strictEqual(by("empty-key")?.key?.length, 0)
    })

    it("records of 1 MB pass, also beside small ones", async () => {
      const topic = unique("large")
      await createTopic(source, topic, { configs: { "max.message.bytes": "4000000" } })
      await load(source, [
        ...makeRecords({ topic, count: 4, valueBytes: 1_000_000 }),
        ...makeRecords({ topic, count: 50, prefix: "small" })
      ])
      await createTopic(target, `east.${topic}`, { configs: { "max.message.bytes": "4000000" } })
      await mirrorUntilCaughtUp(source, target, flow([topic]))
      expectAll[mode]((await judge(source, target, [topic])).comparison, 54)
    })

    it("aborted records are not copied, committed ones are, and an open transaction waits for its end", async () => {
      const topic = unique("transactions")
      await createTopic(source, topic)
      const loader = await openLoader(source, { transactionalId: unique("t"), transactionTimeoutMs: 600_000 })
      const send = (prefix: string, from: number) => loader.send(makeRecords({ topic, count: 20, prefix, from }))
      for (
        const [prefix, end] of [["one", "commit"], ["bad", "abort"], ["two", "commit"], ["worse", "abort"]] as const
      ) {
        await loader.begin()
        await send(prefix, 0)
        await loader[end]()
      }
      await loader.begin()
      await send("open", 0)
      const settings = flow([topic])
      await mirrorUntilCaughtUp(source, target, settings)
      expectAll[mode]((await judge(source, target, [topic])).comparison, 40)
      await loader.commit()
      await loader.close()
      await mirrorUntilCaughtUp(source, target, settings)
      expectAll[mode]((await judge(source, target, [topic])).comparison, 60)
    })

    it("a compacted topic's survivors and tombstones come over", async () => {
      const topic = unique("compacted")
      await createTopic(source, topic, {
        configs: {
          "cleanup.policy": "compact",
          "segment.ms": "100",
          "min.cleanable.dirty.ratio": "0.0001",
          "min.compaction.lag.ms": "0",
          "delete.retention.ms": "3600000"
        }
      })
      // Made by hand: with the source's settings the target's cleaner would take away records while they are judged.
      await createTopic(target, `east.${topic}`, { configs: { "cleanup.policy": "compact" } })
      const id = (n: number, round: number): LoadRecord => ({
        topic,
        partition: 0,
        key: `k${n % 10}`,
        value: n % 10 === 3 && round > 0 ? null : `r${round}n${n}|`,
        headers: [["kit-id", `r${round}n${n}`]]
      })
      for (let round = 0; round < 4; round++) await load(source, Array.from({ length: 50 }, (_, n) => id(n, round)))
      // The cleaner leaves the active segment alone: rolled by a record behind it, again and again until it has cleaned.
      let extra = 0
      await until(async () => {
        await load(source, [{
          topic,
          partition: 0,
          key: "roll",
          value: `roll${extra}|`,
          headers: [["kit-id", `roll${extra++}`]]
        }])
        return (await readTopics(source, [topic])).length < 150
      }, { timeoutMs: 60_000, what: "the cleaner to compact the topic" })
      await mirrorUntilCaughtUp(source, target, flow([topic]))
      const { comparison } = await judge(source, target, [topic])
      expectAll[mode](comparison, comparison.source)
      assert.isAbove(comparison.source, 0)
    })

    describe("while it runs", () => {
      let mirror: Onceover
      const prefix = unique(`live-${mode}`)
      beforeAll(async () => {
        mirror = await startOnceover({ config: mirrorConfig(source, target, flow([`${prefix}.*`])) })
        await mirror.untilRunning()
      })
      afterAll(() => mirror.dispose())

      const settled = async (topic: string, expected: number): Promise<void> => {
        await until(async () => (await judge(source, target, [topic])).target.length >= expected, {
          timeoutMs: 60_000,
          what: () => `${expected} records of ${topic}; ${mirror.output().slice(-2_000)}`
        })
        expectAll[mode]((await judge(source, target, [topic])).comparison, expected)
      }

      it("a topic created now is found, with its partition count, from its first record on", async () => {
        const topic = `${prefix}-new`
        await createTopic(source, topic, { partitions: 3 })
        await load(source, makeRecords({ topic, count: 90, partitions: 3 }))
        await until(async () => (await listTopics(target)).get(`east.${topic}`) === 3, {
          timeoutMs: 60_000,
          what: "the target topic with 3 partitions"
        })
        await settled(topic, 90)
      })

      it("partitions added on the source are added on the target, and their records follow", async () => {
        const topic = `${prefix}-new`
        await growTopic(source, topic, 5)
        await load(source, makeRecords({ topic, count: 100, partitions: 5, prefix: "grown" }))
        await settled(topic, 190)
        assert.strictEqual((await listTopics(target)).get(`east.${topic}`), 5)
      })

      it("a record the target refuses blocks its partition only, says why, and goes on when the limit is raised", async () => {
        const topic = `${prefix}-refused`
        await createTopic(target, `east.${topic}`, { partitions: 2, configs: { "max.message.bytes": "20000" } })
        await createTopic(source, topic, { partitions: 2 })
        await load(source, [
          ...makeRecords({ topic, count: 20, partitions: 2 }),
          { topic, partition: 0, key: "big", value: "big|".padEnd(50_000, "x") }
        ])
        await load(source, makeRecords({ topic, count: 20, partitions: 2, prefix: "behind" }))
        await until(
          async () =>
            (await mirror.status())?.flows[0]?.partitions.some((p) =>
              p.topic === topic && p.partition === 0 && p.state === "blocked"
            ) === true,
          { timeoutMs: 60_000, what: "partition 0 to be blocked" }
        )
        const blocked = (await mirror.status())?.flows[0]?.partitions.find((p) =>
          p.topic === topic && p.partition === 0
        )
        assert.match(blocked?.reason ?? "", /refuses the record at offset 10: .*MESSAGE_TOO_LARGE/)
        await until(
          async () => (await judge(source, target, [topic])).target.filter((r) => r.partition === 1).length === 20,
          { timeoutMs: 60_000, what: "partition 1 to go on" }
        )
        await alterTopic(target, `east.${topic}`, { "max.message.bytes": "1000000" })
        await settled(topic, 41)
      })
    })
  })
}
