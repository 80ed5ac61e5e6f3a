/**
 * R12: which offsets the share group gave up although nobody mirrored them: decided for it, not done, still
 * in the source's log. Pure.
 */
import { intersect, type RangeSet, rangeSet, subtract, union } from "../../wire/ranges.ts"

export interface HoleView {
  /** What the group has decided: never more than it has; empty: it has not begun. */
  readonly decided: RangeSet
  /** Where the source's log begins. */
  readonly logStart: number
  readonly done: RangeSet
  /** In transactions that are not decided: looked at again later. */
  readonly undecided: ReadonlyArray<RangeSet>
  /** Whether the group was to begin at the log's start. Otherwise nothing is known of what lies before its first done offset. */
  readonly fromEarliest: boolean
}

export interface Holes {
  /** To be fetched and mirrored. */
  readonly missing: RangeSet
  /** Given up by the group, and by now dropped by the source: these are lost. */
  readonly gone: RangeSet
}

const NONE: Holes = { missing: [], gone: [] }

const between = (from: number, to: number): RangeSet => rangeSet([{ first: from, last: to - 1 }])

export const holesOf = (view: HoleView): Holes => {
  const { decided, done, fromEarliest, logStart, undecided } = view
  const first = done[0]?.first
  const end = (decided.at(-1)?.last ?? -1) + 1
  // Before the first done offset a group that did not begin at the start owes nothing, and nobody knows where it began.
  if (!fromEarliest && first === undefined) return NONE
  const owed = subtract(decided, union(done, rangeSet(undecided.flat())))
  const from = fromEarliest ? logStart : Math.max(logStart, first ?? 0)
  return {
    missing: intersect(owed, between(from, end)),
    gone: first === undefined ? [] : intersect(intersect(owed, between(first, end)), between(0, logStart))
  }
}
