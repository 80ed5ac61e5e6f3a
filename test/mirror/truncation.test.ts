/** A source log that an unclean election has cut back, on clusters of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Embedded, makeEmbedded } from "../../src/embedded/embedded.ts"
import { reachableEnds } from "../../src/mirror/control/logOffsets.ts"
import { TruncationWatch } from "../../src/mirror/truncation.ts"
import { makeFlowWorld } from "./flowWorld.ts"

const LONG = { timeout: 60_000 }

/** A replica that had only so much becomes the leader. */
const electUncleanly = (embedded: Embedded, end: number): void => {
  const log = embedded.log("orders", 0)
  log.batches = log.batches.filter(({ last }) => last < end)
  log.epochs = log.epochs.filter(({ startOffset }) => startOffset < end)
  log.endOffset = end
  embedded.moveLeader("orders", 0)
}

const append = (embedded: Embedded, ...values: ReadonlyArray<string>): void => {
  for (const value of values) embedded.append("orders", 0, [{ value }])
}

const makeWorld = Effect.gen(function*() {
  const east = yield* makeEmbedded({ brokers: 2 })
  const { id } = east.createTopic("orders")
  const cluster = yield* east.cluster("test")
  const watch = new TruncationWatch(cluster)
  const topics = [{ source: "orders", sourceId: id, target: "orders", partitions: 1 }]
  const look = Effect.gen(function*() {
    const { epochs, found } = yield* reachableEnds(cluster, topics, false)
    const end = {
      topic: "orders",
      topicId: id,
      partition: 0,
      highWatermark: found.get("orders-0") ?? -1,
      leaderEpoch: epochs.get("orders-0") ?? -1
    }
    return (yield* watch.look([end])).map(({ at, before }) => `cut at ${at}, was ${before}`)
  })
  const above = (topicId: string, position: number) =>
    watch.above({ topic: "orders", topicId, partition: 0, highWatermark: 3, leaderEpoch: -1 }, position)
  return { above, east, id, look }
})

describe("a log that was cut back", () => {
  it.live("is seen by its end, and also when it has grown past its old end since; once", () =>
    Effect.gen(function*() {
      const { east, look } = yield* makeWorld
      append(east, "a", "b", "c", "d", "e")
      assert.deepStrictEqual(yield* look, [])
      electUncleanly(east, 3)
      assert.deepStrictEqual(yield* look, ["cut at 3, was 5"])
      assert.deepStrictEqual(yield* look, [])
      append(east, "f", "g", "h")
      assert.deepStrictEqual(yield* look, [])
      electUncleanly(east, 4)
      append(east, "i", "j", "k")
      assert.deepStrictEqual(yield* look, ["cut at 4, was 6"])
      assert.deepStrictEqual(yield* look, [])
    }))

  it.live("is not taken for one that has another leader, with or without new records", () =>
    Effect.gen(function*() {
      const { east, look } = yield* makeWorld
      append(east, "a", "b")
      yield* look
      east.moveLeader("orders", 0)
      assert.deepStrictEqual(yield* look, [])
      east.moveLeader("orders", 0)
      append(east, "c")
      assert.deepStrictEqual(yield* look, [])
    }))

  it.live("is seen by a group that stands above its end twice, and said once; not by one of another topic", () =>
    Effect.gen(function*() {
      const { above, id } = yield* makeWorld
      assert.isNull(yield* above(id, 3))
      assert.isNull(yield* above(id, 5))
      assert.deepInclude(yield* above(id, 5), { at: 3, before: 5 })
      assert.isNull(yield* above(id, 5))
      const other = "AAAAAAAAAAAAAAAAAAAAAQ"
      for (let n = 0; n < 3; n++) assert.isNull(yield* above(other, 7))
    }))

  it.live(
    "ends a flow that is to fail at gaps, and is said at the next start by one that goes on",
    () =>
      Effect.gen(function*() {
        const world = yield* makeFlowWorld({}, {}, { brokers: 2 })
        const { east } = world
        east.createTopic("orders")
        append(east, "a", "b", "c", "d", "e")
        yield* world.run
        yield* world.until("all is mirrored", () => world.values("east.orders").length === 5)
        yield* world.until("the group has it", () => east.sharePartition("flow", "orders", 0)?.start === 5)
        electUncleanly(east, 3)
        const said = (level: string) => (line: string) =>
          line.startsWith(`${level} orders-0: the source's log was cut back to offset 3 (it had reached 5)`)
        yield* world.until("it is said", () => world.lines.some(said("Error")))
        yield* world.until("the flow has stopped", () => world.lines.some((line) => line.startsWith("failed:")))
        yield* world.runAs({ "on.source.gap": "continue" })
        yield* world.until("it is said again", () => world.lines.some(said("Warn")))
      }),
    LONG
  )
})
