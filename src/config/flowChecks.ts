/** What must hold between the settings of one flow, and between it and the clusters. */
import type { Decoded } from "./decode.ts"
import type { flowSettings } from "./flowSettings.ts"
import { nearest } from "./nearest.ts"
import { type Problem, problem, shown } from "./problems.ts"
import type { FlowKeys } from "./transforms.ts"
import type { ClientSettingValues, GroupProtocol, TransformSpec } from "./types.ts"

export interface FlowFacts {
  /** What could be read of the flow's settings. */
  readonly partial: Partial<Decoded<typeof flowSettings>>
  readonly keys: FlowKeys
  readonly aliases: ReadonlyArray<string>
  readonly protocol: GroupProtocol
  readonly consumer: ClientSettingValues
  readonly transforms: ReadonlyArray<TransformSpec>
}

const checkEnds = ({ partial, keys, aliases }: FlowFacts): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  for (const end of ["source", "target"] as const) {
    const alias = partial[end]
    if (alias !== undefined && !aliases.includes(alias)) {
      problems.push(
        problem(keys.pathOf(end), `is ${shown(alias, false)}, which is not under clusters`, {
          allowed: aliases.join(", ") || "an alias of clusters",
          nearest: nearest(alias, aliases)
        })
      )
    }
  }
  if (partial.source !== undefined && partial.source === partial.target) {
    problems.push(
      problem(
        keys.pathOf("target"),
        `is ${shown(partial.target, false)}, the source of the same flow; a flow never writes where it reads`
      )
    )
  }
  return problems
}

const checkMapping = ({ partial, keys }: FlowFacts): ReadonlyArray<Problem> => {
  const first = new Map<string, string>()
  const problems: Array<Problem> = []
  for (const [from, to] of Object.entries(partial["topic.mapping"] ?? {})) {
    const other = first.get(to)
    if (other === undefined) first.set(to, from)
    else {problems.push(
        problem(
          `${keys.pathOf("topic.mapping")}.${from}`,
          `is ${
            shown(to, false)
          }, to which "${other}" goes already; partition numbers are kept, so two topics cannot become one`
        )
      )}
  }
  return problems
}

const checkGuarantee = ({ partial, keys, protocol, consumer }: FlowFacts): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const exactly = partial["delivery.guarantee"] === "exactly-once"
  if (partial["share.acknowledgement.mode"] === "implicit" && protocol === "share" && exactly) {
    problems.push(
      problem(
        keys.pathOf("share.acknowledgement.mode"),
        "is \"implicit\", which acknowledges before the target has confirmed; it needs delivery.guarantee: at-least-once",
        { allowed: "explicit" }
      )
    )
  }
  if (consumer["isolation.level"]?.toLowerCase() === "read_uncommitted" && exactly) {
    problems.push(
      problem(
        keys.pathOf("consumer.override.isolation.level"),
        "is \"read_uncommitted\", with which aborted records are mirrored; it needs delivery.guarantee: at-least-once",
        { allowed: "read_committed" }
      )
    )
  }
  return problems
}

const DEAD_LETTER = "errors.deadletterqueue.topic.name"

const checkDeadLetters = ({ partial, keys, transforms }: FlowFacts): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const named = keys.raw[DEAD_LETTER] !== undefined
  const diverts = partial["on.record.refused"] === "deadletter"
  if (diverts && !named) {
    problems.push(problem(keys.pathOf("on.record.refused"), `is "deadletter" but ${DEAD_LETTER} names no topic`))
  }
  for (
    const key of ["errors.deadletterqueue.context.headers.enable", "errors.deadletterqueue.topic.replication.factor"]
  ) {
    if (!named && keys.raw[key] !== undefined) {
      problems.push(problem(keys.pathOf(key), `has no effect: ${DEAD_LETTER} names no topic`))
    }
  }
  const hasTransforms = transforms.length > 0 || keys.raw["transforms"] !== undefined
  if (named && !diverts && !hasTransforms) {
    problems.push(
      problem(
        keys.pathOf(DEAD_LETTER),
        "is never used: the flow has no transforms that could fail, and on.record.refused is not deadletter"
      )
    )
  }
  return problems
}

const warningsOf = ({ partial, keys, protocol }: FlowFacts): ReadonlyArray<string> => {
  const only = (key: keyof FlowFacts["partial"], mode: GroupProtocol): ReadonlyArray<string> =>
    keys.raw[key] !== undefined && protocol !== mode
      ? [`${keys.pathOf(key)} has no effect: group.protocol is ${protocol}`]
      : []
  const tolerance = partial["errors.tolerance"] === "all" && keys.raw["transforms"] === undefined
    ? [`${keys.pathOf("errors.tolerance")} has no effect: the flow has no transforms`]
    : []
  return [
    ...only("share.acknowledgement.mode", "share"),
    ...only("group.membership", "consumer"),
    ...only("offset.flush.interval.ms", "consumer"),
    ...tolerance
  ]
}

export const checkFlow = (
  facts: FlowFacts
): { readonly problems: ReadonlyArray<Problem>; readonly warnings: ReadonlyArray<string> } => ({
  problems: [...checkEnds(facts), ...checkMapping(facts), ...checkGuarantee(facts), ...checkDeadLetters(facts)],
  warnings: warningsOf(facts)
})
