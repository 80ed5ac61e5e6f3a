/** `onceover verify`: how a report reads on a terminal, and how far the work is while it runs. */
import type { Difference, VerifiedFlow, VerifiedPartition, VerifyReport } from "../mirror/verify/report.ts"
import { indented, table } from "./table.ts"

const number = (n: number): string => n.toLocaleString("en-US")

/** Lines of one partition that are told; the JSON document has up to 100 of a kind. */
const SHOWN = 10

const named = (difference: Difference): string => {
  const { kind, parts, sourceOffset, targetOffset } = difference
  switch (kind) {
    case "lost":
      return `lost     source offset ${sourceOffset}`
    case "doubled":
      return `doubled  target offset ${targetOffset}`
    case "altered":
      return `altered  source offset ${sourceOffset}, target offset ${targetOffset}: ${parts.join(", ")}`
    case "foreign":
      return `foreign  target offset ${targetOffset}`
  }
}

const differences = (partition: VerifiedPartition): ReadonlyArray<string> => {
  const shown = (["lost", "doubled", "altered", "foreign"] as const).flatMap((kind) =>
    partition.differences.filter((difference) => difference.kind === kind).slice(0, SHOWN)
  )
  const all = partition.lost + partition.doubled + partition.altered + partition.foreign
  return [
    ...shown.map(named),
    ...(all > shown.length ? [`and ${number(all - shown.length)} more (--json names up to 100 of a kind)`] : [])
  ]
}

const EXPLAINED = {
  removedOnSource: "are on the target only: the source has removed them",
  removedOnTarget: "are on the source only: the target has removed them",
  filtered: "were dropped by transforms or came through the target"
} as const

const explained = ({ explained: e }: VerifiedPartition): ReadonlyArray<string> =>
  (["removedOnSource", "removedOnTarget", "filtered"] as const).filter((key) => e[key] > 0)
    .map((key) => `${number(e[key])} records ${EXPLAINED[key]}`)

const detail = (p: VerifiedPartition): string => {
  const lines = [...(p.problem === null ? [] : [p.problem]), ...differences(p), ...p.notes, ...explained(p)]
  return lines.length === 0
    ? ""
    : `${p.sourceTopics[0]}-${p.partition} -> ${p.targetTopic}\n${indented(lines.join("\n"))}`
}

const row = (p: VerifiedPartition): ReadonlyArray<string> => [
  `${p.sourceTopics.join("+")}-${p.partition}`,
  p.targetTopic,
  number(p.source.records),
  number(p.target.records),
  ...[p.lost, p.doubled, p.altered, p.foreign].map(number),
  p.problem !== null ? "not compared" : p.equal ? "equal" : "DIFFERENT"
]

const HEAD = ["partition", "target topic", "source", "target", "lost", "doubled", "altered", "foreign", ""]

const flowText = (flow: VerifiedFlow): string => {
  const verdict = flow.problem !== null ? "could not be compared" : flow.equal ? "is equal" : "is different"
  const lines = [
    ...(flow.problem === null ? [] : [flow.problem]),
    ...flow.notes,
    ...(flow.partitions.length === 0 ? [] : ["", table(HEAD, flow.partitions.map(row), new Set([2, 3, 4, 5, 6, 7]))]),
    ...flow.partitions.map(detail).filter((text) => text !== "").flatMap((text) => ["", text])
  ]
  return `${flow.name}  ${flow.source} -> ${flow.target}  ${verdict}\n${indented(lines.join("\n"))}`
}

export const renderVerify = (report: VerifyReport): string => {
  const partitions = report.flows.flatMap((flow) => flow.partitions)
  const sum = (of: (p: VerifiedPartition) => number) => number(partitions.reduce((all, p) => all + of(p), 0))
  const counts = `${sum((p) => p.source.records)} records: ${sum((p) => p.lost)} lost, ${
    sum((p) => p.doubled)
  } doubled, ${sum((p) => p.altered)} altered, ${sum((p) => p.foreign)} on the target only.`
  return `${[...report.flows.map(flowText), `${report.equal ? "Equal." : "NOT equal."} ${counts}`].join("\n\n")}\n`
}
