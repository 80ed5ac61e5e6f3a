/**
 * What the fibers of one group consumer share: its partitions, the queue of fetched results, the commit book and
 * the signals between them. State only; the work is in steward.ts, fetcher.ts, committer.ts, groupConsumer.ts.
 */
import { Deferred, Effect } from "effect"
import type { BatchView } from "../wire/batch/recordBatch.ts"
import type { Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import type { Lease } from "../wire/receiveMemory.ts"
import type { CommitBook } from "./commitBook.ts"
import type { GapError, MembershipError } from "./errors.ts"
import { type PartitionState, moveTo, stop } from "./partition.ts"
import type { TopicPartition } from "./position.ts"
import type { GroupSettings } from "./settings.ts"
import type { Signal } from "./signal.ts"

/** A contiguous piece of one partition, in order after the one before. */
export interface Fetched extends TopicPartition {
  /** base64url; ZERO_UUID where the broker is older than topic ids. */
  readonly topicId: string
  /** The assignment it was read under: commit it with this. */
  readonly generation: number
  /** The position before: the first batch may begin below it, and its records below are not to be copied. */
  readonly first: number
  /** The position after: commit this once all of `batches` is confirmed on the target. */
  readonly next: number
  /** Leader epoch to commit with `next`; -1: unknown. */
  readonly leaderEpoch: number
  /** Data batches only, in order; empty when there were markers or aborted records only. */
  readonly batches: ReadonlyArray<BatchView>
  /** Bytes of the log this took, for bounds. */
  readonly bytes: number
  readonly abortedRecords: number
  readonly highWatermark: number
  readonly lastStableOffset: number
  readonly logStartOffset: number
  /** The memory that its batches lie in, held by it: let go of once nobody looks at them any more. */
  readonly leases?: ReadonlyArray<Lease>
  /** Set where reading went on after a gap (on.source.gap: continue): nothing was read between the two. */
  readonly gap: GapError | null
}

/** @see GroupConsumerOptions.startAt */
export type StartAt = (
  at: TopicPartition & { readonly topicId: string },
  committed: number | null,
  logStart: number
) => Effect.Effect<number | null>

export interface Shared {
  readonly cluster: Cluster
  readonly groupId: string
  readonly settings: GroupSettings
  readonly onSourceGap: "fail" | "continue"
  /** A topic that was created anew: "continue" reads it from its beginning whatever onSourceGap says. */
  readonly onTopicRecreated: "gap" | "continue"
  /** Names the connections of this consumer. */
  readonly purpose: string
  readonly requestTimeoutMs: number
  readonly maxBufferedBytes: number
  /** metadata.max.age.ms, a second at least: how long a recommended follower is read (KIP-392). */
  readonly replicaMaxAgeMs: number
  readonly partitions: Map<string, PartitionState>
  readonly ready: Array<Fetched>
  readonly book: CommitBook
  readonly startAt: StartAt | null
  readonly onGap: (gap: GapError) => void
  readonly onCommit: (seconds: number) => void
  /**
   * Partitions of a topic when the group started to read it: only these may be skipped by auto.offset.reset latest;
   * what is added later is read from its beginning. Empty with earliest, where it does not matter.
   */
  readonly firstCounts: Map<string, number>
  /** Partitions of a topic by its latest metadata. */
  readonly counts: Map<string, number>
  /** Stages changed: the steward has work. */
  readonly work: Signal
  /** Room in the queue, new partitions, another leader: brokers' loops look again. */
  readonly fetchable: Signal
  /** Results, or a failure. */
  readonly arrived: Signal
  readonly failure: Deferred.Deferred<never, MembershipError | WireError>
  generations: number
  turns: number
}

/** Still the same assignment: nothing else may be changed through an answer that comes late. */
export const isCurrent = (shared: Shared, state: PartitionState): boolean =>
  shared.partitions.get(state.key) === state && state.stage !== "revoked"

/**
 * Takes a partition's results out of the queue; the position goes back to where the first of them began. The room that
 * this makes is told: whoever waits for it has nobody else to hear it from, where the queue is empty now.
 */
export const dropBuffered = (shared: Shared, state: PartitionState): void => {
  let kept = 0
  let rewound = false
  for (const result of shared.ready) {
    if (result.generation === state.generation) {
      if (!rewound) state.position = result.first
      rewound = true
    } else shared.ready[kept++] = result
  }
  shared.ready.length = kept
  state.buffered = 0
  state.token++
  shared.fetchable.notify()
}

/**
 * Goes on at `gap.to`, or stops, as the policy says. Going on stands in the queue in its place, as a result without
 * batches: with its confirmation the new position is committed, and a restart does not meet the gap again.
 */
export const passGap = (shared: Shared, state: PartitionState, gap: GapError, epoch: number): void => {
  const goesOn = shared.onSourceGap === "continue" ||
    (gap.kind === "recreated" && shared.onTopicRecreated === "continue")
  if (!goesOn) return stop(state, gap)
  shared.onGap(gap)
  // Forward, what was read before the gap stays good and its confirmations still count; back, they must not.
  if (gap.to < state.position) {
    state.generation = ++shared.generations
    // What of the one before is in the queue is given out, and counts for nothing any more.
    state.buffered = 0
    shared.book.open(state, state.generation, -1)
    state.deliveredTo = gap.to
  }
  state.position = gap.to
  state.positionEpoch = epoch
  state.recreated = false
  moveTo(state, "ready")
  enqueue(shared, state, {
    first: gap.to,
    next: gap.to,
    leaderEpoch: epoch,
    batches: [],
    bytes: 0,
    abortedRecords: 0,
    gap
  })
}

/** Puts a result of a partition behind those that are there. */
export const enqueue = (
  shared: Shared,
  state: PartitionState,
  piece: Pick<Fetched, "first" | "next" | "leaderEpoch" | "batches" | "bytes" | "abortedRecords" | "leases" | "gap">
): void => {
  state.buffered += piece.bytes
  shared.ready.push({
    topic: state.topic,
    partition: state.partition,
    topicId: state.topicId,
    generation: state.generation,
    highWatermark: state.highWatermark,
    lastStableOffset: state.lastStableOffset,
    logStartOffset: state.logStart,
    ...piece
  })
  shared.arrived.notify()
}

/** Ends the consumer: poll fails with it from now on. The first one counts. */
export const fail = (shared: Shared, error: MembershipError | WireError): void => {
  Deferred.doneUnsafe(shared.failure, Effect.fail(error))
}
