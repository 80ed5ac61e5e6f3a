/** The options of `onceover verify` as values; a sentence where one is wrong. */
import { parsePattern } from "../config/pattern.ts"
import type { Edge, VerifyOptions } from "../mirror/verify/options.ts"

type Given = Readonly<Record<string, string | boolean | undefined>>

const EDGE_ALLOWED = "an offset of the source, or a time as 2026-01-31 or 2026-01-31T12:00:00Z"
const TIME = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/

/** null: it is neither. A time without a zone is UTC. */
export const parseEdge = (text: string): Edge | null => {
  if (/^\d{1,15}$/.test(text)) return { offset: Number(text) }
  if (!TIME.test(text)) return null
  const zoned = text.length <= 10 || /(Z|[+-]\d{2}:?\d{2})$/.test(text) ? text : `${text}Z`
  const timeMs = Date.parse(zoned.replace(" ", "T"))
  return Number.isNaN(timeMs) ? null : { timeMs }
}

const edge = (given: Given, name: "from" | "to"): Edge | null | string => {
  const text = given[name]
  if (typeof text !== "string") return null
  return parseEdge(text) ?? `--${name} is "${text}"; allowed: ${EDGE_ALLOWED}`
}

/** A text is what is wrong. */
export const verifyOptions = (given: Given): VerifyOptions | string => {
  const from = edge(given, "from")
  const to = edge(given, "to")
  if (typeof from === "string") return from
  if (typeof to === "string") return to
  const pattern = typeof given["topics"] === "string" ? parsePattern(given["topics"]) : null
  if (pattern !== null && !pattern.ok) return `--topics ${JSON.stringify(given["topics"])} ${pattern.why}`
  const sample = typeof given["sample"] === "string" ? given["sample"] : null
  if (sample !== null && !/^[1-9]\d{0,8}$/.test(sample)) {
    return `--sample is "${sample}"; allowed: a number of partitions of each topic, 1 or more`
  }
  return {
    flow: typeof given["flow"] === "string" ? given["flow"] : null,
    topics: pattern === null ? null : new RegExp(`^(?:${pattern.source})$`),
    from,
    to,
    sample: sample === null ? null : Number(sample)
  }
}
