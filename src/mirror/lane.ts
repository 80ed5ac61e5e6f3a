/**
 * A lane: one group member and one producer. The way of a batch is acquire, copy, write, acknowledge; what cannot
 * be finished is held and tried again without stopping the rest.
 *
 * Invariants
 * 1. A source offset is accepted only after every output made of it is confirmed by the target.
 * 2. One partition that cannot move never stops another.
 * 3. A stop lets the round at work finish and then polls no more; what is still held goes back with the source.
 */
import { Clock, Effect, FiberSet, type Scope } from "effect"
import type { Copied, CopyUnit, Output } from "./copy.ts"
import type { Delivery, Settlement } from "./delivery.ts"
import type { FlowStopped } from "./errors.ts"
import { finishUnit, hold, type LaneContext, type LaneParts, makeContext, settle, unitSettlements } from "./laneContext.ts"
import type { PendingUnit } from "./pending.ts"
import { handleFailures, writeRest } from "./refusals.ts"
import { copyOne, retryHeld } from "./retries.ts"
import type { WriteOutcome } from "./sink.ts"

interface Work {
  readonly delivery: Delivery
  readonly copied: Copied
}

/** The outputs of a unit that are not written, and the first reason. */
const unwritten = (unit: CopyUnit, outcomes: ReadonlyArray<WriteOutcome>, from: number): { readonly remaining: ReadonlyArray<Output>; readonly reason: string } => {
  const remaining: Array<Output> = []
  let reason = ""
  unit.outputs.forEach((output, n) => {
    const outcome = outcomes[from + n]
    if (outcome?.kind === "written") return
    remaining.push(output)
    if (outcome?.kind === "refused" && reason === "") reason = outcome.error.message
  })
  return { remaining, reason: reason === "" ? "a batch before it in the target partition is not taken" : reason }
}

/** Settles what is written of one delivery and takes care of what is not. Gives the index behind its outcomes. */
const conclude = <E, E2, E3>(lane: LaneContext<E, E2, E3>, { copied, delivery }: Work, outcomes: ReadonlyArray<WriteOutcome>, from: number) =>
  Effect.gen(function*() {
    const settlements: Array<Settlement> = []
    let index = from
    let behind = lane.ordered && lane.pending.has(delivery)
    for (const unit of copied.units) {
      const { reason, remaining } = unwritten(unit, outcomes, index)
      index += unit.outputs.length
      if (remaining.length === 0 && !behind) {
        lane.parts.events.mirrored(delivery, unit, yield* Clock.currentTimeMillis)
        for (const settlement of unitSettlements(unit, [])) settlements.push(settlement)
        continue
      }
      const item: PendingUnit = { kind: "write", delivery, unit, remaining, rejected: [], reason }
      // What is refused is taken apart at once: most often it only is too large as one batch.
      if (!behind && (yield* writeRest(lane, item))) yield* finishUnit(lane, item)
      else {
        behind = lane.ordered
        yield* hold(lane, item)
      }
    }
    yield* settle(lane, delivery, settlements)
    yield* handleFailures(lane, delivery, copied)
    return index
  })

const round = <E, E2, E3>(lane: LaneContext<E, E2, E3>, deliveries: ReadonlyArray<Delivery>) =>
  Effect.gen(function*() {
    const work: Array<Work> = []
    for (const delivery of deliveries) {
      lane.parts.events.acquired(delivery)
      if (lane.ordered && lane.pending.has(delivery)) {
        yield* hold(lane, { kind: "copy", delivery, reason: "an earlier record of the partition is not written yet" })
        continue
      }
      const copied = yield* copyOne(lane, delivery)
      if (copied._tag === "Success") work.push({ delivery, copied: copied.success })
      else yield* hold(lane, { kind: "copy", delivery, reason: copied.failure })
    }
    const outputs = work.flatMap(({ copied }) => copied.units.flatMap((unit) => unit.outputs))
    const outcomes = outputs.length === 0 ? [] : yield* lane.parts.sink.write(outputs)
    let index = 0
    for (const one of work) index = yield* conclude(lane, one, outcomes, index)
  })

/** Runs until `stopping`; fails when the source or the target fails for good, or a record stops the flow. */
export const runLane = <E, E2, E3>(parts: LaneParts<E, E2, E3>): Effect.Effect<void, E | E2 | E3 | FlowStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const lane = yield* makeContext(parts)
    const loop = Effect.gen(function*() {
      while (!parts.stopping()) {
        const deliveries = yield* parts.source.poll
        if (deliveries.length > 0) yield* round(lane, deliveries)
        yield* retryHeld(lane)
      }
      yield* FiberSet.awaitEmpty(lane.settling)
    })
    yield* Effect.raceFirst(loop, FiberSet.join(lane.settling))
  })
