/** Writes what was measured into docs/: the page's generated part, the plots, and the raw figures. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { projectRoot } from "../../test/kit/paths.ts"
import type { Results } from "../results.ts"
import { digits } from "../stats.ts"
import { measuredPart, replacePart } from "./page.ts"
import { plotsOf } from "./plots.ts"

/** Four digits that count: what lies behind them is noise. Whole numbers stay. */
const rounded = (_: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isInteger(value) ? digits(value, 4) : value

/** One line a run, so that a new measurement is a diff that can be read. */
export const compactJson = (results: Results): string => {
  const { suites, ...rest } = JSON.parse(JSON.stringify(results, rounded)) as Results
  const lines = Object.entries(suites).map(([name, suite]) => {
    const own = Object.entries(suite as Readonly<Record<string, unknown>>).map(([key, value]) =>
      Array.isArray(value) && value.length > 0
        ? `   ${JSON.stringify(key)}: [\n${value.map((one) => `    ${JSON.stringify(one)}`).join(",\n")}\n   ]`
        : `   ${JSON.stringify(key)}: ${JSON.stringify(value)}`
    )
    return `  ${JSON.stringify(name)}: {\n${own.join(",\n")}\n  }`
  })
  const head = JSON.stringify(rest, null, 1).slice(0, -2)
  return `${head},\n "suites": {\n${lines.join(",\n")}\n }\n}\n`
}

export const publish = (results: Results): ReadonlyArray<string> => {
  const docs = join(projectRoot, "docs")
  const plots = plotsOf(results)
  mkdirSync(join(docs, "plots"), { recursive: true })
  for (const { file, svg } of plots) writeFileSync(join(docs, "plots", file), svg)
  writeFileSync(join(docs, "performance.json"), compactJson(results))
  const page = join(docs, "performance.md")
  writeFileSync(page, replacePart(readFileSync(page, "utf8"), measuredPart(results, plots)))
  return ["docs/performance.md", "docs/performance.json", ...plots.map(({ file }) => `docs/plots/${file}`)]
}
