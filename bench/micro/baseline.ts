/** bench/baseline.json: the figures that a change is held against, and what they were counted on. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { FiguresOf } from "./compare.ts"

export interface Baseline {
  /** Node's version and the processor's kind, "24.21.0 x64": another one compiles to other instructions. */
  readonly counted: string
  readonly figures: FiguresOf
}

const file = join(import.meta.dirname, "../baseline.json")

export const here = (): string => `${process.versions.node} ${process.arch}`

export const readBaseline = (): Baseline => JSON.parse(readFileSync(file, "utf8")) as Baseline

/** Figures that were not counted this time stay as they are. */
export const writeBaseline = (figures: FiguresOf): void => {
  let known: FiguresOf = {}
  try {
    known = readBaseline().figures
  } catch {
    // The first time there is none.
  }
  const baseline: Baseline = { counted: here(), figures: { ...known, ...figures } }
  writeFileSync(file, `${JSON.stringify(baseline, null, 2)}\n`)
}
