/** A source topic that is deleted and made anew under its name: what is told of the old one must not count for the new one. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { deleteTopics } from "../../src/wire/messages/deleteTopics.ts"
import { describeShareGroupOffsets } from "../../src/wire/messages/describeShareGroupOffsets.ts"
import { offsetFetch } from "../../src/wire/messages/offsetFetch.ts"
import { ZERO_UUID } from "../../src/wire/schema.ts"
import { type FlowWorld, makeFlowWorld } from "./flowWorld.ts"

const LONG = { timeout: 90_000 }

const makeAnew = ({ east }: FlowWorld, name: string) =>
  Effect.gen(function*() {
    const cluster = yield* east.cluster("test")
    yield* cluster.request({ kind: "controller" }, deleteTopics, {
      topics: [{ name, topicId: ZERO_UUID }],
      topicNames: [name],
      timeoutMs: 5_000
    })
    east.createTopic(name)
  })

const modes = ["share", "consumer"] as const

describe("a source topic that is made anew", () => {
  for (const mode of modes) {
    it.live(
      `is not taken for a log that was cut back, though no refresh has seen it yet (${mode} mode)`,
      () =>
        Effect.scoped(Effect.gen(function*() {
          const world = yield* makeFlowWorld({
            "group.protocol": mode,
            "on.source.gap": "fail",
            "refresh.topics.interval.seconds": 16
          })
          world.east.createTopic("orders")
          world.append("orders", 0, "a", "b", "c")
          yield* world.run
          yield* world.until("the first records", () => world.values("east.orders").length === 3)
          yield* makeAnew(world, "orders")
          let looks = 0
          world.east.faults(({ apiKey }) => {
            if (apiKey === (mode === "share" ? describeShareGroupOffsets : offsetFetch).key) looks++
            return null
          })
          yield* world.until("two looks at where the group stands", () => looks >= 3)
          assert.deepStrictEqual(world.lines.filter((line) => /cut back|failed:/.test(line)), [])
          world.append("orders", 0, "d")
          yield* world.until("the new topic's record", () => world.values("east.orders").length === 4)
          assert.deepStrictEqual(world.lines.filter((line) => /cut back|failed:/.test(line)), [])
        })),
      LONG
    )

    it.live(
      `is mirrored before a run until caught up ends, though the old one reached further (${mode} mode)`,
      () =>
        Effect.scoped(Effect.gen(function*() {
          const world = yield* makeFlowWorld({ "group.protocol": mode, "on.source.gap": "fail" })
          world.east.createTopic("orders")
          world.append("orders", 0, "a", "b", "c")
          yield* world.runAs({}, { untilCaughtUp: true })
          yield* makeAnew(world, "orders")
          world.append("orders", 0, "d")
          yield* world.runAs({}, { untilCaughtUp: true })
          assert.deepStrictEqual(world.values("east.orders"), ["a", "b", "c", "d"])
          assert.deepStrictEqual(world.lines.filter((line) => /cut back|failed:/.test(line)), [])
        })),
      LONG
    )
  }
})
