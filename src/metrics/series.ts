/**
 * Counters, gauges and histograms whose values are plain fields, registered in Effect's metric registry, from which
 * PrometheusMetrics prints them.
 *
 * Why not Metric.update: it looks the series up by its label set on each call, and a histogram there takes one
 * observation at a time. Here an update is an addition, and an observation may stand for a whole batch.
 *
 * Gotcha: registerUnsafe and Prometheus formatting are unstable parts of Effect 4; nothing outside this file and
 * text.ts touches them.
 */
import { type Context, Metric } from "effect"

export type Labels = Readonly<Record<string, string>>

export interface Counter {
  /** Adds n >= 0; anything else is ignored, because a counter never goes back. */
  readonly add: (n: number) => void
  readonly value: () => number
  readonly remove: () => void
}
export interface Gauge {
  readonly set: (value: number) => void
  readonly value: () => number
  readonly remove: () => void
}
export interface Histogram {
  /** `weight` observations of one value. */
  readonly observe: (value: number, weight?: number) => void
  readonly remove: () => void
}

/** Makes series in one registry. A second series of the same name and labels takes the first one's place. */
export interface SeriesFactory {
  readonly counter: (name: string, help: string, labels: Labels) => Counter
  readonly gauge: (name: string, help: string, labels: Labels) => Gauge
  readonly histogram: (name: string, help: string, labels: Labels, boundaries: ReadonlyArray<number>) => Histogram
  /** A series whose value is asked for when metrics are read. */
  readonly observedGauge: (
    name: string,
    help: string,
    labels: Labels,
    read: () => number
  ) => { readonly remove: () => void }
  readonly observedCounter: (
    name: string,
    help: string,
    labels: Labels,
    read: () => number
  ) => { readonly remove: () => void }
}

/** Seconds, from 1 ms to about 17 minutes, doubling. */
export const SECONDS: ReadonlyArray<number> = Metric.exponentialBoundaries({ start: 0.001, factor: 2, count: 21 })

const nothing = (): void => {}

const counterSeries = (
  context: Context.Context<never>,
  name: string,
  help: string,
  labels: Labels,
  read: () => number
) =>
  Metric.registerUnsafe(Metric.counter(name, { description: help, attributes: labels, incremental: true }), context, {
    get: () => ({ count: read(), incremental: true }),
    update: nothing,
    modify: nothing
  })

const gaugeSeries = (context: Context.Context<never>, name: string, help: string, labels: Labels, read: () => number) =>
  Metric.registerUnsafe(Metric.gauge(name, { description: help, attributes: labels }), context, {
    get: () => ({ value: read() }),
    update: nothing,
    modify: nothing
  })

/** Index of the first boundary that is not below the value; boundaries.length when all are. */
const bucketOf = (boundaries: ReadonlyArray<number>, value: number): number => {
  let low = 0
  let high = boundaries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (value <= (boundaries[middle] as number)) high = middle
    else low = middle + 1
  }
  return low
}

const makeHistogram = (
  context: Context.Context<never>,
  name: string,
  help: string,
  labels: Labels,
  boundaries: ReadonlyArray<number>
): Histogram => {
  const counts = new Float64Array(boundaries.length + 1)
  const state = { count: 0, sum: 0, min: 0, max: 0 }
  const series = Metric.registerUnsafe(
    Metric.histogram(name, { description: help, attributes: labels, boundaries }),
    context,
    {
      get: () => {
        let cumulated = 0
        return {
          ...state,
          buckets: boundaries.map((boundary, i): [number, number] => [boundary, cumulated += counts[i] as number])
        }
      },
      update: nothing,
      modify: nothing
    }
  )
  const observe = (value: number, weight = 1): void => {
    if (!(weight > 0) || !Number.isFinite(value)) return
    const bucket = bucketOf(boundaries, value)
    counts[bucket] = (counts[bucket] as number) + weight
    state.min = state.count === 0 ? value : Math.min(state.min, value)
    state.max = state.count === 0 ? value : Math.max(state.max, value)
    state.count += weight
    state.sum += value * weight
  }
  return { observe, remove: () => series.remove() }
}

/** Series in the registry that `context` provides (Metric.MetricRegistry), the process's by default. */
export const makeSeries = (context: Context.Context<never>): SeriesFactory => ({
  counter: (name, help, labels) => {
    let count = 0
    const series = counterSeries(context, name, help, labels, () => count)
    const add = (n: number): void => {
      if (n > 0) count += n
    }
    return { add, value: () => count, remove: () => series.remove() }
  },
  gauge: (name, help, labels) => {
    let current = 0
    const series = gaugeSeries(context, name, help, labels, () => current)
    const set = (value: number): void => {
      current = value
    }
    return { set, value: () => current, remove: () => series.remove() }
  },
  histogram: (name, help, labels, boundaries) => makeHistogram(context, name, help, labels, boundaries),
  observedGauge: (name, help, labels, read) => gaugeSeries(context, name, help, labels, read),
  observedCounter: (name, help, labels, read) => counterSeries(context, name, help, labels, read)
})
