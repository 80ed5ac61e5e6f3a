/** What the parts of a lane share: its ports and what it holds. */
import { Effect, FiberSet } from "effect"
import type { Binding } from "../txn/binding.ts"
import { type OffsetRange, rangeSet, subtract } from "../wire/ranges.ts"
import type { WireError } from "../wire/errors.ts"
import { nowMs } from "../wire/retry.ts"
import type { CopyRules, CopyUnit, Output } from "./copyUnit.ts"
import type { Cut } from "./gathering.ts"
import type { Delivery, Settlement, Source } from "./delivery.ts"
import { compacted, HELD_BYTES, heldBytes } from "./holding.ts"
import { JoinLimits } from "./joinLimits.ts"
import type { LaneEvents } from "./laneEvents.ts"
import type { LaneNotes } from "./offsets/laneNotes.ts"
import { type Pending, PendingWork } from "./pending.ts"
import type { MirrorRecord } from "./transforms/transform.ts"

/** A record on its way to the dead-letter topic, and why. */
export interface Letter {
  readonly record: MirrorRecord
  readonly sourceTopic: string
  /** As Connect names its stages: a transform refused it, or the target did. */
  readonly stage: "TRANSFORMATION" | "TASK_PUT"
  /** The transform's or the error's name. */
  readonly executor: string
  readonly error: Error
}

/** The rules of a source partition, or why the target has no place for it now. */
export type Place = { readonly ok: true; readonly rules: CopyRules } | { readonly ok: false; readonly reason: string }

export interface LaneParts<E> {
  readonly source: Source<E>
  readonly binding: Binding
  /** How much a transaction may gather; not there: each poll is one. */
  readonly cut?: Cut
  /** Makes sure that the target has a place for the partition. */
  readonly placeOf: (topic: string, partition: number, topicId: string) => Effect.Effect<Place, WireError>
  /** The same for a topic of the target by its name, whoever has named it. Null, or why it has no place. */
  readonly ensureOutput: (
    topic: string,
    sourceTopic: string,
    partition: number
  ) => Effect.Effect<string | null, WireError>
  /** The target says that it does not have this topic: `placeOf` and `ensureOutput` ask again. */
  readonly missing: (topic: string) => void
  /** The letter as a batch for the dead-letter topic; null when none is configured. */
  readonly deadLetter: ((letter: Letter) => Output) | null
  /** What is kept of where records have come to be, as batches that go with the transaction; not there: nothing is. */
  readonly notes?: LaneNotes
  readonly onRecordRefused: "block" | "deadletter"
  readonly errorsTolerance: "none" | "all"
  readonly events: LaneEvents
  readonly stopping: () => boolean
}

export const TWICE = "delivered twice: the other delivery of these records is being written"
export const BEHIND = "a batch before it in the target partition is not taken"
export const ABORTED = "the transaction it was to be in had to be aborted"
export const UNDECIDED = "another lane's transaction over these records is not decided yet"

/** Between two tries of held work, milliseconds: doubling, with this floor and ceiling. */
export const RETRY_FLOOR_MS = 1_000
export const RETRY_CEILING_MS = 15_000

/** Until the binding is asked again about what another transaction holds, milliseconds. */
export const UNDECIDED_RETRY_MS = 100

export interface LaneContext<E> {
  readonly parts: LaneParts<E>
  readonly pending: PendingWork
  readonly ordered: boolean
  readonly settling: FiberSet.FiberSet<void, E>
  readonly joinLimits: JoinLimits
  /** Monotonic: a wall clock that is set back must not hold up what is held. */
  retryAtMs: number
  retryDelayMs: number
  /** The last pass over what is held found some of it in another's open transaction. */
  undecided: boolean
  /** A transaction was not committed since the last pass: nothing was refused, so nothing is to be waited for long. */
  aborted: boolean
}

export const makeContext = <E>(parts: LaneParts<E>) =>
  Effect.map(FiberSet.make<void, E>(), (settling): LaneContext<E> => ({
    parts,
    pending: new PendingWork(),
    ordered: parts.source.mode === "consumer",
    settling,
    joinLimits: new JoinLimits(),
    retryAtMs: 0,
    retryDelayMs: RETRY_FLOOR_MS,
    undecided: false,
    aborted: false
  }))

const asSettlements = (ranges: ReadonlyArray<OffsetRange>, type: Settlement["type"]): ReadonlyArray<Settlement> =>
  ranges.map((range) => ({ first: range.first, last: range.last, type }))

/** The settlements of a unit whose outputs are all written, but for what was dead-lettered. */
export const unitSettlements = (unit: CopyUnit, rejected: ReadonlyArray<OffsetRange>): ReadonlyArray<Settlement> => {
  const accepted = rejected.length === 0 ? unit.accept : subtract(rangeSet(unit.accept), rangeSet(rejected))
  return [
    ...asSettlements(accepted, "accept"),
    ...asSettlements(rejected, "reject"),
    ...asSettlements(unit.gaps, "gap")
  ]
}

/** Where order is kept a partition waits at once; else when a lane holds so much that more would only be memory. */
const pause = <E>(lane: LaneContext<E>, { partition, topic }: Delivery) =>
  lane.ordered || heldBytes(lane.pending.items()) > HELD_BYTES
    ? lane.parts.source.pause(topic, partition)
    : Effect.void

/** Share mode: nothing more can be taken, whatever the partition. What is held is tried again meanwhile. */
export const isFull = <E>(lane: LaneContext<E>): boolean =>
  !lane.ordered && lane.pending.size > 0 && heldBytes(lane.pending.items()) > 2 * HELD_BYTES

/** Keeps work that cannot be finished now; its partition waits where order is kept. */
export const hold = <E>(lane: LaneContext<E>, item: Pending) =>
  Effect.gen(function*() {
    if (lane.pending.size === 0) {
      lane.retryDelayMs = RETRY_FLOOR_MS
      lane.retryAtMs = (yield* nowMs) + RETRY_FLOOR_MS
    }
    lane.pending.add(compacted(item))
    // The next try comes at once: it is no block yet.
    if (item.reason !== ABORTED) {
      lane.parts.events.blocked(item.delivery, lane.pending.reasonOf(item.delivery) ?? item.reason)
    }
    yield* pause(lane, item.delivery)
  })

/** Keeps records that another lane's open transaction holds: its end is near, so it is no block yet. */
export const holdUndecided = <E>(lane: LaneContext<E>, delivery: Delivery) =>
  Effect.gen(function*() {
    const soon = (yield* nowMs) + UNDECIDED_RETRY_MS
    lane.retryAtMs = lane.pending.size === 0 ? soon : Math.min(lane.retryAtMs, soon)
    lane.pending.add(compacted({ kind: "copy", delivery, reason: UNDECIDED }))
    yield* pause(lane, delivery)
  })
