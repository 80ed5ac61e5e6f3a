import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Transform } from "../../src/mirror/transforms/transform.ts"
import { BindingStopped } from "../../src/txn/binding.ts"
import type { Outgoing } from "../../src/txn/produceRun.ts"
import { HOUR_MS, withJumpingClock } from "../kit/jumpingClock.ts"
import { delivery, rec, storedBatch } from "./batches.ts"
import { makeWorld, type World } from "./fakes.ts"
import { runWorld as run } from "./runWorld.ts"

const three = () => delivery([[0, 2]], [storedBatch([rec(0), rec(1), rec(2)])])
const one = (offset: number, deliveryCount = 1) =>
  delivery([[offset, offset, deliveryCount]], [storedBatch([rec(offset)])])

const throwing = (offset: number, options: { readonly retriable: boolean; readonly times?: number }): Transform => {
  let times = options.times ?? Infinity
  return {
    name: "strict",
    apply: (record) => {
      if (record.offset === offset && times-- > 0) {
        throw Object.assign(new Error("cannot"), { retriable: options.retriable })
      }
      return record
    }
  }
}

describe("poll, convert, deliver, acknowledge (KIP-1302)", () => {
  it.effect("accepts after the commit, never before", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]] })
      yield* run(world)
      assert.deepStrictEqual(world.log, ["start", "write v0 v1 v2", "commit", "settle 0-2:accept"])
    }))

  it.effect("releases what a transform wants to see again; its neighbours are accepted", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], transforms: [throwing(1, { retriable: true })] })
      yield* run(world)
      assert.deepStrictEqual(world.log, [
        "start",
        "write v0 v2",
        "settle 1:release",
        "commit",
        "settle 0:accept 2:accept"
      ])
    }))

  for (const mode of ["share", "consumer"] as const) {
    it.effect(`what is held is tried again in transactions that end in time, however slow the target is, ${mode} mode`, () =>
      Effect.gen(function*() {
        const count = 40
        // Too large to be joined: each is written by itself.
        const filling = [{ key: Buffer.from("f"), value: Buffer.alloc(10_000) }]
        const batches = Array.from({ length: count }, (_, n) => storedBatch([{ ...rec(n), headers: filling }]))
        const world = makeWorld({ mode, deliveries: [[delivery([[0, count - 1]], batches)]] })
        // A second for each batch, and a transaction that takes ten is timed out.
        const { binding } = world.parts
        const begin = Effect.gen(function*() {
          const transaction = yield* binding.begin
          const begun = yield* Clock.currentTimeMillis
          return {
            ...transaction,
            produce: (outputs: ReadonlyArray<Outgoing>) =>
              Effect.andThen(Effect.sleep(outputs.length * 1_000), transaction.produce(outputs)),
            commit: Effect.flatMap(Clock.currentTimeMillis, (now) =>
              now - begun < 10_000
                ? transaction.commit
                : Effect.succeed({ kind: "aborted" as const, reason: "timed out" }))
          }
        })
        Object.assign(world.parts, { binding: { ...binding, begin } })
        yield* run(world, 300)
        const accepted = world.log.flatMap((line) =>
          [...line.matchAll(/(\d+)(?:-(\d+))?:accept/g)].map(([, a, b]) => Number(b ?? a) - Number(a) + 1)
        )
        assert.strictEqual(accepted.reduce((sum, n) => sum + n, 0), count)
        const order = world.log.filter((line) => line.startsWith("write")).slice(-count)
        if (mode === "consumer") assert.deepStrictEqual(order, batches.map((_, n) => `write v${n}`))
      }))
  }

  it.effect("what is held is tried again though the wall clock is set back an hour", () =>
    withJumpingClock((jump) =>
      Effect.gen(function*() {
        let full = true
        const world = makeWorld({ deliveries: [[three()]], refuses: () => (full ? "partition" : null) })
        const fiber = yield* Effect.forkChild(run(world, 60))
        yield* TestClock.adjust("5 seconds")
        full = false
        jump(-HOUR_MS)
        yield* TestClock.adjust("2 minutes")
        yield* Fiber.join(fiber)
        assert.include(world.log, "settle 0-2:accept")
      })
    ))

  it.effect("bytes that cannot be understood are given back, and held near the limit; the rest goes on", () =>
    Effect.gen(function*() {
      const bad = (count: number) => ({ ...delivery([[0, 2, count]], []), unreadable: "damaged" })
      const other = { ...one(7), partition: 1 }
      const world = makeWorld({ deliveries: [[bad(1), other], [bad(4)]] })
      const exit = yield* run(world)
      assert.isTrue(Exit.isSuccess(exit))
      assert.deepStrictEqual(world.log.filter((line) => line.startsWith("settle")), [
        "settle 0-2:release",
        "settle 7:accept"
      ])
      assert.deepStrictEqual(new Set(world.stalls), new Set(["a record batch cannot be read: damaged"]))
    }))

  it.effect("a batch that is damaged on the source, and refused for it, blocks its partition and ends no lane", () =>
    Effect.gen(function*() {
      const damaged = storedBatch([rec(0), rec(1)])
      damaged[damaged.length - 3] = (damaged[damaged.length - 3] as number) ^ 1
      const other = { ...one(7), partition: 1 }
      const world = makeWorld({
        deliveries: [[delivery([[0, 1]], [damaged]), other]],
        refusesDamaged: true
      })
      const exit = yield* run(world)
      assert.isTrue(Exit.isSuccess(exit))
      assert.include(world.log, "settle 7:accept")
      assert.match(world.stalls[0] ?? "", /cannot be read either: .*checksum/)
    }))

  it.effect("of a partition that takes nothing so much is held and no more: then it is not fetched, and in the end nothing", () =>
    Effect.gen(function*() {
      const megabytes = (offset: number) =>
        delivery([[offset, offset]], [storedBatch([rec(offset, "x".repeat(5_000_000))])])
      const deliveries = Array.from({ length: 200 }, (_, n) => [megabytes(n)])
      const world = makeWorld({ deliveries, refuses: () => "partition" })
      yield* run(world, 60)
      const pauses = world.log.filter((line) => line === "pause orders-0").length
      assert.isAbove(pauses, 0)
      // The fake gives more of the partition all the same, as others would be given.
      assert.isBelow(world.polled, 30)
    }))

  it.effect("a small part of a large answer that is held does not hold the answer", () =>
    Effect.gen(function*() {
      const value = (n: number) => n === 0 ? "no" : "x".repeat(100_000)
      const answer = (from: number) =>
        delivery(
          [[from, from + 50]],
          Array.from({ length: 51 }, (_, n) => storedBatch([rec(from + n, value(n))]))
        )
      const deliveries = Array.from({ length: 40 }, (_, n) => [answer(n * 51)])
      const world = makeWorld({ deliveries, refuses: (values) => (values.includes("no") ? "records" : null) })
      yield* run(world, 60)
      assert.strictEqual(world.polled, 40)
      assert.notInclude(world.log, "pause orders-0")
      assert.lengthOf(world.target, 40 * 50)
    }))

  it.effect("near the delivery limit it holds and tries again itself: the group would give the record up", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[one(1, 4)]],
        transforms: [throwing(1, { retriable: true, times: 2 })],
        deliveryLimit: 5
      })
      yield* run(world, 10)
      assert.isFalse(world.log.some((line) => line.includes("release")))
      assert.deepStrictEqual(world.target.map((r) => r.value?.toString()), ["v1"])
      assert.strictEqual(world.log.at(-1), "settle 1:accept")
    }))

  it.effect("where nothing can be given back (implicit mode) it holds from the first time on, and loses nothing", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[one(1)]],
        transforms: [throwing(1, { retriable: true, times: 2 })],
        deliveryLimit: 0
      })
      yield* run(world, 10)
      assert.isFalse(world.log.some((line) => line.includes("release")))
      assert.deepStrictEqual(world.target.map((r) => r.value?.toString()), ["v1"])
    }))

  it.effect("rejects a record no transform takes, after its dead letter is committed", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[three()]],
        transforms: [throwing(1, { retriable: false })],
        deadLetters: true
      })
      yield* run(world)
      assert.deepStrictEqual(world.log, [
        "start",
        "write v0 v2",
        "write dlq:TRANSFORMATION v1",
        "commit",
        "settle 0:accept 1:reject 2:accept"
      ])
    }))

  it.effect("errors.tolerance all skips and counts it", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[three()]],
        transforms: [throwing(1, { retriable: false })],
        errorsTolerance: "all"
      })
      yield* run(world)
      assert.deepStrictEqual(world.log, [
        "start",
        "write v0 v2",
        "skipped 1",
        "commit",
        "settle 0:accept 1:reject 2:accept"
      ])
    }))

  it.effect("errors.tolerance none stops the flow with the reason, and settles nothing of that transaction", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], transforms: [throwing(1, { retriable: false })] })
      const exit = yield* run(world)
      assert.isTrue(
        Exit.isFailure(exit) &&
          /transform "strict" failed on orders-0 offset 1: cannot/.test(
            String(exit.cause.reasons.map((r) => "error" in r ? r.error : ""))
          )
      )
      assert.deepStrictEqual(world.log, ["start", "write v0 v2", "abort"])
    }))
})

