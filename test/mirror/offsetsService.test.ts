/** `offsets list` and `offsets translate` on a flow that has run, between two clusters of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { offsetsOf, type OffsetsQuestion } from "../../src/mirror/offsetsService.ts"
import { allGroups, moveGroup } from "../../src/mirror/control/groups.ts"
import type { Plain } from "../kit/configFile.ts"
import { type FlowWorld, makeFlowWorld } from "./flowWorld.ts"

const LONG = { timeout: 60_000 }
const BACK = { source: "west", target: "east", topics: ["none"], name: "back", "group.id": "back" }

const position = (topic: string, offset: number, reverse = false): OffsetsQuestion => ({
  kind: "position",
  topic,
  partition: 0,
  offset,
  reverse
})

/** The one row, or what is wrong with the question. */
const asked = (world: FlowWorld, question: OffsetsQuestion) =>
  Effect.gen(function*() {
    const rows = yield* offsetsOf(yield* world.config({}), { flow: null, question })
    assert.lengthOf(rows, 1)
    const { exact, reason, sourceOffset, targetOffset } = rows[0] as typeof rows[number]
    return { exact, reason: reason ?? "", sourceOffset, targetOffset }
  }).pipe(Effect.catch(({ message }) => Effect.succeed(message)))

const mirrored = Effect.gen(function*() {
  const world = yield* makeFlowWorld({ "group.protocol": "consumer" })
  world.east.createTopic("orders")
  world.append("orders", 0, "a", "b", "c")
  yield* world.runAs({}, { untilCaughtUp: true })
  return world
})

describe("a position", () => {
  it.live(
    "is exact up to the end of its log, and said to be behind it from there on, both ways",
    () =>
      Effect.gen(function*() {
        const world = yield* mirrored
        const end = world.west.log("east.orders", 0).endOffset
        assert.deepInclude(yield* asked(world, position("orders", 3)), { exact: true, reason: "" })
        const beyond = yield* asked(world, position("orders", 4))
        assert.deepInclude(beyond, { exact: false, targetOffset: end })
        assert.match((beyond as { reason: string }).reason, /orders-0 on "east" ends at offset 3/)
        assert.deepInclude(yield* asked(world, position("east.orders", end, true)), { exact: true, reason: "" })
        const back = yield* asked(world, position("east.orders", 999_999, true))
        assert.deepInclude(back, { exact: false, sourceOffset: 3 })
        assert.match((back as { reason: string }).reason, new RegExp(`east.orders-0 on "west" ends at offset ${end}`))
      }),
    LONG
  )

  it.live(
    "of a topic that is named as on the other side is answered with the name to use",
    () =>
      Effect.gen(function*() {
        const world = yield* mirrored
        assert.include(
          yield* asked(world, position("orders", 0, true)),
          "--reverse takes the topic on \"west\": east.orders"
        )
        assert.include(yield* asked(world, position("east.orders", 0)), "the topic on \"east\" is orders")
        assert.strictEqual(yield* asked(world, position("other", 0)), "flow flow does not mirror other-0")
      }),
    LONG
  )
})

/** The groups of `offsets list`. */
const listed = (world: FlowWorld, flow: Plain) =>
  Effect.gen(function*() {
    const rows = yield* offsetsOf(yield* world.config(flow), { flow: null, question: { kind: "list", group: null } })
    return [...new Set(rows.map(({ group }) => group))]
  })

describe("the list of groups", () => {
  for (const guarantee of ["exactly-once", "at-least-once"] as const) {
    it.live(
      `leaves out the flow's own group, and the one of the mode that it has left (${guarantee})`,
      () =>
        Effect.gen(function*() {
          const world = yield* makeFlowWorld({ "delivery.guarantee": guarantee })
          world.east.createTopic("orders")
          world.append("orders", 0, "a", "b", "c")
          // The ledger knows the groups that it has worked with; without one, only the default id tells.
          const shared = guarantee === "exactly-once" ? "shared" : "onceover-east-to-west"
          yield* world.runAs({ "group.protocol": "share", "group.id": shared }, { untilCaughtUp: true })
          const now = { "group.protocol": "consumer", "group.id": "consuming" }
          yield* world.runAs(now, { untilCaughtUp: true })
          const cluster = yield* Effect.orDie(world.east.cluster("app"))
          yield* Effect.orDie(moveGroup(cluster, "app", "consumer", [
            { topic: "orders", partition: 0, offset: 2, metadata: "" }
          ]))
          assert.deepStrictEqual(yield* listed(world, now), ["app"])
          // What a pass of the flow itself has written.
          const west = yield* Effect.orDie(world.west.cluster("admin"))
          assert.isFalse((yield* Effect.orDie(allGroups(west))).has(shared))
        }),
      LONG
    )
  }
})

describe("the flow of a question", () => {
  it.live("is the one that is enabled; several must be told apart by --flow", () =>
    Effect.gen(function*() {
      const world = yield* mirrored
      const question = position("orders", 1)
      const one = yield* world.config({}, [{ ...BACK, enabled: false }])
      assert.lengthOf(yield* offsetsOf(one, { flow: null, question }), 1)
      const two = yield* world.config({}, [BACK])
      const wrong = yield* Effect.flip(offsetsOf(two, { flow: null, question }))
      assert.include(wrong.message, "the configuration has 2 flows; name one with --flow: flow, back")
    }), LONG)
})
