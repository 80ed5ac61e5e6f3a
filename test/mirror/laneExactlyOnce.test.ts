/** What a lane does for a binding that promises exactly-once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { partsOf } from "../../src/mirror/triage.ts"
import type { Binding, BoundTransaction, SourceRange, Triage } from "../../src/txn/binding.ts"
import { HeldBack } from "../../src/txn/produceErrors.ts"
import { delivery, rec, storedBatch } from "./batches.ts"
import { makeWorld, type WorldOptions } from "./fakes.ts"
import { runWorld as run } from "./runWorld.ts"

const three = () => delivery([[0, 2]], [storedBatch([rec(0), rec(1), rec(2)])])

/** Each answer once, for whatever is asked; then everything is ours. */
const answers = (...list: Array<(range: SourceRange) => Partial<Triage>>): Binding["triage"] => (ranges) =>
  Effect.sync(() => {
    const [range] = ranges
    const answer = list.shift()
    return {
      done: [],
      wait: [],
      ours: answer === undefined ? ranges : [],
      ...(answer === undefined || range === undefined ? {} : answer(range))
    }
  })

const at = (range: SourceRange, first: number, last: number): SourceRange => ({ ...range, first, last })
const exactlyOnce: NonNullable<WorldOptions["binding"]> = { guarantee: "exactly-once" }

describe("records in somebody else's open transaction", () => {
  it.effect("are held, asked about again, and acknowledged without output once they are done", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[three()]],
        triage: answers((range) => ({ wait: [range] }), (range) => ({ wait: [range] }), (range) => ({ done: [range] }))
      })
      yield* run(world, 2)
      assert.deepStrictEqual(world.log, ["start", "settle 0-2:accept", "resume orders-0"])
      assert.lengthOf(world.target, 0)
    }))

  it.effect("are mirrored once the other has aborted", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], triage: answers((range) => ({ wait: [range] })) })
      yield* run(world, 2)
      assert.deepStrictEqual(world.log, [
        "start",
        "write v0 v1 v2",
        "resume orders-0",
        "commit",
        "settle 0-2:accept"
      ])
    }))

  it.effect("do not hold up their neighbours in a share group", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[three()]],
        triage: answers(
          (range) => ({ wait: [at(range, 0, 0)], ours: [at(range, 1, 2)] }),
          (range) => ({ done: [at(range, 0, 0)] })
        )
      })
      yield* run(world, 2)
      assert.deepStrictEqual(world.log, [
        "start",
        "write v1 v2",
        "commit",
        "settle 1-2:accept",
        "settle 0:accept",
        "resume orders-0"
      ])
    }))

  it("hold up all that comes behind them where order is kept", () => {
    const range = { topic: "orders", topicId: three().topicId, partition: 0, first: 0, last: 2 }
    const triage: Triage = { done: [at(range, 0, 0)], wait: [at(range, 1, 1)], ours: [at(range, 2, 2)] }
    const ordered = partsOf(three(), triage, true)
    assert.deepStrictEqual([ordered.done, ordered.wait?.ranges, ordered.ours], [[{ first: 0, last: 0 }], [{
      first: 1,
      last: 2,
      deliveryCount: 1
    }], null])
    const free = partsOf(three(), triage, false)
    assert.deepStrictEqual([free.wait?.ranges, free.ours?.ranges], [[{ first: 1, last: 1, deliveryCount: 1 }], [{
      first: 2,
      last: 2,
      deliveryCount: 1
    }]])
  })
})

describe("a transaction that was aborted because the records are mirrored already", () => {
  it.effect("is not tried again: the records are acknowledged", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[three()]],
        outcomes: [{ kind: "aborted", reason: "mirrored already" }],
        triage: answers((range) => ({ ours: [range] }), (range) => ({ done: [range] }))
      })
      yield* run(world, 2)
      assert.deepStrictEqual(world.log, ["start", "write v0 v1 v2", "aborted", "settle 0-2:accept", "resume orders-0"])
    }))
})

