/**
 * A lane's writes: everything between `begin` and `commit` of its binding (src/txn/binding.ts), and what follows
 * from the outcome.
 *
 * Invariant: nothing is settled on the source before the binding says that the transaction is committed.
 */
import { Clock, Effect, FiberSet } from "effect"
import type { BindingStopped, BoundTransaction, Placed, SourceRange, StagedRange } from "../txn/binding.ts"
import type { ProduceFailure, ProducerError } from "../txn/produceErrors.ts"
import type { ProduceOutcome } from "../txn/produceRun.ts"
import { EMPTY, type OffsetRange, overlaps, type RangeSet, rangeSet, union } from "../wire/ranges.ts"
import type { CopyUnit, Output } from "./copyUnit.ts"
import type { Delivery, Settlement } from "./delivery.ts"
import { ABORTED, BEHIND, type LaneContext } from "./laneContext.ts"
import type { Written } from "./offsets/laneNotes.ts"
import { deliveryWithin } from "./pending.ts"

export type WriteOutcome =
  | { readonly kind: "written" }
  /**
   * The target will not take this batch as it is ("records": taking it apart or leaving a record out helps), or the
   * partition takes none at all ("partition": a right or a policy is in the way). The error says why.
   */
  | { readonly kind: "refused"; readonly scope: "records" | "partition"; readonly error: Error }
  /** Not taken, since an earlier batch of the partition was refused, or the transaction can only be aborted. */
  | { readonly kind: "skipped"; readonly doomed: boolean }

/** Of an outcome that is not "written". */
export const whyNot = (outcome: WriteOutcome): string => {
  if (outcome.kind === "refused") return outcome.error.message
  return outcome.kind === "skipped" && outcome.doomed ? ABORTED : BEHIND
}

/** What is finished once the transaction is committed. */
export interface Finished {
  readonly delivery: Delivery
  readonly settlements: ReadonlyArray<Settlement>
  /** For counting; null for what was not mirrored (skipped, dead-lettered). */
  readonly unit: CopyUnit | null
}

/** One open transaction of a lane. */
export class Writing {
  readonly transaction: BoundTransaction
  readonly finished: Array<Finished> = []
  readonly placed: Array<Placed> = []
  /** Outputs that are the source's records, and where they are now. */
  readonly written: Array<Written> = []
  readonly #exactlyOnce: boolean
  readonly #onMissing: (topic: string) => void
  #doomed = false
  /** By source partition. */
  readonly #claimed = new Map<string, RangeSet>()

  constructor(transaction: BoundTransaction, exactlyOnce: boolean, onMissing: (topic: string) => void) {
    this.transaction = transaction
    this.#exactlyOnce = exactlyOnce
    this.#onMissing = onMissing
  }

  /**
   * Takes source offsets into this transaction. False: it has some of them already. A source delivers twice what its
   * broker took for lost; no check of a binding sees two outputs of one transaction, so the second waits.
   */
  claim(delivery: Delivery, ranges: ReadonlyArray<OffsetRange>): boolean {
    const key = `${delivery.topicId}/${delivery.topic}/${delivery.partition}`
    const claimed = this.#claimed.get(key) ?? EMPTY
    if (ranges.some((range) => overlaps(claimed, range))) return false
    this.#claimed.set(key, union(claimed, rangeSet(ranges)))
    return true
  }

  /** It can only be aborted. */
  get doomed(): boolean {
    return this.#doomed
  }

  finish(delivery: Delivery, settlements: ReadonlyArray<Settlement>, unit: CopyUnit | null): void {
    if (settlements.length > 0) this.finished.push({ delivery, settlements, unit })
  }

