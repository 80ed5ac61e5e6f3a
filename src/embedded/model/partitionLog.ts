/**
 * The log of one partition: record batches as bytes with the offsets they were given, what is known of producers, and
 * which transactions were aborted.
 *
 * Gotchas: there is one log a partition, not one a replica: a leader that moves finds everything that was
 * acknowledged, so the high watermark is the log's end. The bytes of a batch are never changed after the append.
 */
import { crc32c } from "../../wire/batch/crc32c.ts"
import { at, BatchView, bit } from "../../wire/batch/recordBatch.ts"
import { decodeRecords } from "../../wire/batch/records.ts"
import { type Arriving, markerIsFenced, noteBatch, noteMarker, type ProducerEntry } from "./producerState.ts"

export interface StoredBatch {
  readonly base: number
  readonly last: number
  readonly view: BatchView
  readonly size: number
}

export interface AbortedTransaction {
  readonly producerId: number
  readonly firstOffset: number
  /** Of the marker. */
  readonly lastOffset: number
}

export interface Log {
  batches: Array<StoredBatch>
  startOffset: number
  /** Also the high watermark. */
  endOffset: number
  readonly producers: Map<number, ProducerEntry>
  aborted: Array<AbortedTransaction>
  /** Where each leader epoch began, ascending. */
  epochs: Array<{ readonly epoch: number; readonly startOffset: number }>
}

export const emptyLog = (): Log => ({
  batches: [],
  startOffset: 0,
  endOffset: 0,
  producers: new Map(),
  aborted: [],
  epochs: []
})

/** Everything below it is decided. */
export const lastStableOffset = (log: Log): number => {
  let offset = log.endOffset
  for (const entry of log.producers.values()) {
    if (entry.transactionStart !== null && entry.transactionStart < offset) offset = entry.transactionStart
  }
  return Math.max(offset, log.startOffset)
}

/** The index of the first batch that ends at or after the offset. */
const indexFrom = (log: Log, offset: number): number => {
  let low = 0
  let high = log.batches.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((log.batches[middle] as StoredBatch).last < offset) low = middle + 1
    else high = middle
  }
  return low
}

/** Batches that overlap [first, last], in order. */
export const batchesBetween = (log: Log, first: number, last: number): ReadonlyArray<StoredBatch> => {
  const out: Array<StoredBatch> = []
  for (let i = indexFrom(log, first); i < log.batches.length; i++) {
    const batch = log.batches[i] as StoredBatch
    if (batch.base > last) break
    out.push(batch)
  }
  return out
}

/**
 * Whole batches from the one that holds the offset on, below `limit`, up to `maxBytes`; the first one whatever its
 * size, if `atLeastOne`.
 */
export const readBatches = (
  log: Log,
  offset: number,
  limit: number,
  maxBytes: number,
  atLeastOne: boolean
): ReadonlyArray<StoredBatch> => {
  const out: Array<StoredBatch> = []
  let bytes = 0
  for (let i = indexFrom(log, offset); i < log.batches.length; i++) {
    const batch = log.batches[i] as StoredBatch
    if (batch.base >= limit) break
    if (bytes + batch.size > maxBytes && !(atLeastOne && out.length === 0)) break
    out.push(batch)
    bytes += batch.size
  }
  return out
}

export const bytesOf = (batches: ReadonlyArray<StoredBatch>): Buffer => {
  const [first] = batches
  if (first === undefined) return Buffer.alloc(0)
  return batches.length === 1 ? first.view.bytes : Buffer.concat(batches.map((batch) => batch.view.bytes))
}

/** Of the transactions that readers of [from, to) must leave out. */
export const abortedBetween = (log: Log, from: number, to: number): ReadonlyArray<AbortedTransaction> =>
  log.aborted.filter((aborted) => aborted.lastOffset >= from && aborted.firstOffset < to)

export interface AppendOptions {
  readonly leaderEpoch: number
  readonly nowMs: number
  /** message.timestamp.type=LogAppendTime */
  readonly logAppendTime: boolean
}

/** Appends a copy. Whether it may be appended is checked before (produceChecks.ts). */
const store = (log: Log, bytes: Buffer, options: AppendOptions): StoredBatch => {
  const own = Buffer.from(bytes)
  own.writeBigInt64BE(BigInt(log.endOffset), at.baseOffset)
  own.writeInt32BE(options.leaderEpoch, at.partitionLeaderEpoch)
  if (options.logAppendTime) {
    own.writeUInt16BE(own.readUInt16BE(at.attributes) | bit.logAppendTime, at.attributes)
    own.writeBigInt64BE(BigInt(options.nowMs), at.maxTimestamp)
    own.writeUInt32BE(crc32c(own, at.attributes), at.crc)
  }
  const view = new BatchView(own, 0)
  const batch = { base: log.endOffset, last: view.lastOffset, view, size: own.length }
  if ((log.epochs.at(-1)?.epoch ?? -1) < options.leaderEpoch) {
    log.epochs.push({ epoch: options.leaderEpoch, startOffset: batch.base })
  }
  log.batches.push(batch)
  log.endOffset = batch.last + 1
  return batch
}

