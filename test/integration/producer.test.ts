/** The raw-batch producer on a real broker, read back by librdkafka. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { makeProducer, type ProducerOptions } from "../../src/txn/producer.ts"
import type { ProduceOutcome } from "../../src/txn/produceRun.ts"
import { type Codec, splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { encodeBatch, type Rec } from "../../src/wire/batch/records.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { fetch } from "../../src/wire/messages/fetch.ts"
import { alterTopic, createTopic, endOffsets } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { sharedClusters, unique } from "../kit/shared.ts"

const { target } = sharedClusters()
const START = 1_700_000_000_000

/** Without retention: the records' timestamps are old. */
const create = (topic: string, partitions = 1, configs: Readonly<Record<string, string>> = {}) =>
  createTopic(target, topic, { partitions, configs: { "retention.ms": "-1", ...configs } })
const record = (name: string, bytes = 20): Rec => ({
  offset: 0,
  timestamp: BigInt(START),
  key: Buffer.from(`key-${name}`),
  value: Buffer.from(name.padEnd(bytes, ".")),
  headers: [{ key: Buffer.from("h"), value: Buffer.from([0xff, 0x00, 0xfe]) }, {
    key: Buffer.from("h"),
    value: Buffer.from("")
  }]
})
const batchOf = (names: ReadonlyArray<string>, codec: Codec = "none", bytes = 20): Buffer =>
  encodeBatch(names.map((name) => record(name, bytes)), { codec })
const producing = (options: Partial<ProducerOptions> = {}) =>
  Effect.flatMap(
    makeCluster("target", { "bootstrap.servers": target.bootstrap }),
    (cluster) =>
      Effect.map(makeProducer({ cluster, purpose: "produce", ...options }), (producer) => ({ cluster, producer }))
  )
const names = async (topic: string): Promise<ReadonlyArray<string>> =>
  (await readTopics(target, [topic])).map(({ value }) => value?.toString().replaceAll(".", "") ?? "null")
const offsets = (outcomes: ReadonlyArray<ProduceOutcome>) => outcomes.map((o) => o.ok ? o.baseOffset : o.error.message)

