/**
 * A lane: one group member and one producer. The way of a batch is acquire, triage, copy, write, commit,
 * acknowledge; what cannot be finished is held and tried again without stopping the rest.
 *
 * Invariants
 * 1. A source offset is accepted only after every output made of it is committed on the target.
 * 2. One partition that cannot move never stops another.
 * 3. A stop lets the round at work finish and then polls no more; what is still held goes back with the source.
 */
import { Effect, FiberSet, type Scope } from "effect"
import type { BindingStopped } from "../txn/binding.ts"
import type { ProducerError } from "../txn/produceErrors.ts"
import type { WireError } from "../wire/errors.ts"
import type { Copied, CopyUnit, Output } from "./copyUnit.ts"
import type { Delivery, Source } from "./delivery.ts"
import type { FlowStopped } from "./errors.ts"
import {
  BEHIND,
  hold,
  holdUndecided,
  isFull,
  type LaneContext,
  type LaneParts,
  makeContext,
  TWICE,
  unitSettlements
} from "./laneContext.ts"
import { type PendingUnit, PendingWork } from "./pending.ts"
import { nowMs } from "../wire/retry.ts"
import { Gathering, type Share } from "./gathering.ts"
import { handleFailures, narrow, writeRest } from "./refusals.ts"
import { copyOne, retryHeld } from "./retries.ts"
import { triageDelivery } from "./triage.ts"
import { settle, transact, whyNot, type WriteOutcome, type Writing } from "./writing.ts"

export type LaneError = ProducerError | BindingStopped | WireError | FlowStopped

interface Work {
  readonly delivery: Delivery
  readonly copied: Copied
}

/** The outputs of a unit that are not written, and the first reason. */
const unwritten = (
  unit: CopyUnit,
  outcomes: ReadonlyArray<WriteOutcome>,
  from: number
): { readonly remaining: ReadonlyArray<Output>; readonly reason: string } => {
  const remaining: Array<Output> = []
  let reason = ""
  unit.outputs.forEach((output, n) => {
    const outcome = outcomes[from + n]
    if (outcome?.kind === "written") return
    remaining.push(output)
    if (outcome !== undefined && (reason === "" || reason === BEHIND)) reason = whyNot(outcome)
  })
  return { remaining, reason: reason === "" ? BEHIND : reason }
}

/** Finishes what is written of one delivery and takes care of what is not. Gives the index behind its outcomes. */
const conclude = <E>(
  lane: LaneContext<E>,
  writing: Writing,
  { copied, delivery }: Work,
  outcomes: ReadonlyArray<WriteOutcome>,
  from: number
) =>
  Effect.gen(function*() {
    let index = from
    let behind = lane.ordered && lane.pending.has(delivery)
    for (const unit of copied.units) {
      const { reason, remaining } = unwritten(unit, outcomes, index)
      index += unit.outputs.length
      if (remaining.length === 0 && !behind) {
        writing.finish(delivery, unitSettlements(unit, []), unit)
        continue
      }
      const item: PendingUnit = { kind: "write", delivery, unit, remaining, rejected: [], reason }
      // What is refused is taken apart at once: most often it only is too large as one batch.
      if (behind || !(yield* writeRest(lane, writing, item))) {
        behind = lane.ordered
        narrow(lane, writing, item)
        yield* hold(lane, item)
      }
    }
    yield* handleFailures(lane, writing, delivery, copied)
    return index
  })

const EARLIER = "an earlier record of the partition is not written yet"

const write = <E>(lane: LaneContext<E>, writing: Writing, given: ReadonlyArray<Work>) =>
  Effect.gen(function*() {
    const work: Array<Work> = []
    /** Partitions where order is kept and a copy has stopped: nothing of them that came behind it may be written. */
    const stopped = new Set<string>()
    const behind: Array<Delivery> = []
    for (const one of given) {
      const key = PendingWork.key(one.delivery)
      if (stopped.has(key)) behind.push(one.delivery)
      else if (writing.claim(one.delivery, one.delivery.ranges)) {
        work.push(one)
        if (one.copied.stoppedAt !== null) stopped.add(key)
      } else yield* hold(lane, { kind: "copy", delivery: one.delivery, reason: TWICE })
    }
    const outcomes = yield* writing.write(work.flatMap(({ copied }) => copied.units.flatMap((unit) => unit.outputs)))
    let index = 0
    for (const one of work) index = yield* conclude(lane, writing, one, outcomes, index)
    for (const delivery of behind) yield* hold(lane, { kind: "copy", delivery, reason: EARLIER })
  })

/** What came of one part of a transaction, for its size. */
const sizeOf = (work: ReadonlyArray<Work>): ReadonlyArray<Share> =>
  work.flatMap(({ copied, delivery: { lockTimeoutMs } }) =>
    copied.units.map(({ bytes, records }) => ({ bytes, records, lockTimeoutMs }))
  )

/** Milliseconds to wait for more of this transaction; null: nothing may be, or is worth being, added to it. */
const waitForMore = <E>(lane: LaneContext<E>, writing: Writing, gathering: Gathering, now: number): number | null => {
  const { binding, source, stopping } = lane.parts
  const alone = binding.guarantee !== "exactly-once" || writing.doomed || lane.pending.size > 0 || stopping() ||
    source.hurried?.() === true
  return alone ? null : gathering.waitMs(now)
}

