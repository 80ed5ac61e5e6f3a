/** The settings of topics as the brokers tell them. */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { describeConfigs } from "../../wire/messages/describeConfigs.ts"
import type { TopicSetting } from "./settings.ts"

export type Described =
  | { readonly ok: true; readonly settings: ReadonlyArray<TopicSetting> }
  /** `gone`: there is no such topic (any more). */
  | { readonly ok: false; readonly gone: boolean; readonly reason: string }

const TOPIC = 2
const UNKNOWN_TOPIC_OR_PARTITION = 3
/** Topics in one request: about thirty settings each, so the answer stays below a megabyte. */
const TOPICS_A_REQUEST = 200

const part = (
  cluster: Cluster,
  topics: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<readonly [string, Described]>, WireError> =>
  cluster.retrying(Effect.gen(function*() {
    const answer = yield* cluster.request({ kind: "any" }, describeConfigs, {
      resources: topics.map((resourceName) => ({ resourceType: TOPIC, resourceName, configurationKeys: null })),
      includeSynonyms: false
    })
    const found: Array<readonly [string, Described]> = []
    for (const { configs, errorCode, errorMessage, resourceName } of answer.results) {
      if (errorCode === 0) {
        found.push([resourceName, { ok: true, settings: configs }])
        continue
      }
      const subject = `topic ${resourceName}`
      const error = new BrokerError({ api: "DescribeConfigs", code: errorCode, subject, detail: errorMessage })
      const gone = errorCode === UNKNOWN_TOPIC_OR_PARTITION
      if (!gone && (error.class === "retriable" || error.class === "refresh")) return yield* error
      found.push([resourceName, { ok: false, gone, reason: error.message }])
    }
    return found
  }))

/** By topic name; every name that was asked for is there. */
export const describeTopicSettings = (
  cluster: Cluster,
  topics: ReadonlyArray<string>
): Effect.Effect<ReadonlyMap<string, Described>, WireError> =>
  Effect.gen(function*() {
    const found = new Map<string, Described>()
    for (let at = 0; at < topics.length; at += TOPICS_A_REQUEST) {
      for (const [name, described] of yield* part(cluster, topics.slice(at, at + TOPICS_A_REQUEST))) {
        found.set(name, described)
      }
    }
    return found
  })
