/** A flow that comes back to its ledger with another group, between two clusters of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeFlowWorld } from "../flowWorld.ts"

const LONG = { timeout: 90_000 }

describe("a ledger, and another group.id", () => {
  it.live(
    "a group that has read nothing goes on, nothing doubled; one that did its work without the ledger is refused",
    () =>
      Effect.gen(function*() {
        const world = yield* makeFlowWorld()
        world.east.createTopic("orders")
        world.append("orders", 0, "a", "b")
        yield* world.runAs({}, { untilCaughtUp: true })
        world.append("orders", 0, "c")
        yield* world.runAs({ "group.id": "fresh" }, { untilCaughtUp: true })
        assert.deepStrictEqual(world.values("east.orders"), ["a", "b", "c"])

        world.append("orders", 0, "d")
        const elsewhere = {
          name: "other",
          "group.id": "other",
          "delivery.guarantee": "at-least-once",
          "topic.mapping": { orders: "elsewhere" }
        }
        yield* world.runAs(elsewhere, { untilCaughtUp: true })
        assert.deepStrictEqual(world.values("elsewhere"), ["a", "b", "c", "d"])
        const before = world.lines.length
        yield* world.runAs({ "group.id": "other" }, { untilCaughtUp: true })
        const said = world.lines.slice(before).find((line) => line.startsWith("failed:")) ?? ""
        assert.match(said, /group.id is other now, and that group has done 1 offsets that the ledger does not know of/)
        assert.deepStrictEqual(world.values("east.orders"), ["a", "b", "c"])

        yield* world.runAs({}, { untilCaughtUp: true })
        yield* world.runAs({ "group.id": "fresh" }, { untilCaughtUp: true })
        assert.deepStrictEqual(world.values("east.orders"), ["a", "b", "c", "d"])
      }),
    LONG
  )
})
