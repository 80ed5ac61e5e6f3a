/** The generated part of docs/performance.md, between two comments. Pure. */
import type { Measured, Results } from "../results.ts"
import { type Plot } from "./plots.ts"
import { goalTable, markdownTable, tablesOf } from "./tables.ts"

export const BEGIN = "<!-- measured: begin. Made by npm run bench -- --publish; do not edit. -->"
export const END = "<!-- measured: end -->"

/** A page with this between its two comments. @throws Error when it has not both, in this order */
export const replacePart = (page: string, part: string): string => {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`docs/performance.md has no part between ${BEGIN} and ${END}`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${part.trim()}\n\n${page.slice(to)}`
}

const day = (date: string): string => `${date.slice(0, 16).replace("T", " ")} UTC`

const entries = ({ suites }: Results): ReadonlyArray<readonly [string, Measured & { readonly rounds?: number }]> =>
  Object.entries(suites as Readonly<Record<string, Measured & { readonly rounds?: number }>>)

const about = (results: Results): string => {
  const { cores, cpu, memoryGb, os, versions } = results.machine
  const { commit = "unknown", java, kafka, librdkafka, mirrorMaker, node, onceover } = versions
  return [
    `- Command: \`${results.command}\``,
    `- Machine: ${cores} cores of ${cpu}, ${memoryGb} GB, ${os}; both brokers, the mirror and the benchmark on it.`,
    `- Versions: onceover ${onceover} (${commit}), Node ${node}, Kafka ${kafka}, MirrorMaker ${mirrorMaker}, Java ${java}, librdkafka ${librdkafka}.`,
    ...entries(results).map(([name, { date, load, rounds, seconds }]) => {
      const times = rounds === undefined ? "" : `${rounds} rounds, `
      return `- Suite ${name}: ${day(date)}, ${times}${seconds} s; the load of the machine before it was ${
        load.toFixed(1)
      }.`
    })
  ].join("\n")
}

const failures = (results: Results): ReadonlyArray<string> => {
  const all = entries(results).flatMap(([name, suite]) =>
    suite.failures.map((line) => `- ${name}: ${line.split("\n")[0]}`)
  )
  return all.length === 0 ? [] : ["### What failed", "In no figure above:", all.join("\n")]
}

export const measuredPart = (results: Results, plots: ReadonlyArray<Plot>): string =>
  [
    "### Goals",
    markdownTable(goalTable(results)),
    "### Where and when",
    about(results),
    "All runs are in [performance.json](performance.json).",
    ...plots.map(({ file, text }) => `![${text.replaceAll("]", ")")}](plots/${file})`),
    ...tablesOf(results).flatMap((table) => [`### ${table.title}`, table.note, markdownTable(table)]),
    ...failures(results)
  ].filter((text) => text !== "").join("\n\n")
