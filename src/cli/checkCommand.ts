/** `onceover check`: how a report of what would run reads on a terminal. */
import type { CheckReport } from "../mirror/check.ts"
import { rightSentence } from "../mirror/control/missingRights.ts"
import { indented, table } from "./table.ts"

type Flow = CheckReport["flows"][number]
type Cluster = CheckReport["clusters"][number]

const clusterRow = (cluster: Cluster): ReadonlyArray<string> => [
  cluster.alias,
  cluster.clusterId ?? "not reached",
  String(cluster.brokers),
  Object.entries(cluster.features).map(([name, level]) => `${name}=${level}`).join(" ")
]

const SHOWN = 20
const shortened = (lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length <= SHOWN ? lines : [...lines.slice(0, SHOWN), `and ${lines.length - SHOWN} more; --json has them all`]

const flowText = (flow: Flow): string => {
  const g = flow.guarantee
  const verdict = !flow.enabled ? "is off" : flow.problems.length === 0 ? "would run" : "would not run"
  const lines = [
    `group      ${flow.groupId} (${flow.mode})`,
    `guarantee  ${g.effective ?? "none"} (wanted: ${g.wanted})${g.binding === null ? "" : `, binding ${g.binding}`}`,
    ...g.reasons.map((reason) => `           ${reason}`),
    ...flow.problems.map((problem) => `problem    ${problem}`),
    ...flow.warnings.map((warning) => `warning    ${warning}`),
    ...flow.rights.map((right) => `right      ${rightSentence(right)}`),
    ...shortened(flow.changes).map((change) => `change     ${change}`),
    "",
    flow.topics.length === 0 ? "no topics to show" : table(
      ["topic", "target topic", "partitions", ""],
      flow.topics.map((t) => [t.source, t.target, String(t.partitions), t.exists ? "" : "to be created"]),
      new Set([2])
    )
  ]
  return `${flow.name}  ${flow.source} -> ${flow.target}  ${verdict}\n${indented(lines.join("\n"))}`
}

export const renderCheck = (report: CheckReport): string => {
  const clusters = table(["cluster", "id", "brokers", "features"], report.clusters.map(clusterRow), new Set([2]))
  const verdict = report.ok ? "Every flow would run." : "Not every flow would run."
  return `${[clusters, ...report.flows.map(flowText), verdict].join("\n\n")}\n`
}
