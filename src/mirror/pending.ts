/**
 * Work that could not be finished: batches the target refuses, records a transform wants to see again, batches
 * that cannot be read. It is held (share mode: under renewed acquisition locks; consumer mode: the partition is
 * paused) and tried again until it passes; only its own partition waits.
 *
 * Invariants
 * 1. A source offset is settled only after every output of its unit is written or dead-lettered.
 * 2. Where order is kept, items of a partition are tried in their order and a later one never before an earlier.
 */
import { type BatchView, splitBatches } from "../wire/batch/recordBatch.ts"
import { decodeRecords } from "../wire/batch/records.ts"
import { intersect, type OffsetRange, type RangeSet } from "../wire/ranges.ts"
import { type CopyUnit, type Output, sourceOffset } from "./copyUnit.ts"
import { type Delivery, lastOffsetOf } from "./delivery.ts"
import { splitOutput } from "./splitOutput.ts"
import type { MirrorRecord } from "./transforms/transform.ts"

/** A unit with outputs that are not written yet. Under exactly-once it is cut down to those (refusals.ts, narrow). */
export interface PendingUnit {
  readonly kind: "write"
  readonly delivery: Delivery
  unit: CopyUnit
  /** In order. */
  remaining: ReadonlyArray<Output>
  /** Offsets that went to the dead-letter topic instead. */
  readonly rejected: Array<OffsetRange>
  reason: string
}

/** A part of a delivery that must be copied again. */
export interface PendingCopy {
  readonly kind: "copy"
  readonly delivery: Delivery
  reason: string
}

export type Pending = PendingUnit | PendingCopy

/** The delivery without the offsets below `from`. */
export const deliveryFrom = (delivery: Delivery, from: number): Delivery => ({
  ...delivery,
  ranges: delivery.ranges.flatMap((range) =>
    range.last < from ? [] : [{ ...range, first: Math.max(range.first, from) }]
  ),
  batches: delivery.batches.filter((batch) => lastOffsetOf(batch) >= from)
})

/** The delivery reduced to the offsets in `ranges`. */
export const deliveryWithin = (delivery: Delivery, ranges: RangeSet): Delivery => ({
  ...delivery,
  ranges: delivery.ranges.flatMap((range) =>
    intersect([range], ranges).map((part) => ({ ...part, deliveryCount: range.deliveryCount }))
  )
})

/** The delivery reduced to one offset. */
export const deliveryAt = (delivery: Delivery, offset: number): Delivery => ({
  ...delivery,
  ranges: delivery.ranges.flatMap((range) =>
    offset < range.first || offset > range.last ? [] : [{ ...range, first: offset, last: offset }]
  ),
  batches: delivery.batches.filter((batch) => batch.baseOffset <= offset && lastOffsetOf(batch) >= offset)
})

const viewOf = (output: Output): BatchView => splitBatches(output.bytes)[0] as BatchView

/** Halves what was refused; null when it is a single record, which is then the one that is refused. */
export const halve = (output: Output): readonly [Output, Output] | null =>
  output.recordCount < 2 ? null : splitOutput(output, viewOf(output))

/** The single record of an output, as it would have been written. */
export const singleRecord = (output: Output): MirrorRecord => {
  const record = decodeRecords(viewOf(output))[0]
  if (record === undefined) throw new Error("an output without a record")
  return {
    topic: output.topic,
    partition: output.partition,
    offset: sourceOffset(output, 0),
    timestamp: record.timestamp,
    key: record.key,
    value: record.value,
    headers: record.headers
  }
}

/** What is held, by source partition, in order. */
export class PendingWork {
  readonly #byPartition = new Map<string, Array<Pending>>()

  static key(delivery: Delivery): string {
    return `${delivery.topic}-${delivery.partition}`
  }

  add(item: Pending): void {
    const key = PendingWork.key(item.delivery)
    const list = this.#byPartition.get(key)
    if (list === undefined) this.#byPartition.set(key, [item])
    else list.push(item)
  }

  /** Before all that its partition holds: it came earlier. */
  addFirst(item: Pending): void {
    const key = PendingWork.key(item.delivery)
    this.#byPartition.set(key, [item, ...(this.#byPartition.get(key) ?? [])])
  }

  /** Why the partition stands: the reason of what is first in line. */
  reasonOf(delivery: Delivery): string | null {
    return this.#byPartition.get(PendingWork.key(delivery))?.[0]?.reason ?? null
  }

  has(delivery: Delivery): boolean {
    return this.#byPartition.has(PendingWork.key(delivery))
  }

  get size(): number {
    return this.#byPartition.size
  }

  /** All of it. */
  items(): Iterable<Pending> {
    return [...this.#byPartition.values()].flat()
  }

  partitions(): ReadonlyArray<ReadonlyArray<Pending>> {
    return [...this.#byPartition.values()]
  }

  /** Takes an item out; true when its partition has none left. */
  done(item: Pending): boolean {
    const key = PendingWork.key(item.delivery)
    const list = (this.#byPartition.get(key) ?? []).filter((other) => other !== item)
    if (list.length > 0) this.#byPartition.set(key, list)
    else this.#byPartition.delete(key)
    return list.length === 0
  }

  /** Puts items in the place of one, keeping the order. */
  replace(item: Pending, by: ReadonlyArray<Pending>): void {
    const key = PendingWork.key(item.delivery)
    const list = (this.#byPartition.get(key) ?? []).flatMap((other) => (other === item ? by : [other]))
    if (list.length > 0) this.#byPartition.set(key, list)
    else this.#byPartition.delete(key)
  }
}
