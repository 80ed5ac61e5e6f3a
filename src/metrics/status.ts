/**
 * The live state of a service, as /status gives it and `onceover status` shows it. Part of the outside: fields are
 * added, never renamed.
 */
import { Schema } from "effect"

export const FLOW_STATES = ["starting", "running", "blocked", "retrying", "failed", "stopping", "stopped"] as const
export const FlowState = Schema.Literals(FLOW_STATES)
export type FlowState = (typeof FLOW_STATES)[number]

export const PARTITION_STATES = ["running", "blocked", "failed"] as const

export class PartitionStatus extends Schema.Class<PartitionStatus>("PartitionStatus")({
  /** The source's name. */
  topic: Schema.String,
  partition: Schema.Int,
  targetTopic: Schema.String,
  /** The source offset up to which everything is mirrored and acknowledged; null while unknown. */
  position: Schema.NullOr(Schema.Number),
  /** Records; null while unknown. */
  lag: Schema.NullOr(Schema.Number),
  /** Records per second, lately. */
  rate: Schema.Number,
  /**
   * Seconds from the timestamp of the oldest record in the batch that was mirrored last to the target's confirmation;
   * null until one was. On an idle partition it stays what it was.
   */
  latencySeconds: Schema.NullOr(Schema.Number),
  state: Schema.Literals(PARTITION_STATES),
  /** Why it does not move: which offset, and what the target said. */
  reason: Schema.NullOr(Schema.String)
}) {}

export const GuaranteeStatus = Schema.Struct({
  wanted: Schema.String,
  /** null until it is known. */
  effective: Schema.NullOr(Schema.String),
  binding: Schema.NullOr(Schema.String),
  /** Why it is not what was wanted, in sentences. */
  reasons: Schema.Array(Schema.String)
})

export const TotalsStatus = Schema.Struct({
  recordsMirrored: Schema.Number,
  bytesMirrored: Schema.Number,
  recordsAcquired: Schema.Number,
  recordsAcknowledged: Schema.Number,
  recordsReleased: Schema.Number,
  recordsRejected: Schema.Number,
  recordsRedelivered: Schema.Number,
  /** Given up on by the share group, and mirrored all the same. */
  recordsRepaired: Schema.Number,
  /** Left out on purpose: by a filter, or by errors.tolerance. */
  recordsSkipped: Schema.Number,
  duplicatesPrevented: Schema.Number,
  transactionsCommitted: Schema.Number,
  transactionsAborted: Schema.Number,
  transactionsFenced: Schema.Number,
  deadLetters: Schema.Number,
  sourceGapRecords: Schema.Number
})

export const ControlStatus = Schema.Struct({
  task: Schema.String,
  /** elsewhere: another process of the flow does it. */
  state: Schema.Literals(["ok", "problem", "elsewhere"]),
  /** What could not be done; then what is worth knowing. */
  reasons: Schema.Array(Schema.String),
  /** When it was done last, ISO 8601; null: not yet, or not here. */
  at: Schema.NullOr(Schema.String)
})

export class FlowStatus extends Schema.Class<FlowStatus>("FlowStatus")({
  name: Schema.String,
  /** Cluster aliases. */
  source: Schema.String,
  target: Schema.String,
  mode: Schema.Literals(["share", "consumer"]),
  guarantee: GuaranteeStatus,
  state: FlowState,
  reason: Schema.NullOr(Schema.String),
  /** When it came into this state, ISO 8601. */
  since: Schema.String,
  lanes: Schema.Int,
  totals: TotalsStatus,
  /** The control tasks: settings, acls, deletes. Absent: none is on, or an older onceover. */
  control: Schema.optionalKey(Schema.Array(ControlStatus)),
  partitions: Schema.Array(PartitionStatus)
}) {}

export class StatusDocument extends Schema.Class<StatusDocument>("StatusDocument")({
  service: Schema.Struct({ name: Schema.String, version: Schema.String }),
  /** ISO 8601. */
  startedAt: Schema.String,
  uptimeSeconds: Schema.Number,
  flows: Schema.Array(FlowStatus)
}) {}

/** The plain shape, for whoever builds one. */
export type StatusInput = (typeof StatusDocument)["Encoded"]

export interface Readiness {
  readonly ready: boolean
  /** One sentence for each flow that does not run. */
  readonly reasons: ReadonlyArray<string>
}

/** Ready means that bytes can move in every flow. */
export const readiness = (status: StatusInput): Readiness => {
  const reasons = status.flows
    .filter((flow) => flow.state !== "running")
    .map((flow) => `flow ${flow.name} is ${flow.state}${flow.reason === null ? "" : `: ${flow.reason}`}`)
  return { ready: reasons.length === 0, reasons }
}
