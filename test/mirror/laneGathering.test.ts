/** A lane that gathers what several polls give into one transaction. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Delivery } from "../../src/mirror/delivery.ts"
import { runLane } from "../../src/mirror/lane.ts"
import type { LaneParts } from "../../src/mirror/laneContext.ts"
import type { MirrorRecord } from "../../src/mirror/transforms/transform.ts"
import { HeldBack } from "../../src/txn/produceErrors.ts"
import type { Outgoing, ProduceOutcome } from "../../src/txn/produceRun.ts"
import { delivery, rec, storedBatch } from "./batches.ts"
import { makeWorld, type World, type WorldOptions } from "./fakes.ts"

const one = (offset: number): Delivery => delivery([[offset, offset]], [storedBatch([rec(offset)])])

/** Polls within an open transaction take from the same deliveries; an empty list is a wait that ends with nothing. */
const gathers = (world: World, more: Partial<LaneParts<never>["source"]> = {}): LaneParts<never> => ({
  ...world.parts,
  source: { ...world.parts.source, pollWithin: () => world.parts.source.poll, ...more },
  cut: { maxRecords: 3, maxBytes: 1_000_000, maxLatencyMs: 1_000 }
})

const run = (world: World, parts: LaneParts<never>, tenths = 20) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.scoped(runLane(parts)))
    for (let i = 0; i < tenths; i++) yield* TestClock.adjust("100 millis")
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

describe("records of a partition that come while earlier ones of it are gathered", () => {
  const wait = (offset: number): NonNullable<WorldOptions["triage"]> => {
    let waited = false
    return (ranges) =>
      Effect.sync(() => {
        if (waited || !ranges.some(({ first }) => first === offset)) return { done: [], wait: [], ours: ranges }
        waited = true
        return { done: [], wait: ranges, ours: [] }
      })
  }
  /** The target's partition takes nothing the first times that v1 is in a batch. */
  const blocking = (times: number): NonNullable<WorldOptions["refuses"]> => {
    let left = times
    return (values) => values.includes("v1") && left-- > 0 ? "partition" : null
  }
  const inOrder = (more: Partial<WorldOptions>, parts: (world: World) => Partial<LaneParts<never>> = () => ({})) =>
    Effect.gen(function*() {
      const world = makeWorld(options([0, 1, 2, 3].map((offset) => [one(offset)]), { mode: "consumer", ...more }))
      yield* run(world, { ...gathers(world), ...parts(world) }, 100)
      assert.deepStrictEqual(world.target.map((record) => String(record.value)), ["v0", "v1", "v2", "v3"])
    })
  const unplacedOnce = (offset: number): Partial<LaneParts<never>> => {
    let asked = 0
    return {
      placeOf: () =>
        Effect.sync(() =>
          asked++ === offset
            ? { ok: false, reason: "the topic is being made" }
            : { ok: true, rules: { targetTopic: "t", chain: null, ordered: true } }
        )
    }
  }

  it.effect("stay behind them when both have to wait: undecided, and refused", () =>
    inOrder({ triage: wait(2), refuses: blocking(2) }))

  it.effect("stay behind them when both have to wait: without a place, and refused", () =>
    inOrder({ refuses: blocking(2) }, () => unplacedOnce(2)))

  it.effect("stay behind them when a transform wants to see the earlier ones again", () => {
    let seen = 0
    const apply = (record: MirrorRecord): MirrorRecord => {
      if (record.offset === 1 && seen++ < 1) throw Object.assign(new Error("later"), { retriable: true })
      return record
    }
    return inOrder({ triage: wait(2), transforms: [{ name: "later", apply }] })
  })

  it.effect("stay behind them when the transaction can only be aborted", () =>
    inOrder({ outcomes: [{ kind: "committed" }, { kind: "aborted", reason: "fenced" }] }, ({ parts: { binding } }) => {
      let begun = 0
      const doomed = (batches: ReadonlyArray<Outgoing>): ReadonlyArray<ProduceOutcome> =>
        batches.map(({ partition, topic }) => ({
          ok: false,
          error: new HeldBack({ topic, partition, written: "unknown" })
        }))
      const begin = Effect.map(binding.begin, (transaction) =>
        ++begun === 2
          ? { ...transaction, produce: (batches: ReadonlyArray<Outgoing>) => Effect.succeed(doomed(batches)) }
          : transaction)
      return { ...unplacedOnce(2), binding: { ...binding, begin } }
    }))
})
