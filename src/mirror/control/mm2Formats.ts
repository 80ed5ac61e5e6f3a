/**
 * What MirrorMaker 2 writes beside the records, byte for byte: heartbeats, checkpoints and offset syncs
 * (org.apache.kafka.connect.mirror: Heartbeat, Checkpoint, OffsetSync), and the names of their topics. Its
 * RemoteClusterUtils, MirrorClient and formatters read them. Pure.
 *
 *   heartbeat    key: source STRING, target STRING               value: version INT16 0, time INT64 ms
 *   checkpoint   key: group STRING, topic STRING, partition INT32
 *                value: version INT16 0, upstream INT64, downstream INT64, metadata STRING
 *   offset sync  key: topic STRING, partition INT32              value: upstream INT64, downstream INT64
 *
 * STRING is an int16 length and UTF-8. A checkpoint's topic is the target's name, an offset sync's the source's.
 */
import { ByteWriter, ProtocolError } from "../../wire/bytes.ts"

export interface KeyValue {
  readonly key: Buffer
  readonly value: Buffer
}

const MAX_STRING = 32_767

const text = (out: ByteWriter, value: string): void => {
  const bytes = Buffer.from(value, "utf8")
  if (bytes.length > MAX_STRING) throw new ProtocolError({ what: `"${value.slice(0, 40)}..." is longer than a STRING` })
  out.int16(bytes.length)
  out.raw(bytes)
}

const written = (write: (out: ByteWriter) => void): Buffer => {
  const out = new ByteWriter()
  write(out)
  return Buffer.concat(out.chunks())
}

const VERSION = 0

export const heartbeatRecord = (source: string, target: string, timestampMs: number): KeyValue => ({
  key: written((out) => {
    text(out, source)
    text(out, target)
  }),
  value: written((out) => {
    out.int16(VERSION)
    out.int64(timestampMs)
  })
})

export interface Checkpoint {
  readonly group: string
  /** The target's name. */
  readonly topic: string
  readonly partition: number
  readonly upstream: number
  readonly downstream: number
  readonly metadata: string
}

export const checkpointRecord = (checkpoint: Checkpoint): KeyValue => ({
  key: written((out) => {
    text(out, checkpoint.group)
    text(out, checkpoint.topic)
    out.int32(checkpoint.partition)
  }),
  value: written((out) => {
    out.int16(VERSION)
    out.int64(checkpoint.upstream)
    out.int64(checkpoint.downstream)
    text(out, checkpoint.metadata)
  })
})

export interface OffsetSync {
  /** The source's name. */
  readonly topic: string
  readonly partition: number
  readonly upstream: number
  readonly downstream: number
}

export const offsetSyncRecord = (sync: OffsetSync): KeyValue => ({
  key: written((out) => {
    text(out, sync.topic)
    out.int32(sync.partition)
  }),
  value: written((out) => {
    out.int64(sync.upstream)
    out.int64(sync.downstream)
  })
})

/** On the target. `separator`: replication.policy.separator. */
export const checkpointsTopic = (source: string, separator: string): string =>
  `${source}${separator}checkpoints${separator}internal`

/** `other`: the alias of the cluster that the topic is not on. */
export const offsetSyncsTopic = (other: string, separator: string): string =>
  `mm2-offset-syncs${separator}${other}${separator}internal`
