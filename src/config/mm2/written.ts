/**
 * MirrorMaker 2's files as settings that remember their line: a properties file for the dedicated driver
 * (`clusters = A, B`), and what a connector is given in Connect, as properties or as JSON.
 *
 * Guarantee: values are trimmed, as Kafka's ConfigDef does; a file that is neither is told apart here.
 */
import { type Problem, problem } from "../problems.ts"
import { looksLikeProperties, readProperties } from "../properties.ts"
import { isTreeMap, readTree, type Tree, type TreeMap } from "../tree.ts"

/** One setting as it stands in the file. */
export interface Written {
  readonly key: string
  readonly value: string
  /** 1-based. */
  readonly line: number | null
}

export interface Mm2File {
  /** `driver`: clusters and flows by prefixes; `connector`: one flow, as Connect's REST takes it. */
  readonly style: "driver" | "connector"
  readonly settings: ReadonlyArray<Written>
  readonly problems: ReadonlyArray<Problem>
}

const CONNECTOR = /(?:^|\.)Mirror(?:Source|Checkpoint|Heartbeat)Connector$/

const styleOf = (settings: ReadonlyArray<Written>): Mm2File["style"] =>
  settings.some(({ key, value }) => key === "connector.class" && CONNECTOR.test(value)) ? "connector" : "driver"

const fromProperties = (text: string): Mm2File => {
  const { entries, lines, malformed } = readProperties(text)
  const settings = [...entries].map(([key, value]): Written => ({
    key: key.trim(),
    value: value.trim(),
    line: lines.get(key) ?? null
  }))
  const problems = malformed.map((line) => problem("", `has a malformed \\u escape at line ${line}`, { line }))
  return { style: styleOf(settings), settings, problems }
}

/** `{ "name": ..., "config": { ... } }`, or the config alone. null: it is no connector of MirrorMaker 2. */
const connectorMap = (root: Tree): { readonly map: TreeMap; readonly at: string } | null => {
  if (!isTreeMap(root)) return null
  const inner = root["config"]
  const [map, at] = isTreeMap(inner) ? [inner, "config."] : [root, ""]
  const type = map["connector.class"]
  return typeof type === "string" && CONNECTOR.test(type) ? { map, at } : null
}

const fromJson = (text: string): Mm2File | null => {
  const { problems, tree } = readTree(text)
  const found = problems.length > 0 ? null : connectorMap(tree.root)
  if (found === null) return null
  const wrong: Array<Problem> = []
  const settings: Array<Written> = []
  for (const [key, value] of Object.entries(found.map)) {
    const line = tree.line(found.at + key)
    if (typeof value === "object" && value !== null) {
      wrong.push(problem(key, "is a map or a list", { allowed: "text", ...(line === null ? {} : { line }) }))
    } else settings.push({ key, value: (tree.written(found.at + key) ?? String(value ?? "")).trim(), line })
  }
  return { style: "connector", settings, problems: wrong }
}

/** Reads a file of MirrorMaker 2; null when it is none (a configuration of ours, or something else). Never throws. */
export const readMm2 = (path: string, text: string): Mm2File | null =>
  looksLikeProperties(path, text) ? fromProperties(text) : /"connector\.class"/.test(text) ? fromJson(text) : null
