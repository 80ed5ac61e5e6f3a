/** Repair (R12) for a flow that runs on a ledger and a share group: what it asks and whom it tells. */
import { Effect, type Scope } from "effect"
import type { BindingStopped } from "../../txn/binding.ts"
import { knownOf } from "../../txn/ledger/positions.ts"
import { noteReader } from "../../txn/ledger/regime.ts"
import { decidedIn } from "../../share/decided.ts"
import { type ShareStart, shareStartOffsets } from "../../share/startOffsets.ts"
import type { WireError } from "../../wire/errors.ts"
import { rangeSet, union } from "../../wire/ranges.ts"
import { bothEnds, type Ends, nothingUndone } from "../control/ends.ts"
import { reachableStarts } from "../control/logOffsets.ts"
import { partitionName } from "../control/offsets.ts"
import { beginWithLedger, type LedgerBeginOptions } from "../ledger/begin.ts"
import type { HoleAt } from "./fetchHole.ts"
import { makeRepairs, type Repairs, type Standing } from "./repairs.ts"

export interface FlowRepairOptions extends Omit<LedgerBeginOptions, "mode"> {
  readonly fromEarliest: boolean
  readonly onRepaired: (records: number) => void
  /** Between two looks, milliseconds. Default 30 000. */
  readonly intervalMs?: number
}

/** A look costs two or three requests, and what it finds has waited for as long as the group did not tell. */
const INTERVAL_MS = 30_000
const MAX_BYTES = 4 * 1024 * 1024

/**
 * What the group has decided where it has begun. The start offset it tells lags behind; where nothing is left to do
 * below the last stable offset, all below that is decided. Where something is left and the group has not moved since
 * the look before, it may be that nobody can take it (a log may end in offsets without records) or that somebody holds
 * it for long: then the coordinator is asked for what is decided offset by offset.
 */
const decidedBy = (
  options: FlowRepairOptions,
  seen: Map<string, string>,
  start: ShareStart,
  before: Ends,
  after: Ends
) =>
  Effect.gen(function*() {
    const name = partitionName(start.topic, start.partition)
    const idle = nothingUndone(name, start.lag, before, after)
    const below = Math.max(start.startOffset, idle ? before.stable.get(name) ?? 0 : 0)
    const simple = rangeSet([{ first: 0, last: below - 1 }])
    const high = before.high.get(name) ?? 0
    const stand = `${start.topicId} ${start.startOffset} ${start.lag} ${high}`
    const stands = seen.get(name) === stand
    seen.set(name, stand)
    if (idle || !stands || high - start.startOffset - start.lag <= 0) return simple
    return union(simple, (yield* decidedIn(options.source, options.groupId, start, high)).ranges)
  })

const standings = (
  options: FlowRepairOptions,
  seen: Map<string, string>
): Effect.Effect<ReadonlyArray<Standing>, WireError> =>
  Effect.gen(function*() {
    const topics = options.topics()
    const names = new Set(topics.map((topic) => topic.source))
    const ends = bothEnds(options.source, topics, options.readCommitted)
    const before = yield* ends
    const starts = (yield* shareStartOffsets(options.source, options.groupId)).filter((s) =>
      names.has(s.topic) && s.startOffset >= 0
    )
    if (starts.length === 0) return []
    const after = yield* ends
    const named = new Set(starts.map((s) => s.topic))
    const logStarts = yield* reachableStarts(options.source, topics.filter((topic) => named.has(topic.source)))
    const all: Array<Standing> = []
    for (const start of starts) {
      const { partition, topic, topicId } = start
      const decided = yield* decidedBy(options, seen, start, before, after)
      const logStart = logStarts.found.get(partitionName(topic, partition))
      if (logStart !== undefined && decided.length > 0) all.push({ topic, topicId, partition, decided, logStart })
    }
    return all
  })

/** Call before the flow's first lane starts. */
export const makeFlowRepairs = (
  options: FlowRepairOptions
): Effect.Effect<Repairs, WireError | BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const { ledger } = options
    const seen = new Map<string, string>()
    const { inForce } = yield* beginWithLedger({ ...options, mode: "share" })
    const known = (at: HoleAt) =>
      Effect.gen(function*() {
        const knows = yield* knownOf(ledger, at)
        // Read after the group was asked: whoever works without the ledger has said so before its first record.
        const reader = noteReader(ledger.readers)
        yield* reader.toEnd
        return reader.tail().away === null ? knows : null
      })
    return yield* makeRepairs({
      cluster: options.source,
      purpose: `repair-${options.flow}`,
      readCommitted: options.readCommitted,
      fromEarliest: options.fromEarliest,
      maxBytes: MAX_BYTES,
      intervalMs: options.intervalMs ?? INTERVAL_MS,
      standings: Effect.flatMap(inForce, (alone) => alone ? standings(options, seen) : Effect.succeed([])),
      known,
      onRepaired: options.onRepaired,
      log: options.log
    })
  })
