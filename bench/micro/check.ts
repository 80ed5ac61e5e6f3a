/**
 * `npm run bench:check`: fails with a sentence for each case that needs over 20 % more instructions or allocates over
 * 20 % more than bench/baseline.json says. Takes a minute or two; only what is counted counts, not how fast it was.
 *
 * --update writes the baseline anew, --allocations leaves the instructions out (some seconds), --time takes processor
 * time although valgrind is there.
 */
import { parseArgs } from "node:util"
import { here, readBaseline, writeBaseline } from "./baseline.ts"
import { compareAll, type FiguresOf, TOLERANCE } from "./compare.ts"
import { allocations, hasValgrind, work } from "./measures.ts"

const { values: options } = parseArgs({
  options: {
    update: { type: "boolean", default: false },
    allocations: { type: "boolean", default: false },
    time: { type: "boolean", default: false }
  }
})

const by = options.time || !hasValgrind() ? "time" : "instructions"
const how = by === "instructions" ? "instructions by valgrind" : "processor time beside a reference loop"
console.log(`counting allocations${options.allocations ? "" : ` and ${how}`}, Node ${here()}`)

const found: FiguresOf = { ...await allocations(), ...(options.allocations ? {} : await work(by)) }

if (options.update) {
  writeBaseline(found)
  console.log("bench/baseline.json is written")
} else {
  const baseline = readBaseline()
  if (baseline.counted !== here()) {
    console.log(`the baseline was counted with Node ${baseline.counted}: differences may be Node's`)
  }
  const { gains, problems } = compareAll(baseline.figures, found)
  for (const gain of gains) console.log(`better: ${gain}`)
  if (gains.length > 0) console.log("keep what was gained with \"npm run bench:check -- --update\"")
  for (const problem of problems) console.error(`worse: ${problem}`)
  const cases = Object.keys(found.heapBytes ?? {}).length
  console.log(
    problems.length === 0
      ? `${cases} cases, none worse by more than ${TOLERANCE * 100} %`
      : `${problems.length} figures of ${cases} cases are worse by more than ${
        TOLERANCE * 100
      } %, or cannot be compared`
  )
  process.exitCode = problems.length === 0 ? 0 : 1
}
