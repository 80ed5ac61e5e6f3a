/**
 * A set of offsets that grows for as long as a ledger lives, and may have a million ranges that do not touch: adding to
 * it and asking what of a few ranges it holds take time by the logarithm, and it is changed in place.
 *
 * Kept as in ranges.ts (ascending, disjoint, a hole of at least one offset between two neighbours), in chunks of at most
 * 512 ranges, as plain numbers: 16 bytes a range, where an object takes 40 to 72.
 */
import type { OffsetRange, RangeSet } from "./ranges.ts"

/** Ranges of a chunk. An addition moves half of a chunk at most, or the list of chunks. */
const MOST = 512
const FEWEST = 4

class Chunk {
  /** First and last of each range, in turns. */
  bounds: Float64Array
  count = 0

  constructor(capacity: number) {
    this.bounds = new Float64Array(2 * capacity)
  }

  first(at: number): number {
    return this.bounds[2 * at] as number
  }
  last(at: number): number {
    return this.bounds[2 * at + 1] as number
  }
  get end(): number {
    return this.last(this.count - 1)
  }
  set(at: number, first: number, last: number): void {
    this.bounds[2 * at] = first
    this.bounds[2 * at + 1] = last
  }

  /** The first range that ends at or after `offset`; the count when there is none. */
  find(offset: number): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.last(middle) < offset) low = middle + 1
      else high = middle
    }
    return low
  }

  /** There must be fewer than MOST. */
  insert(at: number, first: number, last: number): void {
    if (2 * this.count === this.bounds.length) {
      const grown = new Float64Array(Math.min(2 * MOST, 2 * this.bounds.length))
      grown.set(this.bounds)
      this.bounds = grown
    }
    this.bounds.copyWithin(2 * at + 2, 2 * at, 2 * this.count)
    this.set(at, first, last)
    this.count++
  }

  /** Leaves out [from, to). */
  remove(from: number, to: number): void {
    if (from === to) return
    this.bounds.copyWithin(2 * from, 2 * to, 2 * this.count)
    this.count -= to - from
  }

  /** Takes the upper half out. */
  split(): Chunk {
    const upper = new Chunk(MOST)
    const half = this.count >> 1
    upper.bounds.set(this.bounds.subarray(2 * half, 2 * this.count))
    upper.count = this.count - half
    this.count = half
    return upper
  }
}

export class GrowingRanges {
  /** None is empty. */
  readonly #chunks: Array<Chunk> = []

  /** How many ranges there are. */
  get count(): number {
    return this.#chunks.reduce((sum, chunk) => sum + chunk.count, 0)
  }

  /** The highest offset; -1: there is none. */
  get end(): number {
    return this.#chunks.at(-1)?.end ?? -1
  }

  /** The first chunk that ends at or after `offset`; the number of chunks when there is none. */
  #chunkFrom(offset: number): number {
    let low = 0
    let high = this.#chunks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#chunks[middle] as Chunk).end < offset) low = middle + 1
      else high = middle
    }
    return low
  }

  /** A range that ends before it begins adds nothing. */
  add(first: number, last: number): void {
    if (first > last) return
    // One that ends right before the new one is joined with it, so it is found, too.
    const at = this.#chunkFrom(first - 1)
    const chunk = this.#chunks[at]
    if (chunk === undefined) return this.#append(first, last)
    const place = chunk.find(first - 1)
    if (chunk.first(place) > last + 1) return this.#insert(at, place, first, last)
    const end = this.#absorb(at, place, last)
    chunk.set(place, Math.min(first, chunk.first(place)), end)
  }

  addAll(ranges: Iterable<OffsetRange>): void {
    for (const { first, last } of ranges) this.add(first, last)
  }

  #append(first: number, last: number): void {
    let chunk = this.#chunks.at(-1)
    if (chunk === undefined || chunk.count === MOST) {
      chunk = new Chunk(chunk === undefined ? FEWEST : MOST)
      this.#chunks.push(chunk)
    }
    chunk.insert(chunk.count, first, last)
  }

  #insert(at: number, place: number, first: number, last: number): void {
    const chunk = this.#chunks[at] as Chunk
    if (chunk.count < MOST) return chunk.insert(place, first, last)
    const upper = chunk.split()
    this.#chunks.splice(at + 1, 0, upper)
    if (place <= chunk.count) chunk.insert(place, first, last)
    else upper.insert(place - chunk.count, first, last)
  }

  /** The range at this place grows to `last`: leaves out those behind it that this reaches, and says where it ends. */
  #absorb(at: number, place: number, last: number): number {
    const chunk = this.#chunks[at] as Chunk
    let end = Math.max(last, chunk.last(place))
    let to = place + 1
    for (; to < chunk.count && chunk.first(to) <= end + 1; to++) end = Math.max(end, chunk.last(to))
    const reachesOn = to === chunk.count
    chunk.remove(place + 1, to)
    if (!reachesOn) return end
    let gone = at + 1
    for (let next = this.#chunks[gone]; next !== undefined; next = this.#chunks[++gone]) {
      let reached = 0
      for (; reached < next.count && next.first(reached) <= end + 1; reached++) end = Math.max(end, next.last(reached))
      if (reached < next.count) {
        next.remove(0, reached)
        break
      }
    }
    this.#chunks.splice(at + 1, gone - at - 1)
    return end
  }

  /** What of these ranges, ascending and disjoint, is in the set. */
  within(ranges: RangeSet): RangeSet {
    const out: Array<OffsetRange> = []
    for (const range of ranges) {
      let at = this.#chunkFrom(range.first)
      let place = this.#chunks[at]?.find(range.first) ?? 0
      for (let chunk = this.#chunks[at]; chunk !== undefined; chunk = this.#chunks[++at], place = 0) {
        for (; place < chunk.count && chunk.first(place) <= range.last; place++) {
          out.push({
            first: Math.max(range.first, chunk.first(place)),
            last: Math.min(range.last, chunk.last(place))
          })
        }
        if (place < chunk.count) break
      }
    }
    return out
  }

  /** The whole of it, as it is now. Linear. */
  get all(): RangeSet {
    const out: Array<OffsetRange> = []
    for (const chunk of this.#chunks) {
      for (let at = 0; at < chunk.count; at++) out.push({ first: chunk.first(at), last: chunk.last(at) })
    }
    return out
  }
}