/** Of what was read: what is to be written now, and what is to be held. */
interface Prepared {
  readonly work: ReadonlyArray<Work>
  /** Run behind the work that was read before: what is held of a partition is in its order. */
  readonly holds: ReadonlyArray<Effect.Effect<void>>
}

/** What is there after the wait. Taken little by little, as it comes, each piece would be a request. */
const pollMore = <E>(lane: LaneContext<E>, pollWithin: NonNullable<Source<E>["pollWithin"]>, waitMs: number) =>
  Effect.gen(function*() {
    if (waitMs > 0) yield* Effect.sleep(waitMs)
    return yield* prepared(lane, yield* pollWithin(0))
  })

/**
 * One transaction: what was read, and what comes while it is open. Much of it is written while more is read; little of it
 * goes together at the end, in one request.
 */
const writeAll = <E>(lane: LaneContext<E>, gathering: Gathering, first: Prepared) =>
  transact(lane, (writing) =>
    Effect.gen(function*() {
      const { pollWithin } = lane.parts.source
      gathering.begin(yield* nowMs)
      let gathered: ReadonlyArray<Work> = []
      let { holds, work } = first
      for (;;) {
        gathered = [...gathered, ...work]
        for (const share of sizeOf(work)) gathering.add(share)
        if (gathering.isLarge) {
          yield* write(lane, writing, gathered)
          gathered = []
        }
        const waitMs = holds.length > 0 ? null : waitForMore(lane, writing, gathering, yield* nowMs)
        if (waitMs === null || pollWithin === undefined) break
        ;({ holds, work } = yield* pollMore(lane, pollWithin, waitMs))
        if (work.length === 0) break
      }
      gathering.end(yield* nowMs)
      if (gathered.length > 0) yield* write(lane, writing, gathered)
      for (const held of holds) yield* held
    }))

/** Gives the delivery reduced to what is to be mirrored now; null: nothing of it. The rest goes to `holds`. */
const triaged = <E>(lane: LaneContext<E>, delivery: Delivery, holds: Array<Effect.Effect<void>>) =>
  Effect.gen(function*() {
    const { ours, wait } = yield* triageDelivery(lane, delivery)
    if (wait === null) return ours
    // What is held of a partition is in its order: what comes before the undecided is held before it.
    if (lane.ordered && ours !== null) holds.push(holdUndecided(lane, ours))
    holds.push(holdUndecided(lane, wait))
    return lane.ordered ? null : ours
  })

/** Bytes that were damaged on the way are whole with the next delivery; near the group's limit there is none to spare. */
const mayComeBetter = <E>(lane: LaneContext<E>, { ranges, unreadable }: Delivery): boolean =>
  unreadable !== undefined && ranges.every((range) => range.deliveryCount < lane.parts.source.deliveryLimit - 1)

const giveBack = <E>(lane: LaneContext<E>, delivery: Delivery) =>
  settle(lane, delivery, delivery.ranges.map(({ first, last }) => ({ first, last, type: "release" })))

/** What of the deliveries is to be written now; the rest is to be held, or given back. */
const prepared = <E>(lane: LaneContext<E>, deliveries: ReadonlyArray<Delivery>) =>
  Effect.gen(function*() {
    const work: Array<Work> = []
    const holds: Array<Effect.Effect<void>> = []
    /** Partitions of which something is to be held: where order is kept, nothing behind it is written. */
    const held = new Set<string>()
    for (const given of deliveries) {
      lane.parts.events.acquired(given)
      const key = PendingWork.key(given)
      const before = holds.length
      const delivery = yield* triaged(lane, given, holds)
      if (delivery === null) {
        if (holds.length > before) held.add(key)
        continue
      }
      if (lane.ordered && (lane.pending.has(delivery) || held.has(key))) {
        holds.push(hold(lane, { kind: "copy", delivery, reason: EARLIER }))
        continue
      }
      const copied = yield* copyOne(lane, delivery)
      if (copied._tag === "Success") work.push({ delivery, copied: copied.success })
      else if (mayComeBetter(lane, delivery)) yield* giveBack(lane, delivery)
      else {
        holds.push(hold(lane, { kind: "copy", delivery, reason: copied.failure }))
        held.add(key)
      }
    }
    return { work, holds } satisfies Prepared
  })

/** Runs until `stopping`; fails when the source or the target fails for good, or a record stops the flow. */
export const runLane = <E>(parts: LaneParts<E>): Effect.Effect<void, E | LaneError, Scope.Scope> =>
  Effect.gen(function*() {
    const lane = yield* makeContext(parts)
    const gathering = new Gathering(parts.cut ?? null)
    yield* parts.binding.start
    const loop = Effect.gen(function*() {
      while (!parts.stopping()) {
        if (lane.pending.size === 0 || (parts.source.pollsWhileHolding && !isFull(lane))) {
          const deliveries = yield* parts.source.poll
          const read = yield* prepared(lane, deliveries)
          if (read.work.length > 0) yield* writeAll(lane, gathering, read)
          else for (const held of read.holds) yield* held
        } else yield* Effect.sleep("100 millis")
        yield* retryHeld(lane)
      }
      yield* FiberSet.awaitEmpty(lane.settling)
    })
    yield* Effect.raceFirst(loop, FiberSet.join(lane.settling))
  })
