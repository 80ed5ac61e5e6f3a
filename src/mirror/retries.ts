/** Tries held work again: in the order of each partition, one partition never waiting for another. */
import { Clock, Effect } from "effect"
import { copyDelivery } from "./copy.ts"
import type { Delivery } from "./delivery.ts"
import type { FlowStopped } from "./errors.ts"
import { finishUnit, type LaneContext, RETRY_CEILING_MS, RETRY_FLOOR_MS } from "./laneContext.ts"
import { deliveryAt, deliveryFrom, type Pending, type PendingCopy, type PendingUnit } from "./pending.ts"
import { fatalFailure, writeRest } from "./refusals.ts"

/** Copies a delivery; a batch that cannot be read is a value: it blocks its partition only. */
export const copyOne = <E, E2, E3>(lane: LaneContext<E, E2, E3>, delivery: Delivery) =>
  Effect.gen(function*() {
    const rules = yield* lane.parts.rulesFor(delivery.topic, delivery.partition)
    return yield* Effect.result(Effect.tryPromise({
      try: () => copyDelivery(delivery, rules),
      catch: (thrown) => `a record batch cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}`
    }))
  })

type Retried<E, E2, E3> = Effect.Effect<boolean, E | E2 | E3 | FlowStopped>

const release = <E, E2, E3>(lane: LaneContext<E, E2, E3>, item: Pending) =>
  Effect.gen(function*() {
    if (!lane.pending.done(item)) return
    lane.parts.events.unblocked(item.delivery)
    yield* lane.parts.source.resume(item.delivery.topic, item.delivery.partition)
  })

const retryUnit = <E, E2, E3>(lane: LaneContext<E, E2, E3>, item: PendingUnit): Retried<E, E2, E3> =>
  Effect.gen(function*() {
    if (!(yield* writeRest(lane, item))) {
      lane.parts.events.blocked(item.delivery, item.reason)
      return false
    }
    yield* finishUnit(lane, item)
    yield* release(lane, item)
    return true
  })

const retryCopy = <E, E2, E3>(lane: LaneContext<E, E2, E3>, item: PendingCopy): Retried<E, E2, E3> =>
  Effect.gen(function*() {
    const { delivery } = item
    const copied = yield* copyOne(lane, delivery)
    if (copied._tag === "Failure") {
      item.reason = copied.failure
      lane.parts.events.blocked(delivery, item.reason)
      return false
    }
    const units: ReadonlyArray<PendingUnit> = copied.success.units.map((unit) => ({
      kind: "write",
      delivery,
      unit,
      remaining: unit.outputs,
      rejected: [],
      reason: item.reason
    }))
    const later: Array<PendingCopy> = []
    for (const failure of copied.success.failures) {
      const offset = failure.original.offset
      if (!failure.retriable) yield* fatalFailure(lane, delivery, failure)
      else {
        const part = lane.ordered ? deliveryFrom(delivery, offset) : deliveryAt(delivery, offset)
        later.push({ kind: "copy", delivery: part, reason: `transform "${failure.transform}" asks for another try at offset ${offset}: ${failure.error.message}` })
      }
    }
    if (units.length + later.length === 0) yield* release(lane, item)
    else lane.pending.replace(item, [...units, ...later])
    for (const unit of units) if (!(yield* retryUnit(lane, unit))) return false
    return later.length === 0
  })

/** One pass over all that is held, when its time has come. */
export const retryHeld = <E, E2, E3>(lane: LaneContext<E, E2, E3>): Effect.Effect<void, E | E2 | E3 | FlowStopped> =>
  Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    if (lane.pending.size === 0 || now < lane.retryAtMs) return
    let moved = false
    for (const items of lane.pending.partitions()) {
      for (const item of items) {
        if (yield* item.kind === "copy" ? retryCopy(lane, item) : retryUnit(lane, item)) moved = true
        else if (lane.ordered) break
      }
    }
    lane.retryDelayMs = moved ? RETRY_FLOOR_MS : Math.min(lane.retryDelayMs * 2, RETRY_CEILING_MS)
    lane.retryAtMs = (yield* Clock.currentTimeMillis) + lane.retryDelayMs
  })
