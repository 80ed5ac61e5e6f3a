/** Topics without a place on the target, at the start of a run that ends when it has caught up. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { untilPlaced } from "../../src/mirror/unplaced.ts"

const problem = { topic: "orders", reason: "the target has said no" }

const waiting = (looks: { n: number }, until: number) =>
  untilPlaced({
    unplaced: () => looks.n < until ? [problem] : [],
    refresh: Effect.sync(() => looks.n++),
    stopping: () => false
  })

describe("topics that the target does not take", () => {
  it.effect("are asked for again until it takes them", () =>
    Effect.gen(function*() {
      const looks = { n: 0 }
      const fiber = yield* Effect.forkChild(waiting(looks, 3))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* Fiber.join(fiber), [])
      assert.strictEqual(looks.n, 3)
    }))

  it.effect("are given up after half a minute, and named", () =>
    Effect.gen(function*() {
      const looks = { n: 0 }
      const fiber = yield* Effect.forkChild(waiting(looks, Infinity))
      yield* TestClock.adjust("29 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), [problem])
    }))
})
