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

const vitest = (name: string, args: ReadonlyArray<string>, timeout: number) => {
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
  return { ended, report }
}

/** Files whose worker ended in the middle: nothing failed in them, and not all was run. */
const brokenOff = ({ testResults }: Report): ReadonlyArray<string> =>
  testResults.filter(({ assertionResults, message, status }) =>
    status === "failed" && message === "" && assertionResults.every((test) => test.status !== "failed")
  ).map(({ name }) => name)

const withoutFiles = (report: Report, files: ReadonlyArray<string>): Report => {
  const testResults = report.testResults.filter(({ name }) => !files.includes(name))
  const all = testResults.flatMap(({ assertionResults }) => assertionResults)
  const count = (status: string): number => all.filter((test) => test.status === status).length
  return { testResults, numPassedTests: count("passed"), numFailedTests: count("failed"), numTotalTests: all.length }
}

const countOf = (report: Report, ended: boolean, chosen: boolean): Count => {
  const { numFailedTests, numPassedTests } = report
  for (const line of failures(report)) console.log(`failed: ${line}`)
  const skipped = report.numTotalTests - numPassedTests - numFailedTests
  if (skipped > 0 && !chosen) console.error(`${skipped} tests did not run: none may be skipped.`)
  const sound = ended && (skipped === 0 || chosen)
  return { passed: numPassedTests, failed: sound ? numFailedTests : Math.max(1, numFailedTests) }
}

/**
 * Vitest's own numbers. A run that failed without a failed test (a file that does not load, an error outside of a
 * test), or that ran none, counts as one failure.
 *
 * A file whose worker was ended by a signal is run once more, and that is said: the tests judge with librdkafka's add-on in
 * their own process, and once in some thousands of clients it ends that process. What is tested runs in others.
 */
export const tests = ({ args, chosen, name, timeout }: TestRun): Count => {
  const { ended, report } = vitest(name, args, timeout)
  if (report === undefined || report.numTotalTests === 0) {
    console.error("vitest ran no test.")
    return { passed: 0, failed: 1 }
  }
  const broken = brokenOff(report)
  if (broken.length === 0 || broken.length > 2) return countOf(report, ended, chosen)
  console.error(`\nThe worker of these ended in the middle, and they are run again: ${broken.join(", ")}`)
  const again = vitest(`${name}, again`, [...args.filter((arg) => !arg.includes("/")), ...broken], timeout)
  if (again.report === undefined || again.report.numTotalTests === 0) return countOf(report, ended, chosen)
  const others = withoutFiles(report, broken)
  // The first run's only complaint was the worker.
  const first = countOf(others, others.numFailedTests === 0, chosen)
  const second = countOf(again.report, again.ended, chosen)
  return { passed: first.passed + second.passed, failed: first.failed + second.failed }
}

/** Prints "N passed, N failed" and sets the exit code. */
export const close = (counts: ReadonlyArray<Count>): void => {
  const sum = (key: keyof Count): number => counts.reduce((total, count) => total + count[key], 0)
  const failed = sum("failed")
  console.log(`\n${sum("passed")} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}
