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

/** The offset after the last that the ledger knows to be done, as far as it has been read; 0: none. */
export const doneEnd = (worker: WorkerLedger, at: SourcePartition): number => {
  const { key, reader } = slotOf(worker, at)
  return reader.tail().doneEnd(key) + 1
}

export interface StartView {
  readonly done: RangeSet
  /** The group's position; null: it has none. */
  readonly committed: number | null
  /** Where the source's log begins. */
  readonly logStart: number
  /** R13: records are dealt with without the ledger too, and only the group's positions know of those. */
  readonly away: boolean
}

/**
 * Where the new owner of a partition begins; null: the ledger knows nothing of it, and the group's word counts.
 *
 * All from the first done offset on was to be mirrored: it begins at the first of it that is not done, wherever the
 * group's position is (behind: nothing is mirrored twice; ahead, moved by hand: nothing is left out; none, with
 * auto.offset.reset latest: the same). A group that was moved back to before the first done offset begins there. What
 * the log no longer holds below the group's position was told as a gap when the group went over it.
 *
 * Undecided entries are waited for where their records are read (R3).
 */
export const startPosition = ({ away, committed, done, logStart }: StartView): number | null => {
  const first = done[0]?.first
  if (first === undefined) return null
  const past = (offset: number): number =>
    (done.find((range) => range.first <= offset && range.last >= offset)?.last ?? offset - 1) + 1
  if (committed === null) return past(first)
  const place = past(away ? committed : Math.min(committed, first))
  return place < committed && place < logStart ? past(Math.min(committed, logStart)) : place
}
