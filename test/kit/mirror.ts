/** One look at a mirror from outside: run it until it has caught up, read both sides with librdkafka, compare. */
import { assert } from "vitest"
import { type AuditRecord, readTopics } from "./auditor.ts"
import { compare, type Comparison, describeComparison } from "./compare.ts"
import type { Bootstrap } from "./loader.ts"
import { type Config, mirrorConfig, runOnceover } from "./onceover.ts"

export interface Judged {
  readonly comparison: Comparison
  readonly source: ReadonlyArray<AuditRecord>
  readonly target: ReadonlyArray<AuditRecord>
}

const place = (topic: string): string => `east.${topic}`

/** Reads `topics` on the source and their mirrors on the target, in read_committed. `identify` where values carry no identity. */
export const judge = async (
  source: Bootstrap,
  target: Bootstrap,
  topics: ReadonlyArray<string>,
  identify?: (record: AuditRecord) => string
): Promise<Judged> => {
  const wanted = await readTopics(source, topics)
  const got = await readTopics(target, topics.map(place))
  const comparison = compare(wanted, got, { topic: place, ...(identify === undefined ? {} : { identify }) })
  return { comparison, source: wanted, target: got }
}

/** Runs a flow with --until-caught-up and fails unless it ends with 0. */
export const mirrorUntilCaughtUp = async (source: Bootstrap, target: Bootstrap, flow: Config): Promise<string> => {
  const { code, output } = await runOnceover({
    config: mirrorConfig(source, target, flow),
    args: ["run", "--until-caught-up"]
  })
  assert.strictEqual(code, 0, `onceover ended with ${code}:\n${output}`)
  return output
}

/** Nothing lost, altered, misplaced or made up; what may be doubled is the guarantee's. */
export const assertNothingLost = (comparison: Comparison, expected: number): void => {
  const said = describeComparison(comparison)
  assert.strictEqual(comparison.source, expected, `the test's own records: ${said}`)
  assert.deepStrictEqual(comparison.lost, [], said)
  assert.deepStrictEqual(comparison.altered, [], said)
  assert.deepStrictEqual(comparison.misplaced, [], said)
  assert.deepStrictEqual(comparison.foreign, [], said)
}

/** The same, and nothing doubled: what a run without faults gives in any guarantee. */
export const assertExact = (comparison: Comparison, expected: number): void => {
  assertNothingLost(comparison, expected)
  assert.deepStrictEqual(comparison.doubled, [], describeComparison(comparison))
}

/** The same, in order within each partition. */
export const assertOrdered = (comparison: Comparison, expected: number): void => {
  assertExact(comparison, expected)
  assert.deepStrictEqual(comparison.outOfOrder, [], describeComparison(comparison))
}
