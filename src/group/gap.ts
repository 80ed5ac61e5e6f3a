/**
 * What is wrong with a position that the source refused as out of range, decided from where its log begins and ends.
 * Pure.
 *
 * - Below the log's start: the records between are gone ("expired"). A hole inside the log (compaction, markers) is
 *   never seen here: brokers answer a position in a hole with the next batch.
 * - Above its end: the log was truncated or the topic made anew. Going back is never done silently; where to go on,
 *   when the policy is to continue, is the LOG START: of what stands there now nothing is known to be mirrored, and
 *   copying twice loses nothing. (Where leader epochs tell the exact point of truncation, validation finds it first,
 *   and where topic ids tell that the topic is a new one, the same holds: everything in it is new.)
 * - Inside: the log has changed between the two answers; fetch again.
 */
import { GapError, type GapKind } from "./errors.ts"
import type { TopicPartition } from "./position.ts"

export interface LogRange {
  /** First offset that is there. */
  readonly start: number
  /** After the last offset that is there. */
  readonly end: number
}

export const makeGap = (at: TopicPartition, kind: GapKind, from: number, to: number): GapError =>
  new GapError({ kind, topic: at.topic, partition: at.partition, from, to, count: Math.abs(to - from) })

/** null: the position is inside the log, nothing is wrong with it. */
export const judgeOutOfRange = (at: TopicPartition, position: number, log: LogRange): GapError | null => {
  if (position < log.start) return makeGap(at, "expired", position, log.start)
  if (position > log.end) return makeGap(at, "beyond", position, log.start)
  return null
}

/** What OffsetForLeaderEpoch says about a position whose last record was of an older epoch; null: it still stands. */
export const judgeEpoch = (
  at: TopicPartition,
  position: number,
  answer: { readonly leaderEpoch: number; readonly endOffset: number }
): GapError | null =>
  // Undefined: the leader knows no such epoch any more (all its records expired). A fetch will tell if it is out of range.
  answer.endOffset < 0 || answer.leaderEpoch < 0 || answer.endOffset >= position
    ? null
    : makeGap(at, "truncated", position, answer.endOffset)
