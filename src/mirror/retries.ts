/** Tries held work again: in the order of each partition, one partition never waiting for another. */
import { Effect } from "effect"
import type { BindingStopped } from "../txn/binding.ts"
import type { ProducerError } from "../txn/produceErrors.ts"
import type { WireError } from "../wire/errors.ts"
import type { OffsetRange } from "../wire/ranges.ts"
import { nowMs } from "../wire/retry.ts"
import { copyDelivery } from "./copy.ts"
import type { Delivery } from "./delivery.ts"
import type { FlowStopped } from "./errors.ts"
import { type LaneContext, RETRY_CEILING_MS, RETRY_FLOOR_MS, UNDECIDED, UNDECIDED_RETRY_MS } from "./laneContext.ts"
import { deliveryAt, deliveryFrom, type Pending, type PendingCopy, type PendingUnit } from "./pending.ts"
import { fatalFailure, narrow, wantsAnotherTry, writeRest } from "./refusals.ts"
import { triageDelivery } from "./triage.ts"
import { transact, type Writing } from "./writing.ts"

/**
 * How long a transaction over held work may take in more, milliseconds: it has to end before the target's time-out, or
 * all of it is aborted, and tried again in just the same way for ever.
 */
const TAKES_IN_MS = 2_000

const unreadable = (why: string): string => `a record batch cannot be read: ${why}`

/** Copies a delivery. What cannot be copied now (no place on the target, bytes that cannot be read) is a value: it blocks its partition only. */
export const copyOne = <E>(lane: LaneContext<E>, delivery: Delivery) =>
  Effect.gen(function*() {
    if (delivery.unreadable !== undefined) return yield* Effect.result(Effect.fail(unreadable(delivery.unreadable)))
    const place = yield* lane.parts.placeOf(delivery.topic, delivery.partition, delivery.topicId)
    if (!place.ok) return yield* Effect.result(Effect.fail(place.reason))
    const copied = yield* Effect.result(Effect.tryPromise({
      try: () => copyDelivery(delivery, { ...place.rules, joinBytes: lane.joinLimits.of(delivery.topic) }),
      catch: (thrown) => unreadable(thrown instanceof Error ? thrown.message : String(thrown))
    }))
    if (copied._tag === "Failure" || place.rules.chain === null) return copied
    for (const topic of new Set(copied.success.units.flatMap((unit) => unit.outputs.map((output) => output.topic)))) {
      const problem = yield* lane.parts.ensureOutput(topic, delivery.topic, delivery.partition)
      if (problem !== null) {
        return yield* Effect.result(
          Effect.fail(`a transform names the topic ${topic}, which the target does not have: ${problem}`)
        )
      }
    }
    return copied
  })

type Retried = Effect.Effect<boolean, ProducerError | BindingStopped | WireError | FlowStopped>

const release = <E>(lane: LaneContext<E>, item: Pending): Effect.Effect<void> =>
  Effect.gen(function*() {
    if (!lane.pending.done(item)) return
    lane.parts.events.unblocked(item.delivery)
    yield* lane.parts.source.resume(item.delivery.topic, item.delivery.partition)
  })

const retryUnit = <E>(lane: LaneContext<E>, writing: Writing, item: PendingUnit): Retried =>
  Effect.gen(function*() {
    if (!(yield* writeRest(lane, writing, item))) {
      narrow(lane, writing, item)
      lane.parts.events.blocked(item.delivery, item.reason)
      return false
    }
    yield* release(lane, item)
    return true
  })

/** Whether the transaction may take in more. Its first batch is always taken. */
interface Room {
  readonly untilMs: number
  over: boolean
}

const isOver = (room: Room): Effect.Effect<boolean> => Effect.map(nowMs, (now) => room.over ||= now >= room.untilMs)

