/** The looks for what a share group gave up, on the cluster in this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import type { Delivery } from "../../../src/mirror/delivery.ts"
import { makeRepairs } from "../../../src/mirror/repair/repairs.ts"
import { type RangeSet, rangeSet, union } from "../../../src/wire/ranges.ts"

describe("looking for what the group gave up", () => {
  it.effect("a partition that cannot be read now keeps no other from its repair", () =>
    Effect.scoped(Effect.gen(function*() {
      const embedded = yield* makeEmbedded()
      embedded.createTopic("t")
      embedded.append("t", 0, [{ value: "a" }, { value: "b" }])
      const cluster = yield* embedded.cluster("repair")
      const standing = (topic: string) => ({
        topic,
        topicId: embedded.state.topics.get(topic)?.id ?? "AAAAAAAAAAAAAAAAAAAAAQ",
        partition: 0,
        decided: [{ first: 0, last: 1 }],
        logStart: 0
      })
      const repairs = yield* makeRepairs({
        cluster,
        purpose: "repair",
        readCommitted: true,
        fromEarliest: true,
        maxBytes: 1_000_000,
        intervalMs: 30_000,
        standings: Effect.sync(() => [standing("gone"), standing("t")]),
        known: () => Effect.succeed({ done: [], undecided: [] }),
        onRepaired: () => {},
        log: () => {}
      })
      yield* Effect.forkScoped(repairs.run)
      const found: Array<Delivery> = []
      for (let n = 0; n < 600 && found.length === 0; n++) {
        yield* TestClock.adjust("1 second")
        found.push(...(yield* repairs.take))
      }
      assert.deepStrictEqual(found.map(({ ranges, topic }) => [topic, ranges[0]?.first, ranges[0]?.last]), [[
        "t",
        0,
        1
      ]])
    })))

  it.effect("holes that one fetch reaches are closed together, with the batches that hold records of them", () =>
    Effect.scoped(Effect.gen(function*() {
      const embedded = yield* makeEmbedded()
      embedded.createTopic("t")
      for (let n = 0; n < 59; n++) {
        embedded.append("t", 0, [{ value: `${n}` }])
        if (n % 2 === 1 && n !== 51) embedded.punchHole("t", 0, n, n)
      }
      const cluster = yield* embedded.cluster("repair")
      let done: RangeSet = Array.from({ length: 30 }, (_, n) => ({ first: 2 * n, last: 2 * n }))
      const at = { topic: "t", topicId: embedded.state.topics.get("t")?.id ?? "", partition: 0 }
      const repairs = yield* makeRepairs({
        cluster,
        purpose: "repair",
        readCommitted: true,
        fromEarliest: true,
        maxBytes: 1_000_000,
        intervalMs: 30_000,
        standings: Effect.succeed([{ ...at, decided: [{ first: 0, last: 58 }], logStart: 0 }]),
        known: () => Effect.sync(() => ({ done, undecided: [] })),
        onRepaired: () => {},
        log: () => {}
      })
      yield* Effect.forkScoped(repairs.run)
      const looks: Array<Delivery> = []
      for (let n = 0; n < 100; n++) {
        yield* TestClock.adjust("100 millis")
        for (const delivery of yield* repairs.take) {
          looks.push(delivery)
          done = union(done, rangeSet(delivery.ranges))
          repairs.settle(delivery, delivery.ranges.map(({ first, last }) => ({ first, last, type: "gap" })))
        }
      }
      assert.deepStrictEqual(looks.map(({ ranges }) => ranges.map(({ first }) => first)), [
        Array.from({ length: 29 }, (_, n) => 2 * n + 1)
      ])
      assert.deepStrictEqual(looks[0]?.batches.map(({ baseOffset }) => baseOffset), [51])
    })))
})
