/**
 * Where a target topic would change or refuse timestamps that its source topic takes: said by `check`, before a record
 * shows it. From Kafka 4 on a topic refuses by default what is an hour ahead; before, it took everything.
 */
import { Effect } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import { describeTopicSettings } from "./control/describeSettings.ts"
import type { TopicSetting } from "./control/settings.ts"
import type { MirroredTopic } from "./control/topics.ts"

const TYPE = "message.timestamp.type"
const LIMITS = ["message.timestamp.after.max.ms", "message.timestamp.before.max.ms"] as const

type Settings = ReadonlyArray<Pick<TopicSetting, "name" | "value">>

const inForce = (settings: Settings, name: string): string | null =>
  settings.find((setting) => setting.name === name)?.value ?? null

/** What of a target topic is not as its source topic has it, without the topic's name. */
export const timestampDifferences = (source: Settings, target: Settings): ReadonlyArray<string> => {
  const rewrites = inForce(target, TYPE) === "LogAppendTime"
  if (rewrites && inForce(source, TYPE) !== "LogAppendTime") {
    return [`rewrites timestamps to the time of writing (${TYPE} is LogAppendTime)`]
  }
  // With LogAppendTime nothing is compared with the clock.
  if (rewrites) return []
  return LIMITS.flatMap((name) => {
    const there = inForce(target, name)
    if (there === null) return []
    // A source that has no such setting (before Kafka 3.6) takes everything.
    const here = inForce(source, name)
    return here !== null && BigInt(here) <= BigInt(there) ? [] : Number(there) >= Number.MAX_SAFE_INTEGER ? [] : [
      `refuses records that the source takes: ${name} is ${there} there and ${
        here ?? "not known"
      } here; it is not copied`
    ]
  })
}

/** One sentence a difference, with the topics that have it. Nothing where settings may not be read. */
export const timestampWarnings = (
  { source, target }: { readonly source: Cluster; readonly target: Cluster },
  topics: ReadonlyArray<MirroredTopic>
): Effect.Effect<ReadonlyArray<string>, WireError> =>
  Effect.gen(function*() {
    const here = yield* describeTopicSettings(source, topics.map((topic) => topic.source))
    const there = yield* describeTopicSettings(target, topics.map((topic) => topic.target))
    const found = topics.flatMap((topic) => {
      const [ours, theirs] = [here.get(topic.source), there.get(topic.target)]
      return ours?.ok === true && theirs?.ok === true
        ? timestampDifferences(ours.settings, theirs.settings).map((difference) => ({
          difference,
          topic: topic.target
        }))
        : []
    })
    return [...Map.groupBy(found, ({ difference }) => difference)].map(([difference, of]) =>
      `topic ${of[0]?.topic}${of.length === 1 ? "" : ` (and ${of.length - 1} more)`} ${difference}`
    )
  })
