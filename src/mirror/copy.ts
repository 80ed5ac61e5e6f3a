/**
 * From a delivery to what is to be produced: the "copy" step of a lane.
 *
 * A batch whose offsets are all ours, that needs no transform and that a producer may send as it is, goes as
 * bytes (not decoded, not recompressed). Any other is decoded, reduced to the offsets that are ours, transformed,
 * and encoded again with the same codec, timestamps and headers.
 *
 * Guarantee: every offset of the delivery's ranges is accounted for exactly once: in the `accept` or `gaps` of one
 * unit, or as a failure. Nothing here talks to a broker.
 */
import { ProtocolError } from "../wire/bytes.ts"
import { encodeBatch, decodeRecords, type Rec } from "../wire/batch/records.ts"
import { passThroughVerdict } from "../wire/batch/passThrough.ts"
import type { BatchView } from "../wire/batch/recordBatch.ts"
import type { OffsetRange } from "../wire/ranges.ts"
import { type DeliveredBatch, type Delivery, lastOffsetOf } from "./delivery.ts"
import type { TransformChain } from "./transforms/chain.ts"
import type { MirrorRecord, TransformOutcome } from "./transforms/transform.ts"

/** Where records come from. */
export interface OutputSource {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
}

/** One record batch for one target partition. */
export interface Output {
  /** Set where its records are the source's own, to be found at their places: not of dead letters. */
  readonly source?: OutputSource
  readonly topic: string
  readonly partition: number
  readonly bytes: Buffer
  readonly recordCount: number
  /** The source offsets of its records, in order; a number: they follow each other from there. */
  readonly offsets: number | ReadonlyArray<number>
}

/** The source offset of the n-th record of an output. */
export const sourceOffset = (output: Output, n: number): number =>
  typeof output.offsets === "number" ? output.offsets + n : output.offsets[n] ?? -1

/** Source offsets that stand or fall together: all their outputs are written, or none of them is settled. */
export interface CopyUnit {
  /** Offsets to accept once every output is confirmed. Ascending and disjoint. */
  readonly accept: ReadonlyArray<OffsetRange>
  /** Offsets that hold no record. */
  readonly gaps: ReadonlyArray<OffsetRange>
  readonly outputs: ReadonlyArray<Output>
  /** Records that a transform dropped. */
  readonly filtered: number
  /** Records and bytes of all outputs, as stored. */
  readonly records: number
  readonly bytes: number
  /** Milliseconds since the epoch; 0 without outputs. */
  readonly oldestTimestamp: bigint
  readonly newestTimestamp: bigint
}

/** A record that a transform could not take. */
export interface CopyFailure {
  readonly original: MirrorRecord
  readonly deliveryCount: number
  readonly transform: string
  readonly retriable: boolean
  readonly error: Error
}

export interface Copied {
  readonly units: ReadonlyArray<CopyUnit>
  readonly failures: ReadonlyArray<CopyFailure>
  /**
   * Where order must be kept: the offset of the first record that has to be tried again; nothing from there on was
   * copied. null: all of the delivery is in `units` and `failures`.
   */
  readonly stoppedAt: number | null
}

export interface CopyRules {
  /** The target topic of the delivery's topic, before transforms. */
  readonly targetTopic: string
  /** null: no transform, batches pass through. */
  readonly chain: TransformChain | null
  /** Order per partition must be kept: a record that is to be tried again stops the copy. */
  readonly ordered: boolean
}

/** Adds one offset to ascending ranges. */
const push = (ranges: Array<{ first: number; last: number }>, offset: number): void => {
  const last = ranges[ranges.length - 1]
  if (last !== undefined && last.last + 1 === offset) last.last = offset
  else ranges.push({ first: offset, last: offset })
}

