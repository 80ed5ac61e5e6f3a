/** Repair (R12) for a flow that runs on a ledger and a share group: what it asks and whom it tells. */
import { Effect, type Scope } from "effect"
import type { BindingStopped } from "../../txn/binding.ts"
import { knownOf } from "../../txn/ledger/positions.ts"
import { noteReader } from "../../txn/ledger/regime.ts"
import { type ShareStart, shareStartOffsets } from "../../share/startOffsets.ts"
import type { WireError } from "../../wire/errors.ts"
import { bothEnds, nothingUndone } from "../control/ends.ts"
import { partitionName, startOffsets } from "../control/offsets.ts"
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

interface Dealt extends ShareStart {
  /** All below is dealt with for the group. */
  readonly below: number
}

/**
 * How far the group has come where it has begun. The start offset it tells lags behind what is decided; where
 * nothing is left to do below the last stable offset, all below that is decided.
 */
const dealtWith = (options: FlowRepairOptions): Effect.Effect<ReadonlyArray<Dealt>, WireError> =>
  Effect.gen(function*() {
    const topics = options.topics()
    const names = new Set(topics.map((topic) => topic.source))
    const ends = bothEnds(options.source, topics, options.readCommitted)
    const before = yield* ends
    const starts = yield* shareStartOffsets(options.source, options.groupId)
    const after = yield* ends
    return starts.filter((s) => names.has(s.topic) && s.startOffset >= 0).map((start) => {
      const name = partitionName(start.topic, start.partition)
      const end = nothingUndone(name, start.lag, before, after) ? before.stable.get(name) ?? 0 : 0
      return { ...start, below: Math.max(end, start.startOffset) }
    }).filter(({ below }) => below > 0)
  })

const standings = (options: FlowRepairOptions): Effect.Effect<ReadonlyArray<Standing>, WireError> =>
  Effect.gen(function*() {
    const begun = yield* dealtWith(options)
    if (begun.length === 0) return []
    const named = new Set(begun.map((s) => s.topic))
    const logStarts = yield* startOffsets(options.source, options.topics().filter((topic) => named.has(topic.source)))
    return begun.flatMap(({ below, partition, topic, topicId }) => {
      const logStart = logStarts.get(partitionName(topic, partition))
      return logStart === undefined ? [] : [{ topic, topicId, partition, groupStart: below, logStart }]
    })
  })

/** Call before the flow's first lane starts. */
export const makeFlowRepairs = (
  options: FlowRepairOptions
): Effect.Effect<Repairs, WireError | BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const { ledger } = options
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
      standings: Effect.flatMap(inForce, (alone) => alone ? standings(options) : Effect.succeed([])),
      known,
      onRepaired: options.onRepaired,
      log: options.log
    })
  })
