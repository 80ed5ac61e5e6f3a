/** The results as tables: rows of words, for the console and for Markdown alike. */
import type { Compared, Memories, Results } from "../results.ts"
import { type Spread, spread } from "../stats.ts"
import { cellRatios, goalsOf } from "./goals.ts"
import { summarize } from "./summaries.ts"
import { label } from "./svg.ts"

export interface Table {
  readonly title: string
  readonly note: string
  readonly head: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
}

const shown = (figure: Spread | null): string =>
  figure === null
    ? "-"
    : figure.count === 1
    ? label(figure.median)
    : `${label(figure.median)} (${label(figure.min)}..${label(figure.max)})`

const ratio = (figure: number | null): string => figure === null ? "-" : label(figure)

const comparison = (title: string, note: string, compared: Compared | undefined): ReadonlyArray<Table> => {
  if (compared === undefined) return []
  const head = [
    "peer",
    "CPU s/GB, running",
    "CPU s/GB, whole",
    "MB/s, running",
    "most memory, MB",
    "cores of brokers",
    "cores of others",
    "runs"
  ]
  const rows = compared.shapes.flatMap(({ name }) =>
    [...new Set(compared.runs.filter(({ shape }) => shape === name).map(({ peer }) => peer))].map((peer) => {
      const one = summarize(compared, name, peer)
      const runs = `${one.cpuWhole?.count ?? 0}${one.doubted === 0 ? "" : `, ${one.doubted} not believed`}`
      return [
        peer,
        ...[one.cpuRunning, one.cpuWhole, one.mbPerSecond, one.peakMb, one.brokerCores, one.otherCores].map(shown),
        runs
      ]
    })
  )
  return [{ title, note, head, rows }]
}

const cellTable = (results: Results): ReadonlyArray<Table> => {
  const { cells } = results.suites
  if (cells === undefined) return []
  const peers = [...new Set(cells.runs.map(({ peer }) => peer))]
  const ratios = new Map(cellRatios(results).map((one) => [one.cell, one]))
  const rows = cells.shapes.map(({ name }) => [
    name,
    ...peers.map((peer) => shown(summarize(cells, name, peer).mbPerSecond)),
    ratio(ratios.get(name)?.consumer ?? null),
    ratio(ratios.get(name)?.share ?? null)
  ])
  return [{
    title: "Throughput by size, codec, partitions, topics and batches",
    note: "MB/s of record values, running; then how many times MirrorMaker 2's, consumer and share mode.",
    head: ["cell", ...peers, "times, consumer", "times, share"],
    rows
  }]
}

const memoryTable = (memories: Memories | undefined): ReadonlyArray<Table> =>
  memories === undefined ? [] : [{
    title: `Memory, ${memories.what}`,
    note: `Resident MB: the most, and after ${memories.idleSeconds} quiet seconds.`,
    head: ["peer", "most", "idle"],
    rows: memories.measured.map(({ idleMb, peakMb, peer }) => [peer, label(peakMb), label(idleMb)])
  }]

const otherTables = ({ suites: { latency, memory, peak, start, topics } }: Results): ReadonlyArray<Table> => [
  ...(latency === undefined ? [] : [{
    title: `Latency at ${latency.recordsPerSecond} records a second`,
    note:
      `Milliseconds from the producer to a reader in read_committed; ${latency.valueBytes} bytes, ${latency.partitions} partitions.`,
    head: ["peer", "median", "99 %", "max", "records"],
    rows: latency.measured.map((one) => [
      one.peer,
      label(one.median),
      label(one.p99),
      label(one.max),
      String(one.records)
    ])
  }]),
  ...(start === undefined ? [] : [{
    title: "Start to the first readable record",
    note: "Seconds; a fresh flow, its topic is not there yet, one record waits.",
    head: ["peer", "seconds"],
    rows: start.measured.map(({ peer, seconds }) => [peer, shown(spread(seconds))])
  }]),
  ...memoryTable(memory),
  ...memoryTable(topics),
  ...(peak === undefined ? [] : [{
    title: "What the brokers can do at all",
    note: "Kafka's own tools, one at a time; a mirror reads and writes at once.",
    head: ["tool", "MB/s", "CPU s/GB of the tool (whole)"],
    rows: peak.measured.map((one) => [one.tool, shown(spread(one.mbPerSecond)), shown(spread(one.cpuSecondsPerGb))])
  }])
]

export const goalTable = (results: Results): Table => ({
  title: "Goals",
  note: "",
  head: ["figure", "goal", "measured", "verdict"],
  rows: goalsOf(results).map(({ figure, goal, measured, verdict }) => [figure, goal, measured, verdict])
})

export const tablesOf = (results: Results): ReadonlyArray<Table> => {
  const { cost, transform } = results.suites
  return [
    ...comparison("Cost", "One topic of 4 partitions, values of 1 KB, lz4; every peer a fresh process.", cost),
    ...comparison("Cost with a transform", "The same, and a header is added to each record on the way.", transform),
    ...cellTable(results),
    ...otherTables(results)
  ]
}

export const consoleTable = ({ head, note, rows, title }: Table): string => {
  const widths = head.map((name, n) => Math.max(name.length, ...rows.map((row) => (row[n] ?? "").length)))
  const line = (row: ReadonlyArray<string>) => row.map((cell, n) => cell.padEnd(widths[n] ?? 0)).join("  ").trimEnd()
  return ["", title, ...(note === "" ? [] : [note]), line(head), ...rows.map(line)].join("\n")
}

const cell = (text: string): string => text.replaceAll("|", "\\|")

export const markdownTable = ({ head, rows }: Table): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n")
