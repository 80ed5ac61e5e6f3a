/**
 * The rights that a flow's features need and its principals do not have, by name. Asked of the brokers, which tell what
 * is allowed on topics and groups (KIP-430) and on the cluster (KIP-700); of transactional ids they only refuse what is
 * not. Changes nothing.
 *
 * Brokers that do not tell (older than 2.3, for the cluster than 2.8) count as allowing.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { describeCluster } from "../../wire/messages/describeCluster.ts"
import { describeGroups } from "../../wire/messages/describeGroups.ts"
import { endTxn } from "../../wire/messages/endTxn.ts"
import { metadata } from "../../wire/messages/metadata.ts"
import { OPERATIONS } from "./acls.ts"
import { allows, uncreatable } from "./rights.ts"

/** Groups at a time. */
const CONCURRENCY = 4

export interface MissingRight {
  /** What does not work without it: "settings", "acls", ... */
  readonly feature: string
  /** "User:mirror"; "the principal" where only the broker knows. */
  readonly principal: string
  /** The cluster's alias. */
  readonly cluster: string
  /** "ALTER_CONFIGS" */
  readonly operation: string
  readonly resource: "TOPIC" | "GROUP" | "CLUSTER" | "TRANSACTIONAL_ID"
  /** Topics, groups, transactional ids; the cluster has "kafka-cluster". */
  readonly names: ReadonlyArray<string>
}

export interface Need {
  readonly feature: string
  readonly operation: string
}

/** Whom to ask, and as whom. */
export interface Asked {
  readonly cluster: Cluster
  readonly principal: string
}

const NONE = 0
const TOPIC_AUTHORIZATION_FAILED = 29
const TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
/** Above, a group that does not exist is an error and tells nothing. */
const DESCRIBE_GROUPS = 5
const CLUSTER_NAME = "kafka-cluster"

const sorted = (names: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(names)].toSorted()

/** Of topics that are there, or may not be seen: then none is allowed. */
export const missingOnTopics = (
  { cluster, principal }: Asked,
  topics: ReadonlyArray<string>,
  needs: ReadonlyArray<Need>
): Effect.Effect<ReadonlyArray<MissingRight>, WireError> => {
  if (topics.length === 0 || needs.length === 0) return Effect.succeed([])
  const ask = cluster.request({ kind: "any" }, metadata, {
    topics: topics.map((name) => ({ name })),
    allowAutoTopicCreation: false,
    includeTopicAuthorizedOperations: true
  }, { minVersion: 8 })
  return cluster.retrying(ask).pipe(
    Effect.map((answer) =>
      needs.flatMap(({ feature, operation }): ReadonlyArray<MissingRight> => {
        const names = answer.topics.flatMap(({ errorCode, name, topicAuthorizedOperations }) =>
          name === null || (errorCode !== NONE && errorCode !== TOPIC_AUTHORIZATION_FAILED) ||
            (errorCode === NONE && allows(topicAuthorizedOperations, OPERATIONS.indexOf(operation)))
            ? []
            : [name]
        )
        return names.length === 0
          ? []
          : [{ feature, principal, cluster: cluster.name, operation, resource: "TOPIC", names: sorted(names) }]
      })
    ),
    Effect.catchTag("UnsupportedError", () => Effect.succeed([]))
  )
}

/** The operations that are allowed on a group, be it there or not; null: not even to see it. */
const operationsOn = (cluster: Cluster, group: string): Effect.Effect<number | null, WireError> => {
  const to = { kind: "group", key: group } as const
  const ask = Effect.gen(function*() {
    const answer = yield* cluster.request(to, describeGroups, { groups: [group], includeAuthorizedOperations: true }, {
      maxVersion: DESCRIBE_GROUPS,
      minVersion: 3
    })
    const { authorizedOperations = 0, errorCode = NONE } = answer.groups[0] ?? {}
    if (errorCode === NONE) return authorizedOperations
    return yield* new BrokerError({
      api: "DescribeGroups",
      code: errorCode,
      subject: `group ${group}`,
      detail: null
    })
  })
  return Effect.catchTag(
    cluster.retrying(ask, { destination: to }),
    "BrokerError",
    (error) => error.class === "authorization" ? Effect.succeed(null) : Effect.fail(error)
  )
}

