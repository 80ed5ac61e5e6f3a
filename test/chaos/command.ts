/** The command line of chaos: scenarios on real brokers, each bounded in time, with the line that runs it again. */
import { parseArgs } from "node:util"
import { startClusters } from "../kit/kafka.ts"
import { unique } from "../kit/names.ts"
import { Dice } from "../simulation/dice.ts"
import { type Scenario, SCENARIOS } from "./scenarios.ts"
import { World } from "./world.ts"

const options = {
  seed: { type: "string", default: "1" },
  minutes: { type: "string", default: "10" },
  scenario: { type: "string" },
  keep: { type: "boolean", default: false }
} as const

export type Print = (line: string) => void

interface Run {
  readonly name: string
  readonly scenario: Scenario
  readonly seed: number
  readonly minutes: number
  /** Logs also when nothing was wrong. */
  readonly keep: boolean
  readonly print: Print
}

/** True when nothing was wrong. */
const runScenario = async ({ keep, minutes, name, print, scenario, seed }: Run): Promise<boolean> => {
  const started = performance.now()
  const say: Print = (text) => print(`${((performance.now() - started) / 1000).toFixed(1).padStart(7)} s  ${text}`)
  print(`== ${name}: ${scenario.what}`)
  print(`replay: npm run chaos -- --seed ${seed} --minutes ${minutes} --scenario ${name}`)
  const brokers = scenario.brokers ?? 1
  const [source, target] = await startClusters([{ name: "chaos-source", brokers }, { name: "chaos-target", brokers }])
  if (source === undefined || target === undefined) throw new Error("two clusters were started, and there are not two")
  const dice = new Dice(seed, name)
  const world = new World({
    source,
    target,
    topic: unique("chaos"),
    partitions: dice.int(2, 6),
    mode: scenario.mode,
    dice,
    until: performance.now() + minutes * 60_000,
    say
  })
  try {
    await world.begin()
    await scenario.run(world)
    if (!world.goesOn) say("its time was over before the end: fewer faults or records than at full size, perhaps")
    await world.judge()
  } catch (error) {
    world.problems.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  for (const problem of world.problems) say(`WRONG: ${problem}`)
  if (keep || world.problems.length > 0) say(`logs are in ${world.keepLogs(`chaos-${name}-${seed}`)}`)
  await world.dispose()
  await Promise.all([source.stop(), target.stop()])
  return world.problems.length === 0
}

/** Gives the exit code. */
export const chaosCommand = async (args: ReadonlyArray<string>, print: Print): Promise<number> => {
  const { values } = parseArgs({ args: [...args], options })
  const seed = Number(values.seed)
  const minutes = Number(values.minutes)
  if (!Number.isInteger(seed) || !(minutes > 0)) {
    print("--seed takes a whole number, --minutes a number above 0")
    return 2
  }
  const chosen = [...SCENARIOS].filter(([name]) => values.scenario === undefined || name.startsWith(values.scenario))
  if (chosen.length === 0) {
    print(`--scenario: one of ${[...SCENARIOS.keys()].join(", ")}, or how some of them begin`)
    return 2
  }
  const failed: Array<string> = []
  for (const [name, scenario] of chosen) {
    if (!(await runScenario({ name, scenario, seed, minutes, keep: values.keep, print }))) failed.push(name)
  }
  print(`seed ${seed}: ${chosen.length - failed.length} scenarios held, ${failed.length} did not ${failed.join(", ")}`)
  return failed.length === 0 ? 0 : 1
}
