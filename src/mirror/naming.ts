/**
 * Which source topics a flow mirrors, and what they are called on the target.
 *
 * Guarantee: pure and total; the same source topic always has the same target topic for one flow. The order of
 * decision is: exclude, include, `topic.mapping`, replication policy (contract: single topics are named before
 * the policy).
 */

export interface NamingRules {
  readonly sourceAlias: string
  readonly targetAlias: string
  /** Every cluster alias of the configuration: only these count as prefixes, so a local "orders.v1" is no remote topic. */
  readonly aliases: ReadonlySet<string>
  readonly policy: "default" | "identity"
  readonly separator: string
  readonly mapping: ReadonlyMap<string, string>
  /** Regular expressions, anchored here, as MirrorMaker 2 does. */
  readonly include: ReadonlyArray<string>
  readonly exclude: ReadonlyArray<string>
}

/** Why a topic of the source is not mirrored, in words for the log; null when it is. */
export type TopicVerdict =
  | { readonly mirrored: true; readonly target: string }
  /** `loop`: the patterns want it, but mirroring it would send it round in a circle. */
  | { readonly mirrored: false; readonly loop: boolean; readonly reason: string }

const anchored = (patterns: ReadonlyArray<string>): RegExp | null =>
  patterns.length === 0 ? null : new RegExp(`^(?:${patterns.map((p) => `(?:${p})`).join("|")})$`)

/** "A.B.topic" came through B and then A. Walks over the prefixes that are clusters of ours and stops at the first that is not. */
const passedThrough = (topic: string, rules: NamingRules): boolean => {
  let rest = topic
  for (;;) {
    const prefix = [...rules.aliases].find((alias) => rest.startsWith(`${alias}${rules.separator}`))
    if (prefix === undefined) return false
    if (prefix === rules.targetAlias) return true
    rest = rest.slice(prefix.length + rules.separator.length)
  }
}

export interface Naming {
  readonly verdict: (topic: string) => TopicVerdict
  /** The target's name of a topic, whatever the include list says. */
  readonly targetName: (topic: string) => string
}

/** Builds the naming of one flow. The patterns were compiled once by the configuration, so they are valid here. */
export const makeNaming = (rules: NamingRules): Naming => {
  const include = anchored(rules.include)
  const exclude = anchored(rules.exclude)
  const targetName = (topic: string): string => {
    const mapped = rules.mapping.get(topic)
    if (mapped !== undefined) return mapped
    return rules.policy === "identity" ? topic : `${rules.sourceAlias}${rules.separator}${topic}`
  }
  const verdict = (topic: string): TopicVerdict => {
    if (exclude?.test(topic)) return { mirrored: false, loop: false, reason: "topics.exclude matches it" }
    if (!include?.test(topic)) return { mirrored: false, loop: false, reason: "no pattern of topics matches it" }
    // With prefixes, a topic that carries the target's alias came from there: mirroring it back is a loop.
    if (rules.policy === "default" && !rules.mapping.has(topic) && passedThrough(topic, rules)) {
      return {
        mirrored: false,
        loop: true,
        reason:
          `its name says that it came from "${rules.targetAlias}", the target of this flow; name it in topic.mapping to mirror it all the same`
      }
    }
    return { mirrored: true, target: targetName(topic) }
  }
  return { verdict, targetName }
}
