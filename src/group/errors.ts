/**
 * What can go wrong in a consumer group, as typed failures.
 *
 * - MembershipError: librdkafka (or the group's coordinator, through it) said no. `rebalanced` tells the cases that
 *   are no loss: the records come again to whoever owns the partition now.
 * - GapError, PositionError, SourceRecordError: one partition cannot go on; others are not touched.
 */
import { Schema } from "effect"

/** Codes that say "this member's assignment is over" (librdkafka's own: assignment lost, outdated, fenced). */
const REBALANCED: ReadonlySet<number> = new Set([22, 25, 27, 110, 113, -142, -167, -168])
/** Codes that pass by themselves: the coordinator moves or loads, or nobody answered. */
const PASSING: ReadonlySet<number> = new Set([
  7,
  13,
  14,
  15,
  16,
  3,
  88,
  -195,
  -185,
  -180,
  -187,
  -193,
  -178,
  -192,
  -197,
  -172
])

export class MembershipError extends Schema.TaggedError<MembershipError>()("MembershipError", {
  /** "connect", "subscribe", "commit", "committed", "poll", "assign" */
  operation: Schema.String,
  groupId: Schema.String,
  /** Kafka's error code; negative: librdkafka's own. */
  code: Schema.Int,
  what: Schema.String
}) {
  /** The assignment changed under the operation. Nothing is lost. */
  get rebalanced(): boolean {
    return REBALANCED.has(this.code)
  }
  /** Worth trying again as it is. */
  get retriable(): boolean {
    return PASSING.has(this.code)
  }
  override get message(): string {
    return `group ${this.groupId}: ${this.operation}: ${this.what} (${this.code})`
  }
}

/**
 * Why a stretch of offsets will not be mirrored, or why the position cannot be trusted:
 * - expired: the source deleted the records (retention, DeleteRecords) before they were read.
 * - truncated: the source's log was cut back below our position (unclean leader election); what stands there now
 *   are other records than those that were read.
 * - recreated: the topic was deleted and made anew under the same name.
 * - beyond: the position is above the source's log end, and nothing tells which of the two above it was.
 */
export type GapKind = "expired" | "truncated" | "recreated" | "beyond"

export class GapError extends Schema.TaggedError<GapError>()("GapError", {
  kind: Schema.Literals(["expired", "truncated", "recreated", "beyond"]),
  topic: Schema.String,
  partition: Schema.Int,
  /** The position that the source no longer has. */
  from: Schema.Int,
  /** Where reading would go on (on.source.gap: continue). */
  to: Schema.Int,
  /** Offsets between the two: the most records that can be concerned. */
  count: Schema.Int
}) {
  override get message(): string {
    const where = `${this.topic}-${this.partition}`
    const way = "set on.source.gap to continue to go on"
    switch (this.kind) {
      case "expired":
        return `${where}: offsets ${this.from} to ${
          this.to - 1
        } (at most ${this.count} records) are gone from the source, ` +
          `deleted before they were mirrored; ${way} at ${this.to}`
      case "truncated":
        return `${where}: the source's log was truncated at ${this.to}: offsets ${this.to} to ${
          this.from - 1
        } were mirrored and ` +
          `are other records there now; ${way} at ${this.to}`
      case "recreated":
        return `${where}: the topic was deleted and created anew on the source; position ${this.from} belonged to the old one; ${way} at ${this.to}`
      case "beyond":
        return `${where}: position ${this.from} is above the end of the source's log: the topic was truncated or created anew; ${way} at ${this.to}`
    }
  }
}

/** No committed offset, and auto.offset.reset is none. */
export class PositionError extends Schema.TaggedError<PositionError>()("PositionError", {
  topic: Schema.String,
  partition: Schema.Int,
  groupId: Schema.String
}) {
  override get message(): string {
    return `${this.topic}-${this.partition}: group ${this.groupId} has no committed offset and auto.offset.reset is none; ` +
      `set it to earliest or latest, or commit an offset for the group`
  }
}

/** The source's answer for one partition cannot be used: bytes that are no record batches, a missing right, a code that does not pass. */
export class SourceRecordError extends Schema.TaggedError<SourceRecordError>()("SourceRecordError", {
  topic: Schema.String,
  partition: Schema.Int,
  offset: Schema.Int,
  what: Schema.String
}) {
  override get message(): string {
    return `${this.topic}-${this.partition} at offset ${this.offset}: ${this.what}`
  }
}

/** Why one partition stands still. */
export type PartitionProblem = GapError | PositionError | SourceRecordError
