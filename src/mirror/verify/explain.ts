/**
 * What is on one side only and is no difference: records that a side's own clean-up has removed, by retention (they lie
 * before where both logs begin to agree) or by compaction (their key has a later record, or they are tombstones).
 */
import { Effect } from "effect"
import type { WireError } from "../../wire/errors.ts"
import type { Candidate, Matched } from "./match.ts"
import { lastOfKeys, type Pinpointed } from "./pinpoint.ts"
import type { Place, Sides } from "./places.ts"

export interface Judged extends Matched {
  readonly partial: boolean
  readonly removedOnSource: number
  readonly removedOnTarget: number
}

const keysOf = (candidates: ReadonlyArray<Candidate>): ReadonlySet<string> =>
  new Set(candidates.flatMap(({ parts }) => parts.key === null ? [] : [parts.key]))

/** Candidates of a side that compaction on the other side would have removed. */
const compactedAway = (
  sides: Sides,
  place: Place,
  side: "source" | "target",
  candidates: ReadonlyArray<Candidate>
): Effect.Effect<ReadonlySet<Candidate>, WireError> =>
  Effect.gen(function*() {
    const keys = keysOf(candidates)
    if (keys.size === 0) return new Set()
    const last = yield* lastOfKeys(sides, place, side, keys)
    return new Set(candidates.filter(({ offset, parts }) =>
      parts.key !== null && (parts.value === null || offset < (last.get(parts.key) ?? -1))
    ))
  })

export const explain = (sides: Sides, place: Place, found: Pinpointed): Effect.Effect<Judged, WireError> =>
  Effect.gen(function*() {
    const isExpired = (list: ReadonlyArray<Candidate>, below: number) =>
      new Set(list.filter(({ offset }) => offset < below))
    let removedOnTarget = isExpired(found.lost, place.zone.source)
    let removedOnSource = isExpired(found.foreign, place.zone.target)
    const lost = found.lost.filter((candidate) => !removedOnTarget.has(candidate))
    const foreign = found.foreign.filter((candidate) => !removedOnSource.has(candidate))
    const sourceCompacted = foreign.length > 0 &&
      (yield* Effect.map(
        Effect.forEach([...new Set(place.parts.map(({ topic }) => topic))], (topic) => sides.sourceCompacted(topic)),
        (all) => all.some(Boolean)
      ))
    if (lost.length > 0 && place.target.compacted) {
      removedOnTarget = removedOnTarget.union(yield* compactedAway(sides, place, "source", lost))
    }
    if (sourceCompacted) {
      removedOnSource = removedOnSource.union(yield* compactedAway(sides, place, "target", foreign))
    }
    return {
      ...found,
      lost: found.lost.filter((candidate) => !removedOnTarget.has(candidate)),
      foreign: found.foreign.filter((candidate) => !removedOnSource.has(candidate)),
      removedOnSource: removedOnSource.size,
      removedOnTarget: removedOnTarget.size
    }
  })
