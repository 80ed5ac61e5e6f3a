/** What the demo says at its end: a table, and whether the guarantee in force has held. */
import { type Comparison, describeComparison } from "../../test/kit/compare.ts"
import type { FlowState } from "../../test/kit/onceover.ts"

export interface DemoResult {
  readonly comparison: Comparison
  readonly guarantee: FlowState["guarantee"]
  /** Records of the source in a transaction that was aborted there. */
  readonly abortedRecords: number
  readonly kills: number
  /** Kills that have left a transaction open on the target. */
  readonly killsInTransaction: number
  readonly abortedTransactions: number
  readonly duplicatesPrevented: number
}

export const number = (n: number): string => n.toLocaleString("en-US")

const rows = (result: DemoResult): ReadonlyArray<readonly [name: string, value: string, note: string]> => {
  const { comparison, guarantee } = result
  return [
    ["records on the source", number(comparison.source), ""],
    ["  and in an aborted transaction", number(result.abortedRecords), ""],
    ["mirrored", number(comparison.target), ""],
    ["lost", number(comparison.lost.length), ""],
    ["doubled", number(comparison.doubled.length), ""],
    ["altered or misplaced", number(comparison.altered.length + comparison.misplaced.length), ""],
    ["aborted on the source, yet mirrored", number(comparison.foreign.length), ""],
    ["workers killed (SIGKILL)", number(result.kills), `${result.killsInTransaction} with a transaction open`],
    ["transactions aborted on the target", number(result.abortedTransactions), "by the markers in its logs"],
    [
      "duplicates prevented",
      number(result.duplicatesPrevented),
      "delivered again, found mirrored, by the workers' metrics"
    ],
    ["guarantee in force", guarantee.effective ?? "unknown", ""],
    ["binding in force", guarantee.binding ?? "none", ""]
  ]
}

/** Prints the table and says whether the guarantee has held. */
export const verdict = (result: DemoResult): boolean => {
  const { comparison, guarantee } = result
  const lines = rows(result)
  const width = Math.max(...lines.map(([name]) => name.length))
  const right = Math.max(...lines.map(([, value]) => value.length))
  console.log(`\nAudit by librdkafka, read_committed:\n`)
  for (const [name, value, note] of lines) {
    console.log(`  ${name.padEnd(width)}  ${value.padStart(right)}  ${note}`.trimEnd())
  }
  if (guarantee.effective !== guarantee.wanted) {
    console.log(`\n${guarantee.wanted} is wanted; why it is not in force:`)
    for (const reason of guarantee.reasons) console.log(`  - ${reason}`)
  }
  const exactly = guarantee.effective === "exactly-once"
  const { altered, foreign, lost, misplaced } = comparison
  const whole = [lost, altered, misplaced, foreign].every((ids) => ids.length === 0)
  if (!whole || (exactly && comparison.doubled.length > 0)) {
    console.log(`\nFAILED: ${describeComparison(comparison)}`)
    return false
  }
  const said = exactly
    ? "every record is on the target exactly once"
    : "nothing is lost; records may be doubled under this guarantee"
  console.log(`\nPASSED: ${said}.`)
  return true
}
