/** The raw-batch producer while its brokers die: three of them, so that leaders move. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { makeProducer } from "../../src/txn/producer.ts"
import { makeTransactionalProducer } from "../../src/txn/transactions.ts"
import { encodeBatch } from "../../src/wire/batch/records.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { createTopic } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { unique } from "../kit/shared.ts"
import { afterAll, beforeAll } from "vitest"

let brokers: KafkaCluster
beforeAll(async () => {
  brokers = await startCluster({ name: "target", brokers: 3 })
})
afterAll(() => brokers?.stop())

const outgoing = (topic: string, partition: number, value: string) => ({
  topic,
  partition,
  bytes: encodeBatch(
    [{ offset: 0, timestamp: 1_700_000_000_000n, key: null, value: Buffer.from(value), headers: [] }],
    { codec: "none" }
  )
})
const create = (topic: string) =>
  Effect.promise(() =>
    createTopic(brokers, topic, {
      partitions: 6,
      replicas: 3,
      configs: { "retention.ms": "-1", "min.insync.replicas": "2" }
    })
  )
const seen = (topic: string) =>
  Effect.promise(async () => {
    const records = await readTopics(brokers, [topic])
    return [0, 1, 2, 3, 4, 5].map((partition) =>
      records.filter((r) => r.partition === partition).map((r) => r.value?.toString())
    )
  })
/** Kills two brokers, one after the other, as soon as `go` says so, and starts each again. */
const killEach = (go: ReadonlyArray<Deferred.Deferred<void>>) =>
  Effect.forEach(brokers.brokerIds.slice(0, 2), (id, index) =>
    Effect.gen(function*() {
      yield* Deferred.await(go[index] as Deferred.Deferred<void>)
      yield* Effect.promise(() => brokers.kill("SIGKILL", id))
      yield* Effect.promise(() => brokers.restart(id))
    }))

const settings = { requestTimeoutMs: 5_000 }

describe("while brokers are killed in turn", () => {
  it.live("an idempotent producer writes every batch once, in order", () =>
    Effect.gen(function*() {
      const topic = unique("crash")
      yield* create(topic)
      const cluster = yield* makeCluster("target", { "bootstrap.servers": brokers.bootstrap })
      const producer = yield* makeProducer({ cluster, purpose: "produce", settings })
      const go = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const killer = yield* Effect.forkChild(killEach(go))
      const expected: Array<Array<string | undefined>> = [[], [], [], [], [], []]
      let calls = 0
      for (; killer.pollUnsafe() === undefined || calls < 10; calls++) {
        const batches = Array.from({ length: 120 }, (_, i) => {
          expected[i % 6]?.push(`${calls}/${i}`)
          return outgoing(topic, i % 6, `${calls}/${i}`)
        })
        if (calls % 3 === 1 && calls < 6) {
          yield* Deferred.succeed(go[Math.floor(calls / 3)] as Deferred.Deferred<void>, undefined)
        }
        assert.isTrue((yield* producer.produce(batches)).every((o) => o.ok))
      }
      yield* Fiber.join(killer)
      assert.deepStrictEqual(yield* seen(topic), expected)
    }).pipe(Effect.scoped))

  it.live("a transactional producer shows what it committed, all of it and nothing else", () =>
    Effect.gen(function*() {
      const topic = unique("crash")
      yield* create(topic)
      const cluster = yield* makeCluster("target", { "bootstrap.servers": brokers.bootstrap })
      const producer = yield* makeTransactionalProducer({
        cluster,
        purpose: "produce",
        transactionalId: unique("lane"),
        settings
      })
      const go = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const killer = yield* Effect.forkChild(killEach(go))
      const committed = new Set<string>()
      const unknown = new Set<string>()
      let calls = 0
      for (; killer.pollUnsafe() === undefined || calls < 10; calls++) {
        yield* producer.begin
        if (calls % 3 === 1 && calls < 6) {
          yield* Deferred.succeed(go[Math.floor(calls / 3)] as Deferred.Deferred<void>, undefined)
        }
        const produced = yield* Effect.exit(
          producer.produce(Array.from({ length: 60 }, (_, i) => outgoing(topic, i % 6, `${calls}/${i}`)))
        )
        const outcome = yield* produced._tag === "Success" ? producer.commit : producer.abort
        if (outcome.kind === "committed") {
          committed.add(`${calls}`)
        }
        if (outcome.kind === "unknown") unknown.add(`${calls}`)
      }
      yield* Fiber.join(killer)
      yield* producer.init
      const values = (yield* seen(topic)).flat()
      const counts = new Map<string, number>()
      for (const value of values) {
        counts.set(value?.split("/")[0] ?? "", (counts.get(value?.split("/")[0] ?? "") ?? 0) + 1)
      }
      assert.strictEqual(new Set(values).size, values.length, "nothing twice")
      assert.isAbove(committed.size, 5)
      for (const call of committed) {
        assert.strictEqual(counts.get(call), 60, `transaction ${call} is whole`)
      }
      for (const [call, count] of counts) {
        assert.isTrue(
          committed.has(call) || (unknown.has(call) && count === 60),
          `transaction ${call} was not committed`
        )
      }
    }).pipe(Effect.scoped))
})
