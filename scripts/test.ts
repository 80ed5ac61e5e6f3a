/**
 * `npm test`: everything that must pass, one after the other, and one closing line "N passed, N failed" over all of
 * it. Each check (types, lint, format) counts as one, each test as one. A stage that fails does not hide the next.
 *
 * Arguments go to vitest: `npm test -- test/wire` or `npm test -- --project unit`.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { join, resolve } from "node:path"

const root = resolve(import.meta.dirname, "..")
const results = join(root, ".work/vitest.json")

interface Count {
  readonly passed: number
  readonly failed: number
}

/** The whole must fit into a CI's time; far above what it takes. */
const minutes = (n: number): number => n * 60_000

const run = (name: string, command: string, args: ReadonlyArray<string>, timeout: number): boolean => {
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

const check = (name: string, command: string, ...args: ReadonlyArray<string>): Count => {
  const passed = run(name, command, args, minutes(5))
  return passed ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }
}

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numTotalTests: number
}

/** Vitest's own numbers. A run that failed without a failed test (a file that does not load, an error outside of a test), or that ran none, counts as one failure. */
const tests = (args: ReadonlyArray<string>): Count => {
  rmSync(results, { force: true })
  mkdirSync(join(root, ".work"), { recursive: true })
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${results}`]
  const ended = run("tests", "vitest", ["run", ...reporters, ...args], minutes(35))
  const report = existsSync(results) ? JSON.parse(readFileSync(results, "utf8")) as Report : undefined
  if (report === undefined || report.numTotalTests === 0) {
    console.error("vitest ran no test.")
    return { passed: 0, failed: 1 }
  }
  const { numFailedTests, numPassedTests } = report
  const skipped = report.numTotalTests - numPassedTests - numFailedTests
  if (skipped > 0 && args.length === 0) console.error(`${skipped} tests did not run: none may be skipped.`)
  const sound = ended && (skipped === 0 || args.length > 0)
  return { passed: numPassedTests, failed: sound ? numFailedTests : Math.max(1, numFailedTests) }
}

const counts = [
  check("types", "tsc", "-p", "."),
  check("lint", "oxlint", "--deny-warnings"),
  check("format", "dprint", "check"),
  tests(process.argv.slice(2))
]
const sum = (key: keyof Count): number => counts.reduce((total, count) => total + count[key], 0)
const failed = sum("failed")
console.log(`\n${sum("passed")} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
