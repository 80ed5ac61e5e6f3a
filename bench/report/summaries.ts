/** From runs to one line a peer: medians and spreads of those that are believed. Pure. */
import type { Compared } from "../results.ts"
import type { Run } from "../run.ts"
import { type Spread, spread } from "../stats.ts"

export interface Summary {
  readonly peer: string
  readonly shape: string
  readonly cpuRunning: Spread | null
  readonly cpuWhole: Spread | null
  readonly mbPerSecond: Spread | null
  readonly recordsPerSecond: Spread | null
  readonly peakMb: Spread | null
  readonly brokerCores: Spread | null
  readonly otherCores: Spread | null
  /** Runs that are not believed: in no figure. */
  readonly doubted: number
}

const figures = (runs: ReadonlyArray<Run>, of: (run: Run) => number | undefined): Spread | null =>
  spread(runs.flatMap((run) => of(run) ?? []))

export const summarize = (compared: Compared | undefined, shape: string, peer: string): Summary => {
  const all = (compared?.runs ?? []).filter((run) => run.shape === shape && run.peer === peer)
  const runs = all.filter(({ doubts }) => doubts.length === 0)
  return {
    peer,
    shape,
    cpuRunning: figures(runs, ({ running }) => running?.cpuSecondsPerGb),
    cpuWhole: figures(runs, ({ whole }) => whole.cpuSecondsPerGb),
    mbPerSecond: figures(runs, ({ running }) => running?.mbPerSecond),
    recordsPerSecond: figures(runs, ({ running }) => running?.recordsPerSecond),
    peakMb: figures(runs, ({ peakMb }) => peakMb),
    brokerCores: figures(runs, ({ running }) => running?.brokerCores),
    otherCores: figures(runs, ({ running }) => running?.otherCores),
    doubted: all.length - runs.length
  }
}

/** How many times a is of b, by their medians; null when either is not there. */
export const times = (a: Spread | null, b: Spread | null): number | null =>
  a === null || b === null || b.median === 0 ? null : a.median / b.median
