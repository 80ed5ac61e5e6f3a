/**
 * Which source topics a flow mirrors, and what they are called on the target.
 *
 * Guarantee: pure and total; the same source topic always has the same target topic for one flow. The order of
 * decision is: internal topics, exclude, include, `topic.mapping`, replication policy (contract: single topics are
 * named before the policy).
 *
 * Gotcha: a name alone does not say where a topic is from. One whose name looks as if it came from the target is told
 * with the name that it would have there (`origin`); whether it did is found out by who asks (control/topics.ts).
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
  /** Source and target are one cluster: what the flow writes is among what it reads. */
  readonly sameCluster?: boolean
  /** heartbeats.replication.enabled: topics of heartbeats are mirrored whatever the patterns say. */
  readonly heartbeats?: boolean
}

/** Why a topic of the source is not mirrored, in words for the log; null when it is. */
export type TopicVerdict =
  | { readonly mirrored: true; readonly target: string }
  /**
   * `loop`: the patterns want it, but mirroring it would send it round in a circle. `origin`: its name on the target,
   * if it did come from there.
   */
  | { readonly mirrored: false; readonly loop: boolean; readonly reason: string; readonly origin?: string }

const anchored = (patterns: ReadonlyArray<string>): RegExp | null =>
  patterns.length === 0 ? null : new RegExp(`^(?:${patterns.map((p) => `(?:${p})`).join("|")})$`)

/**
 * "A.B.topic" came through B and then A. Walks over the prefixes that are clusters of ours and stops at the first that
 * is not; gives what stands behind the target's alias, which is the topic's name there. null: not through the target.
 */
const originOnTarget = (topic: string, rules: NamingRules): string | null => {
  let rest = topic
  for (;;) {
    const prefix = [...rules.aliases].find((alias) => rest.startsWith(`${alias}${rules.separator}`))
    if (prefix === undefined) return null
    rest = rest.slice(prefix.length + rules.separator.length)
    if (prefix === rules.targetAlias) return rest
  }
}

/** MirrorMaker 2's topic of heartbeats, written at both ends of its flows. */
export const HEARTBEATS = "heartbeats"

/**
 * "heartbeats", or with what it came through before it: any word counts there, as for MirrorMaker 2, because a client
 * counts the hops of clusters that no configuration names.
 */
const isHeartbeats = (topic: string, separator: string): boolean =>
  topic === HEARTBEATS || topic.endsWith(`${separator}${HEARTBEATS}`)

/** MirrorMaker 2's internal topics, which no pattern of a user is meant for. */
const INTERNAL = /^(?:__.*|\..*|mm2.*\.internal|.*\.checkpoints\.internal)$/

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
    return rules.policy === "identity" && !isHeartbeats(topic, rules.separator)
      ? topic
      : `${rules.sourceAlias}${rules.separator}${topic}`
  }
  const written = new Set(rules.mapping.values())
  /** On one cluster: whether the flow itself has written it, or would write it to itself. */
  const ownOutput = (topic: string): boolean =>
    rules.sameCluster === true &&
    (targetName(topic) === topic || written.has(topic) ||
      (rules.policy === "default" && topic.startsWith(`${rules.sourceAlias}${rules.separator}`)))
  /** With any policy their names alone tell where they are from: one that came through the target is not sent back. */
  const heartbeats = (topic: string): TopicVerdict | null => {
    const { mapping, policy, separator, sourceAlias, targetAlias } = rules
    const wanted = rules.heartbeats === true
    if (!(wanted || policy === "identity") || !isHeartbeats(topic, separator) || mapping.has(topic)) return null
    const own = rules.sameCluster === true ? sourceAlias : targetAlias
    if (`${separator}${topic}`.includes(`${separator}${own}${separator}`)) {
      return { mirrored: false, loop: false, reason: `its name says that it came through "${own}"` }
    }
    return wanted ? { mirrored: true, target: targetName(topic) } : null
  }
  const verdict = (topic: string): TopicVerdict => {
    const beat = heartbeats(topic)
    if (beat !== null) return beat
    if (INTERNAL.test(topic) && !rules.mapping.has(topic)) {
      return { mirrored: false, loop: false, reason: "it is an internal topic; name it in topic.mapping to mirror it" }
    }
    if (exclude?.test(topic)) return { mirrored: false, loop: false, reason: "topics.exclude matches it" }
    if (!include?.test(topic)) return { mirrored: false, loop: false, reason: "no pattern of topics matches it" }
    if (ownOutput(topic)) {
      return {
        mirrored: false,
        loop: true,
        reason: "source and target are one cluster, and this is what the flow itself writes"
      }
    }
    // With prefixes, a topic that carries the target's alias came from there: mirroring it back is a loop.
    const origin = rules.policy === "default" && !rules.mapping.has(topic) ? originOnTarget(topic, rules) : null
    if (origin !== null) {
      return {
        mirrored: false,
        loop: true,
        reason:
          `its name says that it came from "${rules.targetAlias}", the target of this flow, which has a topic ${origin}; name it in topic.mapping to mirror it all the same`,
        origin
      }
    }
    return { mirrored: true, target: targetName(topic) }
  }
  return { verdict, targetName }
}
