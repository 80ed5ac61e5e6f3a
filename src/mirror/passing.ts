/** Batches that go to the target without a look at their records: as bytes, small ones joined. */
import { ProtocolError } from "../wire/bytes.ts"
import { joinBatches } from "../wire/batch/join.ts"
import { type OffsetRange, rangeSet } from "../wire/ranges.ts"
import type { CopyUnit, OutputSource } from "./copyUnit.ts"
import { type DeliveredBatch, lastOffsetOf } from "./delivery.ts"
import { type Group, UNFOLDED_BYTES } from "./groups.ts"

const unitOf = (
  batches: ReadonlyArray<DeliveredBatch>,
  bytes: Buffer,
  topic: string,
  source: OutputSource,
  gaps: ReadonlyArray<OffsetRange>
): CopyUnit => {
  const accept = rangeSet(batches.map((batch) => ({ first: batch.baseOffset, last: lastOffsetOf(batch) })))
  const records = batches.reduce((sum, { view }) => sum + view.recordCount, 0)
  const [only] = accept
  return {
    accept,
    gaps,
    outputs: [{
      source,
      topic,
      partition: source.partition,
      bytes,
      recordCount: records,
      offsets: accept.length === 1 && only !== undefined ? only.first : everyOffset(accept)
    }],
    filtered: 0,
    records,
    bytes: bytes.length,
    oldestTimestamp: batches.reduce(
      (least, { view }) => view.baseTimestamp < least ? view.baseTimestamp : least,
      batches[0]?.view.baseTimestamp ?? 0n
    ),
    newestTimestamp: batches.reduce(
      (most, { view }) => view.maxTimestamp > most ? view.maxTimestamp : most,
      batches[0]?.view.maxTimestamp ?? 0n
    )
  }
}

const everyOffset = (ranges: ReadonlyArray<OffsetRange>): ReadonlyArray<number> => {
  const offsets: Array<number> = []
  for (const { first, last } of ranges) for (let offset = first; offset <= last; offset++) offsets.push(offset)
  return offsets
}

/** null: their bytes are not what Kafka's format says, or unfold to too much; as they are they may go. */
const joinedBytes = (batches: ReadonlyArray<DeliveredBatch>): Buffer | null => {
  const [first] = batches
  if (first === undefined) return null
  try {
    return joinBatches(batches.map(({ view }) => view), first.view.codec, UNFOLDED_BYTES)
  } catch (error) {
    if (error instanceof ProtocolError) return null
    throw error
  }
}

/** The units of a group of batches that pass through; more than one where joining them did not work. */
export const passedUnits = ({ gaps, parts }: Group, topic: string, source: OutputSource): ReadonlyArray<CopyUnit> => {
  const batches = parts.map(({ batch }) => batch)
  const joined = batches.length < 2 ? null : joinedBytes(batches)
  if (joined !== null) return [unitOf(batches, joined, topic, source, gaps)]
  return batches.map((batch, n) => unitOf([batch], batch.view.bytes, topic, source, n === 0 ? gaps : []))
}
