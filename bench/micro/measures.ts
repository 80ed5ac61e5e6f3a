/**
 * Starts sample.ts so that a run is like the one before: everything on one thread, hashes and chance from a fixed seed,
 * a young generation that holds all that a case allocates, and a compiler that has enough of few calls.
 */
import { spawn, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { GROUPS } from "./cases.ts"
import type { FiguresOf } from "./compare.ts"

/** How work is counted: instructions, or where valgrind is not there, time. */
export type Work = "instructions" | "time"

const V8_FLAGS = [
  "--expose-gc",
  "--predictable",
  "--single-threaded",
  "--hash-seed=1",
  "--random-seed=1",
  "--min-semi-space-size=512",
  "--max-semi-space-size=512",
  "--initial-old-space-size=2048",
  "--max-old-space-size=4096",
  // A fifth of V8's own numbers: under valgrind each call more costs fifty times what it costs otherwise.
  "--invocation-count-for-maglev=80",
  "--invocation-count-for-maglev-osr=20",
  "--invocation-count-for-turbofan=600",
  "--invocation-count-for-osr=100",
  "--minimum-invocations-after-ic-update=100"
]

/** Functions of Node whose entry ends what is counted (sample.ts calls it at the start and the end of each case). */
const MARK = "node::os::GetLoadAvg*"
const LONGEST_MS = 20 * 60_000
const sampler = join(import.meta.dirname, "sample.ts")
const workFolder = join(import.meta.dirname, "../../.work")

const run = (command: string, args: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], timeout: LONGEST_MS })
    let out = ""
    let said = ""
    child.stdout.on("data", (chunk: Buffer) => out += chunk.toString())
    child.stderr.on("data", (chunk: Buffer) => said += chunk.toString())
    child.once("error", reject)
    child.once("close", (code) =>
      code === 0 ? resolve(out) : reject(new Error(`the micro benchmarks ended with ${code}: ${said.trim()}`)))
  })

type Line = { readonly name: string } & Readonly<Record<string, number | string>>
const lines = (text: string): ReadonlyArray<Line> =>
  text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Line)

const column = (of: ReadonlyArray<Line>, key: string): Readonly<Record<string, number>> =>
  Object.fromEntries(of.map((line) => [line.name, line[key] as number]))

/** A process for each file of cases. */
const inTurn = async (measure: string): Promise<ReadonlyArray<Line>> => {
  const found: Array<Line> = []
  for (const group of GROUPS) {
    found.push(...lines(await run(process.execPath, [...V8_FLAGS, sampler, measure, group])))
  }
  return found
}

export const hasValgrind = (): boolean => spawnSync("valgrind", ["--version"], { stdio: "ignore" }).status === 0

/** What callgrind counted between two marks: its files number the marks, from 1. */
const countedBy = (folder: string, mark: number): number => {
  const total = /^totals: (\d+)$/m.exec(readFileSync(join(folder, `counts.${mark}`), "utf8"))
  if (total === null) throw new Error(`valgrind counted nothing before mark ${mark}`)
  return Number(total[1])
}

/**
 * All in one process, as the start alone takes half a minute there. Not the million ranges of the ledger, which take
 * valgrind several minutes, nor what comes behind them: their allocations tell a copy too many, too.
 */
const COUNTED = GROUPS.filter((group) => group !== "ledger" && group !== "metrics")

const counted = async (groups: ReadonlyArray<string>): Promise<ReadonlyArray<readonly [string, number]>> => {
  mkdirSync(workFolder, { recursive: true })
  const folder = mkdtempSync(join(workFolder, "valgrind-"))
  try {
    const text = await run("valgrind", [
      "-q",
      "--tool=callgrind",
      // Node writes machine code all the time.
      "--smc-check=all-non-file",
      `--dump-before=${MARK}`,
      `--callgrind-out-file=${join(folder, "counts")}`,
      process.execPath,
      ...V8_FLAGS,
      sampler,
      "instructions",
      ...groups
    ])
    return lines(text).map((line, n) => [
      line.name,
      Math.round(countedBy(folder, 2 * n + 2) / (line["operations"] as number))
    ])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const instructions = async (): Promise<FiguresOf> => ({ instructions: Object.fromEntries(await counted(COUNTED)) })

/** `micros` is for people: what an operation takes here and now. */
export const time = async (): Promise<FiguresOf & { readonly micros: Readonly<Record<string, number>> }> => {
  const found = await inTurn("time")
  return { time: column(found, "ratio"), micros: column(found, "micros") }
}

export const allocations = async (): Promise<FiguresOf> => {
  const found = await inTurn("allocations")
  return { heapBytes: column(found, "heapBytes"), bufferBytes: column(found, "bufferBytes") }
}

export const work = async (by: Work): Promise<FiguresOf> => {
  if (by === "instructions") return instructions()
  const { time: figures } = await time()
  return figures === undefined ? {} : { time: figures }
}
