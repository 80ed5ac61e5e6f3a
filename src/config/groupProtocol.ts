/**
 * Which group a flow reads through, said on up to three levels (KIP-1302's rule, in our names). The last that says
 * something wins: the worker's `consumer.group.protocol`, the flow's `group.protocol`, the flow's
 * `consumer.override.group.protocol`.
 *
 * Kafka's own consumer setting `group.protocol` has the values classic and consumer and means how a member of a
 * consumer group joins. That is another question here: `group.membership`. The word "classic" is refused with that
 * pointer, so nobody gets a share group who asked for a classic one.
 */
import { nearest } from "./nearest.ts"
import { type Problem, problem, shown } from "./problems.ts"
import type { Tree } from "./tree.ts"
import type { GroupProtocol, Sourced } from "./types.ts"

export interface ProtocolLevel {
  readonly path: string
  /** "the worker's consumer.group.protocol", for people. */
  readonly level: string
  /** undefined: this level says nothing. */
  readonly value: Tree | undefined
}

const VALUES = ["share", "consumer"] as const

export const parseGroupProtocol = (at: ProtocolLevel): GroupProtocol | Problem => {
  const text = typeof at.value === "string" ? at.value.trim().toLowerCase() : null
  const found = VALUES.find((value) => value === text)
  if (found !== undefined) return found
  if (text === "classic") {
    return problem(
      at.path,
      `is "classic" (${at.level}); for a consumer group with classic membership write group.protocol: consumer and group.membership: classic`,
      { allowed: VALUES.join(", ") }
    )
  }
  return problem(at.path, `is ${shown(at.value, false)} (${at.level})`, {
    allowed: VALUES.join(", "),
    nearest: text === null ? null : nearest(text, VALUES)
  })
}

/** The levels in rising order of weight. A wrong value on any level is a problem, also where another level wins. */
export const resolveGroupProtocol = (
  levels: ReadonlyArray<ProtocolLevel>
): { readonly resolved: Sourced<GroupProtocol>; readonly problems: ReadonlyArray<Problem> } => {
  const problems: Array<Problem> = []
  let resolved: Sourced<GroupProtocol> = { value: "share", origin: "the default" }
  for (const level of levels) {
    if (level.value === undefined) continue
    const parsed = parseGroupProtocol(level)
    if (typeof parsed === "string") resolved = { value: parsed, origin: `${level.level} (${level.path})` }
    else problems.push(parsed)
  }
  return { resolved, problems }
}
