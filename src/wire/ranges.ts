/**
 * Sets of offsets as inclusive ranges: what is held of a share partition, what is done in the ledger, what is in
 * doubt. A set is an array of ranges, ascending, disjoint and with a hole of at least one offset between two
 * neighbours, so that equal sets are equal arrays. Sets are never changed in place.
 *
 * Cost: linear in the number of ranges (a handful in practice), logarithmic for a lookup. A set that grows to many
 * ranges is in growingRanges.ts.
 */
export interface OffsetRange {
  /** Inclusive. */
  readonly first: number
  /** Inclusive, at least `first`. */
  readonly last: number
}

/** Ascending, disjoint, not adjacent. */
export type RangeSet = ReadonlyArray<OffsetRange>

export const EMPTY: RangeSet = []

/** Any ranges, in any order, overlapping or not, as a set. Ranges that end before they begin hold nothing. */
export const rangeSet = (ranges: Iterable<OffsetRange>): RangeSet => {
  const sorted = [...ranges].filter((r) => r.first <= r.last).sort((a, b) => a.first - b.first)
  const out: Array<OffsetRange> = []
  for (const range of sorted) appendTo(out, range)
  return out
}

/** Appends a range that starts at or after the start of the last one. */
const appendTo = (out: Array<OffsetRange>, range: OffsetRange): void => {
  const end = out[out.length - 1]
  if (end === undefined || range.first > end.last + 1) out.push({ first: range.first, last: range.last })
  else if (range.last > end.last) out[out.length - 1] = { first: end.first, last: range.last }
}

/** The index of the first range, from `start` on, that ends at or after `offset`; the length when there is none. */
const indexFrom = (set: RangeSet, offset: number, start = 0): number => {
  let low = start
  let high = set.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((set[middle] as OffsetRange).last < offset) low = middle + 1
    else high = middle
  }
  return low
}

export const contains = (set: RangeSet, offset: number): boolean => {
  const range = set[indexFrom(set, offset)]
  return range !== undefined && range.first <= offset
}

/** Whether every offset of the range is in the set. */
export const covers = (set: RangeSet, range: OffsetRange): boolean => {
  const found = set[indexFrom(set, range.first)]
  return found !== undefined && found.first <= range.first && found.last >= range.last
}

/** Whether any offset of the range is in the set. */
export const overlaps = (set: RangeSet, range: OffsetRange): boolean => {
  const found = set[indexFrom(set, range.first)]
  return found !== undefined && found.first <= range.last
}

export const union = (a: RangeSet, b: RangeSet): RangeSet => {
  if (b.length === 0) return a
  if (a.length === 0) return b
  const out: Array<OffsetRange> = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    const left = a[i]
    const right = b[j]
    if (right === undefined || (left !== undefined && left.first <= right.first)) {
      appendTo(out, left as OffsetRange)
      i++
    } else {
      appendTo(out, right)
      j++
    }
  }
  return out
}

/** The set with one range more. */
export const add = (set: RangeSet, range: OffsetRange): RangeSet => {
  if (range.first > range.last) return set
  const end = set[set.length - 1]
  if (end === undefined || range.first > end.last + 1) return set.concat({ first: range.first, last: range.last })
  // Those that it touches become one.
  const from = indexFrom(set, range.first - 1)
  const to = range.last >= end.last ? set.length : indexFrom(set, range.last + 1, from)
  const reached = set[to]
  const joins = reached !== undefined && reached.first <= range.last + 1
  const before = set[from] as OffsetRange
  const behind = joins ? reached : set[to - 1]
  if (from === to && !joins) return set.slice(0, from).concat({ first: range.first, last: range.last }, set.slice(to))
  const joined = {
    first: Math.min(range.first, before.first),
    last: Math.max(range.last, (behind as OffsetRange).last)
  }
  return set.slice(0, from).concat(joined, set.slice(joins ? to + 1 : to))
}

/** What is in `a` and not in `b`. */
export const subtract = (a: RangeSet, b: RangeSet): RangeSet => {
  if (a.length === 0 || b.length === 0) return a
  const out: Array<OffsetRange> = []
  let j = indexFrom(b, (a[0] as OffsetRange).first)
  for (const range of a) {
    let first = range.first
    while (j < b.length && (b[j] as OffsetRange).last < first) j++
    for (let k = j; k < b.length; k++) {
      const hole = b[k] as OffsetRange
      if (hole.first > range.last) break
      if (hole.first > first) out.push({ first, last: hole.first - 1 })
      first = hole.last + 1
      if (first > range.last) break
    }
    if (first <= range.last) out.push({ first, last: range.last })
  }
  return out
}

/** What is in both. */
export const intersect = (a: RangeSet, b: RangeSet): RangeSet => {
  const out: Array<OffsetRange> = []
  if (a.length === 0 || b.length === 0) return out
  let i = indexFrom(a, (b[0] as OffsetRange).first)
  let j = indexFrom(b, (a[0] as OffsetRange).first)
  while (i < a.length && j < b.length) {
    const left = a[i] as OffsetRange
    const right = b[j] as OffsetRange
    const first = Math.max(left.first, right.first)
    const last = Math.min(left.last, right.last)
    if (first <= last) out.push({ first, last })
    if (left.last < right.last) i++
    else j++
  }
  return out
}

/** How many offsets the set holds. */
export const size = (set: RangeSet): number => {
  let count = 0
  for (const range of set) count += range.last - range.first + 1
  return count
}

/** "5-9, 12", for people. */
export const format = (set: RangeSet): string =>
  set.map((r) => (r.first === r.last ? String(r.first) : `${r.first}-${r.last}`)).join(", ")
