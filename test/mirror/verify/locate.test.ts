/** Where a comparison that does not begin at the source's beginning begins on the target. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import { compareUnit } from "../../../src/mirror/verify/compare.ts"
import type { Sides, SourcePart, TargetPart } from "../../../src/mirror/verify/places.ts"
import type { VerifiedPartition } from "../../../src/mirror/verify/report.ts"
import type { TransformChain } from "../../../src/mirror/transforms/chain.ts"

const recordsOf = (names: ReadonlyArray<string>) =>
  names.map((name) => ({ key: name, value: name, timestampMs: 1_000 }))
const named = (from: number, to: number): ReadonlyArray<string> =>
  Array.from({ length: to - from }, (_, n) => `r${from + n}`)

interface Case {
  readonly source: ReadonlyArray<string>
  readonly target: ReadonlyArray<string>
  readonly from: number
  /** The source's own clean-up has removed what is below. */
  readonly removed?: number
  readonly required?: number
  readonly ordered?: boolean
  readonly chain?: TransformChain
}

const verified = (one: Case): Effect.Effect<VerifiedPartition> =>
  Effect.scoped(Effect.gen(function*() {
    const [east, west] = [yield* makeEmbedded(), yield* makeEmbedded()]
    const [ours, theirs] = [east.createTopic("orders"), west.createTopic("east.orders")]
    if (one.source.length > 0) east.append("orders", 0, recordsOf(one.source))
    if (one.target.length > 0) west.append("east.orders", 0, recordsOf(one.target))
    if (one.removed !== undefined) east.deleteRecords("orders", 0, one.removed)
    const reading = { committed: true, purpose: "verify", maxBytes: 1_000_000, onPassed: () => {} }
    const target: TargetPart = {
      topic: "east.orders",
      topicId: theirs.id,
      partition: 0,
      from: 0,
      to: one.target.length,
      compared: { timestamps: true },
      compacted: false
    }
    const sides: Sides = {
      source: { ...reading, cluster: yield* Effect.orDie(east.cluster("verify")) },
      target: { ...reading, cluster: yield* Effect.orDie(west.cluster("verify")) },
      targetPart: () => Effect.succeed(target),
      sourceCompacted: () => Effect.succeed(false),
      ordered: one.ordered ?? true,
      fromBeginning: true,
      endsEarly: false,
      onMore: () => {}
    }
    const part: SourcePart = {
      topic: "orders",
      topicId: ours.id,
      partition: 0,
      from: one.from,
      to: one.required ?? one.source.length,
      optionalTo: one.source.length,
      logStart: one.removed ?? 0,
      targetTopic: "east.orders",
      chain: one.chain ?? null,
      notes: []
    }
    const [found] = yield* Effect.orDie(compareUnit(sides, { parts: [part], partition: 0, routed: false }))
    return found as VerifiedPartition
  }))

describe("a comparison from a place of the source on", () => {
  for (const ordered of [true, false]) {
    const mode = ordered ? "in order" : "in any order"
    it.live(`has nothing to compare where the source has no record since (${mode})`, () =>
      Effect.gen(function*() {
        const all = named(0, 250)
        const found = yield* verified({ source: all, target: all, from: 250, ordered })
        assert.deepInclude(found, { equal: true, foreign: 0, lost: 0, doubled: 0 })
        assert.deepInclude(found.target, { from: 250, records: 0 })
      }))

    it.live(`finds what only the target has behind the last record before it (${mode})`, () =>
      Effect.gen(function*() {
        const found = yield* verified({
          source: named(0, 250),
          target: [...named(0, 250), "made up"],
          from: 250,
          ordered
        })
        assert.deepInclude(found, { equal: false, foreign: 1, lost: 0 })
        assert.deepStrictEqual(found.differences.map(({ targetOffset }) => targetOffset), [250])
      }))

    it.live(`takes only what is missing since for lost where nothing of it has come (${mode})`, () =>
      Effect.gen(function*() {
        const found = yield* verified({ source: named(0, 250), target: named(0, 240), from: 240, ordered })
        assert.deepInclude(found, { equal: false, lost: 10, foreign: 0 })
      }))

    it.live(`allows what the mirror may have written beyond what it must have (${mode})`, () =>
      Effect.gen(function*() {
        const all = named(0, 250)
        const found = yield* verified({ source: all, target: all, from: 240, required: 240, ordered })
        assert.deepInclude(found, { equal: true, foreign: 0, lost: 0 })
      }))
  }

  it.live("does not count copies of what lies before the place, wherever they stand", () =>
    Effect.gen(function*() {
      const all = named(0, 50)
      const found = yield* verified({ source: all, target: [...all, ...named(40, 50)], from: 50 })
      assert.deepInclude(found, { equal: true, foreign: 0, doubled: 0 })
    }))

  it.live("looks farther back where what lies right before the place is not mirrored", () =>
    Effect.gen(function*() {
      const chain = {
        apply: (record: { readonly topic: string; readonly key: Buffer | null }) =>
          Number(record.key?.toString().slice(1)) < 20 ? { kind: "keep", record } : { kind: "drop" }
      } as unknown as TransformChain
      const found = yield* verified({
        source: named(0, 3_000),
        target: [...named(0, 20), "made up"],
        from: 3_000,
        chain
      })
      assert.deepInclude(found, { foreign: 1, lost: 0 })
      assert.deepStrictEqual(found.differences.map(({ targetOffset }) => targetOffset), [20])
    }))

  it.live("says that nothing is compared where nothing of the source tells the place", () =>
    Effect.gen(function*() {
      const found = yield* verified({ source: named(0, 250), target: named(0, 250), from: 250, removed: 250 })
      assert.deepInclude(found, { equal: true, foreign: 0 })
      assert.include(found.notes.join(), "not compared")
    }))
})
