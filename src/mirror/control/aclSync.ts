/**
 * Copies rights on topics from the source to the target (acls.ts says which). One pass; made again and again it
 * changes only what differs.
 *
 * Guarantees
 * - Nothing is removed but, in strict mode, what this flow has itself copied (noted before it was created) and the
 *   source no longer has. Rights that were on the target before are never noted, so never removed.
 * - What cannot be read of the source removes nothing.
 * - At no moment is the target more open than before and after: a DENY comes before an ALLOW and goes after it.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { createAcls } from "../../wire/messages/createAcls.ts"
import { deleteAcls } from "../../wire/messages/deleteAcls.ts"
import { describeAcls } from "../../wire/messages/describeAcls.ts"
import type { Naming } from "../naming.ts"
import { type Acl, aclKey, type AclPlan, aclSentence, planAcls, TOPIC_RESOURCE } from "./acls.ts"
import type { ControlLog, Notes } from "./controlLog.ts"
import type { TaskReport } from "./tasks.ts"
import type { MirroredTopic } from "./topics.ts"

export interface AclSyncParts {
  readonly source: Cluster
  readonly targetAdmin: Cluster
  readonly naming: Naming
  readonly topics: () => ReadonlyArray<MirroredTopic>
  readonly notes: ControlLog
  /** Who the mirror is on the target; null: not known. */
  readonly principal: string | null
  readonly strict: boolean
  readonly dryRun: boolean
  readonly onChange: (sentence: string) => void
}

const ANY = 1
const NONE = 0
const SECURITY_DISABLED = 54
const ACLS_A_REQUEST = 500

const noteKey = (acl: string): string => JSON.stringify(["acl", acl])

/** Keys of the rights that are noted as this flow's. */
export const notedAcls = (notes: Notes): ReadonlySet<string> => {
  const found = new Set<string>()
  for (const key of notes.keys()) {
    if (!key.startsWith("[\"acl\",")) continue
    const acl = (JSON.parse(key) as ReadonlyArray<unknown>)[1]
    if (typeof acl === "string") found.add(acl)
  }
  return found
}

/** All rights on topics; null: the cluster has no authorizer, or does not know rights at all. Fails with a BrokerError where they may not be read. */
export const topicAcls = (cluster: Cluster): Effect.Effect<ReadonlyArray<Acl> | null, WireError> =>
  cluster.retrying(Effect.gen(function*() {
    const answer = yield* cluster.request({ kind: "any" }, describeAcls, {
      resourceTypeFilter: TOPIC_RESOURCE,
      resourceNameFilter: null,
      patternTypeFilter: ANY,
      principalFilter: null,
      hostFilter: null,
      operation: ANY,
      permissionType: ANY
    })
    if (answer.errorCode === SECURITY_DISABLED) return null
    if (answer.errorCode !== NONE) {
      return yield* new BrokerError({
        api: "DescribeAcls",
        code: answer.errorCode,
        subject: `cluster "${cluster.name}"`,
        detail: answer.errorMessage
      })
    }
    return answer.resources.flatMap(({ acls, patternType, resourceName, resourceType }) =>
      acls.map((acl): Acl => ({ resourceType, resourceName, patternType, ...acl }))
    )
  })).pipe(Effect.catchTag("UnsupportedError", () => Effect.succeed(null)))

/** What would be done now; null where one of the clusters has no authorizer. */
export const aclPlanNow = (
  parts: Pick<AclSyncParts, "source" | "targetAdmin" | "naming" | "topics" | "principal"> & { readonly noted: Notes }
): Effect.Effect<AclPlan | null, WireError> =>
  Effect.gen(function*() {
    const source = yield* topicAcls(parts.source)
    const target = yield* topicAcls(parts.targetAdmin)
    if (source === null || target === null) return null
    return planAcls({ ...parts, source, target, topics: parts.topics(), ours: notedAcls(parts.noted) })
  })

const refusal = (cluster: Cluster, api: string, acl: Acl, code: number, detail: string | null): BrokerError =>
  new BrokerError({ api, code, subject: `"${aclSentence(acl)}" on "${cluster.name}"`, detail })

