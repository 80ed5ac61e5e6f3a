/** The cluster in this process under our own producer and share consumer, on virtual time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeEmbedded } from "../../src/embedded/embedded.ts"
import { makeShareConsumer } from "../../src/share/consumer.ts"
import { makeTransactionalProducer } from "../../src/txn/transactions.ts"
import { encodeBatch } from "../../src/wire/batch/records.ts"
import { splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { endTxn } from "../../src/wire/messages/endTxn.ts"
import { fetch } from "../../src/wire/messages/fetch.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { passing } from "../kit/passing.ts"

const batch = (...values: ReadonlyArray<string>) =>
  encodeBatch(
    values.map((value, offset) => ({ offset, timestamp: 1n, key: null, value: Buffer.from(value), headers: [] })),
    { codec: "none" }
  )

const readAll = (cluster: Cluster, topic: string, isolationLevel: number) =>
  Effect.gen(function*() {
    const { id } = (yield* cluster.topics([topic])).get(topic)!
    const partitions = [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000_000 }]
    const answer = yield* cluster.request({ kind: "broker", id: 1 }, fetch, {
      maxWaitMs: 0,
      minBytes: 0,
      isolationLevel,
      topics: [{ topicId: id, topic, partitions }]
    })
    const found = answer.responses[0]!.partitions[0]!
    return { ...found, batches: splitBatches(found.records ?? Buffer.alloc(0)) }
  })

describe("the embedded cluster", () => {
  it.effect("answers EndTxn before the markers are in the logs, and readers of committed records wait for them", () =>
    Effect.scoped(Effect.gen(function*() {
      const embedded = yield* makeEmbedded({ markerDelayMs: "manual" })
      embedded.createTopic("out", { partitions: 2 })
      const cluster = yield* embedded.cluster("worker")
      const producer = yield* makeTransactionalProducer({ cluster, purpose: "p", transactionalId: "t" })
      yield* passing(producer.begin)
      yield* passing(
        producer.produce([{ topic: "out", partition: 0, bytes: batch("a") }, {
          topic: "out",
          partition: 1,
          bytes: batch("b")
        }])
      )
      assert.deepStrictEqual(yield* passing(producer.commit), { kind: "committed" })
      assert.strictEqual(embedded.pendingMarkers().length, 2)
      const before = yield* readAll(cluster, "out", 1)
      assert.deepStrictEqual([before.lastStableOffset, before.batches.length], [0, 0])
      embedded.releaseMarkers()
      const after = yield* readAll(cluster, "out", 1)
      assert.deepStrictEqual([after.lastStableOffset, after.batches.length, after.batches[1]!.isControl], [2, 2, true])
    })))

  it.effect("delivers to a share group under locks that end with the clock", () =>
    Effect.scoped(Effect.gen(function*() {
      const embedded = yield* makeEmbedded({ brokers: 2 })
      embedded.createTopic("in", { partitions: 2 })
      embedded.configure("group", "g", {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": "15000"
      })
      for (let p = 0; p < 2; p++) embedded.append("in", p, [{ value: "x" }, { value: "y" }])
      const cluster = yield* embedded.cluster("worker")
      const consumer = yield* makeShareConsumer({ cluster, groupId: "g", topics: ["in"], mode: "explicit" })
      const poll = consumer.poll({ maxWaitMs: 500, maxBytes: 1_000_000, maxRecords: 100 })
      const got = yield* passing(Effect.gen(function*() {
        const all = []
        while (all.length < 2) all.push(...(yield* poll))
        return all
      }))
      assert.deepStrictEqual(got.map((a) => a.ranges), [[{ first: 0, last: 1, deliveryCount: 1 }], [{
        first: 0,
        last: 1,
        deliveryCount: 1
      }]])
      const results = yield* passing(consumer.acknowledge(got[0]!, [{ first: 0, last: 1, type: "accept" }]))
      assert.deepStrictEqual(results.map((r) => r.outcome), ["done"])
      assert.strictEqual(embedded.sharePartition("g", "in", got[0]!.partition)!.start, 2)
      yield* passing(Effect.sleep(60_000))
      assert.strictEqual(
        embedded.sharePartition("g", "in", got[1]!.partition)!.records[0]!.state,
        "acquired",
        "renewed"
      )
    })))

  it.effect("loses an answer when told to, and what was asked is done all the same", () =>
    Effect.scoped(Effect.gen(function*() {
      const embedded = yield* makeEmbedded()
      embedded.createTopic("out")
      const cluster = yield* embedded.cluster("worker")
      const producer = yield* makeTransactionalProducer({ cluster, purpose: "p", transactionalId: "t" })
      yield* passing(producer.begin)
      yield* passing(producer.produce([{ topic: "out", partition: 0, bytes: batch("a") }]))
      const lost = embedded.control(endTxn, () => ({ kind: "loseAnswer", then: "close" }))
      const outcome = yield* passing(producer.commit)
      assert.isTrue(lost.used)
      assert.deepStrictEqual([outcome.kind, embedded.log("out", 0).endOffset], ["unknown", 2])
    })))
})
