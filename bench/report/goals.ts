/** What was wanted, what was measured, and whether that is enough: no more is claimed than the figures say. Pure. */
import type { Results } from "../results.ts"
import { cellPeers, COST_SHAPE, costPeers, transformPeers } from "../suites/compare.ts"
import { latencyPeers } from "../suites/latency.ts"
import { memoryPeers } from "../suites/memory.ts"
import { startPeers } from "../suites/start.ts"
import { median } from "../stats.ts"
import { summarize, times } from "./summaries.ts"
import { label } from "./svg.ts"

export type Verdict = "met" | "not met" | "not measured"

export interface Goal {
  readonly figure: string
  readonly goal: string
  readonly measured: string
  readonly verdict: Verdict
}

const goal = (
  figure: string,
  wanted: string,
  measured: number | null | undefined,
  unit: string,
  met: (n: number) => boolean
): Goal =>
  measured === null || measured === undefined || !Number.isFinite(measured)
    ? { figure, goal: wanted, measured: "-", verdict: "not measured" }
    : { figure, goal: wanted, measured: `${label(measured)}${unit}`, verdict: met(measured) ? "met" : "not met" }

const MODES = ["consumer", "share"] as const

const costGoals = ({ suites: { cost, transform } }: Results): ReadonlyArray<Goal> => {
  const of = (peer: keyof typeof costPeers) => summarize(cost, COST_SHAPE, costPeers[peer].name)
  const transformed = (peer: keyof typeof transformPeers) => summarize(transform, COST_SHAPE, transformPeers[peer].name)
  const theirs = of("mirrorMaker").cpuRunning
  return [
    goal(
      "CPU of MirrorMaker 2 for a GB, over onceover's: consumer mode",
      "at least 15 times",
      times(theirs, of("consumer").cpuRunning),
      " times",
      (n) => n >= 15
    ),
    goal("the same: share mode", "at least 10 times", times(theirs, of("share").cpuRunning), " times", (n) => n >= 10),
    ...MODES.map((mode) =>
      goal(
        `exactly-once over at-least-once, MB/s: ${mode} mode`,
        "at least 0.9",
        times(of(mode).mbPerSecond, of(`${mode}AtLeastOnce`).mbPerSecond),
        "",
        (n) => n >= 0.9
      )
    ),
    ...MODES.map((mode) =>
      goal(
        `with a transform, MB/s over MirrorMaker 2 with the same: ${mode} mode`,
        "at least 2 times",
        times(transformed(mode).mbPerSecond, transformed("mirrorMaker").mbPerSecond),
        " times",
        (n) => n >= 2
      )
    )
  ]
}

export interface Ratio {
  readonly cell: string
  readonly consumer: number | null
  readonly share: number | null
}

/** MB/s over MirrorMaker 2's, cell by cell. */
export const cellRatios = ({ suites: { cells } }: Results): ReadonlyArray<Ratio> =>
  (cells?.shapes ?? []).map(({ name }) => {
    const of = (peer: keyof typeof cellPeers) => summarize(cells, name, cellPeers[peer].name).mbPerSecond
    return {
      cell: name,
      consumer: times(of("consumer"), of("mirrorMaker")),
      share: times(of("share"), of("mirrorMaker"))
    }
  })

const throughputGoals = (results: Results): ReadonlyArray<Goal> => {
  const ratios = cellRatios(results)
  return MODES.flatMap((mode) => {
    const known = ratios.flatMap((ratio) => ratio[mode] ?? [])
    const unknown = ratios.length - known.length
    const below = ratios.filter((ratio) => (ratio[mode] ?? 1) < 1).map(({ cell }) => cell)
    const missing = unknown === 0 ? "" : `; ${unknown} without a figure`
    return [
      goal(
        `MB/s over MirrorMaker 2 in the least good of ${ratios.length} cells: ${mode} mode`,
        "never below 1",
        known.length === 0 ? null : Math.min(...known),
        ` times${below.length === 0 ? "" : ` (below in ${below.join(", ")})`}${missing}`,
        (n) => n >= 1 && unknown === 0
      ),
      goal(
        `the same in the middle one: ${mode} mode`,
        "at least 5 times",
        known.length === 0 ? null : median(known),
        ` times${missing}`,
        (n) => n >= 5
      )
    ]
  })
}

/** What the goal is for; at another rate it says nothing. */
const LATENCY_RATE = 1_000

const latencyGoals = ({ suites }: Results): ReadonlyArray<Goal> => {
  const latency = suites.latency?.recordsPerSecond === LATENCY_RATE ? suites.latency : undefined
  const of = (name: string) => latency?.measured.find(({ peer }) => peer === name)
  const theirs = of(latencyPeers.mirrorMaker.name)
  return MODES.flatMap((mode) => {
    const ours = of(latencyPeers[mode].name)
    return [
      goal(`latency, median: ${mode} mode`, "under 30 ms", ours?.median, " ms", (n) => n < 30),
      goal(`latency, 99th percentile: ${mode} mode`, "under 150 ms", ours?.p99, " ms", (n) => n < 150),
      goal(
        `its median over that of MirrorMaker 2 at its defaults: ${mode} mode`,
        "below 1",
        ours === undefined || theirs === undefined ? null : ours.median / theirs.median,
        "",
        (n) => n < 1
      )
    ]
  })
}

const MANY_TOPICS = "1000 topics, 10000 partitions"

const memoryGoals = ({ suites: { cost, memory, topics } }: Results): ReadonlyArray<Goal> =>
  MODES.flatMap((mode) => {
    const { name } = memoryPeers[mode]
    const once = memory?.measured.find(({ peer }) => peer === name)
    const many = topics?.what === MANY_TOPICS ? topics.measured.find(({ peer }) => peer === name) : undefined
    const peaks = [summarize(cost, COST_SHAPE, name).peakMb?.max, once?.peakMb].filter((mb) => mb !== undefined)
    return [
      goal(
        `memory at full speed, the most that was seen: ${mode} mode`,
        "under 150 MB",
        peaks.length === 0 ? null : Math.max(...peaks),
        " MB",
        (n) => n < 150
      ),
      goal(`memory, idle: ${mode} mode`, "under 100 MB", once?.idleMb, " MB", (n) => n < 100),
      goal(
        `memory with ${MANY_TOPICS}: ${mode} mode`,
        "under 300 MB",
        many === undefined ? null : Math.max(many.peakMb, many.idleMb),
        " MB",
        (n) => n < 300
      )
    ]
  })

const startGoals = ({ suites: { start } }: Results): ReadonlyArray<Goal> =>
  MODES.map((mode) => {
    const seconds = start?.measured.find(({ peer }) => peer === startPeers[mode].name)?.seconds ?? []
    return goal(`start to the first readable record: ${mode} mode`, "under 2 s", median(seconds), " s", (n) => n < 2)
  })

/** What this benchmark has no suite for. */
const unmeasured: ReadonlyArray<Goal> = [
  ["start with a ledger of 10 million entries", "under 2 s"],
  ["growth of memory in an hour at constant load (npm run bench:soak)", "none"],
  ["cost a member from 1 to 64 lanes and 10 to 10,000 partitions", "flat, or as the logarithm"]
].map(([figure = "", wanted = ""]) => ({ figure, goal: wanted, measured: "-", verdict: "not measured" }))

export const goalsOf = (results: Results): ReadonlyArray<Goal> => [
  ...costGoals(results),
  ...throughputGoals(results),
  ...latencyGoals(results),
  ...memoryGoals(results),
  ...startGoals(results),
  ...unmeasured
]
