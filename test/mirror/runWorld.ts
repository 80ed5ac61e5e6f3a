/** A lane that is run in virtual time. */
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { runLane } from "../../src/mirror/lane.ts"
import type { World } from "./fakes.ts"

/** Runs the lane until everything it was given is worked on, and `seconds` more. */
export const runWorld = (world: World, seconds = 1) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.scoped(runLane(world.parts)))
    for (let i = 0; i < seconds * 10; i++) yield* TestClock.adjust("100 millis")
    world.stop = true
    yield* TestClock.adjust("20 seconds")
    return yield* Fiber.await(fiber)
  })
