/**
 * Writes what MirrorMaker 2's clients read (mm2Formats.ts): records of a compacted topic, only what has changed.
 *
 * Gotcha: nothing is ever taken back there; Kafka's own reader of checkpoints cannot read a record without a value.
 */
import { Clock, Effect } from "effect"
import type { Producer } from "../../txn/producer.ts"
import { encodeBatch } from "../../wire/batch/records.ts"
import type { Cluster } from "../../wire/cluster.ts"
import { type WireError } from "../../wire/errors.ts"
import { ProtocolError } from "../../wire/bytes.ts"
import type { Runs } from "../offsets/runs.ts"
import type { GroupOffset } from "./groupSync.ts"
import { checkpointRecord, type KeyValue, type OffsetSync } from "./mm2Formats.ts"
import { ensureSmallTopic } from "./smallTopic.ts"
import type { TaskReport } from "./tasks.ts"

export interface EmitterOptions {
  readonly cluster: Cluster
  /** For creating the topic. */
  readonly admin: Cluster
  readonly producer: Producer
  readonly topic: string
  /** -1: the cluster's default. */
  readonly replicas: number
}

export type Emit = (records: ReadonlyArray<KeyValue>) => Effect.Effect<TaskReport, WireError>

const COMPACTED = [{ name: "cleanup.policy", value: "compact" }]
const WRITE_MS = 30_000
/** Records of one batch. */
const BATCH = 1_000

const report = (changed: number, problems: ReadonlyArray<string> = []): TaskReport => ({ changed, problems, notes: [] })

/** `always`: also what was written before, as a heartbeat is. */
export const makeEmitter = (options: EmitterOptions, always = false): Emit => {
  const { admin, producer, replicas, topic } = options
  const sent = new Map<string, string>()
  let there = false
  return (records) =>
    Effect.gen(function*() {
      const fresh = always
        ? records
        : records.filter(({ key, value }) => sent.get(key.toString("latin1")) !== value.toString("latin1"))
      if (fresh.length === 0) return report(0)
      if (!there) {
        const refused = yield* ensureSmallTopic(admin, topic, replicas, COMPACTED)
        if (refused !== null) return report(0, [`${topic} on "${options.cluster.name}" cannot be created: ${refused}`])
        there = true
      }
      const timestamp = BigInt(yield* Clock.currentTimeMillis)
      for (let at = 0; at < fresh.length; at += BATCH) {
        const part = fresh.slice(at, at + BATCH)
        const bytes = encodeBatch(
          part.map(({ key, value }, offset) => ({ offset, timestamp, key, value, headers: [] })),
          { codec: "none" }
        )
        const outcomes = yield* producer.produce([{ topic, partition: 0, bytes }]).pipe(
          Effect.timeout(WRITE_MS),
          Effect.mapError((error) => new ProtocolError({ what: `${topic} cannot be written now: ${error.message}` }))
        )
        const refused = outcomes[0]
        if (refused?.ok === false) {
          there = false
          return report(at, [`${topic} on "${options.cluster.name}" cannot be written: ${refused.error.message}`])
        }
        for (const { key, value } of part) sent.set(key.toString("latin1"), value.toString("latin1"))
      }
      return report(always ? 0 : fresh.length)
    })
}

/** Checkpoints of groups whose place on the target is known. */
export const checkpointsOf = (rows: ReadonlyArray<GroupOffset>): ReadonlyArray<KeyValue> =>
  rows.flatMap((row) =>
    row.kind === "share" || row.targetPosition === null || row.state === "unmapped" ? [] : [checkpointRecord({
      group: row.group,
      topic: row.targetTopic,
      partition: row.targetPartition,
      upstream: row.position,
      downstream: row.targetPosition,
      metadata: row.metadata
    })]
  )

/**
 * The newest pair that MirrorMaker's reader may go by: it takes everything behind the source offset to be behind the
 * target offset. Through a share group that does not hold of every record. `floor`: see offsets/floors.ts.
 */
export const newestPair = (
  runs: Runs,
  floor: number,
  at: { readonly topic: string; readonly partition: number }
): OffsetSync | null => {
  for (const run of runs.all.toReversed().slice(0, 64)) {
    if (run.loose) continue
    const upstream = run.source + run.count - 1
    const downstream = run.high
    const behind = runs.from(upstream + 1)
    if (floor > downstream && (behind === null || behind.offset > downstream)) return { ...at, upstream, downstream }
  }
  return null
}
