/** What we encode, on a real broker, read by librdkafka: large enough for many blocks of each codec's framing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeProducer } from "../../src/txn/producer.ts"
import { codecs } from "../../src/wire/batch/recordBatch.ts"
import { encodeBatch, type Rec } from "../../src/wire/batch/records.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { createTopic } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { sharedClusters, unique } from "../kit/shared.ts"

const { target } = sharedClusters()

const record = (offset: number, part: Partial<Rec>): Rec => ({
  offset,
  timestamp: 1_700_000_000_000n + BigInt(offset),
  key: null,
  value: null,
  headers: [],
  ...part
})

const noise = Buffer.from(Array.from({ length: 200_000 }, (_, i) => ((i * 2_654_435_761) >>> 13) & 0xff))

const records: ReadonlyArray<Rec> = [
  record(0, { key: Buffer.from("key"), value: Buffer.from("value") }),
  record(1, { value: Buffer.from("null key") }),
  record(2, { key: Buffer.from("tombstone") }),
  record(3, { key: Buffer.from("repeating"), value: Buffer.alloc(400_000, "onceover ") }),
  record(4, {
    key: Buffer.from("noise"),
    value: noise,
    headers: [{ key: Buffer.from("h"), value: noise.subarray(0, 300) }, {
      key: Buffer.from("h"),
      value: Buffer.from("2")
    }]
  }),
  ...Array.from(
    { length: 2_000 },
    (_, i) => record(5 + i, { key: Buffer.from(`k${i}`), value: Buffer.from(`value ${i}`) })
  )
]

describe("encoded batches", () => {
  for (const codec of codecs) {
    it.live(`with ${codec} are taken by a broker and read back by librdkafka as they were`, () =>
      Effect.gen(function*() {
        const topic = unique(`encoded-${codec}`)
        yield* Effect.promise(() => createTopic(target, topic, { configs: { "retention.ms": "-1" } }))
        const cluster = yield* makeCluster("target", { "bootstrap.servers": target.bootstrap })
        const producer = yield* makeProducer({ cluster, purpose: "produce" })
        const outcomes = yield* producer.produce([{ topic, partition: 0, bytes: encodeBatch(records, { codec }) }])
        assert.deepStrictEqual(outcomes.map((outcome) => outcome.ok ? outcome.baseOffset : outcome.error.message), [0])
        const seen = yield* Effect.promise(() => readTopics(target, [topic]))
        assert.lengthOf(seen, records.length)
        seen.forEach((got, i) => {
          const sent = records[i] as Rec
          const name = `record ${i}`
          assert.strictEqual(got.timestamp, Number(sent.timestamp), name)
          assert.deepStrictEqual(got.key, sent.key, name)
          assert.isTrue(sent.value === null ? got.value === null : got.value?.equals(sent.value), name)
          assert.deepStrictEqual(
            got.headers,
            sent.headers.map(({ key, value }) => [key.toString(), value ?? Buffer.alloc(0)] as const),
            name
          )
        })
      }).pipe(Effect.scoped))
  }
})
