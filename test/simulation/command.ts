/** The command line of the simulation: runs seeds, tells what fails and how to see it again. */
import { performance } from "node:perf_hooks"
import { parseArgs } from "node:util"
import { type BindingKind, makePlan, type Mode } from "./plan.ts"
import { MUTATIONS } from "./mutations.ts"
import { report } from "./report.ts"
import { simulate } from "./simulation.ts"

const options = {
  seeds: { type: "string", default: "100" },
  from: { type: "string", default: "1" },
  mode: { type: "string" },
  binding: { type: "string" },
  mutate: { type: "string" },
  calm: { type: "boolean", default: false },
  history: { type: "string", default: "120" },
  follow: { type: "boolean", default: false },
  "keep-going": { type: "boolean", default: false }
} as const

const MODES: ReadonlyArray<Mode> = ["share", "consumer", "kip-1289"]

/** Gives the exit code. */
export const simulateCommand = async (args: ReadonlyArray<string>, print: (line: string) => void): Promise<number> => {
  const { values } = parseArgs({ args: [...args], options })
  const from = Number(values.from)
  const count = Number(values.seeds)
  const mutations = values.mutate === undefined ? {} : MUTATIONS[values.mutate]
  if (mutations === undefined) {
    print(`--mutate: one of ${Object.keys(MUTATIONS).join(", ")}`)
    return 2
  }
  const startedMs = performance.now()
  let failed = 0
  let virtualMs = 0
  let requests = 0
  for (let seed = from; seed < from + count; seed++) {
    const mode = (values.mode ?? MODES[seed % MODES.length]) as Mode
    const plan = makePlan({
      seed,
      mode,
      mutations,
      calm: values.calm,
      ...(values.binding === undefined ? {} : { binding: values.binding as BindingKind })
    })
    const result = await simulate(plan, values.follow ? { onLine: print } : {})
    virtualMs += result.virtualMs
    requests += result.requests
    if (result.problem === null) continue
    failed++
    for (const line of report(result, Number(values.history), values.mutate)) print(line)
    if (!values["keep-going"]) break
  }
  const seconds = (performance.now() - startedMs) / 1_000
  print(
    `${count} seeds from ${from}: ${failed} failed; ${
      (virtualMs / 60_000).toFixed(1)
    } minutes of virtual time, ${requests} requests, in ${seconds.toFixed(1)} s`
  )
  return failed === 0 ? 0 : 1
}
