/**
 * One look at the topics of both sides: which of the source's are the flow's, which of them were created again, where
 * each goes on the target, and that it has its place there. Every process of a flow makes it; it may be made at any
 * time and any number of times.
 *
 * Guarantees
 * - A topic of the source is told by its id: what is noted of one that was deleted is never taken for its successor.
 * - What is decided of an id is noted before the first record of it has a place.
 */
import { Effect } from "effect"
import type { ControlSettings } from "../../config/controlSettings.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import type { Naming } from "../naming.ts"
import type { ControlLog } from "./controlLog.ts"
import { describeTopicSettings } from "./describeSettings.ts"
import { identitiesOf, isRemote, type NoteEntry, remoteNote, type Standing, standingOf } from "./identities.ts"
import { type SettingRules, settingsAtCreation } from "./settings.ts"
import {
  type CreationSettings,
  ensureTopics,
  type MirroredTopic,
  selectTopics,
  settleDoubts,
  type TopicProblem
} from "./topics.ts"

export interface TopicPassParts {
  readonly source: Cluster
  readonly target: Cluster
  readonly targetAdmin: Cluster
  readonly naming: Naming
  readonly replicationFactor: number
  readonly control: ControlSettings
  readonly notes: ControlLog
  /** Whether this process may choose a name that others would choose otherwise. */
  readonly leads: () => boolean
  readonly creation: CreationSettings
  /** Called before anything is created: where each topic goes. */
  readonly onPlaces: (topics: ReadonlyArray<MirroredTopic>) => void
}

export interface TopicsFound {
  readonly topics: ReadonlyArray<MirroredTopic>
  /** Topics that match but cannot be mirrored now. */
  readonly problems: ReadonlyArray<TopicProblem>
  /** Topics that match by name but are left out on purpose (a loop). */
  readonly leftOut: ReadonlyArray<TopicProblem>
  /** Created again, and to be left alone until somebody decides. */
  readonly paused: ReadonlyArray<TopicProblem>
  /** Created again since the last look, and what becomes of them. */
  readonly recreated: ReadonlyArray<TopicProblem>
  /** Names of all topics of the source. */
  readonly onSource: ReadonlySet<string>
}

export interface Placed {
  readonly topic: MirroredTopic
  readonly standing: Standing
}

/** Whether the notes say something of each; where they do not, others may have written since. */
const unnoted = (topics: ReadonlyArray<MirroredTopic>, notes: ReturnType<ControlLog["known"]>): boolean => {
  const known = identitiesOf(notes)
  return topics.some((topic) => known.get(topic.source)?.has(topic.sourceId) !== true)
}

/** Where each topic stands by its id. Asks, and changes nothing. */
export const placedTopics = (
  parts: Pick<TopicPassParts, "notes" | "target" | "control">,
  topics: ReadonlyArray<MirroredTopic>
): Effect.Effect<ReadonlyArray<Placed>, WireError> =>
  Effect.gen(function*() {
    const known = parts.notes.known()
    const notes = unnoted(topics, known) ? yield* parts.notes.read : known
    const identities = identitiesOf(notes)
    const again = topics.some((topic) => identities.get(topic.source)?.has(topic.sourceId) === false)
    const there = again
      ? new Set((yield* parts.target.retrying(parts.target.allTopics)).map(({ name }) => name))
      : new Set<string>()
    const taken = new Set(topics.map((topic) => topic.target))
    const situation = {
      policy: parts.control.onTopicRecreated,
      identities,
      onTarget: (name: string) => there.has(name),
      taken: (name: string) => taken.has(name)
    }
    return topics.map((topic) => {
      const standing = standingOf({ topic: topic.source, id: topic.sourceId, base: topic.target }, situation)
      if (standing.kind === "recreated") taken.add(standing.target)
      return { topic, standing }
    })
  })

/** The same topic under the name that was decided. */
const at = (topic: MirroredTopic, target: string): MirroredTopic => ({ ...topic, target })

/** Under new-topic two processes could choose two names: one of them does, the others read what it has noted. */
const waits = (parts: TopicPassParts, { standing }: Placed): boolean =>
  standing.kind === "recreated" && parts.control.onTopicRecreated === "new-topic" && parts.notes.problem() === null &&
  !parts.leads()

export const topicPass = Effect.fn("topicPass")(function*(
  parts: TopicPassParts
): Effect.fn.Return<TopicsFound, WireError> {
  const all = yield* parts.source.retrying(parts.source.allTopics)
  const byName = selectTopics(all, parts.naming)
  const known = parts.notes.known()
  const news = byName.doubtful.some(({ topic }) => !isRemote(known, topic.source))
  const before = news ? yield* parts.notes.read : known
  const selected = yield* settleDoubts(parts.target, byName, (topic) => isRemote(before, topic))
  const found = yield* placedTopics(parts, selected.topics)
  const goes = found.filter((one) => !waits(parts, one))
  const entries: Array<NoteEntry> = selected.remote.map(remoteNote)
  for (const { standing } of goes) {
    if (standing.kind === "new" || standing.kind === "recreated") entries.push(standing.note)
  }
  yield* parts.notes.write(entries)
  const topics = goes.flatMap(({ standing, topic }) => standing.kind === "paused" ? [] : [at(topic, standing.target)])
  parts.onPlaces(topics)
  const refused = yield* ensureTopics(
    parts.targetAdmin,
    topics.map((topic) => ({ name: topic.target, partitions: topic.partitions })),
    parts.replicationFactor,
    parts.creation
  )
  return {
    topics: topics.filter((topic) => !refused.has(topic.target)),
    problems: [
      ...topics.flatMap((topic) => {
        const reason = refused.get(topic.target)
        return reason === undefined ? [] : [{ topic: topic.source, reason }]
      }),
      ...found.filter((one) => waits(parts, one)).map(({ topic }) => ({
        topic: topic.source,
        reason: "it was created again on the source; the process that does the control tasks is to name its new place"
      }))
    ],
    leftOut: selected.leftOut,
    paused: found.flatMap(({ standing, topic }) =>
      standing.kind === "paused" ? [{ topic: topic.source, reason: standing.reason }] : []
    ),
    recreated: goes.flatMap(({ standing, topic }) =>
      standing.kind === "recreated" ? [{ topic: topic.source, reason: standing.says }] : []
    ),
    onSource: new Set(all.map(({ name }) => name))
  }
})

/** New target topics get what their source topics set. What cannot be told or taken is reported, and they are made without it. */
export const creationSettings = (
  source: Cluster,
  rules: SettingRules,
  sourceOf: (target: string) => string | undefined,
  refused: (topic: string, setting: string, reason: string) => void
): CreationSettings => ({
  refused,
  of: (targets) =>
    Effect.gen(function*() {
      const pairs = targets.flatMap((target) => {
        const name = sourceOf(target)
        return name === undefined ? [] : [{ target, name }]
      })
      const described = yield* describeTopicSettings(source, pairs.map(({ name }) => name))
      return new Map(pairs.map(({ name, target }) => {
        const found = described.get(name)
        if (found === undefined) return [target, []]
        if (found.ok) return [target, settingsAtCreation(found.settings, target, rules)]
        if (!found.gone) refused(target, "", found.reason)
        return [target, []]
      }))
    })
})
