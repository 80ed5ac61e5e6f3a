/** Seeds as tests: a failure's message is the whole report, with the command that shows it again. */
import { assert } from "@effect/vitest"
import { type BindingKind, makePlan, type Mode } from "./plan.ts"
import { report } from "./report.ts"
import { simulate } from "./simulation.ts"

const HISTORY_LINES = 80

/** Throws with the report of the first seed that fails. */
export const runSeeds = async (mode: Mode, from: number, count: number, binding?: BindingKind): Promise<void> => {
  for (let seed = from; seed < from + count; seed++) {
    const result = await simulate(makePlan({ seed, mode, ...(binding === undefined ? {} : { binding }) }))
    if (result.problem !== null) assert.fail(report(result, HISTORY_LINES).join("\n"))
  }
}

/** So many at once that one test stays short on a busy machine. */
export const CHUNK = 10
export const chunks = (count: number): ReadonlyArray<number> =>
  Array.from({ length: count / CHUNK }, (_, n) => n * CHUNK + 1)