describe("a transaction that can only be aborted", () => {
  /** The first so many: a time-out or another worker has ended them while they were written. */
  const doomed = (times: number, reason: string): Partial<WorldOptions> => {
    let left = times
    const given = makeWorld({ deliveries: [] }).parts.binding
    return {
      outcomes: Array.from({ length: times }, () => ({ kind: "aborted", reason })),
      binding: {
        ...exactlyOnce,
        begin: Effect.suspend(() => left-- > 0 ? Effect.succeed(heldBack(reason)) : given.begin)
      }
    }
  }
  const heldBack = (reason: string): BoundTransaction => ({
    produce: (batches) =>
      Effect.succeed(
        batches.map(({ partition, topic }) => ({
          ok: false,
          error: new HeldBack({ topic, partition, written: "unknown" })
        }))
      ),
    stage: () => Effect.void,
    commit: Effect.succeed({ kind: "aborted", reason }),
    abort: Effect.succeed({ kind: "aborted", reason })
  })

  it.effect("is tried again each second, however often: the target has refused nothing", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], ...doomed(6, "timed out") })
      yield* run(world, 8)
      assert.deepStrictEqual(world.log.filter((line) => line.startsWith("settle")), ["settle 0-2:accept"])
    }))

  it.effect("is no block of a partition when the next one goes through", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], ...doomed(1, "timed out") })
      yield* run(world, 3)
      assert.deepStrictEqual(world.stalls, [])
    }))

  it.effect("says so when it happens again", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], ...doomed(3, "timed out") })
      yield* run(world, 5)
      assert.match(world.stalls[0] ?? "", /transaction .* had to be aborted/)
    }))
})

describe("a record that the target refuses", () => {
  it.effect("is tried again less and less often, though each transaction that has nothing in it is aborted", () =>
    Effect.gen(function*() {
      let tries = 0
      const given = makeWorld({ deliveries: [], refuses: () => "partition" }).parts.binding
      const empty = Effect.map(given.begin, (transaction): BoundTransaction => ({
        ...transaction,
        produce: (batches) => {
          tries++
          return transaction.produce(batches)
        },
        commit: Effect.succeed({ kind: "aborted", reason: "it has outputs that stand for no source record" })
      }))
      const world = makeWorld({ deliveries: [[three()]], binding: { ...exactlyOnce, begin: empty } })
      yield* run(world, 60)
      assert.isAtMost(tries, 10)
      assert.isAtLeast(tries, 5)
    }))
})

describe("a unit of which the target takes a part", () => {
  const refusing: Partial<WorldOptions> = { refuses: (values) => values.includes("v2") ? "records" : null }
  it.effect("has that part noted in the transaction that writes it; the rest stands alone", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], binding: exactlyOnce, ...refusing })
      yield* run(world, 5)
      assert.deepStrictEqual(world.target.map((r) => r.value?.toString()), ["v0", "v1"])
      const settled = world.log.filter((line) => line.startsWith("settle"))
      assert.deepStrictEqual(settled, ["settle 0-1:accept"])
      assert.isBelow(world.log.indexOf("write v1"), world.log.indexOf("commit"))
      assert.isAbove(world.log.indexOf(settled[0] as string), world.log.indexOf("commit"))
    }))

  it.effect("writes that part again when the transaction was aborted", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[three()]],
        binding: exactlyOnce,
        outcomes: [{ kind: "aborted", reason: "fenced" }],
        ...refusing
      })
      yield* run(world, 5)
      const afterAbort = world.log.slice(world.log.indexOf("aborted") + 1)
      assert.include(afterAbort.join("; "), "write v0")
      assert.include(afterAbort.join("; "), "v1")
      assert.deepStrictEqual(world.log.filter((line) => line.startsWith("settle")), ["settle 0-1:accept"])
    }))

  it.effect("is settled whole or not at all under at-least-once, as before", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], ...refusing })
      yield* run(world, 5)
      assert.deepStrictEqual(world.log.filter((line) => line.startsWith("settle")), [])
    }))
})
