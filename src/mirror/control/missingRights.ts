/**
 * The rights that a flow's features need and its principals do not have, by name. Asked of the brokers, which tell what
 * is allowed on topics (KIP-430) and on the cluster (KIP-700). Changes nothing.
 *
 * Brokers that do not tell (older than 2.3, for the cluster than 2.8) count as allowing.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { describeCluster } from "../../wire/messages/describeCluster.ts"
import { metadata } from "../../wire/messages/metadata.ts"
import { OPERATIONS } from "./acls.ts"
import { allows } from "./rights.ts"

export interface MissingRight {
  /** What does not work without it: "settings", "acls", ... */
  readonly feature: string
  /** "User:mirror"; "the principal" where only the broker knows. */
  readonly principal: string
  /** The cluster's alias. */
  readonly cluster: string
  /** "ALTER_CONFIGS" */
  readonly operation: string
  readonly resource: "TOPIC" | "CLUSTER"
  /** Topics; the cluster has "kafka-cluster". */
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
const CLUSTER_NAME = "kafka-cluster"

/** Of topics that are there; one that is not, or may not be seen, is left out. */
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
          errorCode !== NONE || name === null || allows(topicAuthorizedOperations, OPERATIONS.indexOf(operation))
            ? []
            : [name]
        )
        return names.length === 0
          ? []
          : [{ feature, principal, cluster: cluster.name, operation, resource: "TOPIC", names: names.toSorted() }]
      })
    ),
    Effect.catchTag("UnsupportedError", () => Effect.succeed([]))
  )
}

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
