/** Metadata of topics one of which this principal may not see: that one's affair, not the others'. */
import { Effect } from "effect"
import type { Cluster, TopicMetadata } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"

export const TOPIC_AUTHORIZATION_FAILED = 29

export interface AskedTopics {
  readonly topics: ReadonlyMap<string, TopicMetadata>
  /** Topics that may not be seen, and the broker's words. */
  readonly refused: ReadonlyMap<string, string>
}

/** null instead of a refusal. */
const seen = (cluster: Cluster, names: ReadonlyArray<string>) =>
  cluster.topics(names).pipe(
    Effect.map((found) => ({ found, refusal: null })),
    Effect.catchTag("BrokerError", (error) =>
      error.code === TOPIC_AUTHORIZATION_FAILED
        ? Effect.succeed({ found: new Map<string, TopicMetadata>(), refusal: error.message })
        : Effect.fail(error))
  )

/** Those that are missing from the answer are asked for one by one: only then the broker says why. */
export const askTopics = (cluster: Cluster, names: ReadonlyArray<string>): Effect.Effect<AskedTopics, WireError> =>
  Effect.gen(function*() {
    const topics = new Map((yield* seen(cluster, names)).found)
    const refused = new Map<string, string>()
    for (const name of names.filter((one) => !topics.has(one))) {
      const { found, refusal } = yield* seen(cluster, [name])
      for (const [key, topic] of found) topics.set(key, topic)
      if (refusal !== null) refused.set(name, refusal)
    }
    return { topics, refused }
  })
