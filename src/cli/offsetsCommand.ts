/** `onceover offsets`: how translated offsets read on a terminal. */
import type { OffsetRow } from "../mirror/offsetsService.ts"
import { table } from "./table.ts"

const shown = (offset: number | null): string => offset === null ? "?" : String(offset)
const stateOf = ({ exact, reason, state }: OffsetRow): string =>
  [state === "" ? (exact ? "exact" : "not exact") : state, ...(reason === null ? [] : [reason])].join(": ")

/** `back`: the answer is of the source. */
export const renderOffsets = (rows: ReadonlyArray<OffsetRow>, back: boolean): string => {
  if (rows.length === 0) return "no group has offsets in the flow's topics\n"
  const groups = rows.some((row) => row.group !== null)
  const head = ["source", "offset", "target", "offset", ...(groups ? [back ? "on source" : "on target"] : []), ""]
  const body = rows.map((row) => [
    ...(groups ? [row.group ?? ""] : []),
    `${row.sourceTopic}-${row.sourcePartition}`,
    shown(row.sourceOffset),
    `${row.targetTopic}-${row.targetPartition}`,
    shown(row.targetOffset),
    ...(groups ? [row.committed === null ? "none" : String(row.committed)] : []),
    stateOf(row)
  ])
  const first = groups ? 1 : 0
  const right = new Set([first + 1, first + 3, ...(groups ? [first + 4] : [])])
  return `${table(groups ? ["group", ...head] : head, body, right)}\n`
}

/** Whether all that was asked for is known, and where it was to be written, written. */
export const offsetsOk = (rows: ReadonlyArray<OffsetRow>, commit: boolean): boolean =>
  rows.every((row) => row.exact && row.state !== "failed" && (!commit || row.state === "synced"))