/** Ranges that touch become one: two deliveries' worth of one batch may have different delivery counts. */
const joined = (ranges: ReadonlyArray<OffsetRange>): ReadonlyArray<OffsetRange> => {
  const result: Array<{ first: number; last: number }> = []
  for (const range of ranges) {
    const last = result[result.length - 1]
    if (last !== undefined && range.first <= last.last + 1) last.last = Math.max(last.last, range.last)
    else result.push({ first: range.first, last: range.last })
  }
  return result
}

const sourceOf = ({ partition, topic, topicId }: Delivery): OutputSource => ({ topic, topicId, partition })

const passedUnit = (batch: DeliveredBatch, topic: string, source: OutputSource): CopyUnit => ({
  accept: [{ first: batch.baseOffset, last: lastOffsetOf(batch) }],
  gaps: [],
  outputs: [{
    source,
    topic,
    partition: source.partition,
    bytes: batch.view.bytes,
    recordCount: batch.view.recordCount,
    offsets: batch.baseOffset
  }],
  filtered: 0,
  records: batch.view.recordCount,
  bytes: batch.view.sizeInBytes,
  oldestTimestamp: batch.view.baseTimestamp,
  newestTimestamp: batch.view.maxTimestamp
})

/** The parts of `range` that lie in [first, last]. */
const within = (ranges: ReadonlyArray<OffsetRange>, first: number, last: number): ReadonlyArray<OffsetRange> => {
  const parts: Array<OffsetRange> = []
  for (const range of ranges) {
    if (range.last < first) continue
    if (range.first > last) break
    parts.push({ first: Math.max(range.first, first), last: Math.min(range.last, last) })
  }
  return parts
}

const asMirrorRecord = (record: Rec, topic: string, partition: number): MirrorRecord => ({
  topic,
  partition,
  offset: record.offset,
  timestamp: record.timestamp,
  key: record.key,
  value: record.value,
  headers: record.headers
})

const asRec = (record: MirrorRecord): Rec => ({
  offset: record.offset,
  timestamp: record.timestamp,
  key: record.key,
  value: record.value,
  headers: record.headers
})

/** What the records of one batch have become. */
interface Decoded {
  readonly accept: Array<{ first: number; last: number }>
  readonly kept: Map<string, Array<Rec>>
  filtered: number
  oldest: bigint | null
  newest: bigint | null
  stoppedAt: number | null
}

const deliveryCountAt = (delivery: Delivery, offset: number): number =>
  delivery.ranges.find((range) => offset >= range.first && offset <= range.last)?.deliveryCount ?? 1

const keep = (decoded: Decoded, offset: number, outcome: TransformOutcome): void => {
  push(decoded.accept, offset)
  if (outcome.kind !== "keep") {
    decoded.filtered++
    return
  }
  const rec = asRec(outcome.record)
  const list = decoded.kept.get(outcome.record.topic)
  if (list === undefined) decoded.kept.set(outcome.record.topic, [rec])
  else list.push(rec)
  if (decoded.oldest === null || rec.timestamp < decoded.oldest) decoded.oldest = rec.timestamp
  if (decoded.newest === null || rec.timestamp > decoded.newest) decoded.newest = rec.timestamp
}

