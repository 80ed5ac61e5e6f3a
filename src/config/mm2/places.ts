/**
 * What a key of the file is about, by MirrorMaker 2's prefix rules: `clusters` names the aliases, `A.x` is a setting of
 * cluster A, `A->B.x` one of the flow, anything else is for all of them (MirrorMakerConfig, Kafka 4.3).
 *
 * Gotcha: an alias may hold dots and may be a word like "source": the longest alias that fits wins, and an alias wins
 * over a setting that happens to begin like it, but for whole names of settings.
 */
import { nearest } from "../nearest.ts"
import { type Problem, problem } from "../problems.ts"
import { MM2_SETTINGS } from "./settings.ts"
import type { Written } from "./written.ts"

export type Place =
  | { readonly of: "all"; readonly name: string }
  | { readonly of: "cluster"; readonly alias: string; readonly name: string }
  | { readonly of: "flow"; readonly source: string; readonly target: string; readonly name: string }

const FLOW = /^(.+?)->(.+)$/

/** The longest alias that `text` begins with, a dot behind it. */
const leading = (text: string, aliases: ReadonlyArray<string>): string | null =>
  aliases.filter((alias) => text.startsWith(`${alias}.`)).toSorted((a, b) => b.length - a.length)[0] ?? null

const ofFlow = (written: Written, source: string, rest: string, aliases: ReadonlyArray<string>): Place | Problem => {
  const target = leading(rest, aliases)
  const guessed = target ?? rest.split(".")[0] ?? rest
  const wrong = !aliases.includes(source) ? source : target === null ? guessed : null
  if (wrong !== null) {
    return problem(written.key, `is about a cluster "${wrong}", which clusters does not name`, {
      allowed: aliases.join(", "),
      nearest: nearest(wrong, aliases),
      ...(written.line === null ? {} : { line: written.line })
    })
  }
  if (source === guessed) {
    return problem(written.key, "is about a flow from a cluster to itself", {
      ...(written.line === null ? {} : { line: written.line })
    })
  }
  return { of: "flow", source, target: guessed, name: rest.slice(guessed.length + 1) }
}

/** Where a key of a driver's file belongs; a problem where it names a cluster that is not there. */
export const placeOf = (written: Written, aliases: ReadonlyArray<string>): Place | Problem => {
  const flow = FLOW.exec(written.key)
  if (flow !== null) return ofFlow(written, flow[1] as string, flow[2] as string, aliases)
  const alias = MM2_SETTINGS.has(written.key) ? null : leading(written.key, aliases)
  if (alias !== null) return { of: "cluster", alias, name: written.key.slice(alias.length + 1) }
  return { of: "all", name: written.key }
}

const CLUSTER = /^(source|target)\.cluster\.(.+)$/

/** Where a key of a connector belongs: `source.cluster.x` is the cluster's, all else the flow's. */
export const placeInConnector = (
  written: Written,
  ends: { readonly source: string; readonly target: string }
): Place => {
  const cluster = CLUSTER.exec(written.key)
  if (cluster !== null && cluster[2] !== "alias") {
    return { of: "cluster", alias: ends[cluster[1] as "source" | "target"], name: cluster[2] as string }
  }
  return { of: "flow", ...ends, name: written.key }
}
