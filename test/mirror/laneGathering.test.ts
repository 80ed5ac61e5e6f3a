/** A lane that gathers what several polls give into one transaction. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Delivery } from "../../src/mirror/delivery.ts"
import { runLane } from "../../src/mirror/lane.ts"
import type { LaneParts } from "../../src/mirror/laneContext.ts"
import { delivery, rec, storedBatch } from "./batches.ts"
import { makeWorld, type World, type WorldOptions } from "./fakes.ts"

const one = (offset: number): Delivery => delivery([[offset, offset]], [storedBatch([rec(offset)])])

/** Polls within an open transaction take from the same deliveries; an empty list is a wait that ends with nothing. */
const gathers = (world: World, more: Partial<LaneParts<never>["source"]> = {}): LaneParts<never> => ({
  ...world.parts,
  source: { ...world.parts.source, pollWithin: () => world.parts.source.poll, ...more },
  cut: { maxRecords: 3, maxBytes: 1_000_000, maxLatencyMs: 1_000 }
})

const run = (world: World, parts: LaneParts<never>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.scoped(runLane(parts)))
    for (let i = 0; i < 20; i++) yield* TestClock.adjust("100 millis")
    world.stop = true
    yield* TestClock.adjust("20 seconds")
    return yield* Fiber.await(fiber)
  })

const options = (deliveries: WorldOptions["deliveries"], more: Partial<WorldOptions> = {}): WorldOptions => ({
  deliveries,
  binding: { guarantee: "exactly-once" },
  ...more
})

describe("records that come one by one", () => {
  it.effect("are one transaction up to its bounds; the first one did not wait", () =>
    Effect.gen(function*() {
      const world = makeWorld(options([0, 1, 2, 3, 4].map((offset) => [one(offset)])))
      yield* run(world, gathers(world))
      assert.deepStrictEqual(world.log.filter((line) => !line.startsWith("settle")), [
        "start",
        "write v0",
        "commit",
        "write v1",
        "write v2",
        "write v3",
        "commit",
        "write v4",
        "commit"
      ])
    }))

  it.effect("are settled once their transaction is committed, not before", () =>
    Effect.gen(function*() {
      const world = makeWorld(options([0, 1, 2].map((offset) => [one(offset)])))
      yield* run(world, gathers(world))
      const second = world.log.slice(world.log.indexOf("write v1"))
      assert.deepStrictEqual(second.slice(0, 3), ["write v1", "write v2", "commit"])
      assert.sameMembers(second.slice(3), ["settle 1:accept", "settle 2:accept"])
    }))

  it.effect("come again together when it is aborted", () =>
    Effect.gen(function*() {
      const world = makeWorld(
        options([0, 1, 2].map((offset) => [one(offset)]), {
          mode: "consumer",
          outcomes: [{ kind: "committed" }, { kind: "aborted", reason: "for the test" }]
        })
      )
      yield* run(world, gathers(world))
      assert.deepStrictEqual(world.target.map((record) => String(record.value)), ["v0", "v1", "v2", "v1", "v2"])
      const settled = world.log.filter((line) => line.startsWith("settle"))
      assert.sameMembers(settled, ["settle 0:accept", "settle 1:accept", "settle 2:accept"])
    }))

  it.effect("are a transaction each while somebody waits for what is at work to end", () =>
    Effect.gen(function*() {
      const world = makeWorld(options([0, 1, 2].map((offset) => [one(offset)])))
      yield* run(world, gathers(world, { hurried: () => true }))
      assert.lengthOf(world.log.filter((line) => line === "commit"), 3)
    }))

  it.effect("are a transaction each under at-least-once, which has none on the target", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [0, 1, 2].map((offset) => [one(offset)]) })
      yield* run(world, gathers(world))
      assert.lengthOf(world.log.filter((line) => line === "commit"), 3)
    }))

  it.effect("a record that the target refuses is left out of it; the others go on", () =>
    Effect.gen(function*() {
      const world = makeWorld(
        options([0, 1, 2].map((offset) => [one(offset)]), {
          refuses: (values) => values.includes("v1") ? "records" : null
        })
      )
      yield* run(world, gathers(world))
      const writes = world.log.filter((line) => line.startsWith("write") || line === "commit")
      assert.deepStrictEqual(writes.slice(0, 4), ["write v0", "commit", "write v2", "commit"])
    }))
})
