/** What `check` says of a ledger that workers are away from, or that is gone, between two clusters of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { deleteTopics } from "../../../src/wire/messages/deleteTopics.ts"
import { ZERO_UUID } from "../../../src/wire/schema.ts"
import { makeFlowWorld } from "../flowWorld.ts"

const LONG = { timeout: 90_000 }
const WITHOUT = { "delivery.guarantee": "at-least-once" }
const NOTHING = { warnings: [], problems: [] }

describe("check, of a ledger", () => {
  it.live(
    "says that workers are away from it, and what to do, until one has come back; and that it is gone",
    () =>
      Effect.gen(function*() {
        const world = yield* makeFlowWorld({ "sync.topic.acls.enabled": false })
        const said = (settings: Readonly<Record<string, string>>) =>
          Effect.map(world.check(settings), ({ flows: [flow] }) => ({
            warnings: flow?.warnings.filter((warning) => warning.includes("ledger")) ?? [],
            problems: flow?.problems ?? []
          }))
        world.east.createTopic("orders")
        world.append("orders", 0, "a")
        assert.deepStrictEqual(yield* said({}), NOTHING)
        yield* world.runAs({}, { untilCaughtUp: true })
        assert.deepStrictEqual(yield* said({}), NOTHING)
        const before = yield* said(WITHOUT)
        assert.match(before.warnings.join(), /the flow has a ledger from an earlier time, __onceover_ledger_flow/)

        world.append("orders", 0, "b")
        yield* world.runAs(WITHOUT, { untilCaughtUp: true })
        const away = yield* said({})
        assert.strictEqual(away.warnings.length, 1)
        assert.match(
          away.warnings.join(),
          /workers of this flow are away from it.*\(at-least-once\).*What to do: no member/
        )
        assert.match((yield* said(WITHOUT)).warnings.join(), /away from it.*would run without it too/)
        assert.deepStrictEqual((yield* said({})).warnings, away.warnings)

        yield* world.runAs({}, { untilCaughtUp: true })
        assert.deepStrictEqual(yield* said({}), NOTHING)

        const admin = yield* Effect.orDie(world.west.cluster("admin"))
        const name = "__onceover_ledger_flow"
        yield* Effect.orDie(
          admin.request({ kind: "controller" }, deleteTopics, {
            topics: [{ name, topicId: ZERO_UUID }],
            timeoutMs: 1_000
          })
        )
        assert.match((yield* said({})).problems.join(), /is not there, but this flow has run with one before/)
        const adopting = yield* said({ "on.ledger.lost": "adopt" })
        assert.deepStrictEqual(adopting.problems, [])
        assert.match(adopting.warnings.join(), /on.ledger.lost is adopt/)
      }),
    LONG
  )
})
