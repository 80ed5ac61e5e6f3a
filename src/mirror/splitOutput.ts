/** An output in two halves. */
import { ProtocolError } from "../wire/bytes.ts"
import { decodeRecords, encodeBatch } from "../wire/batch/records.ts"
import type { BatchView } from "../wire/batch/recordBatch.ts"
import type { Output } from "./copyUnit.ts"

/**
 * Halves an output that the target refuses, so that what it refuses is found: a batch of small records may be
 * larger than the target takes where each record is not. null: it is a single record.
 */
export const splitOutput = (output: Output, batch: BatchView): readonly [Output, Output] | null => {
  if (output.recordCount < 2) return null
  const records = decodeRecords(batch)
  if (records.length < 2) {
    throw new ProtocolError({ what: `a batch of ${output.recordCount} records decodes to ${records.length}` })
  }
  const middle = records.length >> 1
  const part = (from: number, to: number): Output => ({
    ...(output.source === undefined ? {} : { source: output.source }),
    topic: output.topic,
    partition: output.partition,
    bytes: encodeBatch(records.slice(from, to), { codec: batch.codec }),
    recordCount: to - from,
    offsets: typeof output.offsets === "number" ? output.offsets + from : output.offsets.slice(from, to)
  })
  return [part(0, middle), part(middle, records.length)]
}
