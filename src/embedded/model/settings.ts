/** The settings of topics, brokers and groups: defaults, what was set, and what may be set. */
import type { ClusterState } from "./state.ts"

export interface SettingRule {
  readonly defaultValue: string
  /** What is allowed, in words; null: anything. */
  readonly check: (value: string) => string | null
}

const anything: SettingRule["check"] = () => null
const whole = (min: number, max = Number.MAX_SAFE_INTEGER): SettingRule["check"] => (value) => {
  const given = /^-?\d+$/.test(value) ? Number(value) : NaN
  return given >= min && given <= max ? null : `Value must be a whole number from ${min} to ${max}`
}
const among = (...allowed: ReadonlyArray<string>): SettingRule["check"] => (value) =>
  allowed.includes(value) ? null : `Value must be one of ${allowed.join(", ")}`
const reset: SettingRule["check"] = (value) =>
  /^(earliest|latest|by_duration:P.+)$/i.test(value) ? null : "Value must be earliest, latest or by_duration:<ISO-8601>"

const rule = (defaultValue: string, check: SettingRule["check"] = anything): SettingRule => ({ defaultValue, check })
type Rules = Readonly<Record<string, SettingRule>>

const topicRules: Rules = {
  "cleanup.policy": rule(
    "delete",
    (value) =>
      value.split(",").every((part) => ["delete", "compact"].includes(part.trim()))
        ? null
        : "Value must be delete, compact or both"
  ),
  "compression.type": rule("producer", among("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
  "delete.retention.ms": rule("86400000", whole(0)),
  "file.delete.delay.ms": rule("60000", whole(0)),
  "flush.messages": rule("9223372036854775807"),
  "flush.ms": rule("9223372036854775807"),
  "index.interval.bytes": rule("4096", whole(0)),
  "max.compaction.lag.ms": rule("9223372036854775807"),
  "max.message.bytes": rule("1048588", whole(0)),
  "message.timestamp.after.max.ms": rule("3600000", whole(0)),
  "message.timestamp.before.max.ms": rule("9223372036854775807"),
  "message.timestamp.type": rule("CreateTime", among("CreateTime", "LogAppendTime")),
  "min.cleanable.dirty.ratio": rule("0.5"),
  "min.compaction.lag.ms": rule("0", whole(0)),
  "min.insync.replicas": rule("1", whole(1)),
  "preallocate": rule("false", among("true", "false")),
  "retention.bytes": rule("-1", whole(-1)),
  "retention.ms": rule("604800000", whole(-1)),
  "segment.bytes": rule("1073741824", whole(14)),
  "segment.index.bytes": rule("10485760", whole(4)),
  "segment.jitter.ms": rule("0", whole(0)),
  "segment.ms": rule("604800000", whole(1)),
  "unclean.leader.election.enable": rule("false", among("true", "false"))
}

const groupRules: Rules = {
  "consumer.heartbeat.interval.ms": rule("5000", whole(1)),
  "consumer.session.timeout.ms": rule("45000", whole(1)),
  "errors.deadletterqueue.topic.name": rule(""),
  "share.auto.offset.reset": rule("latest", reset),
  "share.delivery.count.limit": rule("5", whole(2, 10)),
  "share.heartbeat.interval.ms": rule("5000", whole(1)),
  "share.isolation.level": rule("read_uncommitted", among("read_uncommitted", "read_committed")),
  "share.partition.max.record.locks": rule("2000", whole(100, 4000)),
  "share.record.lock.duration.ms": rule("30000", whole(1000, 3_600_000)),
  "share.renew.acknowledge.enable": rule("true", among("true", "false")),
  "share.session.timeout.ms": rule("45000", whole(1))
}

const brokerRules: Rules = {
  "auto.create.topics.enable": rule("true", among("true", "false")),
  "default.replication.factor": rule("1", whole(1)),
  "group.initial.rebalance.delay.ms": rule("0", whole(0)),
  "group.share.delivery.count.limit": rule("5", whole(2, 10)),
  "group.share.max.delivery.count.limit": rule("10", whole(2, 25)),
  "group.share.max.partition.max.record.locks": rule("4000", whole(100)),
  "group.share.max.record.lock.duration.ms": rule("60000", whole(1000)),
  "group.share.min.delivery.count.limit": rule("2", whole(2)),
  "group.share.min.record.lock.duration.ms": rule("15000", whole(1000)),
  "group.share.partition.max.record.locks": rule("2000", whole(100)),
  "message.max.bytes": rule("1048588", whole(0)),
  "min.insync.replicas": rule("1", whole(1)),
  "num.partitions": rule("1", whole(1)),
  "transaction.max.timeout.ms": rule("900000", whole(1)),
  "unclean.leader.election.enable": rule("false", among("true", "false"))
}

/** Kafka's resource types. */
export const resourceType = { topic: 2, broker: 4, group: 32 } as const
export type ResourceKind = keyof typeof resourceType

export const kindOf = (type: number): ResourceKind | null =>
  (Object.keys(resourceType) as Array<ResourceKind>).find((kind) => resourceType[kind] === type) ?? null

export const rulesOf = (kind: ResourceKind): Rules =>
  ({ topic: topicRules, broker: brokerRules, group: groupRules })[kind]

/** What was set for a resource. Brokers share theirs: a setting of one is one of all. */
export const settingsOf = (state: ClusterState, kind: ResourceKind, name: string): Map<string, string> => {
  const key = kind === "broker" ? "broker:" : `${kind}:${name}`
  let found = state.settings.get(key)
  if (found === undefined) state.settings.set(key, found = new Map())
  return found
}

export const settingOf = (state: ClusterState, kind: ResourceKind, name: string, setting: string): string => {
  const set = state.settings.get(kind === "broker" ? "broker:" : `${kind}:${name}`)?.get(setting)
  return set ?? rulesOf(kind)[setting]?.defaultValue ?? ""
}

export const numberOf = (state: ClusterState, kind: ResourceKind, name: string, setting: string): number =>
  Number(settingOf(state, kind, name, setting))
