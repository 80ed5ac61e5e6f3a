/** What `run --until-caught-up` waits for: one look, begun after it was asked for, that finds nothing to repair. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import { makeRepairs, type Standing } from "../../../src/mirror/repair/repairs.ts"
import type { Known } from "../../../src/txn/ledger/positions.ts"

it.effect("a look that finds a hole, or one that another's open transaction holds, is not clean; the next one is made soon", () =>
  Effect.scoped(Effect.gen(function*() {
    const cluster = yield* (yield* makeEmbedded()).cluster("worker")
    const standing: Standing = {
      topic: "t",
      topicId: "AAECAwQFBgcICQoLDA0ODw",
      partition: 0,
      decided: [{ first: 0, last: 9 }],
      logStart: 0
    }
    let known: Known = { done: [{ first: 0, last: 9 }], undecided: [] }
    let looks = 0
    const repairs = yield* makeRepairs({
      cluster,
      purpose: "repair",
      readCommitted: true,
      fromEarliest: true,
      maxBytes: 1_000,
      intervalMs: 3_600_000,
      standings: Effect.sync(() => {
        looks++
        return [standing]
      }),
      known: () => Effect.succeed(known),
      onRepaired: () => {},
      log: () => {}
    })
    yield* Effect.forkScoped(repairs.run)
    yield* TestClock.adjust("10 hours")
    known = { done: [{ first: 0, last: 4 }], undecided: [[{ first: 5, last: 9 }]] }
    const before = looks
    const clean = yield* Effect.forkChild(repairs.clean)
    yield* TestClock.adjust(1)
    assert.strictEqual(looks, before + 1)
    yield* TestClock.adjust("10 seconds")
    assert.isUndefined(clean.pollUnsafe())
    known = { done: [{ first: 0, last: 9 }], undecided: [] }
    yield* TestClock.adjust("1 second")
    assert.isDefined(clean.pollUnsafe())
    yield* Fiber.join(clean)
  })))

it.effect("offsets that hold nothing at the end of the log keep nobody waiting", () =>
  Effect.scoped(Effect.gen(function*() {
    const embedded = yield* makeEmbedded()
    const topic = embedded.createTopic("t")
    const cluster = yield* embedded.cluster("worker")
    const repairs = yield* makeRepairs({
      cluster,
      purpose: "repair",
      readCommitted: true,
      fromEarliest: true,
      maxBytes: 1_000,
      intervalMs: 3_600_000,
      standings: Effect.succeed([
        { topic: "t", topicId: topic.id, partition: 0, decided: [{ first: 0, last: 0 }], logStart: 0 }
      ]),
      known: () => Effect.succeed({ done: [], undecided: [] }),
      onRepaired: () => {},
      log: () => {}
    })
    yield* Effect.forkScoped(repairs.run)
    const clean = yield* Effect.forkChild(repairs.clean)
    for (let n = 0; n < 100 && clean.pollUnsafe() === undefined; n++) yield* TestClock.adjust("100 millis")
    assert.isDefined(clean.pollUnsafe())
  })))
