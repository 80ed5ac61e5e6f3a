/**
 * R10: in consumer mode the ledger says where a partition stands; the group's committed offsets are for lag tools.
 * Also what repair (R12) goes by.
 */
import { Effect } from "effect"
import { type RangeSet } from "../../wire/ranges.ts"
import type { BindingStopped, SourceRange } from "../binding.ts"
import { claimsOf } from "./rules.ts"
import { partitionOfSlot, type WorkerLedger } from "./worker.ts"

export type SourcePartition = Pick<SourceRange, "topic" | "topicId" | "partition">

/** As last read; nothing is waited for but that the tail is ready. */
export interface Known {
  readonly done: RangeSet
  /** In transactions that are not decided yet. */
  readonly undecided: ReadonlyArray<RangeSet>
}

const slotOf = (worker: WorkerLedger, at: SourcePartition) => {
  const [claim] = claimsOf(worker.sourceClusterId, [{ ...at, first: 0, last: 0 }])
  if (claim === undefined) throw new Error("one range is one claim")
  const reader = worker.readers[partitionOfSlot(claim.key, worker.readers.length)]
  if (reader === undefined) throw new Error("a slot without a ledger partition")
  return { key: claim.key, reader }
}

/** What the ledger knows of a source partition, read to its end now. */
export const knownOf = (worker: WorkerLedger, at: SourcePartition): Effect.Effect<Known, BindingStopped> =>
  Effect.suspend(() => {
    const { key, reader } = slotOf(worker, at)
    return Effect.map(
      reader.toEnd,
      () => ({ done: reader.tail().done(key), undecided: reader.tail().openOf(key).map((entry) => entry.done.ranges) })
    )
  })

/**
 * The new owner of a partition: makes the tail ready, waits for undecided entries of the slot (and fences their
 * producers when patience is over), and gives what is done. `own`: the transactional id of the asking lane.
 */
export const settledDone = (
  worker: WorkerLedger,
  at: SourcePartition,
  own: string
): Effect.Effect<RangeSet, BindingStopped> =>
  Effect.gen(function*() {
    const { key, reader } = slotOf(worker, at)
    yield* reader.toEnd
    while (true) {
      const open = reader.tail().openOf(key)
      if (open.length === 0) return reader.tail().done(key)
      const leftMs = yield* worker.fencer.consider(reader.partition, open, reader.tail().open, own)
      yield* Effect.timeoutOption(
        reader.until((tail) => tail.ready && open.some((entry) => !tail.open.includes(entry))),
        leftMs
      )
    }
  })

/**
 * Where the new owner begins: at the end of the done prefix. `committed` is the group's position, null for none;
 * `reset` is where it would begin without one (auto.offset.reset).
 *
 * A committed position is never ahead of what is done. Without one, everything from the first done offset on was to
 * be mirrored, even where `reset` (latest) is behind it; what `reset` (earliest) lets come before was too.
 */
export const startPosition = (done: RangeSet, committed: number | null, reset: number): number => {
  const from = committed ?? Math.min(reset, done[0]?.first ?? reset)
  const covering = done.find((range) => range.first <= from && range.last >= from)
  return covering === undefined ? from : covering.last + 1
}
