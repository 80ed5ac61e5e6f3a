/**
 * The port between a lane and where its records come from. A share group and a consumer group both give
 * deliveries and both take settlements; the lane does not know which one it serves, but for two facts: whether
 * order must be kept, and whether a record may be given back (released) for another try.
 */
import type { Effect } from "effect"
import type { ShareMember } from "../txn/binding.ts"
import type { BatchView } from "../wire/batch/recordBatch.ts"
import type { OffsetRange } from "../wire/ranges.ts"

export interface DeliveredRange extends OffsetRange {
  /** 1 at the first delivery; always 1 in consumer mode. */
  readonly deliveryCount: number
}

/**
 * A batch with the offset it has on the source. The producer rewrites headers in place, so the view alone would not
 * know it any more when a batch has to be copied a second time.
 */
export interface DeliveredBatch {
  readonly view: BatchView
  readonly baseOffset: number
}

export const deliveredBatches = (views: ReadonlyArray<BatchView>): ReadonlyArray<DeliveredBatch> =>
  views.map((view) => ({ view, baseOffset: view.baseOffset }))

/** The last source offset that the batch spans. */
export const lastOffsetOf = (batch: DeliveredBatch): number => batch.baseOffset + batch.view.lastOffsetDelta

/** What one poll gave of one partition. */
export interface Delivery {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  /** The offsets that are this lane's to settle, ascending and disjoint. */
  readonly ranges: ReadonlyArray<DeliveredRange>
  /** Data batches in offset order: no control batches, no aborted ones. They may hold offsets outside `ranges`. */
  readonly batches: ReadonlyArray<DeliveredBatch>
  /** Why its bytes cannot be understood; then `batches` is empty, and nothing may be concluded from that. */
  readonly unreadable?: string
  /** When it was acquired, milliseconds of Effect's Clock. */
  readonly acquiredAtMs: number
  /** How long the lock on it lasts, milliseconds; not there: it is not locked. */
  readonly lockTimeoutMs?: number
  /** What the source knows it by; parts of a delivery keep it. */
  readonly token: unknown
}

export type SettlementType =
  /** Mirrored, or deliberately left out (filtered, skipped by errors.tolerance). */
  | "accept"
  /** Offsets without a record: compaction, control records, aborted transactions. */
  | "gap"
  /** Give it back for another delivery. Never used in consumer mode. */
  | "release"
  /** Will never be mirrored: went to the dead-letter topic, or was skipped. */
  | "reject"

export interface Settlement extends OffsetRange {
  readonly type: SettlementType
}

/** What the source said to a settlement: offsets confirmed, and those it refused (they come again). */
export interface Settled {
  readonly confirmed: number
  readonly refused: number
  /** Why some were refused, in words. */
  readonly reason: string | null
}

export interface Source<E> {
  readonly mode: "share" | "consumer"
  /** Waits at most its own poll wait; an empty list means that nothing was there. */
  readonly poll: Effect.Effect<ReadonlyArray<Delivery>, E>
  /**
   * The same, waiting at most so many milliseconds; 0: what is there now. Not there: nothing may be read before what
   * was read is settled.
   */
  readonly pollWithin?: (maxWaitMs: number) => Effect.Effect<ReadonlyArray<Delivery>, E>
  /** Somebody waits for what is at work to end: nothing more should be added to it. */
  readonly hurried?: () => boolean
  /**
   * Tells the source what became of offsets of a delivery. Share mode: acknowledgements, done when the broker has
   * answered. Consumer mode: the position moves over what is settled without a hole, and is committed.
   */
  readonly settle: (delivery: Delivery, settlements: ReadonlyArray<Settlement>) => Effect.Effect<Settled, E>
  /** No more deliveries of this partition until `resume`. Share mode: what is held of it keeps its locks. */
  readonly pause: (topic: string, partition: number) => Effect.Effect<void>
  readonly resume: (topic: string, partition: number) => Effect.Effect<void>
  /** Changes what is subscribed to, without disturbing partitions that stay. */
  readonly subscribe: (topics: ReadonlyArray<string>) => Effect.Effect<void, E>
  /**
   * The transaction settles these by itself (KIP-1289): they are not renewed, acknowledged or released any more. Only
   * sources that a transaction can settle have it.
   */
  readonly forget?: (delivery: Delivery, ranges: ReadonlyArray<OffsetRange>) => Effect.Effect<void>
  /** Who holds the deliveries; null while not a member. */
  readonly member?: () => ShareMember | null
  /** False once the records are somebody else's to mirror (lock lost, partition revoked): then they are dropped here. */
  readonly owns: (delivery: Delivery) => boolean
  /** False where a poll acknowledges what came before it: nothing may be polled while anything is held. */
  readonly pollsWhileHolding: boolean
  /** Deliveries after which the source gives a record up; Infinity in consumer mode; 0: nothing can be given back. */
  readonly deliveryLimit: number
}
