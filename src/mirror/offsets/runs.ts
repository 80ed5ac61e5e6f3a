/**
 * Where the records of one source partition are in one target partition: runs of records that follow each other on
 * both sides, by source offset. Pure.
 *
 * Two kinds of runs: an exact one says of each of its offsets where it is; a loose one says only that the offsets it
 * spans are somewhere between two target offsets, which is what is left of exact runs that were thinned out.
 *
 * Invariants
 * 1. Runs are ascending by source offset and disjoint.
 * 2. Adding is a union: order and repetition do not matter. What is exact wins over what is loose; of two exact places
 *    of one record (an at-least-once mirror writes some twice) the later one wins, as whoever begins there reads it
 *    once.
 * 3. `from(c)` is never above the target offset of a record from c on.
 *
 * Cost: adding at the end is constant, elsewhere it moves what lies behind; a question is logarithmic, and linear once
 * after a change. 32 bytes a run.
 */
export interface Run {
  readonly source: number
  /** Offsets that it spans on the source. */
  readonly count: number
  /** The target offset of `source`; of a loose run the lowest of any. */
  readonly target: number
  /** The highest target offset. */
  readonly high: number
  readonly loose: boolean
}

export const exactRun = (source: number, count: number, target: number): Run => ({
  source,
  count,
  target,
  high: target + count - 1,
  loose: false
})

export const looseRun = (source: number, count: number, target: number, high: number): Run => ({
  source,
  count,
  target,
  high: Math.max(target, high),
  loose: true
})

/** How far an open run reaches: as far as anything does. */
const FAR = 2 ** 40

/** A run that is known to lie at `least` or behind it, and no more. */
export const openRun = (source: number, count: number, least: number): Run =>
  looseRun(source, count, least, least + FAR)

const isOpen = (run: Run): boolean => run.high - run.target >= FAR

export interface Place {
  readonly offset: number
  /** false: the true place may be higher. */
  readonly exact: boolean
}

/** The part of a run that spans [first, last]. */
const part = (run: Run, first: number, last: number): Run =>
  run.loose
    ? { ...run, source: first, count: last - first + 1 }
    : exactRun(first, last - first + 1, run.target + first - run.source)

const endOf = (run: Run): number => run.source + run.count

const joins = (a: Run, b: Run): boolean =>
  !a.loose && !b.loose && endOf(a) === b.source && a.target + a.count === b.target

/** Which of two runs keeps an offset that both have. */
const wins = (a: Run, b: Run, at: number): boolean => {
  if (a.loose !== b.loose) return b.loose
  if (a.loose) return a.target <= b.target
  return a.target + at - a.source >= b.target + at - b.source
}

export class Runs {
  #runs: Array<Run> = []
  /** The lowest target offset from each run on; null: to be computed. */
  #least: ReadonlyArray<Place> | null = null
  #inverse: Runs | null = null

  get size(): number {
    return this.#runs.length
  }
  get all(): ReadonlyArray<Run> {
    return this.#runs
  }
  /** Behind the highest target offset that is known to be taken; 0 when none is. */
  get targetEnd(): number {
    return this.#runs.reduce((end, run) => Math.max(end, (isOpen(run) ? run.target : run.high) + 1), 0)
  }

