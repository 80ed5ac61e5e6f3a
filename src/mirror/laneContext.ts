/** What the parts of a lane share: its ports, what it holds, and how it settles and holds. */
import { Clock, Effect, FiberSet } from "effect"
import { type OffsetRange, rangeSet, subtract } from "../wire/ranges.ts"
import type { CopyRules, CopyUnit, Output } from "./copy.ts"
import type { Delivery, Settlement, Source } from "./delivery.ts"
import type { LaneEvents } from "./laneEvents.ts"
import { type Pending, PendingWork } from "./pending.ts"
import type { Sink } from "./sink.ts"
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

export interface LaneParts<E, E2, E3> {
  readonly source: Source<E>
  readonly sink: Sink<E2>
  /** The rules of a source topic; makes sure that the target has a place for the partition. */
  readonly rulesFor: (topic: string, partition: number) => Effect.Effect<CopyRules, E3>
  /** The letter as a batch for the dead-letter topic; null when none is configured. */
  readonly deadLetter: ((letter: Letter) => Output) | null
  readonly onRecordRefused: "block" | "deadletter"
  readonly errorsTolerance: "none" | "all"
  readonly events: LaneEvents
  readonly stopping: () => boolean
}

/** Between two tries of held work, milliseconds: doubling, with this floor and ceiling. */
export const RETRY_FLOOR_MS = 1_000
export const RETRY_CEILING_MS = 15_000

export interface LaneContext<E, E2, E3> {
  readonly parts: LaneParts<E, E2, E3>
  readonly pending: PendingWork
  readonly ordered: boolean
  readonly settling: FiberSet.FiberSet<void, E>
  retryAtMs: number
  retryDelayMs: number
}

export const makeContext = <E, E2, E3>(parts: LaneParts<E, E2, E3>) =>
  Effect.map(FiberSet.make<void, E>(), (settling): LaneContext<E, E2, E3> => ({
    parts,
    pending: new PendingWork(),
    ordered: parts.source.mode === "consumer",
    settling,
    retryAtMs: 0,
    retryDelayMs: RETRY_FLOOR_MS
  }))

const asSettlements = (ranges: ReadonlyArray<OffsetRange>, type: Settlement["type"]): ReadonlyArray<Settlement> =>
  ranges.map((range) => ({ first: range.first, last: range.last, type }))

/** The settlements of a unit whose outputs are all confirmed, but for what was dead-lettered. */
export const unitSettlements = (unit: CopyUnit, rejected: ReadonlyArray<OffsetRange>): ReadonlyArray<Settlement> => {
  const accepted = rejected.length === 0 ? unit.accept : subtract(rangeSet(unit.accept), rangeSet(rejected))
  return [...asSettlements(accepted, "accept"), ...asSettlements(rejected, "reject"), ...asSettlements(unit.gaps, "gap")]
}

/** Tells the source. Not awaited: in share mode the broker's word comes with a later request. */
export const settle = <E, E2, E3>(lane: LaneContext<E, E2, E3>, delivery: Delivery, settlements: ReadonlyArray<Settlement>) => {
  if (settlements.length === 0) return Effect.void
  const told = Effect.gen(function*() {
    const settled = yield* lane.parts.source.settle(delivery, settlements)
    lane.parts.events.settled(delivery, settlements, settled, yield* Clock.currentTimeMillis)
  })
  return Effect.asVoid(FiberSet.run(lane.settling, told))
}

/** Every output of the unit is confirmed: count it, and settle its offsets. */
export const finishUnit = <E, E2, E3>(
  lane: LaneContext<E, E2, E3>,
  item: { readonly delivery: Delivery; readonly unit: CopyUnit; readonly rejected: ReadonlyArray<OffsetRange> }
) =>
  Effect.gen(function*() {
    lane.parts.events.mirrored(item.delivery, item.unit, yield* Clock.currentTimeMillis)
    yield* settle(lane, item.delivery, unitSettlements(item.unit, item.rejected))
  })

/** Keeps work that cannot be finished now; its partition waits where order is kept. */
export const hold = <E, E2, E3>(lane: LaneContext<E, E2, E3>, item: Pending) =>
  Effect.gen(function*() {
    if (lane.pending.size === 0) {
      lane.retryDelayMs = RETRY_FLOOR_MS
      lane.retryAtMs = (yield* Clock.currentTimeMillis) + RETRY_FLOOR_MS
    }
    lane.pending.add(item)
    lane.parts.events.blocked(item.delivery, item.reason)
    yield* lane.parts.source.pause(item.delivery.topic, item.delivery.partition)
  })
