/** Stages of a test run: commands with a bound, each counted, and the closing line over all of them. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { join, relative, resolve } from "node:path"

export const root = resolve(import.meta.dirname, "..")

export interface Count {
  readonly passed: number
  readonly failed: number
}

export const minutes = (n: number): number => n * 60_000

/** Runs a command with its output shown; whether it ended with 0 within `timeout` milliseconds. */
export const run = (name: string, command: string, args: ReadonlyArray<string>, timeout: number): boolean => {
  console.log(`\n== ${name}`)
  const { error, status } = spawnSync(command, args, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    timeout,
    killSignal: "SIGKILL"
  })
  if (error !== undefined) console.error(`${name} did not end by itself: ${error.message}`)
  return status === 0
}

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numTotalTests: number
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly status: string
    /** Of a file that did not load. */
    readonly message: string
    readonly assertionResults: ReadonlyArray<{
      readonly status: string
      readonly fullName: string
      readonly failureMessages: ReadonlyArray<string>
    }>
  }>
}

/** Longer than any sentence that says what went wrong, shorter than a log that hangs on it. */
const MESSAGE_LENGTH = 300

/** One line each, so that the end of a long output says which tests failed, and why. */
const failures = ({ testResults }: Report): ReadonlyArray<string> =>
  testResults.flatMap(({ assertionResults, message, name, status }) => {
    const file = relative(root, name)
    const said = (text: string): string => (text.split("\n")[0] ?? "").slice(0, MESSAGE_LENGTH)
    const failed = assertionResults.filter((test) => test.status === "failed")
    if (failed.length === 0 && status === "failed") return [`${file}: ${said(message)}`]
    return failed.map((test) => `${file} > ${test.fullName}: ${said(test.failureMessages[0] ?? "")}`)
  })

export interface TestRun {
  readonly name: string
  /** For vitest, beside `run`. */
  readonly args: ReadonlyArray<string>
  /** Milliseconds. */
  readonly timeout: number
  /** A choice of tests was asked for: then some may not run. */
  readonly chosen: boolean
}

/**
 * Vitest's own numbers. A run that failed without a failed test (a file that does not load, an error outside of a
 * test), or that ran none, counts as one failure.
 */
export const tests = ({ args, chosen, name, timeout }: TestRun): Count => {
  const folder = join(root, ".work")
  const results = join(folder, `vitest-${process.pid}.json`)
  mkdirSync(folder, { recursive: true })
  const ended = run(name, "vitest", [
    "run",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${results}`,
    ...args
  ], timeout)
  const report = existsSync(results) ? JSON.parse(readFileSync(results, "utf8")) as Report : undefined
  rmSync(results, { force: true })
  if (report === undefined || report.numTotalTests === 0) {
    console.error("vitest ran no test.")
    return { passed: 0, failed: 1 }
  }
  const { numFailedTests, numPassedTests } = report
  for (const line of failures(report)) console.log(`failed: ${line}`)
  const skipped = report.numTotalTests - numPassedTests - numFailedTests
  if (skipped > 0 && !chosen) console.error(`${skipped} tests did not run: none may be skipped.`)
  const sound = ended && (skipped === 0 || chosen)
  return { passed: numPassedTests, failed: sound ? numFailedTests : Math.max(1, numFailedTests) }
}

/** Prints "N passed, N failed" and sets the exit code. */
export const close = (counts: ReadonlyArray<Count>): void => {
  const sum = (key: keyof Count): number => counts.reduce((total, count) => total + count[key], 0)
  const failed = sum("failed")
  console.log(`\n${sum("passed")} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}
