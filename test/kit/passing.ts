/** Virtual time that goes on by itself while something is waited for. */
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"

/** Runs an effect while time passes in small steps; after `steps` of them time stands, and the test's own bound is met. */
export const passing = <A, E, R>(effect: Effect.Effect<A, E, R>, stepMs = 50, steps = 20_000) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    for (let i = 0; i < steps && fiber.pollUnsafe() === undefined; i++) yield* TestClock.adjust(stepMs)
    return yield* Fiber.join(fiber)
  })
