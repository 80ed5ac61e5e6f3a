/**
 * `npm test`: everything that must pass, one after the other, and one closing line "N passed, N failed" over all of
 * it. Each check (types, lint, format) counts as one, each test as one. A stage that fails does not hide the next.
 *
 * Arguments go to vitest: `npm test -- test/wire` or `npm test -- --project unit`.
 */
import { close, type Count, minutes, run, tests } from "./stages.ts"

const check = (name: string, command: string, ...args: ReadonlyArray<string>): Count => {
  const passed = run(name, command, args, minutes(5))
  return passed ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }
}

const args = process.argv.slice(2)
close([
  check("types", "tsc", "-p", "."),
  check("the page's types", "tsc", "-p", "src/metrics/page"),
  check("lint", "oxlint", "--deny-warnings"),
  check("format", "dprint", "check", "--list-different"),
  // The whole must fit into a CI's time; far above what it takes.
  tests({ name: "tests", args, timeout: minutes(35), chosen: args.length > 0 })
])
