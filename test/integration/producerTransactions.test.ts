/** The transactional producer on a real broker: what a reader in read_committed sees. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { makeTransactionalProducer, type TransactionalOptions } from "../../src/txn/transactions.ts"
import { encodeBatch } from "../../src/wire/batch/records.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { createTopic } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { versions } from "../kit/paths.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { afterAll, beforeAll } from "vitest"

interface Target {
  bootstrap: string
}

const outgoing = (topic: string, partition: number, value: string, bytes = value.length) => ({
  topic,
  partition,
  bytes: encodeBatch([{
    offset: 0,
    timestamp: 1_700_000_000_000n,
    key: null,
    value: Buffer.from(value.padEnd(bytes, ".")),
    headers: []
  }], { codec: "none" })
})
const suite = (name: string, target: Target) => {
  const transactional = (options: Partial<TransactionalOptions> = {}) =>
    Effect.gen(function*() {
      const cluster = yield* makeCluster("target", { "bootstrap.servers": target.bootstrap })
      const transactionalId = options.transactionalId ?? unique("lane")
      const producer = yield* makeTransactionalProducer({ cluster, purpose: "produce", ...options, transactionalId })
      return { producer, transactionalId }
    })
  const create = (topic: string, partitions = 1, configs: Readonly<Record<string, string>> = {}) =>
    Effect.promise(() => createTopic(target, topic, { partitions, configs: { "retention.ms": "-1", ...configs } }))
  const values = (topic: string, isolation: "read_committed" | "read_uncommitted" = "read_committed") =>
    Effect.promise(async () =>
      (await readTopics(target, [topic], { isolation })).map(({ value }) => value?.toString()).toSorted()
    )

  describe(`a transactional producer, ${name}`, () => {
    it.live("what is committed is seen, what is aborted is not, over many transactions", () =>
      Effect.gen(function*() {
        const topic = unique("txn")
        yield* create(topic, 3)
        const { producer } = yield* transactional()
        const expected: Array<string> = []
        for (let n = 0; n < 12; n++) {
          yield* producer.begin
          const outcomes = yield* producer.produce(
            Array.from({ length: 20 }, (_, i) => outgoing(topic, i % 3, `${n}/${i}`))
          )
          assert.isTrue(outcomes.every((o) => o.ok))
          if (n % 3 === 1) assert.strictEqual((yield* producer.abort).kind, "aborted")
          else {
            assert.deepStrictEqual(yield* producer.commit, { kind: "committed" })
            expected.push(...Array.from({ length: 20 }, (_, i) => `${n}/${i}`))
          }
        }
        assert.deepStrictEqual(yield* values(topic), expected.toSorted())
        assert.strictEqual((yield* values(topic, "read_uncommitted")).length, 240)
      }).pipe(Effect.scoped))

    it.live("an empty transaction costs nothing and commits", () =>
      Effect.gen(function*() {
        const { producer } = yield* transactional()
        for (let n = 0; n < 3; n++) {
          yield* producer.begin
          assert.deepStrictEqual(yield* producer.commit, { kind: "committed" })
        }
      }).pipe(Effect.scoped))

    it.live("a newer producer with the same id fences the older, whose transaction is never seen", () =>
      Effect.gen(function*() {
        const topic = unique("txn")
        yield* create(topic)
        const { producer: older, transactionalId } = yield* transactional()
        yield* older.begin
        yield* older.produce([outgoing(topic, 0, "older")])
        const { producer: newer } = yield* transactional({ transactionalId })
        yield* newer.begin
        yield* newer.produce([outgoing(topic, 0, "newer")])
        assert.strictEqual((yield* older.commit).kind, "aborted")
        assert.deepStrictEqual(yield* newer.commit, { kind: "committed" })
        assert.deepStrictEqual(yield* values(topic), ["newer"])
      }).pipe(Effect.scoped))

    it.live("two producers that go on with one id: the one that is fenced twice in a row stops with that reason", () =>
      Effect.gen(function*() {
        const topic = unique("txn")
        yield* create(topic)
        const { producer: older, transactionalId } = yield* transactional()
        const { producer: newer } = yield* transactional({ transactionalId })
        for (let n = 0; n < 2; n++) {
          yield* older.begin
          yield* older.produce([outgoing(topic, 0, `older ${n}`)])
          yield* newer.init
          assert.strictEqual((yield* older.commit).kind, "aborted")
        }
        const error = yield* Effect.flip(older.begin)
        assert.strictEqual(error._tag, "ProducerFenced")
        assert.include(error.message, "fenced twice in a row")
        assert.deepStrictEqual(yield* values(topic), [])
      }).pipe(Effect.scoped))

    it.live("taking an id over ends the open transaction that holds readers back", () =>
      Effect.gen(function*() {
        const topic = unique("txn")
        yield* create(topic)
        const { producer: gone, transactionalId } = yield* transactional()
        yield* gone.begin
        yield* gone.produce([outgoing(topic, 0, "open")])
        const { producer: other } = yield* transactional()
        yield* other.begin
        yield* other.produce([outgoing(topic, 0, "behind")])
        yield* other.commit
        assert.deepStrictEqual(yield* values(topic), [])
        const { producer: successor } = yield* transactional({ transactionalId })
        yield* successor.init
        assert.deepStrictEqual(yield* values(topic), ["behind"])
      }).pipe(Effect.scoped))

    it.live("a batch that is refused blocks its partition, and the rest of the transaction can be committed", () =>
      Effect.gen(function*() {
        const topic = unique("txn")
        yield* create(topic, 2, { "max.message.bytes": "2000" })
        const { producer } = yield* transactional()
        // A broker that does not lead a new partition yet says so in words that leave open whether it has written.
        yield* producer.begin
        yield* producer.produce([outgoing(topic, 0, "first"), outgoing(topic, 1, "first")])
        assert.deepStrictEqual(yield* producer.commit, { kind: "committed" })
        for (let n = 0; n < 3; n++) {
          yield* producer.begin
          const outcomes = yield* producer.produce([
            outgoing(topic, 0, `large ${n}`, 5_000),
            outgoing(topic, 0, `behind ${n}`),
            outgoing(topic, 1, `other ${n}`)
          ])
          assert.deepStrictEqual(outcomes.map((o) => o.ok ? "ok" : `${o.error._tag} ${o.error.written}`), [
            "RecordRefused no",
            "HeldBack no",
            "ok"
          ])
          assert.deepStrictEqual(yield* producer.commit, { kind: "committed" })
        }
        assert.deepStrictEqual(yield* values(topic), ["first", "first", "other 0", "other 1", "other 2"])
      }).pipe(Effect.scoped))

    it.live("an interrupted produce is never committed, and the producer goes on", () =>
      Effect.gen(function*() {
        const topic = unique("txn")
        yield* create(topic)
        // Does not exist, so that the produce below cannot end by itself.
        const never = unique("txn")
        const { producer } = yield* transactional()
        for (let n = 0; n < 8; n++) {
          yield* producer.begin
          yield* producer.produce([outgoing(topic, 0, `lost ${n}`)])
          const lost = Array.from({ length: 30 }, (_, i) => outgoing(topic, 0, `lost ${n}/${i}`))
          const fiber = yield* Effect.forkChild(producer.produce([...lost, outgoing(never, 0, "never")]), {
            startImmediately: true
          })
          for (let turns = 0; turns < n * 4; turns++) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
          assert.strictEqual((yield* producer.commit).kind, "aborted")
          yield* producer.begin
          yield* producer.produce([outgoing(topic, 0, `kept ${n}`)])
          assert.deepStrictEqual(yield* producer.commit, { kind: "committed" })
        }
        assert.deepStrictEqual(yield* values(topic), Array.from({ length: 8 }, (_, n) => `kept ${n}`))
      }).pipe(Effect.scoped))

    it.live("a transaction that the coordinator timed out is aborted, and the next one goes through", () =>
      Effect.gen(function*() {
        const topic = unique("txn")
        yield* create(topic)
        const { producer } = yield* transactional({ settings: { transactionTimeoutMs: 1_000 } })
        yield* producer.begin
        yield* producer.produce([outgoing(topic, 0, "slow")])
        const { producer: marker } = yield* transactional()
        yield* marker.begin
        yield* marker.produce([outgoing(topic, 0, "after")])
        yield* marker.commit
        // Readers get past it once the coordinator has aborted it.
        while ((yield* values(topic)).length === 0) yield* Effect.yieldNow
        assert.strictEqual((yield* producer.commit).kind, "aborted")
        yield* producer.begin
        yield* producer.produce([outgoing(topic, 0, "next")])
        assert.deepStrictEqual(yield* producer.commit, { kind: "committed" })
        assert.deepStrictEqual(yield* values(topic), ["after", "next"])
      }).pipe(Effect.scoped))
  })
}

suite("version 2 of transactions", sharedClusters().target)

const older: Target = { bootstrap: "" }
let cluster: KafkaCluster | null = null
beforeAll(async () => {
  cluster = await startCluster({ name: "older", version: versions.kafkaOld })
  older.bootstrap = cluster.bootstrap
})
afterAll(() => cluster?.stop())

suite("version 1 of transactions, on a Kafka that has no other", older)