const retryCopy = <E>(lane: LaneContext<E>, writing: Writing, item: PendingCopy, room: Room): Retried =>
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
      if (!failure.retriable) yield* fatalFailure(lane, writing, delivery, failure)
      else {
        const { offset } = failure.original
        const part = lane.ordered ? deliveryFrom(delivery, offset) : deliveryAt(delivery, offset)
        later.push({ kind: "copy", delivery: part, reason: wantsAnotherTry(failure) })
      }
    }
    if (units.length + later.length === 0) yield* release(lane, item)
    else lane.pending.replace(item, [...units, ...later])
    for (const [n, unit] of units.entries()) {
      if (n > 0 && (yield* isOver(room))) return true
      if (!(yield* retryUnit(lane, writing, unit))) return false
    }
    return later.length === 0
  })

/**
 * Asks the binding again about what is to be copied anew: since it was held, another lane may have mirrored it. Gives
 * the items that may be tried now; with order, none behind one that has to wait.
 */
const tryable = <E>(
  lane: LaneContext<E>,
  items: ReadonlyArray<Pending>
): Effect.Effect<ReadonlyArray<Pending>, BindingStopped> =>
  Effect.gen(function*() {
    const now: Array<Pending> = []
    for (const item of items) {
      if (item.kind === "write" || !lane.parts.source.owns(item.delivery)) {
        now.push(item)
        continue
      }
      const { done, ours, wait } = yield* triageDelivery(lane, item.delivery)
      if (done.length === 0 && wait === null) {
        now.push(item)
        continue
      }
      const again: PendingCopy | null = ours === null ? null : { kind: "copy", delivery: ours, reason: item.reason }
      const waiting: ReadonlyArray<PendingCopy> = wait === null
        ? []
        : [{ kind: "copy", delivery: wait, reason: UNDECIDED }]
      if (again !== null) now.push(again)
      if (again === null && wait === null) yield* release(lane, item)
      else lane.pending.replace(item, [...(again === null ? [] : [again]), ...waiting])
      if (wait !== null) {
        lane.undecided = true
        // Not its first try: its owner is slow, or gone.
        if (item.reason === UNDECIDED) lane.parts.events.blocked(wait, UNDECIDED)
        if (lane.ordered) break
      }
    }
    return now
  })

const offsetsOf = (item: Pending): ReadonlyArray<OffsetRange> =>
  item.kind === "copy" ? item.delivery.ranges : [...item.unit.accept, ...item.unit.gaps]

/** All that one partition holds; true when anything of it moved. */
const retryPartition = <E>(lane: LaneContext<E>, writing: Writing, items: ReadonlyArray<Pending>, room: Room) =>
  Effect.gen(function*() {
    let moved = false
    for (const item of items) {
      if (moved && (yield* isOver(room))) break
      if (!lane.parts.source.owns(item.delivery)) {
        yield* release(lane, item)
        continue
      }
      if (!writing.claim(item.delivery, offsetsOf(item))) {
        if (lane.ordered) break
        continue
      }
      const tried = item.kind === "copy" ? retryCopy(lane, writing, item, room) : retryUnit(lane, writing, item)
      if (yield* tried) moved = true
      else if (lane.ordered) break
    }
    return moved
  })

/** One pass over all that is held, when its time has come; each partition in a transaction of its own. */
export const retryHeld = <E>(
  lane: LaneContext<E>
): Effect.Effect<void, ProducerError | BindingStopped | WireError | FlowStopped> =>
  Effect.gen(function*() {
    const now = yield* nowMs
    if (lane.pending.size === 0 || now < lane.retryAtMs) return
    let moved = false
    let isMore = false
    lane.undecided = false
    lane.aborted = false
    for (const held of lane.pending.partitions()) {
      const items = yield* tryable(lane, held)
      if (items.length === 0) continue
      const room: Room = { untilMs: (yield* nowMs) + TAKES_IN_MS, over: false }
      if (yield* transact(lane, (writing) => retryPartition(lane, writing, items, room))) moved = true
      if (room.over) isMore = true
    }
    lane.retryDelayMs = moved || lane.aborted ? RETRY_FLOOR_MS : Math.min(lane.retryDelayMs * 2, RETRY_CEILING_MS)
    lane.retryAtMs = (yield* nowMs) + (isMore ? 0 : lane.undecided ? UNDECIDED_RETRY_MS : lane.retryDelayMs)
  })
