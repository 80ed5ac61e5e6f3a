/** Batches whose records are looked at: reduced to the offsets that are ours, transformed, and encoded again. */
import { decodeRecords, encodeBatch, type Rec } from "../wire/batch/records.ts"
import type { OffsetRange } from "../wire/ranges.ts"
import type { CopyFailure, CopyRules, CopyUnit, Output } from "./copyUnit.ts"
import type { Delivery } from "./delivery.ts"
import { type Group, type Part, UNFOLDED_BYTES } from "./groups.ts"
import type { MirrorRecord, TransformOutcome } from "./transforms/transform.ts"

/** Adds one offset to ascending ranges. */
const push = (ranges: Array<{ first: number; last: number }>, offset: number): void => {
  const last = ranges[ranges.length - 1]
  if (last !== undefined && last.last + 1 === offset) last.last = offset
  else ranges.push({ first: offset, last: offset })
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

/** What the records of a group have become. */
interface Decoded {
  /** Offsets that hold no record, inside batches. */
  readonly gaps: Array<OffsetRange>
  readonly accept: Array<{ first: number; last: number }>
  readonly kept: Map<string, Array<Rec>>
  filtered: number
  /** Of keys and values, as they are held now. */
  bytes: number
  oldest: bigint | null
  newest: bigint | null
  stoppedAt: number | null
}

const nothing = (): Decoded => ({
  accept: [],
  gaps: [],
  kept: new Map(),
  filtered: 0,
  bytes: 0,
  oldest: null,
  newest: null,
  stoppedAt: null
})

const deliveryCountAt = (delivery: Delivery, offset: number): number =>
  delivery.ranges.find((range) => offset >= range.first && offset <= range.last)?.deliveryCount ?? 1

const keep = (decoded: Decoded, offset: number, outcome: TransformOutcome): void => {
  push(decoded.accept, offset)
  if (outcome.kind !== "keep") {
    decoded.filtered++
    return
  }
  const rec = asRec(outcome.record)
  decoded.bytes += (rec.key?.length ?? 0) + (rec.value?.length ?? 0)
  const list = decoded.kept.get(outcome.record.topic)
  if (list === undefined) decoded.kept.set(outcome.record.topic, [rec])
  else list.push(rec)
  if (decoded.oldest === null || rec.timestamp < decoded.oldest) decoded.oldest = rec.timestamp
  if (decoded.newest === null || rec.timestamp > decoded.newest) decoded.newest = rec.timestamp
}

/** One batch, into `decoded`. Ends early where the copy stops (`stoppedAt`). */
const decodePart = async (
  { batch, ours }: Part,
  delivery: Delivery,
  rules: CopyRules,
  decoded: Decoded,
  failures: Array<CopyFailure>
): Promise<void> => {
  const { gaps } = decoded
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
        return
      }
    } else keep(decoded, rec.offset, outcome)
  }
  for (; range !== undefined; range = ours[++next], expected = range?.first ?? 0) {
    if (expected <= range.last) gaps.push({ first: expected, last: range.last })
  }
}

const unitOf = (
  decoded: Decoded,
  group: Group,
  { partition, topic: sourceTopic, topicId }: Delivery,
  gaps: ReadonlyArray<OffsetRange>
): CopyUnit => {
  const codec = group.parts[0]?.batch.view.codec ?? "none"
  const outputs: Array<Output> = []
  for (const [topic, records] of decoded.kept) {
    outputs.push({
      source: { topic: sourceTopic, topicId, partition },
      topic,
      partition,
      bytes: encodeBatch(records, { codec }),
      recordCount: records.length,
      offsets: records.map((rec) => rec.offset)
    })
  }
  const end = decoded.stoppedAt ?? Infinity
  return {
    accept: decoded.accept,
    gaps: [...decoded.gaps, ...gaps.filter(({ last }) => last < end)].sort((a, b) => a.first - b.first),
    outputs,
    filtered: decoded.filtered,
    records: outputs.reduce((sum, output) => sum + output.recordCount, 0),
    bytes: outputs.reduce((sum, output) => sum + output.bytes.length, 0),
    oldestTimestamp: decoded.oldest ?? 0n,
    newestTimestamp: decoded.newest ?? 0n
  }
}

/**
 * The units of a group of batches: one, or several where they unfold to much. `stoppedAt` as in `Copied`. Rejects with
 * ProtocolError where one is corrupt.
 */
export const decodedUnits = async (
  group: Group,
  delivery: Delivery,
  rules: CopyRules,
  failures: Array<CopyFailure>
): Promise<{ readonly units: ReadonlyArray<CopyUnit>; readonly stoppedAt: number | null }> => {
  const units: Array<CopyUnit> = []
  let decoded = nothing()
  for (const part of group.parts) {
    if (decoded.bytes >= UNFOLDED_BYTES) {
      units.push(unitOf(decoded, group, delivery, []))
      decoded = nothing()
    }
    await decodePart(part, delivery, rules, decoded, failures)
    if (decoded.stoppedAt !== null) break
  }
  // Which of the gaps between batches are done is known only here.
  units.push(unitOf(decoded, group, delivery, group.gaps))
  return { units, stoppedAt: decoded.stoppedAt }
}
