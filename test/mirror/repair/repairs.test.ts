/** The looks for what a share group gave up, on the cluster in this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import type { Delivery } from "../../../src/mirror/delivery.ts"
import { makeRepairs } from "../../../src/mirror/repair/repairs.ts"

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
})