/** Appends a producer's batch; gives the offset of its first record. */
export const appendBatch = (log: Log, bytes: Buffer, options: AppendOptions): number => {
  const { base, view } = store(log, bytes, options)
  if (view.producerId >= 0) {
    const arriving: Arriving = {
      producerId: view.producerId,
      epoch: view.producerEpoch,
      firstSequence: view.baseSequence,
      recordSpan: view.lastOffsetDelta + 1
    }
    const entry = noteBatch(log.producers, arriving, base, options.nowMs)
    if (view.isTransactional && entry.transactionStart === null) entry.transactionStart = base
  }
  return base
}

/** A control record: version 0, type 0 abort or 1 commit; the value's version and coordinator epoch. */
const markerBatch = (producerId: number, epoch: number, committed: boolean, nowMs: number): Buffer => {
  const record = Buffer.from([0, 0, 0, 8, 0, 0, 0, committed ? 1 : 0, 12, 0, 0, 0, 0, 0, 0, 0])
  const out = Buffer.alloc(at.records + 1 + record.length)
  out.writeInt32BE(out.length - 12, at.length)
  out[at.magic] = 2
  out.writeUInt16BE(bit.transactional | bit.control, at.attributes)
  out.writeBigInt64BE(BigInt(nowMs), at.baseTimestamp)
  out.writeBigInt64BE(BigInt(nowMs), at.maxTimestamp)
  out.writeBigInt64BE(BigInt(producerId), at.producerId)
  out.writeInt16BE(epoch, at.producerEpoch)
  out.writeInt32BE(-1, at.baseSequence)
  out.writeInt32BE(1, at.recordCount)
  out[at.records] = record.length * 2 // zigzag
  record.copy(out, at.records + 1)
  out.writeUInt32BE(crc32c(out, at.attributes), at.crc)
  return out
}

export interface Marker {
  readonly producerId: number
  readonly epoch: number
  readonly committed: boolean
  readonly transactionVersion: 1 | 2
}

/** Writes the marker; false when it is fenced (a late duplicate). */
export const appendMarker = (log: Log, marker: Marker, options: AppendOptions): boolean => {
  const entry = log.producers.get(marker.producerId)
  if (markerIsFenced(entry, marker.epoch, marker.transactionVersion)) return false
  const bytes = markerBatch(marker.producerId, marker.epoch, marker.committed, options.nowMs)
  const { last } = store(log, bytes, { ...options, logAppendTime: false })
  const firstOffset = entry?.transactionStart ?? null
  if (firstOffset !== null && !marker.committed) {
    log.aborted.push({ producerId: marker.producerId, firstOffset, lastOffset: last })
  }
  noteMarker(log.producers, marker.producerId, marker.epoch, options.nowMs)
  return true
}

/** DeleteRecords: whole batches go, the start may lie inside of the first that stays. */
export const deleteBefore = (log: Log, offset: number): void => {
  if (offset <= log.startOffset) return
  log.startOffset = offset
  log.batches = log.batches.slice(indexFrom(log, offset))
  log.aborted = log.aborted.filter((aborted) => aborted.lastOffset >= offset)
}

/** For tests: takes the batches that lie inside [first, last] out, as compaction may. */
export const punchHole = (log: Log, first: number, last: number): void => {
  log.batches = log.batches.filter((batch) => batch.base < first || batch.last > last)
}

export interface Found {
  readonly offset: number
  readonly timestampMs: number
  readonly leaderEpoch: number
}

/** The first record at or after a time (milliseconds), or null. */
export const firstAtTime = (log: Log, timeMs: number): Found | null => {
  for (const { view, last } of log.batches) {
    if (last < log.startOffset || Number(view.maxTimestamp) < timeMs) continue
    if (view.isControl) continue
    for (const record of decodeRecords(view)) {
      if (record.offset < log.startOffset || Number(record.timestamp) < timeMs) continue
      return { offset: record.offset, timestampMs: Number(record.timestamp), leaderEpoch: view.partitionLeaderEpoch }
    }
  }
  return null
}

/** The record with the largest timestamp, or null. */
export const latestTimestamp = (log: Log): Found | null => {
  let best: StoredBatch | null = null
  for (const batch of log.batches) {
    if (best === null || batch.view.maxTimestamp > best.view.maxTimestamp) best = batch
  }
  return best === null ? null : firstAtTime({ ...log, batches: [best] }, Number(best.view.maxTimestamp))
}

/** Where an epoch ended: the start of the next one; the log's end for the newest. -1 where nothing is known. */
export const endOfEpoch = (
  log: Log,
  wanted: number,
  currentEpoch: number
): { readonly epoch: number; readonly endOffset: number } => {
  if (wanted === currentEpoch) return { epoch: currentEpoch, endOffset: log.endOffset }
  const index = log.epochs.findLastIndex((entry) => entry.epoch <= wanted)
  const next = log.epochs[index + 1]
  if (index < 0 || next === undefined) return { epoch: -1, endOffset: -1 }
  return { epoch: (log.epochs[index] as { epoch: number }).epoch, endOffset: next.startOffset }
}
