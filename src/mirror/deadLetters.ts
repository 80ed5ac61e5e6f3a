/**
 * What goes to the dead-letter topic: the record as it came from the source (before transforms), with Connect's
 * context headers where they are switched on, so that tools made for Connect's dead letters read ours.
 */
import { encodeBatch, type Rec } from "../wire/batch/records.ts"
import type { Output } from "./copyUnit.ts"
import type { Header, MirrorRecord } from "./transforms/transform.ts"

export interface DeadLetterContext {
  readonly flow: string
  readonly lane: number
  readonly sourceTopic: string
  /** "TRANSFORMATION" (a transform refused it) or "TASK_PUT" (the target refused it), as Connect's stages are named. */
  readonly stage: "TRANSFORMATION" | "TASK_PUT"
  /** The transform's name, or the error's. */
  readonly executor: string
  readonly error: Error
}

const header = (key: string, value: string): Header => ({
  key: Buffer.from(`__connect.errors.${key}`),
  value: Buffer.from(value)
})

/** Connect's context headers (ErrorHandlingMetrics, DeadLetterQueueReporter): text values, in Connect's order. */
export const contextHeaders = (record: MirrorRecord, context: DeadLetterContext): ReadonlyArray<Header> => [
  header("topic", context.sourceTopic),
  header("partition", String(record.partition)),
  header("offset", String(record.offset)),
  header("connector.name", context.flow),
  header("task.id", String(context.lane)),
  header("stage", context.stage),
  header("class.name", context.executor),
  header("exception.class.name", context.error.name),
  header("exception.message", context.error.message),
  header("exception.stacktrace", context.error.stack ?? "")
]

/** A batch of one record for the dead-letter topic's partition. */
export const deadLetter = (
  record: MirrorRecord,
  context: DeadLetterContext,
  destination: { readonly topic: string; readonly partitions: number; readonly contextHeaders: boolean }
): Output => {
  const rec: Rec = {
    offset: 0,
    timestamp: record.timestamp,
    key: record.key,
    value: record.value,
    headers: destination.contextHeaders ? [...record.headers, ...contextHeaders(record, context)] : record.headers
  }
  return {
    topic: destination.topic,
    partition: record.partition % destination.partitions,
    bytes: encodeBatch([rec], { codec: "none" }),
    recordCount: 1,
    offsets: record.offset
  }
}
