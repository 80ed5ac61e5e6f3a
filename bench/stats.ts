/** Middle, spread and shares of figures. Pure. */

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
  /** How many figures it is made from. */
  readonly count: number
}

/** The middle one; of an even number, the mean of the two in the middle. NaN of none. */
export const median = (figures: ReadonlyArray<number>): number => {
  const sorted = figures.toSorted((a, b) => a - b)
  const half = sorted.length >> 1
  if (sorted.length % 2 === 1) return sorted[half] as number
  return sorted.length === 0 ? Number.NaN : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2
}

/** null of none: a figure that was never measured is not zero. */
export const spread = (figures: ReadonlyArray<number>): Spread | null =>
  figures.length === 0
    ? null
    : { median: median(figures), min: Math.min(...figures), max: Math.max(...figures), count: figures.length }

/** The smallest figure that at least this share of all is not above (nearest rank); share from 0 to 1. NaN of none. */
export const percentile = (sorted: ArrayLike<number>, share: number): number => {
  const rank = Math.max(1, Math.ceil(share * sorted.length))
  return sorted.length === 0 ? Number.NaN : sorted[Math.min(rank, sorted.length) - 1] as number
}

export interface Bin {
  /** Not included below, included above. */
  readonly upTo: number
  readonly count: number
}

/** How many lie in each bin; the last one takes all that is above the bounds. */
export const histogram = (figures: Iterable<number>, bounds: ReadonlyArray<number>): ReadonlyArray<Bin> => {
  const counts = [...bounds, Infinity].map(() => 0)
  for (const figure of figures) {
    const at = bounds.findIndex((bound) => figure <= bound)
    const bin = at < 0 ? bounds.length : at
    counts[bin] = (counts[bin] as number) + 1
  }
  return [...bounds, Infinity].map((upTo, i) => ({ upTo, count: counts[i] as number }))
}

/** The slope of the straight line that fits best (least squares), y per x. 0 of fewer than two points. */
export const slope = (points: ReadonlyArray<readonly [x: number, y: number]>): number => {
  const n = points.length
  if (n < 2) return 0
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / n
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / n
  const across = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  const along = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  return across === 0 ? 0 : along / across
}

/** Rounded to this many digits that count: 0.01234 to 3 is 0.0123, 12345 is 12300. */
export const digits = (figure: number, count = 3): number =>
  Number.isFinite(figure) ? Number(figure.toPrecision(count)) : figure
