/** One partition of the source that no broker leads: the others go on, and it is named. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { makeEmbedded } from "../../src/embedded/embedded.ts"
import { endOffsets, reachableEnds } from "../../src/mirror/control/logOffsets.ts"
import type { MirroredTopic } from "../../src/mirror/control/topics.ts"
import { GapWatch } from "../../src/mirror/gaps.ts"
import { observeLag, type ProgressParts, takeGoal } from "../../src/mirror/progress.ts"
import { FlowState } from "../../src/mirror/state.ts"
import { makeFlowWorld } from "./flowWorld.ts"

const LONG = { timeout: 60_000 }

/** orders-0 on broker 1 with 3 records, orders-1 on broker 2 with 2. */
const makeWorld = Effect.gen(function*() {
  const east = yield* makeEmbedded({ brokers: 2 })
  const { id } = east.createTopic("orders", { partitions: 2, replication: 1 })
  east.append("orders", 0, [{ value: "a" }, { value: "b" }, { value: "c" }])
  east.append("orders", 1, [{ value: "d" }, { value: "e" }])
  const cluster = yield* east.cluster("test", { "default.api.timeout.ms": "2000", "request.timeout.ms": "1000" })
  const topics: ReadonlyArray<MirroredTopic> = [{ source: "orders", sourceId: id, target: "orders", partitions: 2 }]
  const lags: Array<string> = []
  const said: Array<string> = []
  const parts: ProgressParts = {
    cluster,
    groupId: "group",
    mode: "share",
    committed: true,
    state: new FlowState({
      name: "flow",
      source: "east",
      target: "west",
      mode: "share",
      lanes: 1,
      wanted: "exactly-once",
      nowMs: 0
    }),
    topics: () => topics,
    onLag: (topic, partition, lag) => lags.push(`${topic}-${partition}: ${lag}`),
    gaps: new GapWatch(),
    onGap: () => assert.fail("nothing was dropped"),
    truncations: null,
    doneEnd: () => 0,
    onTruncated: () => assert.fail("nothing was cut"),
    log: (level, message) => said.push(`${level} ${message}`)
  }
  return { east, cluster, topics, parts, lags, said }
})

describe("a partition of the source without a leader", () => {
  it.live("has no lag, and the others have theirs", () =>
    Effect.gen(function*() {
      const { east, lags, parts } = yield* makeWorld
      east.stopBroker(2)
      yield* observeLag(parts)
      assert.deepStrictEqual(lags, ["orders-0: 3"])
      east.startBroker(2)
      yield* observeLag(parts)
      assert.deepStrictEqual(lags, ["orders-0: 3", "orders-0: 3", "orders-1: 2"])
    }))

  it.live("is in the goal without an end, and named", () =>
    Effect.gen(function*() {
      const { east, parts, said } = yield* makeWorld
      east.stopBroker(2)
      assert.deepStrictEqual([...yield* takeGoal(parts)], [["orders-0", 3], ["orders-1", Infinity]])
      assert.strictEqual(said.length, 1)
      assert.match(said[0] ?? "", /^warn orders-1 cannot be asked where it ends.*LEADER_NOT_AVAILABLE/)
    }))

  it.live("is asked for in vain by whoever needs them all; a leader that has moved is found by both", () =>
    Effect.gen(function*() {
      const { cluster, east, topics } = yield* makeWorld
      yield* endOffsets(cluster, topics, false)
      east.moveLeader("orders", 1, 1)
      assert.deepStrictEqual([...(yield* reachableEnds(cluster, topics, false)).found.values()].toSorted(), [2, 3])
      east.stopBroker(1)
      east.stopBroker(2)
      east.startBroker(2)
      const { found, missing } = yield* reachableEnds(cluster, topics, false)
      assert.deepStrictEqual([[...found.keys()], [...missing.keys()]], [["orders-1"], ["orders-0"]])
      const error = yield* Effect.flip(endOffsets(cluster, topics, false))
      assert.match(error.message, /orders-0.*LEADER_NOT_AVAILABLE/)
    }))

  for (const mode of ["share", "consumer"]) {
    it.live(
      `keeps no other from being mirrored, and the end of a run waits for it (${mode})`,
      () =>
        Effect.gen(function*() {
          const world = yield* makeFlowWorld({ "group.protocol": mode }, {}, { brokers: 2 })
          world.east.createTopic("orders", { partitions: 2, replication: 1 })
          world.append("orders", 0, "a", "b", "c")
          world.append("orders", 1, "d", "e")
          world.east.stopBroker(2)
          const run = yield* Effect.forkScoped(world.runAs({}, { untilCaughtUp: true }))
          yield* world.until("the other partition is mirrored", () => world.values("east.orders").length === 3)
          yield* world.until(
            "the one without a leader is named",
            () => world.lines.some((line) => line.startsWith("Warn") && line.includes("orders-1"))
          )
          assert.isUndefined(run.pollUnsafe())
          world.east.startBroker(2)
          yield* Fiber.join(run)
          assert.deepStrictEqual(world.values("east.orders"), ["a", "b", "c", "d", "e"])
        }),
      LONG
    )
  }
})
