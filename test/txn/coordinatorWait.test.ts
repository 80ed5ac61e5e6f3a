/** A transactional producer whose coordinator does not answer for long: it waits, and says so. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeTransactionalProducer } from "../../src/txn/transactions.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { ConnectionError } from "../../src/wire/errors.ts"

/** A target whose coordinator of transactions may be away; nothing else is asked of it. */
const world = () => {
  const said: Array<string | null> = []
  const target = { away: false, sent: 0 }
  const answered = { errorCode: 0, producerId: 7, producerEpoch: 0 }
  const cluster = {
    features: Effect.succeed(new Map([["transaction.version", 2]])),
    request: () =>
      Effect.suspend(() => {
        target.sent++
        return target.away
          ? Effect.fail(new ConnectionError({ address: "b:1", kind: "refused", outcome: "unsent", what: "refused" }))
          : Effect.succeed(answered)
      }),
    invalidateCoordinator: () => Effect.void,
    release: () => Effect.void
  } as unknown as Cluster
  const make = makeTransactionalProducer({
    cluster,
    purpose: "test",
    transactionalId: "flow-0",
    onWaiting: (reason) => said.push(reason)
  })
  return { make, said, target }
}

describe("a coordinator that does not answer", () => {
  it.effect("is waited for, and that is said once it has lasted, and said again when it is over", () =>
    Effect.gen(function*() {
      const { make, said, target } = world()
      const producer = yield* make
      target.away = true
      const waiting = yield* Effect.forkChild(producer.init)
      yield* TestClock.adjust("4 seconds")
      assert.isAbove(target.sent, 1)
      assert.deepStrictEqual(said, [])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(said, ["b:1: refused"])
      target.away = false
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(said, ["b:1: refused", null])
    }))

  it.effect("is nobody's trouble where it answers in time", () =>
    Effect.gen(function*() {
      const { make, said, target } = world()
      const producer = yield* make
      for (let i = 0; i < 5; i++) {
        target.away = true
        const waiting = yield* Effect.forkChild(producer.init)
        yield* TestClock.adjust("2 seconds")
        target.away = false
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(waiting)
      }
      assert.deepStrictEqual(said, [])
    }))
})
