/** Columns of text for a terminal. */

/** Control characters of a topic name or a broker's message must not reach the terminal. */
const clean = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "?")

/** Rows under a head, columns two spaces apart; `right` names the columns to align to the right. */
export const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  right: ReadonlySet<number> = new Set()
): string => {
  const all = [head, ...rows].map((row) => row.map(clean))
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? "").length)))
  const line = (row: ReadonlyArray<string>): string =>
    row.map((cell, i) => right.has(i) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)).join("  ")
      .trimEnd()
  return all.map(line).join("\n")
}

export const indented = (text: string): string =>
  text.split("\n").map((line) => line === "" ? line : `  ${line}`).join("\n")
