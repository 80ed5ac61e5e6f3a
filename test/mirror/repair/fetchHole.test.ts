/** What is read of a hole, on the cluster in this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import { lastOffsetOf } from "../../../src/mirror/delivery.ts"
import { fetchHole } from "../../../src/mirror/repair/fetchHole.ts"
import { makeTransactionalProducer } from "../../../src/txn/transactions.ts"
import { encodeBatch } from "../../../src/wire/batch/records.ts"

const TOPIC = "t"

/** Runs an effect while time passes by itself, in small steps. */
const passing = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    for (let i = 0; i < 2_000 && fiber.pollUnsafe() === undefined; i++) yield* TestClock.adjust(50)
    return yield* Fiber.join(fiber)
  })

const world = Effect.gen(function*() {
  const embedded = yield* makeEmbedded()
  embedded.createTopic(TOPIC)
  const cluster = yield* embedded.cluster("repair")
  const at = { topic: TOPIC, topicId: embedded.state.topics.get(TOPIC)?.id ?? "", partition: 0 }
  const append = (...values: ReadonlyArray<string>) => embedded.append(TOPIC, 0, values.map((value) => ({ value })))
  /** "first-last: offsets of batches". */
  const read = (first: number, last: number) =>
    Effect.map(
      passing(fetchHole({ cluster, purpose: "p", readCommitted: true, maxBytes: 1_000_000 }, at, [{ first, last }])),
      (found) =>
        found === null
          ? null
          : [
            found.ranges.map((r) => `${r.first}-${r.last}`),
            found.batches.map((b) => `${b.baseOffset}-${lastOffsetOf(b)}`)
          ]
    )
  return { embedded, cluster, append, read }
})

describe("a hole", () => {
  it.effect("is read with the batches that hold records of it", () =>
    Effect.scoped(Effect.gen(function*() {
      const { append, read } = yield* world
      append("a", "b", "c")
      append("d", "e")
      assert.deepStrictEqual(yield* read(1, 3), [["1-3"], ["0-2", "3-4"]])
    })))

  it.effect("that compaction has made has no record, and is closed all the same", () =>
    Effect.scoped(Effect.gen(function*() {
      const { append, embedded, read } = yield* world
      append("a", "b")
      append("c", "d")
      append("e")
      embedded.punchHole(TOPIC, 0, 2, 3)
      const found = yield* read(2, 3)
      assert.deepStrictEqual(found?.[0], ["2-3"])
    })))

  it.effect("of an aborted transaction and its marker has no record; behind an open one nothing is read", () =>
    Effect.scoped(Effect.gen(function*() {
      const { append, cluster, read } = yield* world
      const producer = yield* makeTransactionalProducer({ cluster, purpose: "p", transactionalId: "t" })
      const batch = () => ({
        topic: TOPIC,
        partition: 0,
        bytes: encodeBatch([{ offset: 0, timestamp: 1n, key: null, value: Buffer.from("x"), headers: [] }], {
          codec: "none"
        })
      })
      yield* passing(producer.begin)
      yield* passing(producer.produce([batch()]))
      yield* passing(producer.abort)
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(yield* read(0, 1), [["0-1"], []])
      yield* passing(producer.begin)
      yield* passing(producer.produce([batch()]))
      append("behind")
      assert.isNull(yield* read(2, 3))
    })))

  it.effect("that the source has dropped is nothing to read", () =>
    Effect.scoped(Effect.gen(function*() {
      const { append, embedded, read } = yield* world
      append("a", "b")
      append("c")
      embedded.deleteRecords(TOPIC, 0, 2)
      assert.isNull(yield* read(0, 1))
    })))
})
