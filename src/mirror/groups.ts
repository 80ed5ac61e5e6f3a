/**
 * Which batches of a delivery become one unit: a large one by itself, small ones that follow each other together. A broker
 * takes one batch of a partition in a request, so what its producers have sent record by record would go on at the pace of
 * requests. Pure.
 */
import { at } from "../wire/batch/recordBatch.ts"
import { passThroughVerdict } from "../wire/batch/passThrough.ts"
import { type OffsetRange, rangeSet } from "../wire/ranges.ts"
import { type DeliveredBatch, type Delivery, lastOffsetOf } from "./delivery.ts"

/** A batch, and which of its offsets are ours: ascending and disjoint, one range at least. */
export interface Part {
  readonly batch: DeliveredBatch
  readonly ours: ReadonlyArray<OffsetRange>
}

export interface Group {
  /** "pass": each batch may go as bytes; "decode": each has to be decoded; "gap": there are no batches. */
  readonly kind: "pass" | "decode" | "gap"
  /** In offset order, one codec. */
  readonly parts: Array<Part>
  /** Offsets before, between or behind its batches that hold no record. */
  readonly gaps: Array<OffsetRange>
  /** About what it is as one batch, where its records are as well compressed. */
  bytes: number
}

/** A batch of this size, as stored, is worth a place in a request of its own. */
const LARGE_BYTES = 8 * 1024
/** How large batches get that are made of small ones, as stored before. */
export const JOIN_BYTES = 64 * 1024
/** What small batches may unfold to when they are put together, bytes; those that unfold to more go one by one. */
export const UNFOLDED_BYTES = 1024 * 1024

/** The parts of ranges that lie in [first, last], from a place on that only moves forward. */
class Cursor {
  readonly #ranges: ReadonlyArray<OffsetRange>
  #next = 0

  constructor(ranges: ReadonlyArray<OffsetRange>) {
    this.#ranges = ranges
  }

  within(first: number, last: number): ReadonlyArray<OffsetRange> {
    const parts: Array<OffsetRange> = []
    for (let n = this.#next; n < this.#ranges.length; n++) {
      const range = this.#ranges[n] as OffsetRange
      if (range.last < first) {
        this.#next = n + 1
        continue
      }
      if (range.first > last) break
      parts.push({ first: Math.max(range.first, first), last: Math.min(range.last, last) })
    }
    return parts
  }
}

/** Puts batches and gaps into groups, in their order. */
class Groups {
  readonly all: Array<Group> = []
  readonly #joinBytes: number
  #open: Group | null = null

  constructor(joinBytes: number) {
    this.#joinBytes = joinBytes
  }

  gap(gaps: ReadonlyArray<OffsetRange>): void {
    if (gaps.length === 0) return
    if (this.#open === null) this.all.push({ kind: "gap", parts: [], gaps: [...gaps], bytes: 0 })
    else this.#open.gaps.push(...gaps)
  }

  add(kind: "pass" | "decode", part: Part): void {
    const { codec, sizeInBytes } = part.batch.view
    const small = sizeInBytes < Math.min(LARGE_BYTES, this.#joinBytes)
    const open = this.#open
    const more = sizeInBytes - at.records
    if (
      small && open !== null && open.kind === kind && open.bytes + more <= this.#joinBytes &&
      open.parts[0]?.batch.view.codec === codec
    ) {
      open.parts.push(part)
      open.bytes += more
      return
    }
    const group: Group = { kind, parts: [part], gaps: [], bytes: sizeInBytes }
    this.all.push(group)
    this.#open = small ? group : null
  }
}

/**
 * All offsets of the delivery's ranges, in groups. `decodes`: every batch has to be decoded. `joinBytes`: how large what is
 * joined may be, bytes; 0: nothing is joined.
 */
export const groupsOf = (delivery: Delivery, decodes: boolean, joinBytes: number): ReadonlyArray<Group> => {
  const groups = new Groups(joinBytes)
  // Ranges that touch become one: two deliveries' worth of one batch may have different delivery counts.
  const ranges = rangeSet(delivery.ranges)
  const cursor = new Cursor(ranges)
  const end = ranges[ranges.length - 1]?.last ?? -1
  let position = ranges[0]?.first ?? 0
  for (const batch of delivery.batches) {
    const last = lastOffsetOf(batch)
    if (last < position) continue
    if (batch.baseOffset > end) break
    if (batch.baseOffset > position) groups.gap(cursor.within(position, batch.baseOffset - 1))
    const ours = cursor.within(batch.baseOffset, last)
    position = last + 1
    if (ours.length === 0) continue
    const whole = ours.length === 1 && ours[0]?.first === batch.baseOffset && ours[0].last === last
    const passes = whole && !decodes && passThroughVerdict(batch.view).ok
    groups.add(passes ? "pass" : "decode", { batch, ours })
  }
  if (position <= end) groups.gap(cursor.within(position, end))
  return groups.all
}