/** Groups of any type, be they there or not. */
export const missingOnGroups = (
  { cluster, principal }: Asked,
  groups: ReadonlyArray<string>,
  needs: ReadonlyArray<Need>
): Effect.Effect<ReadonlyArray<MissingRight>, WireError> => {
  if (needs.length === 0) return Effect.succeed([])
  return Effect.forEach(
    groups,
    (group) => Effect.map(operationsOn(cluster, group), (operations) => ({ group, operations })),
    { concurrency: CONCURRENCY }
  ).pipe(
    Effect.map((found) =>
      needs.flatMap(({ feature, operation }): ReadonlyArray<MissingRight> => {
        const names = found.filter(({ operations }) =>
          operations === null || !allows(operations, OPERATIONS.indexOf(operation))
        ).map(({ group }) => group)
        return names.length === 0
          ? []
          : [{ feature, principal, cluster: cluster.name, operation, resource: "GROUP", names: sorted(names) }]
      })
    ),
    Effect.catchTag("UnsupportedError", () => Effect.succeed([]))
  )
}

/**
 * Whether a transaction could be written under an id. The coordinator looks at the right first; what is asked, to end the
 * transaction of a producer that does not exist, it then refuses.
 */
export const missingOnTransactions = (
  { cluster, principal }: Asked,
  transactionalId: string,
  shown: string,
  feature: string
): Effect.Effect<ReadonlyArray<MissingRight>, WireError> => {
  const to = { kind: "transaction", key: transactionalId } as const
  const ask = Effect.gen(function*() {
    const { errorCode } = yield* cluster.request(to, endTxn, {
      transactionalId,
      producerId: Number.MAX_SAFE_INTEGER,
      producerEpoch: 0,
      committed: false
    })
    const error = new BrokerError({ api: "EndTxn", code: errorCode, subject: transactionalId, detail: null })
    return error.class === "coordinator" ? yield* error : errorCode
  })
  const refused = Effect.catchTag(
    cluster.retrying(ask, { destination: to }),
    "BrokerError",
    (error) => Effect.succeed(error.code)
  )
  return Effect.map(
    refused,
    (code): ReadonlyArray<MissingRight> =>
      code !== TRANSACTIONAL_ID_AUTHORIZATION_FAILED ? [] : [{
        feature,
        principal,
        cluster: cluster.name,
        operation: "WRITE",
        resource: "TRANSACTIONAL_ID",
        names: [shown]
      }]
  ).pipe(Effect.catchTag("UnsupportedError", () => Effect.succeed([])))
}

/** A topic of onceover's own that would have to be made, and may not be. */
export const missingToCreate = (
  { cluster, principal }: Asked,
  topic: string,
  feature: string
): Effect.Effect<ReadonlyArray<MissingRight>, WireError> =>
  Effect.gen(function*() {
    // One that may not be seen may be there: then creating it is refused for that.
    const seen = yield* Effect.catchTag(cluster.retrying(cluster.topics([topic])), "BrokerError", (error) =>
      error.class === "authorization" ? Effect.succeed(new Map<string, never>()) : Effect.fail(error))
    if (seen.has(topic)) {
      return []
    }
    const refused = yield* uncreatable(cluster, [{ name: topic, partitions: 1 }], -1)
    return /_AUTHORIZATION_FAILED/.test(refused.get(topic) ?? "")
      ? [{ feature, principal, cluster: cluster.name, operation: "CREATE", resource: "TOPIC", names: [topic] }]
      : []
  })

export const missingOnCluster = (
  { cluster, principal }: Asked,
  needs: ReadonlyArray<Need>
): Effect.Effect<ReadonlyArray<MissingRight>, WireError> => {
  if (needs.length === 0) return Effect.succeed([])
  const ask = cluster.request({ kind: "any" }, describeCluster, { includeClusterAuthorizedOperations: true })
  return cluster.retrying(ask).pipe(
    Effect.map((answer) =>
      answer.errorCode !== NONE ?
        [] :
        needs.flatMap(({ feature, operation }): ReadonlyArray<MissingRight> =>
          allows(answer.clusterAuthorizedOperations, OPERATIONS.indexOf(operation))
            ? []
            : [{ feature, principal, cluster: cluster.name, operation, resource: "CLUSTER", names: [CLUSTER_NAME] }]
        )
    ),
    Effect.catchTag("UnsupportedError", () => Effect.succeed([]))
  )
}

const SHOWN = 3

const listed = (names: ReadonlyArray<string>): string =>
  names.length <= SHOWN
    ? names.join(", ")
    : `${names.slice(0, SHOWN).join(", ")} and ${names.length - SHOWN} more`

export const rightSentence = ({ cluster, feature, names, operation, principal, resource }: MissingRight): string =>
  `${principal} lacks ${operation} on ${resource} ${listed(names)} of "${cluster}": ${feature}`
