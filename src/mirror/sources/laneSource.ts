/** The source of a lane, as the flow's group protocol wants it, with its events told to log and metrics. */
import { Effect, type Scope } from "effect"
import type { ResolvedFlow } from "../../config/types.ts"
import type { GapError } from "../../group/errors.ts"
import { chooseProtocol, type GroupError } from "../../group/groupConsumer.ts"
import type { GroupProtocol } from "../../group/librdkafkaConf.ts"
import type { StartAt } from "../../group/shared.ts"
import type { FlowMetrics } from "../../metrics/flowMetrics.ts"
import type { ShareEvent } from "../../share/consumer.ts"
import type { ShareError } from "../../share/errors.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { format } from "../../wire/ranges.ts"
import type { ClientSettings, SettingsError } from "../../wire/settings.ts"
import type { Source } from "../delivery.ts"
import type { Log } from "../report.ts"
import type { Assignments } from "./assignments.ts"
import { makeGroupSource } from "./groupSource.ts"
import { makeShareSource } from "./shareSource.ts"

export type LaneSourceError = ShareError | GroupError | WireError | SettingsError

export interface LaneSourceOptions {
  readonly cluster: Cluster
  readonly settings: ClientSettings
  readonly flow: ResolvedFlow
  /** Unique in the process. */
  readonly lane: string
  readonly topics: ReadonlyArray<string>
  readonly deliveryLimit: number
  /** The target topic of a source topic: what metrics are labelled with. */
  readonly targetOf: (topic: string) => string
  readonly metrics: FlowMetrics
  /** Consumer mode: the partitions of all lanes. */
  readonly assignments: Assignments
  readonly log: Log
  /** A partition that the source does not give, with the reason; null: it gives records again. */
  readonly onTrouble: (topic: string, partition: number, reason: string | null) => void
  /** Consumer mode: where partitions begin, where it is not the group that knows. */
  readonly startAt?: StartAt
  /** A gap under on.source.gap fail: the flow has to stop. */
  readonly onGap: (reason: string) => void
}

const MAX_WAIT_MS = 500
/** More than this at once gives nothing but memory. */
const MAX_BYTES_A_POLL = 8 * 1024 * 1024

const tellShareEvent = ({ log, onTrouble }: LaneSourceOptions) => (event: ShareEvent): void => {
  switch (event.kind) {
    case "joined":
      return log(
        event.again ? "info" : "debug",
        event.again ? "joined the share group again" : "joined the share group"
      )
    case "fenced":
      return log("warn", `the share group no longer knows this member: ${event.why}`)
    case "assigned":
      return log("debug", `assigned ${event.partitions} partitions`)
    case "sessionLost":
      return log(
        event.heldLost > 0 ? "warn" : "debug",
        `share session with broker ${event.broker} lost, ${event.heldLost} records of it will be delivered again: ${event.why}`
      )
    case "lost":
      return log(
        "warn",
        `${event.topic}-${event.partition}: ${format(event.ranges)} will be delivered again: ${event.why}`
      )
    case "renewed":
      return log("debug", `renewed the locks of ${event.records} records on broker ${event.broker}`)
    case "renewalUnavailable":
      return log(
        "warn",
        `broker ${event.broker} does not renew acquisition locks (${event.why}): a target that is slower than the lock means duplicates`
      )
    case "partitionProblem":
      return onTrouble(event.topic, event.partition, event.why)
    case "partitionRecovered":
      return onTrouble(event.topic, event.partition, null)
    case "acknowledgementWaits":
      return log(
        "warn",
        `${event.topic}-${event.partition}: ${event.records} records are mirrored, and the source does not take their acknowledgement now; it is said again until it does: ${event.why}`
      )
    case "acknowledged":
      return
  }
}

const shareSource = (options: LaneSourceOptions, maxBytes: number) =>
  makeShareSource({
    consumer: {
      cluster: options.cluster,
      groupId: options.flow.groupId,
      topics: options.topics,
      mode: options.flow.shareAcknowledgementMode,
      closeTimeoutMs: Math.max(1_000, Math.min(10_000, options.flow.shutdownTimeoutMs))
    },
    maxWaitMs: MAX_WAIT_MS,
    maxBytes,
    maxRecords: options.flow.transactionMaxRecords,
    deliveryLimit: options.deliveryLimit,
    onEvent: tellShareEvent(options)
  })

/** Settings of the classic protocol that KIP-848 leaves to the group's settings on the brokers: there they would have no effect. */
const CLASSIC_ONLY = ["session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"]

/** How a member joins: what the flow says; auto: KIP-848 where the source has it and nothing set would be without effect. */
export const membershipOf = (
  { cluster, flow, log, settings }: Pick<LaneSourceOptions, "cluster" | "flow" | "log" | "settings">
): Effect.Effect<GroupProtocol, WireError> =>
  Effect.gen(function*() {
    if (flow.groupMembership !== "auto") return flow.groupMembership
    const own = CLASSIC_ONLY.filter((name) => settings[name] !== undefined)
    if (own.length > 0) {
      log("debug", `members join the classic way: ${own.join(", ")} would have no effect otherwise`)
      return "classic"
    }
    return yield* cluster.retrying(chooseProtocol(cluster))
  })

const groupSource = (options: LaneSourceOptions, maxBytes: number) =>
  Effect.gen(function*() {
    const { flow, log, metrics } = options
    const clock = yield* Effect.clockWith((c) => Effect.succeed(c))
    return yield* makeGroupSource({
      consumer: {
        cluster: options.cluster,
        settings: {
          ...options.settings,
          "auto.offset.reset": flow.autoOffsetReset,
          "isolation.level": flow.isolationLevel
        },
        groupId: flow.groupId,
        protocol: yield* membershipOf(options),
        ...(options.startAt === undefined ? {} : { startAt: options.startAt }),
        onSourceGap: flow.onSourceGap,
        // What becomes of its records is decided by topic id, where they get their place.
        onTopicRecreated: "continue",
        name: options.lane,
        commitIntervalMs: flow.offsetCommitIntervalMs,
        // One answer is on its way while another waits.
        maxBufferedBytes: maxBytes * 2,
        refreshTopicsMs: flow.refreshTopicsIntervalMs,
        onAssignment: options.assignments.of(options.lane),
        onCommit: metrics.offsetCommit,
        onGap: (gap: GapError) => {
          if (gap.kind === "recreated") return
          metrics.sourceGap(gap.count)
          log("warn", gap.message)
        }
      },
      topics: options.topics,
      maxWaitMs: MAX_WAIT_MS,
      maxBytes,
      onForget: (partitions) => {
        for (const at of partitions) {
          metrics.forgetPartition(options.targetOf(at.topic), at.partition)
          options.onTrouble(at.topic, at.partition, null)
        }
      },
      onTrouble: ({ partition, topic }, reason, gap) => {
        options.onTrouble(topic, partition, reason)
        if (gap === null || reason === null) return
        metrics.sourceGap(gap.count)
        options.onGap(reason)
      },
      nowMs: () => clock.currentTimeMillisUnsafe()
    })
  })

export const makeLaneSource = (
  options: LaneSourceOptions
): Effect.Effect<Source<LaneSourceError>, LaneSourceError, Scope.Scope> => {
  const maxBytes = Math.min(
    MAX_BYTES_A_POLL,
    // Half of a lane's share is for its transaction (gathering.ts), the other half for what is read meanwhile.
    Math.max(1, Math.floor(options.flow.maxInFlightBytes / options.flow.tasksMax / 4))
  )
  return options.flow.groupProtocol.value === "share" ? shareSource(options, maxBytes) : groupSource(options, maxBytes)
}
