/**
 * Which rights the target's topics have to have, from the source's. Pure.
 *
 * MirrorMaker 2's rules: TOPIC resources with LITERAL names that the flow mirrors; ALLOW WRITE stays behind (the mirror
 * alone writes); ALLOW ALL becomes ALLOW READ; all else as it is, every DENY included. Groups, transactional ids, the
 * cluster, prefixed names are never copied.
 *
 * Where MirrorMaker 2 does harm, this does not:
 * 1. A right on `*` becomes one on each mirrored topic. (There it becomes a right on the useless name "A.*", or, with
 *    names kept, one on every topic of the target.)
 * 2. A DENY that would lock the mirror itself out of the topics it writes is not copied as it is: DENY ALL becomes DENY
 *    READ, a DENY of what the mirror needs is left out; both are told.
 */
import type { Naming } from "../naming.ts"

/** Kafka's codes. */
export const TOPIC_RESOURCE = 2
export const LITERAL = 3
export const DENY = 2
export const ALLOW = 3
const WILDCARD = "*"
const EVERYBODY = "User:*"

export const OPERATIONS: ReadonlyArray<string> = [
  "UNKNOWN",
  "ANY",
  "ALL",
  "READ",
  "WRITE",
  "CREATE",
  "DELETE",
  "ALTER",
  "DESCRIBE",
  "CLUSTER_ACTION",
  "DESCRIBE_CONFIGS",
  "ALTER_CONFIGS",
  "IDEMPOTENT_WRITE",
  "CREATE_TOKENS",
  "DESCRIBE_TOKENS",
  "TWO_PHASE_COMMIT"
]
const operation = (name: string): number => OPERATIONS.indexOf(name)
const ALL = operation("ALL")
const READ = operation("READ")
const WRITE = operation("WRITE")
/** What the mirror does with the topics it writes. */
const NEEDED: ReadonlySet<number> = new Set(
  ["WRITE", "CREATE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"].map(operation)
)

/** A right, on whichever cluster. */
export interface Acl {
  readonly resourceType: number
  readonly resourceName: string
  readonly patternType: number
  /** "User:alice" */
  readonly principal: string
  readonly host: string
  readonly operation: number
  readonly permissionType: number
}

export const aclKey = (acl: Acl): string =>
  JSON.stringify([
    acl.resourceType,
    acl.patternType,
    acl.resourceName,
    acl.principal,
    acl.host,
    acl.operation,
    acl.permissionType
  ])

/** The reverse of `aclKey`; null where it is none. */
export const aclOfKey = (key: string): Acl | null => {
  let parts: unknown
  try {
    parts = JSON.parse(key)
  } catch {
    return null
  }
  if (!Array.isArray(parts) || parts.length !== 7) return null
  const [resourceType, patternType, resourceName, principal, host, op, permissionType] = parts as ReadonlyArray<unknown>
  const number = (value: unknown): value is number => typeof value === "number"
  const text = (value: unknown): value is string => typeof value === "string"
  return number(resourceType) && number(patternType) && text(resourceName) && text(principal) && text(host) &&
      number(op) && number(permissionType)
    ? { resourceType, patternType, resourceName, principal, host, operation: op, permissionType }
    : null
}

export const aclSentence = (acl: Acl): string =>
  `${acl.permissionType === DENY ? "DENY" : "ALLOW"} ${acl.principal} from ${acl.host} to ${
    OPERATIONS[acl.operation] ?? acl.operation
  } topic ${acl.resourceName}`

export interface AclInputs {
  /** All rights on topics of the source. */
  readonly source: ReadonlyArray<Acl>
  /** All rights on topics of the target. */
  readonly target: ReadonlyArray<Acl>
  readonly naming: Pick<Naming, "verdict">
  /** Source topics that are mirrored now, and their targets: what a right on `*` stands for. */
  readonly topics: ReadonlyArray<{ readonly source: string; readonly target: string }>
  /** Who the mirror is on the target ("User:mirror"); null: only its brokers know (a certificate, a token), so anybody. */
  readonly principal: string | null
  /** Keys of the rights that this flow has copied before. */
  readonly ours: ReadonlySet<string>
}

export interface AclPlan {
  /** To create; every DENY before every ALLOW. */
  readonly missing: ReadonlyArray<Acl>
  /** What this flow has copied, is still on the target, and is not on the source any more; every ALLOW before every DENY. */
  readonly revoked: ReadonlyArray<Acl>
  /** Keys of ours that nobody has any more. */
  readonly forgotten: ReadonlyArray<string>
  /** What was left out or narrowed for the mirror's own sake, one sentence each. */
  readonly notes: ReadonlyArray<string>
}

/** The right as it is for one target topic; null: it stays behind. */
const translated = (acl: Acl, target: string, principal: string | null, notes: Set<string>): Acl | null => {
  const there = { ...acl, resourceName: target }
  if (acl.permissionType === ALLOW) {
    if (acl.operation === WRITE) return null
    return acl.operation === ALL ? { ...there, operation: READ } : there
  }
  const hitsMirror = acl.principal === EVERYBODY || acl.principal === principal
  if (!hitsMirror && principal !== null) return there
  const locks = hitsMirror
    ? "would lock the mirror out"
    : "may lock the mirror out (only the target's brokers know its principal)"
  if (acl.operation === ALL) {
    notes.add(`${aclSentence(there)} ${locks}: it is copied as DENY READ`)
    return { ...there, operation: READ }
  }
  if (!NEEDED.has(acl.operation)) return there
  notes.add(`${aclSentence(there)} ${locks}: it is not copied`)
  return null
}

/** The target topics that a right of the source is about. */
const targetsOf = (acl: Acl, { naming, topics }: AclInputs): ReadonlyArray<string> => {
  if (acl.resourceType !== TOPIC_RESOURCE || acl.patternType !== LITERAL) return []
  if (acl.resourceName === WILDCARD) return topics.map((topic) => topic.target)
  // A topic whose target was chosen otherwise (created again, under a name of its own) is named by the list.
  const now = topics.filter((topic) => topic.source === acl.resourceName)
  if (now.length > 0) return now.map((topic) => topic.target)
  const verdict = naming.verdict(acl.resourceName)
  return verdict.mirrored ? [verdict.target] : []
}

const inOrder = (acls: Iterable<Acl>, first: number): ReadonlyArray<Acl> => {
  const all = [...acls]
  return [...all.filter((acl) => acl.permissionType === first), ...all.filter((acl) => acl.permissionType !== first)]
}

/** What is to be created and, in strict mode, deleted. Nothing that others gave on the target is ever in `revoked`. */
export const planAcls = (inputs: AclInputs): AclPlan => {
  const notes = new Set<string>()
  const wanted = new Map<string, Acl>()
  for (const acl of inputs.source) {
    for (const target of targetsOf(acl, inputs)) {
      const there = translated(acl, target, inputs.principal, notes)
      if (there !== null) wanted.set(aclKey(there), there)
    }
  }
  const present = new Set(inputs.target.map(aclKey))
  const missing = [...wanted].filter(([key]) => !present.has(key)).map(([, acl]) => acl)
  const revoked: Array<Acl> = []
  const forgotten: Array<string> = []
  for (const key of inputs.ours) {
    if (wanted.has(key)) continue
    const acl = aclOfKey(key)
    if (acl !== null && present.has(key)) revoked.push(acl)
    else forgotten.push(key)
  }
  return { missing: inOrder(missing, DENY), revoked: inOrder(revoked, ALLOW), forgotten, notes: [...notes] }
}
