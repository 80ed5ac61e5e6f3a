/** What a flow knows of its share group before it fetches, on a cluster of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeEmbedded } from "../../src/embedded/embedded.ts"
import { prepareSource } from "../../src/mirror/flowSetup.ts"
import { flowOf, loadFlow, type Plain } from "../kit/configFile.ts"

/** The deliveries after which the group gives a record up, as a flow's first and second start find it. */
const limits = (flow: Plain) =>
  Effect.scoped(Effect.gen(function*() {
    const embedded = yield* makeEmbedded()
    const cluster = yield* embedded.cluster("flow")
    const resolved = flowOf(yield* loadFlow({ name: "f", "group.id": "g", ...flow }))
    const quiet = () => Effect.void
    const once = prepareSource(cluster, resolved, { info: quiet, warn: quiet })
    const fiber = yield* Effect.forkChild(Effect.all([once, once]))
    for (let i = 0; i < 400 && fiber.pollUnsafe() === undefined; i++) yield* TestClock.adjust(50)
    return yield* Fiber.join(fiber)
  }))

describe("the delivery limit of the group", () => {
  it.effect("is the one in force, also when it was set before: a record given back beyond it is lost to the group", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* limits({ "consumer.override.share.delivery.count.limit": "2" }), [2, 2])
    }))

  it.effect("is the highest that the brokers allow, at each start", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* limits({}), [10, 10])
    }))
})
