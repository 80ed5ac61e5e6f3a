/** From the bytes of the ledger's log to what a tail reads. */
import { ProtocolError } from "../../wire/bytes.ts"
import type { BatchView } from "../../wire/batch/recordBatch.ts"
import { decodeRecords, encodeBatch } from "../../wire/batch/records.ts"
import type { RangeSet } from "../../wire/ranges.ts"
import { decodeEntry, encodeEntry, type LedgerEntry } from "./entry.ts"
import type { TailBatch } from "./tail.ts"

/** Types of control records (org.apache.kafka.common.record.ControlRecordType). */
const ABORT = 0
const COMMIT = 1

const markerOf = (view: BatchView): TailBatch => {
  const { baseOffset, lastOffset, producerEpoch, producerId } = view
  const key = decodeRecords(view)[0]?.key ?? null
  // Key: version (int16), type (int16). Other types (a new leader, a snapshot) are found in Kafka's own logs only.
  const type = key === null || key.length < 4 ? -1 : key.readInt16BE(2)
  if (type !== ABORT && type !== COMMIT) return { kind: "other", baseOffset, lastOffset }
  return { kind: "marker", baseOffset, lastOffset, producerId, epoch: producerEpoch, commit: type === COMMIT }
}

/** Throws ProtocolError on what is no ledger entry. */
export const readBatch = (view: BatchView): TailBatch => {
  if (view.isControl) return markerOf(view)
  const { baseOffset, isTransactional, lastOffset, producerEpoch, producerId } = view
  const entries = decodeRecords(view).map(({ offset, value }) => {
    if (value === null) {
      throw new ProtocolError({
        what: `the record at offset ${offset} of the ledger topic has no value: only onceover may write there`
      })
    }
    return { offset, size: value.length, entry: decodeEntry(value) }
  })
  return {
    kind: "data",
    baseOffset,
    lastOffset,
    producerId,
    epoch: producerEpoch,
    transactional: isTransactional,
    entries
  }
}

/** Without a time: the broker puts its own (ledgerTopic.ts). */
const NO_TIMESTAMP = -1n
/** Entries of about this many bytes go as one batch. */
const BATCH_BYTES = 4 * 1024 * 1024
/** More ranges than that are two entries. About a megabyte. */
const RANGES_PER_ENTRY = 100_000

export interface LedgerBatch<E extends LedgerEntry> {
  readonly entries: ReadonlyArray<E>
  readonly bytes: Buffer
}

/** Entries as batches, ready to be produced; one, but for sizes that hardly occur. */
export const ledgerBatches = <E extends LedgerEntry>(entries: ReadonlyArray<E>): ReadonlyArray<LedgerBatch<E>> => {
  const batches: Array<LedgerBatch<E>> = []
  let list: Array<E> = []
  let values: Array<Buffer> = []
  let size = 0
  const flush = (): void => {
    if (list.length === 0) return
    const records = values.map((value, offset) => ({ offset, timestamp: NO_TIMESTAMP, key: null, value, headers: [] }))
    batches.push({ entries: list, bytes: encodeBatch(records, { codec: "none" }) })
    list = []
    values = []
    size = 0
  }
  for (const entry of entries) {
    const value = encodeEntry(entry)
    if (size + value.length > BATCH_BYTES) flush()
    list.push(entry)
    values.push(value)
    size += value.length
  }
  flush()
  return batches
}

/** Ranges as lists that fit into an entry each. */
export const entryRanges = (ranges: RangeSet): ReadonlyArray<RangeSet> => {
  const parts: Array<RangeSet> = []
  for (let at = 0; at < ranges.length; at += RANGES_PER_ENTRY) parts.push(ranges.slice(at, at + RANGES_PER_ENTRY))
  return parts
}
