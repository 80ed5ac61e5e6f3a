/**
 * What a partition's log remembers of each idempotent producer: epoch, its last five batches (to tell a repeated
 * request from a gap), and where its open transaction begins. As Kafka's ProducerStateManager and ProducerAppendInfo.
 *
 * Order of checks as there: a batch that is one of the last five is a duplicate whatever else is wrong with it; then
 * the epoch; then the sequence.
 */
import { code } from "./codes.ts"

const KEPT_BATCHES = 5
const MAX_SEQUENCE = 0x7fffffff

interface KnownBatch {
  readonly firstSequence: number
  readonly lastSequence: number
  readonly baseOffset: number
}

export interface ProducerEntry {
  epoch: number
  /** Ascending by offset, at most five; all of `epoch`. */
  batches: ReadonlyArray<KnownBatch>
  /** First offset of the open transaction, or null. */
  transactionStart: number | null
  lastTimestampMs: number
}

export interface Arriving {
  readonly producerId: number
  readonly epoch: number
  readonly firstSequence: number
  readonly recordSpan: number
}

export type SequenceVerdict =
  | { readonly kind: "new" }
  | { readonly kind: "duplicate"; readonly baseOffset: number }
  | { readonly kind: "refused"; readonly code: number }

/** Sequences run from 0 to 2^31 - 1 and then from 0 again. */
export const addSequence = (sequence: number, increment: number): number =>
  sequence > MAX_SEQUENCE - increment ? increment - (MAX_SEQUENCE - sequence) - 1 : sequence + increment

const refused = (errorCode: number): SequenceVerdict => ({ kind: "refused", code: errorCode })

export const judgeSequence = (entry: ProducerEntry | undefined, batch: Arriving): SequenceVerdict => {
  const last = addSequence(batch.firstSequence, batch.recordSpan - 1)
  if (entry === undefined) return { kind: "new" }
  if (entry.epoch === batch.epoch) {
    const twin = entry.batches.find((b) => b.firstSequence === batch.firstSequence && b.lastSequence === last)
    if (twin !== undefined) return { kind: "duplicate", baseOffset: twin.baseOffset }
  }
  if (batch.epoch < entry.epoch) return refused(code.INVALID_PRODUCER_EPOCH)
  if (batch.epoch > entry.epoch) {
    return batch.firstSequence === 0 ? { kind: "new" } : refused(code.OUT_OF_ORDER_SEQUENCE_NUMBER)
  }
  const lastSequence = entry.batches.at(-1)?.lastSequence ?? -1
  const expected = lastSequence === -1 ? 0 : addSequence(lastSequence, 1)
  return batch.firstSequence === expected ? { kind: "new" } : refused(code.OUT_OF_ORDER_SEQUENCE_NUMBER)
}

/** After a data batch was appended. */
export const noteBatch = (
  producers: Map<number, ProducerEntry>,
  batch: Arriving,
  baseOffset: number,
  nowMs: number
): ProducerEntry => {
  const known = producers.get(batch.producerId)
  const kept = known !== undefined && known.epoch === batch.epoch ? known.batches : []
  const added = {
    firstSequence: batch.firstSequence,
    lastSequence: addSequence(batch.firstSequence, batch.recordSpan - 1),
    baseOffset
  }
  const entry: ProducerEntry = {
    epoch: batch.epoch,
    batches: [...kept.slice(1 - KEPT_BATCHES), added],
    transactionStart: known?.transactionStart ?? null,
    lastTimestampMs: nowMs
  }
  producers.set(batch.producerId, entry)
  return entry
}

/**
 * Whether a marker of this epoch may be written. Under version 2 of transactions (KIP-890, KIP-1228) it carries a
 * bumped epoch, so that an old marker that comes twice is refused; under version 1 it cannot be told apart.
 */
export const markerIsFenced = (entry: ProducerEntry | undefined, epoch: number, version: 1 | 2): boolean => {
  if (entry === undefined) return false
  if (version === 2 && entry.transactionStart !== null) return epoch <= entry.epoch
  return epoch < entry.epoch
}

/** After a marker was written: the transaction is over, and its epoch is the producer's. */
export const noteMarker = (
  producers: Map<number, ProducerEntry>,
  producerId: number,
  epoch: number,
  nowMs: number
): void => {
  const known = producers.get(producerId)
  const batches = known !== undefined && known.epoch === epoch ? known.batches : []
  producers.set(producerId, { epoch, batches, transactionStart: null, lastTimestampMs: nowMs })
}
