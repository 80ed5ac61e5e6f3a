import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Random, Ref } from "effect"
import { TestClock } from "effect/testing"
import { ProtocolError } from "../../src/wire/bytes.ts"
import { BrokerError, ConnectionError, UnsupportedError, type WireError } from "../../src/wire/errors.ts"
import { KAFKA_ERRORS } from "../../src/wire/kafkaErrors.ts"
import { backoffCeilingMs, backoffMs, nowMs, passesByItself, retryWithin } from "../../src/wire/retry.ts"

const broker = (code: number) => new BrokerError({ api: "Produce", code, subject: "t-0", detail: null })
const connection = (kind: ConnectionError["kind"]) =>
  new ConnectionError({ address: "a:1", kind, outcome: "unknown", what: "x" })
const NOT_LEADER = broker(6)
const options = { timeoutMs: 10_000, backoffMs: 100, backoffMaxMs: 1_000 }

/** Fails with these, one after the other, then succeeds; tells when each try was made. */
const failing = (errors: ReadonlyArray<WireError>) =>
  Effect.map(Ref.make<ReadonlyArray<number>>([]), (tries) => ({
    tries,
    effect: Effect.gen(function*() {
      const made = yield* Ref.get(tries)
      yield* Ref.set(tries, [...made, yield* nowMs])
      const error = errors[made.length]
      return error === undefined ? "done" : yield* Effect.fail(error)
    })
  }))

const runOut = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.result(effect))
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(fiber)
  })

describe("trying again", () => {
  it("is for what passes by itself: by class, and a lost connection", () => {
    for (const { class: class_, code } of KAFKA_ERRORS.values()) {
      assert.strictEqual(
        passesByItself(broker(code)),
        ["retriable", "refresh", "coordinator"].includes(class_),
        String(code)
      )
    }
    for (const kind of ["refused", "closed", "timeout", "resolve"] as const) {
      assert.isTrue(passesByItself(connection(kind)))
    }
    for (const kind of ["tls", "authentication"] as const) assert.isFalse(passesByItself(connection(kind)))
    assert.isFalse(passesByItself(new ProtocolError({ what: "x" })))
    assert.isFalse(passesByItself(new UnsupportedError({ api: "x", what: "x" })))
    assert.isFalse(passesByItself(broker(31_000)), "a code nobody knows")
  })

  it.effect("goes on until it succeeds", () =>
    Effect.gen(function*() {
      const { effect, tries } = yield* failing([NOT_LEADER, connection("closed"), NOT_LEADER])
      const result = yield* runOut(retryWithin(effect, options))
      assert.strictEqual(result._tag, "Success")
      assert.strictEqual((yield* Ref.get(tries)).length, 4)
    }))

  it.effect("ends at once with what does not pass", () =>
    Effect.gen(function*() {
      const { effect, tries } = yield* failing([NOT_LEADER, broker(29), NOT_LEADER])
      const error = yield* Effect.flip(Effect.flatMap(runOut(retryWithin(effect, options)), Effect.fromResult))
      assert.strictEqual((error as BrokerError).code, 29)
      assert.strictEqual((yield* Ref.get(tries)).length, 2)
    }))

  it.effect("never runs past its time, and reports the last real failure", () =>
    Effect.gen(function*() {
      const { effect, tries } = yield* failing(
        Array.from({ length: 1000 }, (_, i) => (i % 2 === 0 ? NOT_LEADER : connection("refused")))
      )
      const result = yield* runOut(retryWithin(effect, options))
      const made = yield* Ref.get(tries)
      assert.strictEqual(result._tag, "Failure")
      assert.isAbove(made.length, 10)
      assert.isAtMost(made.at(-1) as number, options.timeoutMs)
    }).pipe(Random.withSeed("retry")))

  it.effect("cuts off a try that hangs, with the failure that was seen before", () =>
    Effect.gen(function*() {
      const tries = yield* Ref.make(0)
      const hanging = Effect.flatMap(
        Ref.updateAndGet(tries, (n) => n + 1),
        (n) => (n === 1 ? Effect.fail(NOT_LEADER) : Effect.never)
      )
      const fiber = yield* Effect.forkChild(Effect.flip(retryWithin(hanging, options)))
      yield* TestClock.adjust(options.timeoutMs)
      assert.strictEqual(yield* Fiber.join(fiber), NOT_LEADER)
    }))

  it.effect("looks up anew what the failure asks for, before each further try", () =>
    Effect.gen(function*() {
      const seen = yield* Ref.make<ReadonlyArray<WireError>>([])
      const { effect } = yield* failing([NOT_LEADER, broker(16)])
      yield* runOut(retryWithin(effect, { ...options, before: (error) => Ref.update(seen, (all) => [...all, error]) }))
      assert.deepStrictEqual((yield* Ref.get(seen)).map((error) => (error as BrokerError).code), [6, 16])
    }))

  it.effect("waits a random share of a ceiling that doubles up to its maximum", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual([0, 1, 2, 3, 4, 400].map((n) => backoffCeilingMs(n, 100, 1_000)), [
        100,
        200,
        400,
        800,
        1_000,
        1_000
      ])
      const waits = yield* Effect.forEach(Array.from({ length: 500 }), () => backoffMs(2, 100, 1_000))
      assert.isAtMost(Math.max(...waits), 400)
      assert.isBelow(Math.min(...waits), 40)
      assert.isAbove(Math.max(...waits), 360)
    }).pipe(Random.withSeed("jitter")))
})