  /** Index of the first run that ends behind `offset`. */
  #index(offset: number): number {
    let low = 0
    let high = this.#runs.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (endOf(this.#runs[middle] as Run) <= offset) low = middle + 1
      else high = middle
    }
    return low
  }

  #changed(): void {
    this.#least = null
    this.#inverse = null
  }

  add(run: Run): void {
    if (run.count <= 0) return
    this.#changed()
    const last = this.#runs[this.#runs.length - 1]
    if (last === undefined || run.source >= endOf(last)) return this.#append(this.#runs, run)
    const from = this.#index(run.source)
    let to = from
    while (to < this.#runs.length && (this.#runs[to] as Run).source < endOf(run)) to++
    // One neighbour on each side, so that what joins them is joined.
    const start = Math.max(0, from - 1)
    const end = Math.min(this.#runs.length, to + 1)
    const merged: Array<Run> = []
    for (const piece of this.#mixed(this.#runs.slice(from, to), run)) this.#append(merged, piece)
    const joined: Array<Run> = []
    for (const one of [...this.#runs.slice(start, from), ...merged, ...this.#runs.slice(to, end)]) {
      this.#append(joined, one)
    }
    this.#runs.splice(start, end - start, ...joined)
  }

  #append(runs: Array<Run>, run: Run): void {
    const last = runs[runs.length - 1]
    if (last !== undefined && joins(last, run)) {
      runs[runs.length - 1] = exactRun(last.source, last.count + run.count, last.target)
    } else runs.push(run)
  }

  /** `run` laid over runs that it overlaps, in order. */
  *#mixed(over: ReadonlyArray<Run>, run: Run): Generator<Run> {
    let at = run.source
    for (const old of over) {
      if (old.source < at) yield part(old, old.source, at - 1)
      const first = Math.max(at, old.source)
      if (at < old.source) yield part(run, at, old.source - 1)
      const last = Math.min(endOf(old), endOf(run)) - 1
      yield part(wins(run, old, first) ? run : old, first, last)
      at = last + 1
      if (endOf(old) > at) yield part(old, at, endOf(old) - 1)
    }
    if (at < endOf(run)) yield part(run, at, endOf(run) - 1)
  }

  get #suffixes(): ReadonlyArray<Place> {
    if (this.#least !== null) return this.#least
    const least = new Array<Place>(this.#runs.length)
    let lowest: Place | null = null
    for (let n = this.#runs.length - 1; n >= 0; n--) {
      const { loose, target } = this.#runs[n] as Run
      if (lowest === null || target < lowest.offset) lowest = { offset: target, exact: !loose }
      least[n] = lowest
    }
    this.#least = least
    return least
  }

  /** The lowest target offset of any record from `source` on that is known; null: none is. */
  from(source: number): Place | null {
    const n = this.#index(source)
    const run = this.#runs[n]
    if (run === undefined) return null
    const here: Place = {
      offset: run.loose ? run.target : run.target + Math.max(0, source - run.source),
      exact: !run.loose
    }
    const behind = this.#suffixes[n + 1]
    return behind === undefined || here.offset <= behind.offset ? here : behind
  }

  /** The other way round: source offsets by target offset. Loose runs may be anywhere in their span. */
  get inverse(): Runs {
    if (this.#inverse !== null) return this.#inverse
    const inverse = new Runs()
    for (const run of this.#runs.toSorted((a, b) => a.target - b.target)) {
      inverse.add(
        run.loose
          ? looseRun(run.target, run.high - run.target + 1, run.source, endOf(run) - 1)
          : exactRun(run.target, run.count, run.source)
      )
    }
    this.#inverse = inverse
    return inverse
  }

  /** Where one record is; null: not known, or only about. */
  exactly(source: number): number | null {
    const run = this.#runs[this.#index(source)]
    return run === undefined || run.loose || run.source > source ? null : run.target + source - run.source
  }

  /** Forgets what lies below on the source. */
  forgetBelow(source: number): void {
    const n = this.#index(source)
    const first = this.#runs[n]
    if (n === 0 && (first === undefined || first.source >= source)) return
    this.#changed()
    const kept = this.#runs.slice(n)
    if (first !== undefined && first.source < source) kept[0] = part(first, source, endOf(first) - 1)
    this.#runs = kept
  }

  /** Makes loose runs of the oldest ones, `each` of them one, until no more than `limit` are left. */
  thin(limit: number, each = 64): void {
    if (this.#runs.length <= limit) return
    this.#changed()
    const thinned: Array<Run> = []
    let at = 0
    while (thinned.length + this.#runs.length - at > limit && at < this.#runs.length) {
      const group = this.#runs.slice(at, at + each)
      at += group.length
      const first = group[0] as Run
      const last = group[group.length - 1] as Run
      const low = Math.min(...group.map((run) => run.target))
      thinned.push(looseRun(first.source, endOf(last) - first.source, low, Math.max(...group.map((run) => run.high))))
    }
    this.#runs = [...thinned, ...this.#runs.slice(at)]
  }
}