describe("what the target refuses", () => {
  it.effect("a batch that is too large as a whole is taken apart: nothing waits", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], refuses: (values) => values.length > 1 ? "records" : null })
      yield* run(world)
      assert.deepStrictEqual(world.target.map((r) => r.value?.toString()), ["v0", "v1", "v2"])
      assert.strictEqual(world.log.at(-1), "settle 0-2:accept")
      assert.deepStrictEqual(world.stalls, [])
    }))

  it.effect("a record it never takes blocks with its offset and the reason, and goes on when the target takes it", () =>
    Effect.gen(function*() {
      let limit = true
      const world = makeWorld({
        deliveries: [[three()], [one(9)]],
        refuses: (values) => limit && values.includes("v1") ? "records" : null
      })
      const fiber = yield* Effect.forkChild(run(world, 40))
      yield* TestClock.adjust("3 seconds")
      assert.match(world.stalls[0] ?? "", /refuses the record at offset 1: .*MESSAGE_TOO_LARGE/)
      assert.isTrue(world.log.includes("settle 9:accept"))
      assert.isFalse(world.log.some((line) => line.startsWith("settle 0")))
      limit = false
      yield* TestClock.adjust("60 seconds")
      yield* Fiber.await(fiber)
      assert.deepStrictEqual(world.target.map((r) => r.value?.toString()), ["v0", "v9", "v1", "v2"])
      assert.isTrue(world.log.includes("resume orders-0"))
      assert.strictEqual(world.log.at(-1), "settle 0-2:accept")
    }))

  it.effect("in consumer mode later records of the partition wait for it: order is kept", () =>
    Effect.gen(function*() {
      let limit = true
      const world = makeWorld({
        mode: "consumer",
        deliveries: [[three()], [one(3)]],
        refuses: (values) => limit && values.includes("v1") ? "records" : null
      })
      const fiber = yield* Effect.forkChild(run(world, 40))
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(world.target.map((r) => r.value?.toString()), ["v0"])
      assert.isTrue(world.log.includes("pause orders-0"))
      limit = false
      yield* TestClock.adjust("60 seconds")
      yield* Fiber.await(fiber)
      assert.deepStrictEqual(world.target.map((r) => r.value?.toString()), ["v0", "v1", "v2", "v3"])
      assert.deepStrictEqual(world.log.filter((line) => line.startsWith("settle")), [
        "settle 0-2:accept",
        "settle 3:accept"
      ])
    }))

  it.effect("by policy it goes to the dead-letter topic, rejected with the rest accepted", () =>
    Effect.gen(function*() {
      const refuses = (values: ReadonlyArray<string>, topic: string) =>
        topic === "t" && values.includes("v1") ? "records" as const : null
      const world = makeWorld({ deliveries: [[three()]], refuses, deadLetters: true, onRecordRefused: "deadletter" })
      yield* run(world)
      assert.isTrue(world.log.includes("write dlq:TASK_PUT v1"))
      assert.strictEqual(world.log.at(-1), "settle 0:accept 1:reject 2:accept")
    }))

  it.effect("a missing right is not a matter of single records: the batch is kept whole and tried again", () =>
    Effect.gen(function*() {
      let allowed = false
      const world = makeWorld({
        deliveries: [[three()]],
        refuses: () => allowed ? null : "partition",
        deadLetters: true,
        onRecordRefused: "deadletter"
      })
      const fiber = yield* Effect.forkChild(run(world, 40))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(world.target, [])
      allowed = true
      yield* TestClock.adjust("60 seconds")
      yield* Fiber.await(fiber)
      assert.deepStrictEqual(world.log.filter((line) => line.startsWith("write")), ["write v0 v1 v2"])
    }))
})