describe("a raw-batch producer", () => {
  for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"] satisfies ReadonlyArray<Codec>) {
    it.live(`puts batches of ${codec} into the log as they are, byte for byte behind the header`, () =>
      Effect.gen(function*() {
        const topic = unique("raw")
        yield* Effect.promise(() => create(topic))
        const { cluster, producer } = yield* producing()
        const batch = batchOf(["a", "b", "c"], codec)
        const before = Buffer.from(splitBatches(batch)[0]?.recordBytes ?? Buffer.alloc(0))
        assert.deepStrictEqual(offsets(yield* producer.produce([{ topic, partition: 0, bytes: batch }])), [0])

        const { id } = (yield* cluster.topics([topic])).get(topic) ?? { id: "" }
        const answer = yield* cluster.request(
          { kind: "broker", id: (yield* cluster.leader(topic, 0)).leader },
          fetch,
          (version) => ({
            maxWaitMs: 100,
            minBytes: 1,
            topics: [{
              ...(version >= 13 ? { topicId: id } : { topic }),
              partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000_000 }]
            }]
          })
        )
        const stored = splitBatches(answer.responses[0]?.partitions[0]?.records ?? Buffer.alloc(0))[0]
        assert.deepStrictEqual(stored?.recordBytes, before)
        assert.strictEqual(stored?.codec, codec)
        assert.isTrue(stored?.crcIsValid())

        const [first] = yield* Effect.promise(() => readTopics(target, [topic]))
        assert.deepStrictEqual([first?.key?.toString(), first?.timestamp, first?.headers.map(([, value]) => value)], [
          "key-a",
          START,
          [Buffer.from([0xff, 0x00, 0xfe]), Buffer.from("")]
        ])
      }).pipe(Effect.scoped))
  }

  it.live("keeps the order of each partition over many batches, partitions and calls", () =>
    Effect.gen(function*() {
      const topic = unique("raw")
      yield* Effect.promise(() => create(topic, 3))
      const { producer } = yield* producing()
      const expected: Array<Array<string>> = [[], [], []]
      for (let call = 0; call < 4; call++) {
        const batches = Array.from({ length: 60 }, (_, i) => {
          const name = `${call}/${i}`
          expected[i % 3]?.push(name)
          return { topic, partition: i % 3, bytes: batchOf([name]) }
        })
        const outcomes = yield* producer.produce(batches)
        assert.deepStrictEqual(offsets(outcomes), batches.map((_, i) => call * 20 + Math.floor(i / 3)))
      }
      const records = yield* Effect.promise(() => readTopics(target, [topic]))
      for (const partition of [0, 1, 2]) {
        assert.deepStrictEqual(
          records.filter((r) => r.partition === partition).map((r) => r.value?.toString().replaceAll(".", "")),
          expected[partition]
        )
      }
    }).pipe(Effect.scoped))

  it.live("a batch that is too large holds up its partition only, and goes through when the limit is raised", () =>
    Effect.gen(function*() {
      const topic = unique("raw")
      yield* Effect.promise(() => create(topic, 2, { "max.message.bytes": "2000" }))
      const { producer } = yield* producing()
      const small = (name: string) => batchOf([name])
      yield* producer.produce([{ topic, partition: 0, bytes: small("start") }])
      const large = batchOf(["large"], "none", 5_000)
      const rest = [large, small("behind"), small("further behind")]
      const outcomes = yield* producer.produce([
        ...rest.map((bytes) => ({ topic, partition: 0, bytes })),
        { topic, partition: 1, bytes: small("elsewhere") }
      ])
      assert.deepStrictEqual(outcomes.map((o) => o.ok ? "ok" : `${o.error._tag} ${o.error.written}`), [
        "RecordRefused no",
        "HeldBack no",
        "HeldBack no",
        "ok"
      ])
      const refusal = outcomes[0]
      assert.include(refusal?.ok === false ? refusal.error.message : "", "MESSAGE_TOO_LARGE (10)")

      yield* Effect.promise(() => alterTopic(target, topic, { "max.message.bytes": "10000" }))
      const again = yield* producer.produce(rest.map((bytes) => ({ topic, partition: 0, bytes })))
      assert.deepStrictEqual(offsets(again), [1, 2, 3])
      assert.deepStrictEqual((yield* Effect.promise(() => names(topic))).toSorted(), [
        "behind",
        "elsewhere",
        "further behind",
        "large",
        "start"
      ])
    }).pipe(Effect.scoped))

  it.live("goes on behind a refused batch where that is asked for", () =>
    Effect.gen(function*() {
      const topic = unique("raw")
      yield* Effect.promise(() => create(topic, 1, { "max.message.bytes": "2000" }))
      const { producer } = yield* producing({ settings: { afterFailure: "continue" } })
      const sizes = [20, 5_000, 20, 5_000, 20, 20, 20, 20, 20]
      const outcomes = yield* producer.produce(
        sizes.map((size, i) => ({ topic, partition: 0, bytes: batchOf([`${i}`], "none", size) }))
      )
      assert.deepStrictEqual(outcomes.map((o) => o.ok), sizes.map((size) => size === 20))
      assert.deepStrictEqual(yield* Effect.promise(() => names(topic)), ["0", "2", "4", "5", "6", "7", "8"])
    }).pipe(Effect.scoped))

  it.live("waits for a topic that is not there yet, says so, and goes on by itself", () =>
    Effect.gen(function*() {
      const topic = unique("raw")
      const stalled = yield* Deferred.make<string>()
      const { producer } = yield* producing({
        onStall: ({ reason }) => Effect.runFork(Deferred.succeed(stalled, reason))
      })
      const fiber = yield* Effect.forkChild(producer.produce([{ topic, partition: 0, bytes: batchOf(["late"]) }]))
      assert.strictEqual(yield* Deferred.await(stalled), `the target has no topic ${topic}`)
      assert.strictEqual((yield* producer.stalls).length, 1)
      yield* Effect.promise(() => create(topic))
      assert.deepStrictEqual(offsets(yield* Fiber.join(fiber)), [0])
      assert.deepStrictEqual(yield* producer.stalls, [])
    }).pipe(Effect.scoped))

  it.live("is of use again after an interruption", () =>
    Effect.gen(function*() {
      const topic = unique("raw")
      yield* Effect.promise(() => create(topic))
      const { producer } = yield* producing()
      for (let i = 0; i < 10; i++) {
        const fiber = yield* Effect.forkChild(
          producer.produce(
            Array.from({ length: 20 }, (_, n) => ({ topic, partition: 0, bytes: batchOf([`${i}/${n}`]) }))
          )
        )
        for (let turns = 0; turns < i; turns++) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
        const [outcome] = yield* producer.produce([{ topic, partition: 0, bytes: batchOf([`end ${i}`]) }])
        assert.isTrue(outcome?.ok)
      }
      const seen = yield* Effect.promise(() => names(topic))
      assert.deepStrictEqual(seen, [...new Set(seen)], "nothing twice")
      assert.strictEqual(seen.filter((name) => name.startsWith("end")).length, 10)
      assert.deepStrictEqual((yield* Effect.promise(() => endOffsets(target, topic)))[0], seen.length)
    }).pipe(Effect.scoped))
})
