/** Snapshots run beside the lanes and nobody waits for them: what breaks there is said, and they go on. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { LedgerReader } from "../../../src/txn/ledger/reader.ts"
import { runSnapshots } from "../../../src/txn/ledger/snapshots.ts"
import type { LedgerTail } from "../../../src/txn/ledger/tail.ts"

describe("keeping the ledger short", () => {
  it.effect("goes on after a mistake of ours, which is said", () =>
    Effect.gen(function*() {
      const said: Array<string> = []
      const cuts: Array<number> = []
      const slot = { clusterId: "c", topicId: "AAAAAAAAAAAAAAAAAAAAAQ", partition: 0 }
      const facts = { decidedBelow: 7, slots: [{ slot, done: [{ first: 0, last: 9 }] }] }
      const seen = { ready: true, knowsSome: true, lastProducer: 1, lastStable: 100, next: 100 }
      const tail = { ...seen, facts } as unknown as LedgerTail
      const due = () => Object.assign(tail, { sinceSnapshot: { entries: cuts.length > 0 ? 0 : 5, bytes: 1_000_000 } })
      const reader = {
        partition: 0,
        log: { deleteBelow: (offset: number) => Effect.sync(() => void cuts.push(offset)) },
        tail: () => tail,
        until: (test: (tail: LedgerTail) => boolean) => Effect.suspend(() => test(due()) ? Effect.void : Effect.never)
      } as unknown as LedgerReader
      let broken = true
      yield* Effect.forkChild(runSnapshots({
        topic: "ledger",
        reader,
        producer: {
          produce: (batches) =>
            Effect.suspend(() =>
              broken
                ? Effect.die(new TypeError("not a function"))
                : Effect.succeed(batches.map(() => ({ ok: true, baseOffset: 8, logAppendTimeMs: -1 }) as const))
            ),
          stalls: Effect.succeed([])
        },
        isOwn: () => true,
        limits: { entries: 5, bytes: 1e9 },
        log: (_level, line) => void said.push(line)
      }))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(said, [
        "the ledger ledger-0 is not kept short; it grows until that is possible: TypeError: not a function"
      ])
      broken = false
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(cuts, [7])
    }))
})