  /** Writes batches; those of one partition in their order. Waits as long as the target is away. */
  write(outputs: ReadonlyArray<Output>): Effect.Effect<ReadonlyArray<WriteOutcome>, ProducerError | BindingStopped> {
    if (outputs.length === 0) return Effect.succeed([])
    return Effect.map(
      this.transaction.produce(outputs),
      (outcomes) => outcomes.map((outcome, n) => this.#told(outputs[n] as Output, outcome))
    )
  }

  #told(output: Output, outcome: ProduceOutcome): WriteOutcome {
    if (outcome.ok) {
      this.placed.push({ topic: output.topic, partition: output.partition, baseOffset: outcome.baseOffset })
      if (output.source !== undefined) this.written.push({ output, baseOffset: outcome.baseOffset })
      return { kind: "written" }
    }
    if (isMissing(outcome.error)) this.#onMissing(output.topic)
    const told = refusal(outcome.error, this.#exactlyOnce)
    if (told.kind === "skipped" && told.doomed) this.#doomed = true
    return told
  }
}

/** UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID */
const UNKNOWN_TOPIC: ReadonlySet<number> = new Set([3, 100])

/** The target does not have the topic, or not so many partitions of it. */
const isMissing = (error: ProduceFailure): boolean => error._tag === "PartitionBlocked" && UNKNOWN_TOPIC.has(error.code)

/** What is in doubt cannot be committed exactly once. */
const refusal = (error: ProduceFailure, exactlyOnce: boolean): WriteOutcome => {
  switch (error._tag) {
    case "RecordRefused":
      return { kind: "refused", scope: "records", error }
    case "PartitionBlocked":
    case "DeliveryTimedOut":
      return { kind: "refused", scope: "partition", error }
    case "HeldBack":
      return { kind: "skipped", doomed: exactlyOnce && error.written === "unknown" }
  }
}

/** Tells the source. Not awaited: in share mode the broker's word comes with a later request. */
export const settle = <E>(lane: LaneContext<E>, delivery: Delivery, settlements: ReadonlyArray<Settlement>) => {
  if (settlements.length === 0) return Effect.void
  const told = Effect.gen(function*() {
    const settled = yield* lane.parts.source.settle(delivery, settlements)
    lane.parts.events.settled(delivery, settlements, settled, yield* Clock.currentTimeMillis)
  })
  return Effect.asVoid(FiberSet.run(lane.settling, told))
}

/** Source ranges as the binding names them. */
export const sourceRanges = (
  delivery: Delivery,
  ranges: ReadonlyArray<{ readonly first: number; readonly last: number }>
): ReadonlyArray<SourceRange> =>
  ranges.map((range) => ({
    topic: delivery.topic,
    topicId: delivery.topicId,
    partition: delivery.partition,
    first: range.first,
    last: range.last
  }))

const committed = <E>(lane: LaneContext<E>, finished: ReadonlyArray<Finished>) =>
  Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    lane.parts.events.transaction("committed")
    for (const { delivery, unit } of finished) if (unit !== null) lane.parts.events.mirrored(delivery, unit, now)
    if (lane.parts.binding.settlesItself) return
    const byDelivery = new Map<Delivery, Array<Settlement>>()
    for (const { delivery, settlements } of finished) {
      const list = byDelivery.get(delivery)
      if (list === undefined) byDelivery.set(delivery, [...settlements])
      else for (const settlement of settlements) list.push(settlement)
    }
    for (const [delivery, settlements] of byDelivery) {
      yield* settle(lane, delivery, settlements.sort((a, b) => a.first - b.first))
    }
  })

/** What was not committed is to be done again: it is still held, and is copied anew from its own bytes. */
const undone = <E>(lane: LaneContext<E>, { doomed, finished }: Writing, reason: string): void => {
  lane.parts.events.transaction("aborted")
  const byDelivery = new Map<Delivery, Array<Settlement>>()
  for (const { delivery, settlements } of finished) {
    byDelivery.set(delivery, [...(byDelivery.get(delivery) ?? []), ...settlements])
  }
  // The last one first: each goes before what its partition holds, and in the end they are in their order.
  for (const [delivery, settlements] of [...byDelivery].reverse()) {
    const again = deliveryWithin(delivery, rangeSet(settlements))
    lane.pending.addFirst({ kind: "copy", delivery: again, reason })
  }
  // Where nothing was written because all was refused, the abort is a formality.
  if (finished.length === 0 && !doomed) return
  lane.aborted = true
  lane.retryAtMs = 0
}

/** A release is no part of a transaction, and nothing `body` finishes is one. */
const stagedType = (type: Settlement["type"]): NonNullable<StagedRange["type"]> => type === "release" ? "accept" : type

const stage = <E>(lane: LaneContext<E>, writing: Writing): Effect.Effect<void, ProducerError | BindingStopped> =>
  Effect.gen(function*() {
    const { binding, source } = lane.parts
    const ranges: Array<StagedRange> = []
    for (const { delivery, settlements } of writing.finished) {
      sourceRanges(delivery, settlements).forEach((range, n) =>
        ranges.push({ ...range, type: stagedType(settlements[n]?.type ?? "accept") })
      )
      // From here on they are the transaction's, whatever becomes of it: renewing their locks would be refused.
      if (binding.settlesItself && source.forget !== undefined) yield* source.forget(delivery, settlements)
    }
    yield* writing.transaction.stage(ranges, writing.placed, lane.parts.notes?.(ranges, writing.written) ?? [])
  })

/**
 * Runs `body` in one transaction of the binding. A failure or an interruption inside aborts it; what `body` finished
 * is settled after the commit, or is pending again after an abort.
 */
export const transact = <E, A, E3>(
  lane: LaneContext<E>,
  body: (writing: Writing) => Effect.Effect<A, E3>
): Effect.Effect<A, E3 | ProducerError | BindingStopped> =>
  Effect.gen(function*() {
    const { binding } = lane.parts
    const writing = new Writing(yield* binding.begin, binding.guarantee === "exactly-once", lane.parts.missing)
    const result = yield* body(writing).pipe(
      Effect.tap(() => stage(lane, writing)),
      Effect.onError(() => Effect.ignore(writing.transaction.abort))
    )
    const outcome = yield* writing.transaction.commit
    if (outcome.kind === "committed") yield* committed(lane, writing.finished)
    else {
      yield* Effect.logDebug(`transaction ${outcome.kind}: ${outcome.reason}`)
      // Unknown is resolved before anything else: after `start` the binding knows what is done.
      if (outcome.kind === "unknown") yield* binding.start
      if (binding.settlesItself) lane.parts.events.transaction("aborted")
      else undone(lane, writing, outcome.reason)
    }
    return result
  })