describe("transactions", () => {
  it.effect("an aborted one settles nothing; the same records are copied again from their own bytes", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[three()]], outcomes: [{ kind: "aborted", reason: "fenced out" }] })
      yield* run(world)
      assert.deepStrictEqual(world.log.filter((line) => line !== "resume orders-0"), [
        "start",
        "write v0 v1 v2",
        "aborted",
        "write v0 v1 v2",
        "commit",
        "settle 0-2:accept"
      ])
    }))

  it.effect("an aborted one of several deliveries is done again in their order", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        mode: "consumer",
        deliveries: [[one(0), one(1), one(2)]],
        outcomes: [{ kind: "aborted", reason: "fenced out" }]
      })
      yield* run(world)
      const written = world.log.slice(world.log.indexOf("aborted")).filter((line) => line.startsWith("write"))
      assert.deepStrictEqual(written, ["write v0", "write v1", "write v2"])
    }))

  it.effect("never holds two outputs of one record, though the source has delivered it twice at once", () =>
    Effect.gen(function*() {
      const done = new Set<number>()
      const world = makeWorld({
        deliveries: [[three(), one(1, 2)]],
        triage: (ranges) =>
          Effect.sync(() => ({
            done: ranges.filter((range) => done.has(range.first)),
            wait: [],
            ours: ranges.filter((range) => !done.has(range.first))
          }))
      })
      const { settle } = world.parts.source
      Object.assign(world.parts.source, {
        settle: (...args: Parameters<typeof settle>) => {
          for (const offset of [0, 1, 2]) done.add(offset)
          return settle(...args)
        }
      })
      yield* run(world, 5)
      assert.deepStrictEqual(world.target.map((record) => String(record.value)), ["v0", "v1", "v2"])
    }))

  it.effect("never holds two outputs of one record, though two deliveries of it were held", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[one(0)], [one(0, 2)]],
        outcomes: [],
        refuses: () => world.log.length < 4 ? "partition" : null
      })
      yield* run(world, 5)
      const transactions = world.log.join(";").split("commit")
      assert.isTrue(transactions.every((lines) => (lines.match(/write/g) ?? []).length <= 1), world.log.join("; "))
      assert.isAtLeast(world.target.length, 1)
    }))

  it.effect("an unknown one is resolved before anything else", () =>
    Effect.gen(function*() {
      const world = makeWorld({ deliveries: [[one(0)]], outcomes: [{ kind: "unknown", reason: "no answer" }] })
      yield* run(world)
      assert.deepStrictEqual(world.log.slice(0, 4), ["start", "write v0", "unknown", "start"])
    }))

  it.effect("what the binding knows as done is accepted without writing it again", () =>
    Effect.gen(function*() {
      const triage: World["parts"]["binding"]["triage"] = (ranges) =>
        Effect.succeed({
          done: ranges.map((r) => ({ ...r, first: 0, last: 1 })),
          wait: [],
          ours: ranges.map((r) => ({ ...r, first: 2, last: 2 }))
        })
      const world = makeWorld({ deliveries: [[three()]], triage })
      yield* run(world)
      assert.deepStrictEqual(world.log, ["start", "settle 0-1:accept", "write v2", "commit", "settle 2:accept"])
    }))

  it.effect("a binding that stops ends the lane", () =>
    Effect.gen(function*() {
      const world = makeWorld({
        deliveries: [[one(0)]],
        binding: { begin: Effect.fail(new BindingStopped({ binding: "ledger", what: "fenced twice" })) }
      })
      assert.isTrue(Exit.isFailure(yield* run(world)))
    }))
})

describe("what is not ours any more", () => {
  it.effect("held records whose lock or partition is lost are dropped, not written late", () =>
    Effect.gen(function*() {
      let ours = true
      const world = makeWorld({ deliveries: [[one(0)]], refuses: () => ours ? "partition" : null, owns: () => ours })
      const fiber = yield* Effect.forkChild(run(world, 40))
      yield* TestClock.adjust("3 seconds")
      ours = false
      yield* TestClock.adjust("60 seconds")
      yield* Fiber.await(fiber)
      assert.deepStrictEqual(world.target, [])
      assert.isFalse(world.log.some((line) => line.startsWith("settle")))
    }))
})
