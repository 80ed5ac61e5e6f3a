/**
 * Runs micro benchmarks in this process and counts one thing: `node FLAGS sample.ts MEASURE GROUP...`. Started by
 * measures.ts, which knows the flags that make each run like the one before. Writes one line of JSON for each case.
 *
 * - allocations: what an operation takes, in bytes, by the growth of the heap and of the memory outside of it (buffers)
 *   while nothing is collected. A collection in between would make the figure too small: then the case is refused.
 * - instructions: between two marks, counted by valgrind around this process. A mark is a call that is never made
 *   otherwise (os.loadavg); what was counted until then is written to a file, and counting begins anew.
 * - time: as a multiple of a loop that is always the same, both in turns, the least of many short rounds. So the
 *   machine's speed, and who else is at work on it, cancel out as far as they can.
 */
import { loadavg } from "node:os"
import { PerformanceObserver } from "node:perf_hooks"
import { casesOf } from "./cases.ts"
import type { MicroCase } from "./microCase.ts"

type Measured = { readonly name: string } & Readonly<Record<string, number | string>>
type Operation = (n: number) => unknown

/** Where results go, so that they count as used. */
const kept: { last: unknown } = { last: undefined }

const repeat = (operation: Operation, times: number): void => {
  for (let n = 0; n < times; n++) kept.last = operation(n)
}

const collect = (): void => (globalThis as { readonly gc?: () => void }).gc?.()

/* Allocations */

let collections = 0
new PerformanceObserver((list) => collections += list.getEntries().length).observe({ entryTypes: ["gc"] })

/** Lets the observer hear of what was collected until now. */
const heard = async (): Promise<number> => {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  return collections
}

interface Memory {
  readonly heap: number
  readonly buffers: number
}

const grown = (work: () => void): Memory => {
  const before = process.memoryUsage()
  work()
  const after = process.memoryUsage()
  return { heap: after.heapUsed - before.heapUsed, buffers: after.external - before.external }
}

const allocations = async (of: MicroCase): Promise<Measured> => {
  const operation = of.prepare()
  repeat(operation, of.warmUp)
  kept.last = undefined
  collect()
  // What the asking itself takes; the first time is dearer.
  grown(() => {})
  const asking = grown(() => {})
  const before = await heard()
  const found = grown(() => repeat(operation, of.operations))
  if (await heard() > before) {
    throw new Error(`${of.name}: the heap was collected while it was counted; give the case fewer operations`)
  }
  const each = (total: number): number => Math.max(0, Math.round(total / of.operations))
  return { name: of.name, heapBytes: each(found.heap - asking.heap), bufferBytes: each(found.buffers - asking.buffers) }
}

/* Instructions */

/** Far enough below the young generation for one case: collecting a million objects takes valgrind long. */
const FULL_BYTES = 256 * 1024 * 1024

const instructions = (of: MicroCase): Measured => {
  const operation = of.prepare()
  repeat(operation, of.warmUp)
  kept.last = undefined
  if (process.memoryUsage().heapUsed > FULL_BYTES) collect()
  loadavg()
  repeat(operation, of.operations)
  loadavg()
  return { name: of.name, operations: of.operations }
}

/* Time */

const ROUNDS = 60
/** Of one round, microseconds: short, so that some rounds are not interrupted. */
const ROUND_MICROS = 1000
const noise = Uint32Array.from({ length: 16_384 }, (_, n) => Math.imul(n, 2_654_435_761))

/** What everything is compared with: arithmetic and memory, about a microsecond a time. */
const reference: Operation = (n) => {
  let sum = n
  for (let i = 0; i < 400; i++) sum = (sum * 31 + (noise[(sum ^ i) & 16_383] as number)) | 0
  return sum
}

const micros = (operation: Operation, times: number): number => {
  const before = process.hrtime.bigint()
  repeat(operation, times)
  return Number(process.hrtime.bigint() - before) / 1000 / times
}

const time = (of: MicroCase): Measured => {
  const operation = of.prepare()
  repeat(operation, of.warmUp)
  repeat(reference, 5_000)
  const first = Math.min(micros(operation, of.operations), micros(operation, of.operations))
  const times = Math.max(1, Math.round(ROUND_MICROS / first))
  // A case whose operation alone is long has fewer rounds, or it would take minutes.
  const rounds = first > 20 * ROUND_MICROS ? 8 : ROUNDS
  let least = Infinity
  let leastReference = Infinity
  for (let round = 0; round < rounds; round++) {
    least = Math.min(least, micros(operation, times))
    leastReference = Math.min(leastReference, micros(reference, 500))
  }
  return { name: of.name, ratio: least / leastReference, micros: least }
}

const measures: Readonly<Record<string, (of: MicroCase) => Measured | Promise<Measured>>> = {
  allocations,
  instructions,
  time
}

const [what = "", ...chosen] = process.argv.slice(2)
const measure = measures[what]
if (measure === undefined) throw new Error(`"${what}" cannot be measured; allowed: ${Object.keys(measures).join(", ")}`)
for (const group of chosen) {
  for (const of of await casesOf(group)) process.stdout.write(`${JSON.stringify(await measure(of))}\n`)
}
