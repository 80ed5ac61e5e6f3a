/**
 * MirrorMaker 2 for throughput, as its users are advised: the settings that Red Hat's and Strimzi's guide gives for high
 * volumes (batch.size 327680, linger.ms 100, fetch.max.bytes 50 MB, offset.flush.timeout.ms 10 s), and beyond it larger polls
 * and fetches of a partition, a task for each partition up to four, and the topic's own codec. Everything beside
 * copying records is off, which favours it: no heartbeats, checkpoints, offset syncs, no sync of settings, rights and groups.
 */
import type { Codec } from "../shape.ts"

/** A JVM's own choices (G1, both compilers) and room: Kafka's scripts give Connect 2 GB, more than it uses here. */
export const MIRROR_MAKER_JVM: ReadonlyArray<string> = ["-Xms256m", "-Xmx1g"]

export const consumerTuning: Readonly<Record<string, string>> = {
  "fetch.max.bytes": "52428800",
  "max.partition.fetch.bytes": "10485760",
  "max.poll.records": "2000",
  "receive.buffer.bytes": "1048576"
}

export const producerTuning = (codec: Codec): Readonly<Record<string, string>> => ({
  "batch.size": "327680",
  "linger.ms": "100",
  "compression.type": codec,
  "buffer.memory": "67108864",
  "max.request.size": "4000000",
  "send.buffer.bytes": "1048576"
})

export const connectorTuning = (partitions: number): Readonly<Record<string, string>> => ({
  "tasks.max": String(Math.min(4, partitions)),
  "emit.heartbeats.enabled": "false",
  "emit.checkpoints.enabled": "false",
  "emit.offset-syncs.enabled": "false",
  "sync.group.offsets.enabled": "false",
  "sync.topic.configs.enabled": "false",
  "sync.topic.acls.enabled": "false",
  "refresh.groups.enabled": "false"
})

export const prefixed = (
  prefix: string,
  settings: Readonly<Record<string, string>>
): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [`${prefix}${name}`, value]))

export const asProperties = (settings: Readonly<Record<string, string>>): string =>
  Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`).join("")
