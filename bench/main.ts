/**
 * `npm run bench`: what mirroring costs, onceover beside MirrorMaker 2, librdkafka and the brokers' own tools, in one run on
 * the same two brokers. Prints tables and writes .work/bench/latest.json. docs/performance.md says what is measured and how;
 * `npm run bench -- --help` says what can be chosen.
 */
import { describeMachine, load } from "./machine.ts"
import { HELP, type Options, parseOptions, type SuiteName } from "./options.ts"
import { mergeSuites, readResults, type Results, RESULTS_NAME, type Suites, writeResults } from "./results.ts"
import { publish } from "./report/publish.ts"
import { consoleTable, goalTable, tablesOf } from "./report/tables.ts"
import { openSession, type Session } from "./session.ts"
import { cells, cost, transform } from "./suites/compare.ts"
import type { Context } from "./suites/context.ts"
import { latency } from "./suites/latency.ts"
import { manyTopics, memory } from "./suites/memory.ts"
import { peak } from "./suites/peak.ts"
import { start } from "./suites/start.ts"

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const SUITE: Readonly<Record<SuiteName, (context: Context) => Promise<object>>> = {
  cost,
  transform,
  cells,
  latency,
  start,
  memory,
  topics: manyTopics,
  peak
}

const runSuite = async (
  name: SuiteName,
  session: Session,
  clusters: Pick<Context, "source" | "target" | "inTime">,
  options: Options
): Promise<Suites> => {
  const failures: Array<string> = []
  const fail = (line: string) => {
    failures.push(line)
    say(`  ${line}`)
  }
  const begun = performance.now()
  const measured = { date: new Date().toISOString(), load: load() }
  say(`${name} (load ${measured.load.toFixed(1)})`)
  const found = await SUITE[name]({ session, ...clusters, options, say, fail })
  return { [name]: { ...measured, seconds: Math.round((performance.now() - begun) / 1000), failures, ...found } }
}

/** What was measured stays, also when a later suite fails. */
const measure = async (options: Options, command: string): Promise<Results> => {
  const old = options.merge ? readResults()?.suites ?? {} : {}
  const begun = performance.now()
  const inTime = () => performance.now() - begun < options.minutes * 60_000
  let results: Results = { date: new Date().toISOString(), command, machine: describeMachine(), suites: old }
  const session = openSession()
  const stop = (code: number) => {
    say("stopping: brokers and folders are removed")
    void session.end().finally(() => process.exit(code))
  }
  process.once("SIGINT", () => stop(130))
  process.once("SIGTERM", () => stop(143))
  try {
    say("starting two brokers")
    const [source, target] = await session.clusters()
    for (const name of options.suites) {
      if (!inTime()) {
        say(`${name} is left out: the time of --minutes is up`)
        continue
      }
      const fresh = await runSuite(name, session, { source, target, inTime }, options)
      results = { ...results, suites: mergeSuites(results.suites, fresh) }
      writeResults(results)
    }
    return results
  } finally {
    await session.end()
  }
}

const main = async (): Promise<number> => {
  const args = process.argv.slice(2)
  const options = parseOptions(args)
  if (options.help) {
    process.stdout.write(HELP)
    return 0
  }
  const results = options.suites.length > 0
    ? await measure(options, ["npm run bench", ...(args.length > 0 ? ["--", ...args] : [])].join(" "))
    : readResults()
  if (results === undefined) throw new Error(`there is no ${RESULTS_NAME}: run the benchmark first`)
  for (const table of [...tablesOf(results), goalTable(results)]) say(consoleTable(table))
  say(`\nThe raw figures are in ${RESULTS_NAME}.`)
  if (options.publish) say(`Written: ${publish(results).join(", ")}.`)
  const failures = Object.values(results.suites).flatMap((suite) =>
    (suite as { failures: ReadonlyArray<string> }).failures
  )
  return failures.length === 0 ? 0 : 1
}

// Native clients of the probes may keep the loop alive.
process.exit(
  await main().catch((error: unknown) => {
    process.stderr.write(`bench: ${(error as Error).message}\n`)
    return 1
  })
)
