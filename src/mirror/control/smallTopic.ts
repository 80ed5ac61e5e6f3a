/** Topics of one partition that onceover writes for itself or for MirrorMaker 2's clients: found, or made. */
import { Effect } from "effect"
import type { Cluster, TopicMetadata } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { createTopics } from "../../wire/messages/createTopics.ts"

const TOPIC_ALREADY_EXISTS = 36
const INVALID_REPLICATION_FACTOR = 38
const CREATE_MS = 30_000
/** Brokers hear of a new topic one by one. */
const LOOKS = 50
const LOOK_MS = 100

export const findTopic = (cluster: Cluster, name: string): Effect.Effect<TopicMetadata | undefined, WireError> =>
  Effect.map(cluster.retrying(cluster.topics([name])), (found) => found.get(name))

/**
 * Null when the topic is there; else why it cannot be. `replicas`: at most as many as there are brokers; -1 the
 * cluster's default.
 */
export const ensureSmallTopic = (
  cluster: Cluster,
  name: string,
  replicas: number,
  settings: ReadonlyArray<{ readonly name: string; readonly value: string }>
): Effect.Effect<string | null, WireError> => {
  const create = Effect.gen(function*() {
    const replicationFactor = replicas < 0 ? replicas : Math.max(1, Math.min(replicas, (yield* cluster.brokers).length))
    const answer = yield* cluster.request({ kind: "controller" }, createTopics, {
      topics: [{ name, numPartitions: 1, replicationFactor, assignments: [], configs: settings }],
      timeoutMs: CREATE_MS
    }, { timeoutMs: 2 * CREATE_MS })
    const { errorCode: code = 0, errorMessage: detail = null } = answer.topics[0] ?? {}
    if (code === 0 || code === TOPIC_ALREADY_EXISTS) return null
    const error = new BrokerError({ api: "CreateTopics", code, subject: name, detail })
    const passes = ["retriable", "refresh", "coordinator"].includes(error.class) && code !== INVALID_REPLICATION_FACTOR
    return passes ? yield* error : error.message
  })
  return Effect.gen(function*() {
    if ((yield* findTopic(cluster, name)) !== undefined) return null
    const refused = yield* cluster.retrying(create, { destination: { kind: "controller" } })
    if (refused !== null) return refused
    for (let look = 0; look < LOOKS; look++) {
      if ((yield* findTopic(cluster, name)) !== undefined) return null
      yield* Effect.sleep(LOOK_MS)
    }
    return `${name} was created, but no broker shows it`
  })
}
