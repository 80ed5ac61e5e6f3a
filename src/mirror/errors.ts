/** Failures of a flow, in words for the log, /status and the exit. */
import { Schema } from "effect"

/** The flow must not go on by itself: a person has to decide (a record no transform takes, a gap under `fail`). */
export class FlowStopped extends Schema.TaggedError<FlowStopped>()("FlowStopped", { what: Schema.String }) {
  override get message(): string {
    return this.what
  }
}

/** Another binding is to be in force: the flow has ended in order, and is started again with it at once. */
export class GuaranteeChanged extends Schema.TaggedError<GuaranteeChanged>()("GuaranteeChanged", {
  what: Schema.String
}) {
  override get message(): string {
    return this.what
  }
}

/** One end of a flow cannot be used now: unreachable, not Kafka, a wrong password. */
export class ClusterUnusable extends Schema.TaggedError<ClusterUnusable>()("ClusterUnusable", {
  end: Schema.Literals(["source", "target"]),
  /** As in the configuration. */
  alias: Schema.String,
  what: Schema.String
}) {
  override get message(): string {
    return `the ${this.end} "${this.alias}" cannot be used: ${this.what}`
  }
}

/** What the program as a whole fails with; one line each. */
export class ServiceError
  extends Schema.TaggedError<ServiceError>()("ServiceError", { lines: Schema.Array(Schema.String) })
{
  override get message(): string {
    return this.lines.join("\n")
  }
}