/** The slow path of one batch: `ours` are the acquired offsets inside it. */
const decodedUnit = async (
  batch: DeliveredBatch,
  ours: ReadonlyArray<OffsetRange>,
  delivery: Delivery,
  rules: CopyRules,
  failures: Array<CopyFailure>
): Promise<{ readonly unit: CopyUnit; readonly stoppedAt: number | null }> => {
  const decoded: Decoded = { accept: [], kept: new Map(), filtered: 0, oldest: null, newest: null, stoppedAt: null }
  const gaps: Array<{ first: number; last: number }> = []
  let next = 0
  let range = ours[0]
  let expected = range?.first ?? 0
  // A batch that was produced before carries offset 0; records are numbered from the base, whatever it says.
  const shift = batch.baseOffset - batch.view.baseOffset
  for (const found of decodeRecords(batch.view)) {
    const rec = shift === 0 ? found : { ...found, offset: found.offset + shift }
    while (range !== undefined && rec.offset > range.last) {
      if (expected <= range.last) gaps.push({ first: expected, last: range.last })
      range = ours[++next]
      expected = range?.first ?? 0
    }
    if (range === undefined) break
    if (rec.offset < range.first) continue
    if (rec.offset > expected) gaps.push({ first: expected, last: rec.offset - 1 })
    expected = rec.offset + 1
    const original = asMirrorRecord(rec, rules.targetTopic, delivery.partition)
    if (rules.chain === null) {
      keep(decoded, rec.offset, { kind: "keep", record: original })
      continue
    }
    const applied = rules.chain.apply(original)
    const outcome = applied instanceof Promise ? await applied : applied
    if (outcome.kind === "failed") {
      failures.push({
        original,
        deliveryCount: deliveryCountAt(delivery, rec.offset),
        transform: outcome.transform,
        retriable: outcome.retriable,
        error: outcome.error
      })
      if (rules.ordered && outcome.retriable) {
        decoded.stoppedAt = rec.offset
        range = undefined
        break
      }
    } else keep(decoded, rec.offset, outcome)
  }
  for (; range !== undefined; range = ours[++next], expected = range?.first ?? 0) {
    if (expected <= range.last) gaps.push({ first: expected, last: range.last })
  }
  const outputs: Array<Output> = []
  for (const [topic, records] of decoded.kept) {
    outputs.push({
      source: sourceOf(delivery),
      topic,
      partition: delivery.partition,
      bytes: encodeBatch(records, { codec: batch.view.codec }),
      recordCount: records.length,
      offsets: records.map((rec) => rec.offset)
    })
  }
  const unit: CopyUnit = {
    accept: decoded.accept,
    gaps,
    outputs,
    filtered: decoded.filtered,
    records: outputs.reduce((sum, output) => sum + output.recordCount, 0),
    bytes: outputs.reduce((sum, output) => sum + output.bytes.length, 0),
    oldestTimestamp: decoded.oldest ?? 0n,
    newestTimestamp: decoded.newest ?? 0n
  }
  return { unit, stoppedAt: decoded.stoppedAt }
}

/**
 * Copies one delivery. Rejects with ProtocolError when a batch that must be decoded is corrupt: its bytes are not
 * what Kafka's format says, so nothing of it can be vouched for.
 */
export const copyDelivery = async (delivery: Delivery, rules: CopyRules): Promise<Copied> => {
  const units: Array<CopyUnit> = []
  const failures: Array<CopyFailure> = []
  const ranges = joined(delivery.ranges)
  const gap = (first: number, last: number): void => {
    const gaps = within(ranges, first, last)
    if (gaps.length > 0) {
      units.push({
        accept: [],
        gaps,
        outputs: [],
        filtered: 0,
        records: 0,
        bytes: 0,
        oldestTimestamp: 0n,
        newestTimestamp: 0n
      })
    }
  }
  const source = sourceOf(delivery)
  const end = ranges[ranges.length - 1]?.last ?? -1
  let position = ranges[0]?.first ?? 0
  for (const batch of delivery.batches) {
    const last = lastOffsetOf(batch)
    if (last < position) continue
    if (batch.baseOffset > end) break
    if (batch.baseOffset > position) gap(position, batch.baseOffset - 1)
    const ours = within(ranges, batch.baseOffset, last)
    position = last + 1
    if (ours.length === 0) continue
    const whole = ours.length === 1 && ours[0]?.first === batch.baseOffset && ours[0].last === last
    if (whole && rules.chain === null && passThroughVerdict(batch.view).ok) {
      units.push(passedUnit(batch, rules.targetTopic, source))
      continue
    }
    const { stoppedAt, unit } = await decodedUnit(batch, ours, delivery, rules, failures)
    units.push(unit)
    if (stoppedAt !== null) return { units, failures, stoppedAt }
  }
  if (position <= end) gap(position, end)
  return { units, failures, stoppedAt: null }
}

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
