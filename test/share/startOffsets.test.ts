import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeEmbedded } from "../../src/embedded/embedded.ts"
import { shareStartOffsets } from "../../src/share/startOffsets.ts"

it.effect("a group that nobody has joined has done nothing, and that is no failure", () =>
  Effect.scoped(Effect.gen(function*() {
    const embedded = yield* makeEmbedded()
    const cluster = yield* embedded.cluster("worker")
    const fiber = yield* Effect.forkChild(shareStartOffsets(cluster, "nobody"))
    for (let i = 0; i < 100 && fiber.pollUnsafe() === undefined; i++) yield* TestClock.adjust(50)
    assert.deepStrictEqual(yield* Fiber.join(fiber), [])
  })))
