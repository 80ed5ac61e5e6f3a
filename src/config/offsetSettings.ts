/**
 * The settings of a flow's offsets: the map between both sides, the offsets of groups, and what MirrorMaker 2's
 * clients read.
 */
import type { Decoded } from "./decode.ts"
import { flag, patterns, whole, withDefault, word } from "./setting.ts"

const DAY = 86_400
const REPLICAS =
  "Replicas where it has to be created: as many as there are brokers where these are fewer. -1 leaves it to the cluster's default."
const replicas = withDefault(whole(1, 32_767, REPLICAS, "", [-1]), 3)

export const offsetSettings = {
  "offset.map.enabled": withDefault(
    flag(
      "Keeps where each record of the source is on the target, in a topic there (`__onceover_offsets_FLOW`, a few bytes a transaction). Everything below rests on it."
    ),
    true
  ),
  groups: withDefault(
    patterns("The groups whose offsets are kept on the target: regular expressions that match the whole group id."),
    [".*"]
  ),
  "groups.exclude": withDefault(
    patterns("Groups that are left out although `groups` matches. The flow's own group always is."),
    ["console-consumer-.*", "connect-.*", "__.*"]
  ),
  "refresh.groups.interval.seconds": withDefault(
    whole(1, DAY, "How often new groups are looked for on the source.", "seconds"),
    5
  ),
  "sync.group.offsets.enabled": withDefault(
    flag(
      "Writes the offsets of the source's groups, translated to the record, on the target: of consumer groups and of share groups that have no members there. A group with members on the target is never touched, and none is ever set back."
    ),
    true
  ),
  "sync.group.offsets.interval.seconds": withDefault(
    whole(1, DAY, "How often offsets of groups are compared; only what differs is written.", "seconds"),
    5
  ),
  "emit.checkpoints.enabled": withDefault(
    flag(
      "Writes the translated offsets to `SOURCE.checkpoints.internal` on the target as MirrorMaker 2 does, for its RemoteClusterUtils."
    ),
    false
  ),
  "emit.checkpoints.interval.seconds": withDefault(
    whole(1, DAY, "How often checkpoints that changed are written.", "seconds"),
    60
  ),
  "checkpoints.topic.replication.factor": replicas,
  "emit.heartbeats.enabled": withDefault(
    flag(
      "Writes a heartbeat to the topic `heartbeats` on the target as MirrorMaker 2 does, for its MirrorClient. A flow that mirrors that topic on lets clients see how many hops a cluster is away."
    ),
    false
  ),
  "emit.heartbeats.interval.seconds": withDefault(whole(1, DAY, "How often a heartbeat is written.", "seconds"), 1),
  "heartbeats.topic.replication.factor": replicas,
  "heartbeats.topic.location": withDefault(
    word(
      ["target", "source", "both"],
      "Where heartbeats are written. On `source` it is the heartbeat that a flow in the other direction would write there; mirrored as `SOURCE.heartbeats` (heartbeats.replication.enabled) it shows on the target that this flow works, and how far away the source is. `source` needs the right to write there."
    ),
    "target"
  ),
  "heartbeats.replication.enabled": withDefault(
    flag(
      "Mirrors the topics of heartbeats that the source has (`heartbeats`, `north.heartbeats`), whatever `topics` and `topics.exclude` say. Off, they are mirrored where `topics` matches. On the target they have the source's alias before the name, with replication.policy identity too."
    ),
    false
  ),
  "emit.offset-syncs.enabled": withDefault(
    flag(
      "Writes pairs of offsets to `mm2-offset-syncs.CLUSTER.internal` as MirrorMaker 2 does, for programs that read them. Nothing here does."
    ),
    false
  ),
  "offset-syncs.topic.location": withDefault(
    word(["source", "target"], "The cluster that has the topic of the pairs. `source` needs the right to write there."),
    "source"
  ),
  "offset-syncs.topic.replication.factor": replicas,
  "replication.policy.internal.topic.separator.enabled": withDefault(
    flag(
      "Whether replication.policy.separator stands in the names of the topics of checkpoints and offset syncs; off, it is a dot there, whatever the separator is."
    ),
    true
  )
}

export interface OffsetSettings {
  readonly map: boolean
  /** Regular expressions, to be anchored by the reader. */
  readonly groups: ReadonlyArray<string>
  readonly groupsExclude: ReadonlyArray<string>
  readonly refreshGroupsIntervalMs: number
  readonly syncGroups: boolean
  readonly syncGroupsIntervalMs: number
  readonly checkpoints: boolean
  readonly checkpointsIntervalMs: number
  /** -1: the broker's default; at most as many as there are brokers. So the other two. */
  readonly checkpointsReplicas: number
  readonly heartbeats: boolean
  readonly heartbeatsIntervalMs: number
  readonly heartbeatsReplicas: number
  readonly heartbeatsAt: "target" | "source" | "both"
  readonly heartbeatsMirrored: boolean
  readonly offsetSyncs: boolean
  readonly offsetSyncsAt: "source" | "target"
  readonly offsetSyncsReplicas: number
  /** In the names of checkpoints' and offset syncs' topics. */
  readonly internalSeparator: string
}

const MILLIS = 1_000

export const offsetsOf = (
  v: Decoded<typeof offsetSettings>,
  translated: (pattern: string) => string,
  separator: string
): OffsetSettings => ({
  map: v["offset.map.enabled"],
  groups: v.groups.map(translated),
  groupsExclude: v["groups.exclude"].map(translated),
  refreshGroupsIntervalMs: v["refresh.groups.interval.seconds"] * MILLIS,
  syncGroups: v["sync.group.offsets.enabled"],
  syncGroupsIntervalMs: v["sync.group.offsets.interval.seconds"] * MILLIS,
  checkpoints: v["emit.checkpoints.enabled"],
  checkpointsIntervalMs: v["emit.checkpoints.interval.seconds"] * MILLIS,
  checkpointsReplicas: v["checkpoints.topic.replication.factor"],
  heartbeats: v["emit.heartbeats.enabled"],
  heartbeatsIntervalMs: v["emit.heartbeats.interval.seconds"] * MILLIS,
  heartbeatsReplicas: v["heartbeats.topic.replication.factor"],
  heartbeatsAt: v["heartbeats.topic.location"],
  heartbeatsMirrored: v["heartbeats.replication.enabled"],
  offsetSyncs: v["emit.offset-syncs.enabled"],
  offsetSyncsAt: v["offset-syncs.topic.location"],
  offsetSyncsReplicas: v["offset-syncs.topic.replication.factor"],
  internalSeparator: v["replication.policy.internal.topic.separator.enabled"] ? separator : "."
})
