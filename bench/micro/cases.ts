/** All micro benchmarks: one file in cases/ for each piece that they measure, in the order they run in. */
import type { MicroCase } from "./microCase.ts"

/** Files of cases/. A new one goes to the end, where it moves no figure of those before. */
export const GROUPS = ["rewrite", "crc", "answers", "produce", "transform", "frames", "ledger", "metrics"] as const

export const casesOf = async (group: string): Promise<ReadonlyArray<MicroCase>> => {
  const file = await import(`./cases/${group}.ts`) as { readonly cases: ReadonlyArray<MicroCase> }
  return file.cases
}
