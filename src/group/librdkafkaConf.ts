/**
 * From settings in Kafka's (Java's) names to those of librdkafka, for a member that fetches nothing by itself.
 * Pure. What librdkafka does not know under Java's name is translated; what is only of use for reading records is
 * left out (they are not read through it).
 */
import { toLibrdkafka } from "../wire/librdkafkaSettings.ts"
import { type ClientSettings, type SettingValue, text } from "../wire/settings.ts"

export type GroupProtocol = "classic" | "consumer"

/** Same name, same meaning in both. */
const SAME: ReadonlyArray<string> = ["max.poll.interval.ms"]
/** Only the classic protocol has them on the client's side; with KIP-848 librdkafka refuses them. */
const CLASSIC: ReadonlyArray<string> = ["session.timeout.ms", "heartbeat.interval.ms"]
const ASSIGNORS: ReadonlyMap<string, string> = new Map([
  ["org.apache.kafka.clients.consumer.CooperativeStickyAssignor", "cooperative-sticky"],
  ["org.apache.kafka.clients.consumer.RangeAssignor", "range"],
  ["org.apache.kafka.clients.consumer.RoundRobinAssignor", "roundrobin"]
])

export interface ConfOptions {
  readonly groupId: string
  readonly protocol: GroupProtocol
  /** How soon new partitions of a topic are seen, milliseconds. */
  readonly metadataRefreshMs: number
  /** Goes behind group.instance.id, which must be unique in the group while a process has several members. */
  readonly member: string
}

/** More than this librdkafka refuses. */
const LONGEST_REFRESH_MS = 3_600_000

const strategy = (settings: ClientSettings): string =>
  (text(settings, "partition.assignment.strategy") ?? "cooperative-sticky").split(",").map((name) => {
    const trimmed = name.trim()
    return ASSIGNORS.get(trimmed) ?? trimmed
  }).join(",")

/** The native consumer's configuration. Unknown values are refused by librdkafka when the client is made. */
export const librdkafkaConf = (
  settings: ClientSettings,
  options: ConfOptions
): Readonly<Record<string, SettingValue>> => {
  const conf: Record<string, SettingValue> = { ...toLibrdkafka(settings) }
  for (const name of options.protocol === "classic" ? [...SAME, ...CLASSIC] : SAME) {
    const value = text(settings, name)
    if (value !== undefined && value !== "") conf[name] = value
  }
  const instance = text(settings, "group.instance.id")
  if (instance !== undefined && instance !== "") conf["group.instance.id"] = `${instance}-${options.member}`
  conf["group.id"] = options.groupId
  conf["group.protocol"] = options.protocol
  if (options.protocol === "classic") conf["partition.assignment.strategy"] = strategy(settings)
  else {
    const assignor = text(settings, "group.remote.assignor")
    if (assignor !== undefined) conf["group.remote.assignor"] = assignor
  }
  conf["enable.auto.commit"] = false
  conf["enable.auto.offset.store"] = false
  conf["topic.metadata.refresh.interval.ms"] = Math.min(options.metadataRefreshMs, LONGEST_REFRESH_MS)
  conf["topic.metadata.refresh.fast.interval.ms"] = 250
  conf["allow.auto.create.topics"] = false
  conf["log_level"] = 4
  // Between assignment and pause a fetch may slip out: it must be small.
  conf["queued.min.messages"] = 1
  conf["fetch.message.max.bytes"] = 1_024
  // Its own default; a smaller one, meant for our fetches, would not go with its other limits.
  delete conf["receive.message.max.bytes"]
  return conf
}
