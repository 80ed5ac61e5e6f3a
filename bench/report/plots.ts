/** Which charts there are, by file name. A suite that was not run has none. */
import type { Bin, Spread } from "../stats.ts"
import type { Compared, Results } from "../results.ts"
import { summarize } from "./summaries.ts"
import { type Bar, barChart, label, lineChart } from "./svg.ts"

export interface Plot {
  readonly file: string
  /** For those who do not see it. */
  readonly text: string
  readonly svg: string
}

const bar = (figure: Spread | null): Bar | null =>
  figure === null ? null : { value: figure.median, min: figure.min, max: figure.max }

const peersOf = (compared: Compared): ReadonlyArray<string> => [...new Set(compared.runs.map(({ peer }) => peer))]

const costPlot = ({ suites: { cost } }: Results): ReadonlyArray<Plot> => {
  const shape = cost?.shapes[0]?.name
  if (cost === undefined || shape === undefined) return []
  const summaries = peersOf(cost).map((peer) => summarize(cost, shape, peer))
  const title = "CPU seconds for a GB of records, running"
  const text = `${title}: ${
    summaries.map(({ cpuRunning, peer }) => `${peer} ${label(cpuRunning?.median ?? Number.NaN)}`).join("; ")
  }.`
  const svg = barChart({
    title,
    description: text,
    unit: "s/GB",
    series: summaries.map(({ peer }) => peer),
    groups: [{ name: "1 KB, lz4", bars: summaries.map(({ cpuRunning }) => bar(cpuRunning)) }]
  })
  return [{ file: "cost.svg", text, svg }]
}

const cellsPlot = ({ suites: { cells } }: Results): ReadonlyArray<Plot> => {
  if (cells === undefined) return []
  const peers = peersOf(cells)
  const title = "Throughput by cell"
  const text = `${title}, MB/s of record values; the figures are in the table.`
  const svg = barChart({
    title,
    description: text,
    unit: "MB/s",
    series: peers,
    groups: cells.shapes.map(({ name }) => ({
      name,
      bars: peers.map((peer) => bar(summarize(cells, name, peer).mbPerSecond))
    }))
  })
  return [{ file: "throughput.svg", text, svg }]
}

/** The share of records that took at most so long, at each bound of the bins. */
const shares = (bins: ReadonlyArray<Bin>, records: number): ReadonlyArray<readonly [x: number, y: number]> => {
  let sum = 0
  return bins.flatMap(({ count, upTo }) => {
    sum += count
    // JSON has no Infinity: it comes back as null.
    return upTo === null || !Number.isFinite(upTo) ? [] : [[upTo, sum / records] as const]
  })
}

const latencyPlot = ({ suites: { latency } }: Results): ReadonlyArray<Plot> => {
  if (latency === undefined || latency.measured.length === 0) return []
  const title = "Share of records that were readable on the target after so long"
  const text = `${title}: ${
    latency.measured.map(({ median, p99, peer }) =>
      `${peer} half after ${label(median)} ms, 99 % after ${label(p99)} ms`
    )
      .join("; ")
  }.`
  const svg = lineChart({
    title,
    description: text,
    xName: "milliseconds, logarithmic",
    yName: "records",
    lines: latency.measured.map(({ bins, peer, records }) => ({ name: peer, points: shares(bins, records) }))
  })
  return [{ file: "latency.svg", text, svg }]
}

const memoryPlot = ({ suites: { memory, topics } }: Results): ReadonlyArray<Plot> => {
  const all = [memory, topics].filter((one) => one !== undefined)
  const peers = [...new Set(all.flatMap(({ measured }) => measured.map(({ peer }) => peer)))]
  if (peers.length === 0) return []
  const title = "Resident memory"
  const text = `${title} at most and when idle, MB; the figures are in the table.`
  const groups = all.flatMap((one) =>
    (["peakMb", "idleMb"] as const).map((which) => ({
      name: `${one === topics ? "many topics" : "one topic"}, ${which === "peakMb" ? "most" : "idle"}`,
      bars: peers.map((peer) => {
        const found = one.measured.find((figure) => figure.peer === peer)
        return found === undefined ? null : { value: found[which] }
      })
    }))
  )
  return [{ file: "memory.svg", text, svg: barChart({ title, description: text, unit: "MB", series: peers, groups }) }]
}

export const plotsOf = (results: Results): ReadonlyArray<Plot> => [
  ...costPlot(results),
  ...cellsPlot(results),
  ...latencyPlot(results),
  ...memoryPlot(results)
]
