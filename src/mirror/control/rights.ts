/**
 * What the principals may do, asked before anything is done: brokers tell the operations that are allowed on a group
 * or a topic (KIP-430), and a creation that is only validated tells the rest. Changes nothing.
 *
 * A broker that does not tell (older than 2.3) counts as allowing: what is missing then shows when it is tried.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { createTopics } from "../../wire/messages/createTopics.ts"
import { describeGroups } from "../../wire/messages/describeGroups.ts"
import { metadata } from "../../wire/messages/metadata.ts"
import type { TopicWish } from "./topics.ts"

/** Kafka's AclOperation codes: the bit of each in a set of operations. */
const READ = 3
const WRITE = 4
/** "Not asked, or not told." */
const UNKNOWN = -2_147_483_648
/** Above, a group that does not exist is an error and tells nothing. */
const DESCRIBE_GROUPS = 5
const NONE = 0
const VALIDATE_TIMEOUT_MS = 30_000

export const allows = (operations: number, operation: number): boolean =>
  operations === UNKNOWN || ((operations >> operation) & 1) === 1

/** Why the group cannot be read with; null when it can. Also of a group that does not exist yet, and of any type. */
export const groupRefusal = (source: Cluster, groupId: string): Effect.Effect<string | null, WireError> => {
  const to = { kind: "group", key: groupId } as const
  const ask = Effect.gen(function*() {
    const answer = yield* source.request(to, describeGroups, { groups: [groupId], includeAuthorizedOperations: true }, {
      maxVersion: DESCRIBE_GROUPS,
      minVersion: 3
    })
    const found = answer.groups[0]
    if (found === undefined) return null
    if (found.errorCode !== NONE) {
      return yield* new BrokerError({
        api: "DescribeGroups",
        code: found.errorCode,
        subject: `group ${groupId}`,
        detail: null
      })
    }
    return allows(found.authorizedOperations, READ) ? null : `group ${groupId}: the principal may not READ the group`
  })
  return source.retrying(ask, { destination: to }).pipe(
    Effect.catchTag("UnsupportedError", () => Effect.succeed(null)),
    Effect.catchTag("BrokerError", (error) =>
      error.class === "authorization"
        ? Effect.succeed(`group ${groupId}: the principal may not READ the group: ${error.message}`)
        : Effect.fail(error))
  )
}

/** The topics of these on which an operation is not allowed. */
const without = (
  cluster: Cluster,
  names: ReadonlyArray<string>,
  operation: number
): Effect.Effect<ReadonlyArray<string>, WireError> => {
  if (names.length === 0) return Effect.succeed([])
  const ask = cluster.request({ kind: "any" }, metadata, {
    topics: names.map((name) => ({ name })),
    allowAutoTopicCreation: false,
    includeTopicAuthorizedOperations: true
  }, { minVersion: 8 })
  return cluster.retrying(ask).pipe(
    Effect.map((answer) =>
      answer.topics.flatMap(({ errorCode, name, topicAuthorizedOperations }) =>
        errorCode !== NONE || name === null || allows(topicAuthorizedOperations, operation) ? [] : [name]
      )
    ),
    Effect.catchTag("UnsupportedError", () => Effect.succeed([]))
  )
}

/** Topics that may not be read. */
export const unreadable = (
  source: Cluster,
  names: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<string>, WireError> => without(source, names, READ)

/** Topics that are there and may not be written. */
export const unwritable = (
  target: Cluster,
  names: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<string>, WireError> => without(target, names, WRITE)

/** Topics that could not be created, with the broker's reason: a right, a policy, too few brokers for the replicas. */
export const uncreatable = (
  target: Cluster,
  wishes: ReadonlyArray<TopicWish>,
  replicationFactor: number
): Effect.Effect<ReadonlyMap<string, string>, WireError> => {
  if (wishes.length === 0) return Effect.succeed(new Map())
  const to = { kind: "controller" } as const
  const ask = target.request(to, createTopics, {
    topics: wishes.map(({ name, partitions }) => ({
      name,
      numPartitions: partitions,
      replicationFactor,
      assignments: [],
      configs: []
    })),
    timeoutMs: VALIDATE_TIMEOUT_MS,
    validateOnly: true
  })
  return Effect.map(target.retrying(ask, { destination: to }), (answer) =>
    new Map(
      answer.topics.flatMap(({ errorCode, errorMessage, name }) => {
        if (errorCode === NONE) return []
        const error = new BrokerError({ api: "CreateTopics", code: errorCode, subject: name, detail: errorMessage })
        return [[name, error.message] as const]
      })
    ))
}
