/** Which part of a delivery is still to be mirrored: the binding's answer, put in terms of deliveries. */
import { Effect } from "effect"
import type { BindingStopped, SourceRange, Triage } from "../txn/binding.ts"
import { type RangeSet, rangeSet, subtract } from "../wire/ranges.ts"
import type { Delivery } from "./delivery.ts"
import type { LaneContext } from "./laneContext.ts"
import { deliveryWithin } from "./pending.ts"
import { settle, sourceRanges } from "./writing.ts"

export interface Parts {
  readonly done: RangeSet
  /** To be asked for again soon; null: nothing. */
  readonly wait: Delivery | null
  /** To be mirrored; null: nothing. */
  readonly ours: Delivery | null
}

const part = (delivery: Delivery, ranges: RangeSet): Delivery | null =>
  ranges.length === 0 ? null : deliveryWithin(delivery, ranges)

/** Where order is kept, all that lies behind something undecided waits with it. */
export const partsOf = (delivery: Delivery, triage: Triage, ordered: boolean): Parts => {
  const of = (ranges: ReadonlyArray<SourceRange>): RangeSet =>
    rangeSet(
      ranges.filter((range) =>
        range.topicId === delivery.topicId && range.topic === delivery.topic && range.partition === delivery.partition
      )
    )
  const done = of(triage.done)
  const undecided = of(triage.wait)
  const [first] = undecided
  const wait = first === undefined || !ordered
    ? undecided
    : subtract(rangeSet([{ first: first.first, last: Number.MAX_SAFE_INTEGER - 1 }]), done)
  const all = done.length === 0 && wait.length === 0
  return { done, wait: part(delivery, wait), ours: all ? delivery : part(delivery, subtract(of(triage.ours), wait)) }
}

/** Asks the binding; what is done is acknowledged. */
export const triageDelivery = <E>(lane: LaneContext<E>, delivery: Delivery): Effect.Effect<Parts, BindingStopped> =>
  Effect.gen(function*() {
    const parts = partsOf(
      delivery,
      yield* lane.parts.binding.triage(sourceRanges(delivery, delivery.ranges)),
      lane.ordered
    )
    if (parts.done.length > 0) {
      lane.parts.events.alreadyDone(delivery, parts.done)
      yield* settle(lane, delivery, parts.done.map((range) => ({ ...range, type: "accept" })))
    }
    return parts
  })
