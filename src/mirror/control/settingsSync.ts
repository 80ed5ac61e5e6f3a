/**
 * Brings the settings of the target's topics to what the source has (settings.ts says what that is). One pass; made
 * again and again, by any process, it changes only what differs.
 *
 * Guarantee: a setting that the target does not take is told by name, and costs nothing but itself.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { incrementalAlterConfigs } from "../../wire/messages/incrementalAlterConfigs.ts"
import { describeTopicSettings } from "./describeSettings.ts"
import { changeSentence, type SettingChange, settingChanges, type SettingRules } from "./settings.ts"
import type { TaskReport } from "./tasks.ts"
import type { MirroredTopic } from "./topics.ts"

export interface SettingsSyncParts {
  readonly source: Cluster
  readonly targetAdmin: Cluster
  readonly topics: () => ReadonlyArray<MirroredTopic>
  readonly rules: SettingRules
  readonly onChange: (sentence: string) => void
}

const TOPIC = 2
const SET = 0
const DELETE = 1
const NONE = 0
const UNKNOWN_TOPIC_OR_PARTITION = 3
const TOPICS_A_REQUEST = 200

export interface TopicChanges {
  readonly topic: string
  readonly changes: ReadonlyArray<SettingChange>
}

/** Why each topic's changes were refused; the others are made. */
const alter = (
  cluster: Cluster,
  wanted: ReadonlyArray<TopicChanges>
): Effect.Effect<ReadonlyMap<string, BrokerError>, WireError> =>
  cluster.retrying(Effect.gen(function*() {
    const answer = yield* cluster.request({ kind: "any" }, incrementalAlterConfigs, {
      resources: wanted.map(({ changes, topic }) => ({
        resourceType: TOPIC,
        resourceName: topic,
        configs: changes.map(({ name, to }) => ({ name, configOperation: to === null ? DELETE : SET, value: to }))
      })),
      validateOnly: false
    })
    const refused = new Map<string, BrokerError>()
    for (const { errorCode, errorMessage, resourceName } of answer.responses) {
      if (errorCode === NONE) continue
      const error = new BrokerError({
        api: "IncrementalAlterConfigs",
        code: errorCode,
        subject: `topic ${resourceName}`,
        detail: errorMessage
      })
      // Asked again as a whole: what was done is done again, to the same end.
      if (error.class === "retriable" || error.class === "coordinator") return yield* error
      refused.set(resourceName, error)
    }
    return refused
  }))

/** One by one, so that one that is refused does not keep the others back. */
const alterOneByOne = Effect.fnUntraced(function*(parts: SettingsSyncParts, { changes, topic }: TopicChanges) {
  const problems: Array<string> = []
  let changed = 0
  for (const change of changes) {
    const error = (yield* alter(parts.targetAdmin, [{ topic, changes: [change] }])).get(topic)
    if (error === undefined) {
      changed++
      parts.onChange(changeSentence(topic, change))
    } else {
      problems.push(
        `topic ${topic}: ${change.name} cannot be set to ${change.to ?? "the target's default"}: ${error.message}`
      )
    }
  }
  return { changed, problems }
})

/** What differs now, and what cannot be told; changes nothing. */
export const differingSettings = Effect.fnUntraced(function*(
  parts: Pick<SettingsSyncParts, "source" | "targetAdmin" | "topics" | "rules">
) {
  const topics = parts.topics()
  const source = yield* describeTopicSettings(parts.source, topics.map((topic) => topic.source))
  const target = yield* describeTopicSettings(parts.targetAdmin, topics.map((topic) => topic.target))
  const wanted: Array<TopicChanges> = []
  const problems: Array<string> = []
  for (const topic of topics) {
    const [from, to] = [source.get(topic.source), target.get(topic.target)]
    if (from === undefined || to === undefined) continue
    for (const end of [from, to]) if (!end.ok && !end.gone) problems.push(end.reason)
    if (!from.ok || !to.ok) continue
    const changes = settingChanges(from.settings, to.settings, topic.target, parts.rules)
    if (changes.length > 0) wanted.push({ topic: topic.target, changes })
  }
  return { wanted, problems }
})

export const syncSettings = Effect.fn("syncSettings")(function*(
  parts: SettingsSyncParts
): Effect.fn.Return<TaskReport, WireError> {
  const { problems, wanted } = yield* differingSettings(parts)
  let changed = 0
  for (let at = 0; at < wanted.length; at += TOPICS_A_REQUEST) {
    const some = wanted.slice(at, at + TOPICS_A_REQUEST)
    const refused = yield* alter(parts.targetAdmin, some)
    for (const one of some) {
      const error = refused.get(one.topic)
      if (error === undefined) {
        changed += one.changes.length
        for (const change of one.changes) parts.onChange(changeSentence(one.topic, change))
      } else if (error.class === "authorization") problems.push(`settings are not copied: ${error.message}`)
      // The topic has gone since: the next look at the topics finds out.
      else if (error.code !== UNKNOWN_TOPIC_OR_PARTITION) {
        const single = yield* alterOneByOne(parts, one)
        changed += single.changed
        problems.push(...single.problems)
      }
    }
  }
  return { changed, problems, notes: [] }
})