const create = (
  cluster: Cluster,
  acls: ReadonlyArray<Acl>
): Effect.Effect<ReadonlyArray<BrokerError | null>, WireError> =>
  cluster.retrying(
    Effect.map(
      cluster.request({ kind: "any" }, createAcls, {
        creations: acls.map(({ patternType, ...acl }) => ({ ...acl, resourcePatternType: patternType }))
      }),
      ({ results }) =>
        acls.map((acl, n) => {
          const result = results[n]
          return result === undefined || result.errorCode === NONE
            ? null
            : refusal(cluster, "CreateAcls", acl, result.errorCode, result.errorMessage)
        })
    )
  )

const remove = (
  cluster: Cluster,
  acls: ReadonlyArray<Acl>
): Effect.Effect<ReadonlyArray<BrokerError | null>, WireError> =>
  cluster.retrying(
    Effect.map(
      cluster.request({ kind: "any" }, deleteAcls, {
        filters: acls.map((acl) => ({
          resourceTypeFilter: acl.resourceType,
          resourceNameFilter: acl.resourceName,
          patternTypeFilter: acl.patternType,
          principalFilter: acl.principal,
          hostFilter: acl.host,
          operation: acl.operation,
          permissionType: acl.permissionType
        }))
      }),
      ({ filterResults }) =>
        acls.map((acl, n) => {
          const result = filterResults[n]
          return result === undefined || result.errorCode === NONE
            ? null
            : refusal(cluster, "DeleteAcls", acl, result.errorCode, result.errorMessage)
        })
    )
  )

const planned = ({ missing, revoked }: AclPlan, strict: boolean): ReadonlyArray<string> => [
  ...missing.map((acl) => `dry run: would be copied: ${aclSentence(acl)}`),
  ...(strict ? revoked.map((acl) => `dry run: would be removed: ${aclSentence(acl)}`) : [])
]

interface Done {
  changed: number
  readonly problems: Array<string>
}

const give = Effect.fnUntraced(function*(parts: AclSyncParts, acls: ReadonlyArray<Acl>, done: Done) {
  for (let at = 0; at < acls.length; at += ACLS_A_REQUEST) {
    const some = acls.slice(at, at + ACLS_A_REQUEST)
    // Noted first: what is created and not noted could never be taken back.
    yield* parts.notes.write(some.map((acl) => [noteKey(aclKey(acl)), "true"]))
    const errors = yield* create(parts.targetAdmin, some)
    some.forEach((acl, n) => {
      const error = errors[n] ?? null
      if (error !== null) done.problems.push(error.message)
      else {
        done.changed++
        parts.onChange(`copied: ${aclSentence(acl)}`)
      }
    })
    const refused = some.filter((_, n) => (errors[n] ?? null) !== null)
    yield* parts.notes.write(refused.map((acl) => [noteKey(aclKey(acl)), null]))
  }
})

const take = Effect.fnUntraced(function*(parts: AclSyncParts, acls: ReadonlyArray<Acl>, done: Done) {
  for (let at = 0; at < acls.length; at += ACLS_A_REQUEST) {
    const some = acls.slice(at, at + ACLS_A_REQUEST)
    const errors = yield* remove(parts.targetAdmin, some)
    some.forEach((acl, n) => {
      const error = errors[n] ?? null
      if (error !== null) done.problems.push(error.message)
      else {
        done.changed++
        parts.onChange(`removed, as the source revoked it: ${aclSentence(acl)}`)
      }
    })
    const gone = some.filter((_, n) => (errors[n] ?? null) === null)
    yield* parts.notes.write(gone.map((acl) => [noteKey(aclKey(acl)), null]))
  }
})

/** One right that is missing is missing for all: said once. */
const once = (problems: ReadonlyArray<string>): ReadonlyArray<string> =>
  problems.length <= 5 ? problems : [...problems.slice(0, 5), `and ${problems.length - 5} more rights`]

export const syncAcls = Effect.fn("syncAcls")(function*(parts: AclSyncParts): Effect.fn.Return<TaskReport, WireError> {
  const noted = yield* parts.notes.read
  const plan = yield* aclPlanNow({ ...parts, noted })
  if (plan === null) return { changed: 0, problems: [], notes: [] }
  if (parts.dryRun) return { changed: 0, problems: [], notes: [...plan.notes, ...planned(plan, parts.strict)] }
  const done: Done = { changed: 0, problems: [] }
  yield* give(parts, plan.missing, done)
  if (parts.strict) {
    yield* take(parts, plan.revoked, done)
    yield* parts.notes.write(plan.forgotten.map((key) => [noteKey(key), null]))
  }
  return { changed: done.changed, problems: once(done.problems), notes: plan.notes }
})
