/** What a run of the benchmark has found: the document of .work/bench/latest.json. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { projectRoot } from "../test/kit/paths.ts"
import type { Machine } from "./machine.ts"
import type { Run } from "./run.ts"
import type { Shape } from "./shape.ts"
import type { Bin } from "./stats.ts"

/** Of every suite: when, how loaded the machine was before (a minute's mean), how long it took. */
export interface Measured {
  readonly date: string
  readonly load: number
  readonly seconds: number
  /** Sentences on what did not work; they belong to the result. */
  readonly failures: ReadonlyArray<string>
}

export interface Compared extends Measured {
  readonly rounds: number
  readonly shapes: ReadonlyArray<Shape>
  readonly runs: ReadonlyArray<Run>
}

export interface Latency {
  readonly peer: string
  readonly records: number
  /** Milliseconds. */
  readonly median: number
  readonly p99: number
  readonly max: number
  readonly bins: ReadonlyArray<Bin>
}

export interface Latencies extends Measured {
  readonly recordsPerSecond: number
  readonly valueBytes: number
  readonly partitions: number
  readonly measured: ReadonlyArray<Latency>
}

export interface Starts extends Measured {
  /** Seconds from the start of the process until the first record was readable, one a round. */
  readonly measured: ReadonlyArray<{ readonly peer: string; readonly seconds: ReadonlyArray<number> }>
}

export interface MemoryFigure {
  readonly peer: string
  readonly peakMb: number
  /** After all was mirrored and it was quiet for `idleSeconds`. */
  readonly idleMb: number
}

export interface Memories extends Measured {
  readonly what: string
  readonly idleSeconds: number
  readonly measured: ReadonlyArray<MemoryFigure>
}

export interface Peaks extends Measured {
  readonly measured: ReadonlyArray<
    {
      readonly tool: string
      readonly mbPerSecond: ReadonlyArray<number>
      readonly cpuSecondsPerGb: ReadonlyArray<number>
    }
  >
}

export interface Suites {
  readonly cost?: Compared
  readonly transform?: Compared
  readonly cells?: Compared
  readonly latency?: Latencies
  readonly start?: Starts
  readonly memory?: Memories
  readonly topics?: Memories
  readonly peak?: Peaks
}

export interface Results {
  readonly date: string
  readonly command: string
  readonly machine: Machine
  readonly suites: Suites
}

const file = join(projectRoot, ".work/bench/latest.json")
export const RESULTS_NAME = ".work/bench/latest.json"

/** Of the last run; undefined: there is none that can be read. */
export const readResults = (): Results | undefined => {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Results
  } catch {
    return undefined
  }
}

export const writeResults = (results: Results): void => {
  mkdirSync(join(projectRoot, ".work/bench"), { recursive: true })
  writeFileSync(file, `${JSON.stringify(results, null, 1)}\n`)
}

/** Cells that were measured anew replace their old figures, the others stay. */
const mergeCells = (old: Compared, fresh: Compared): Compared => {
  const anew = new Set(fresh.shapes.map(({ name }) => name))
  return {
    ...fresh,
    failures: [...old.failures, ...fresh.failures],
    shapes: [...old.shapes.filter(({ name }) => !anew.has(name)), ...fresh.shapes],
    runs: [...old.runs.filter(({ shape }) => !anew.has(shape)), ...fresh.runs]
  }
}

/** The suites of both; of a suite that both have, the fresh one, of cells the union. */
export const mergeSuites = (old: Suites, fresh: Suites): Suites => ({
  ...old,
  ...fresh,
  ...(old.cells !== undefined && fresh.cells !== undefined ? { cells: mergeCells(old.cells, fresh.cells) } : {})
})
