/** The command line of the benchmark. */
import { parseArgs } from "node:util"
import { allCells, someCells } from "./shape.ts"

/** In the order in which they run: where time is up, what comes last is left out. */
export const SUITES = ["cost", "transform", "latency", "start", "memory", "peak", "topics", "cells"] as const
export type SuiteName = typeof SUITES[number]

export interface Options {
  readonly suites: ReadonlyArray<SuiteName>
  readonly rounds: number
  readonly cells: ReadonlyArray<string>
  /** Record bytes of a run of the cost suite, MB. */
  readonly megabytes: number
  /** Record bytes of a cell, MB; of small records a quarter. */
  readonly cellMegabytes: number
  readonly latencySeconds: number
  /** Records a second, of the suite latency. */
  readonly latencyRate: number
  readonly idleSeconds: number
  /** Nothing is begun when this many minutes are over. */
  readonly minutes: number
  readonly topics: number
  readonly partitions: number
  readonly merge: boolean
  readonly publish: boolean
  readonly help: boolean
}

export const HELP = `npm run bench -- [OPTIONS]

  --suite NAMES       which, with commas: ${SUITES.join(", ")}; or all (default: all, with some of the cells)
  --cells NAMES       which cells, with commas, or all (default: ${someCells.join(", ")})
  --rounds N          how often each peer runs, in turns (3)
  --megabytes N       record bytes of a run of cost and transform (300)
  --cell-megabytes N  record bytes of a cell (100)
  --latency-seconds N measured seconds of latency (20)
  --latency-rate N    records a second of latency (1000)
  --idle-seconds N    quiet seconds before memory is read (20)
  --topics N          topics of the suite topics (1000), with --partitions N each (10)
  --minutes N         begin nothing after so many (35; give more for all cells: 90)
  --quick             one round of less; a few minutes, for a look at whether all works
  --merge             keep what .work/bench/latest.json has of other suites and cells
  --publish           write docs/performance.json, the plots and the tables in docs/performance.md;
                      with --suite none, from .work/bench/latest.json
`

const number = (name: string, text: string, lowest: number): number => {
  const found = Number(text)
  if (Number.isInteger(found) && found >= lowest) return found
  throw new Error(`--${name} is ${JSON.stringify(text)}: a whole number from ${lowest} is wanted`)
}

const names = <A extends string>(option: string, text: string, allowed: ReadonlyArray<A>): ReadonlyArray<A> => {
  if (text === "all") return allowed
  if (text === "none") return []
  return text.split(",").map((name) => {
    const found = allowed.find((one) => one === name.trim())
    if (found !== undefined) return found
    throw new Error(`--${option} has no ${JSON.stringify(name.trim())}: it takes ${allowed.join(", ")}, all or none`)
  })
}

/** @throws Error in one sentence when an option is not as it has to be */
export const parseOptions = (args: ReadonlyArray<string>): Options => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      suite: { type: "string", default: "all" },
      cells: { type: "string" },
      rounds: { type: "string" },
      megabytes: { type: "string" },
      "cell-megabytes": { type: "string" },
      "latency-seconds": { type: "string" },
      "latency-rate": { type: "string", default: "1000" },
      "idle-seconds": { type: "string" },
      minutes: { type: "string" },
      topics: { type: "string" },
      partitions: { type: "string", default: "10" },
      quick: { type: "boolean", default: false },
      merge: { type: "boolean", default: false },
      publish: { type: "boolean", default: false },
      help: { type: "boolean", default: false }
    }
  })
  const { quick } = values
  const allNames = allCells(1).map(({ name }) => name)
  const count = (name: string, text: string | undefined, usual: number, short: number) =>
    number(name, text ?? String(quick ? short : usual), 1)
  return {
    suites: names("suite", values.suite, SUITES),
    rounds: count("rounds", values.rounds, 3, 1),
    cells: values.cells === undefined
      ? (quick ? ["1KB-lz4", "100B-lz4"] : someCells)
      : names("cells", values.cells, allNames),
    megabytes: count("megabytes", values.megabytes, 300, 100),
    cellMegabytes: count("cell-megabytes", values["cell-megabytes"], 100, 50),
    latencySeconds: count("latency-seconds", values["latency-seconds"], 20, 5),
    latencyRate: number("latency-rate", values["latency-rate"], 1),
    idleSeconds: count("idle-seconds", values["idle-seconds"], 20, 5),
    minutes: count("minutes", values.minutes, 35, 10),
    topics: count("topics", values.topics, 1_000, 100),
    partitions: number("partitions", values.partitions, 1),
    merge: values.merge,
    publish: values.publish,
    help: values.help
  }
}
