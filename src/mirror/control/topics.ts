/**
 * The topics of a flow: which of the source's match, and that each has its place on the target before a record of
 * it is produced.
 *
 * Guarantees
 * - A target topic is created with the source's partition count and settings and never gets fewer; it grows when the
 *   source has grown. Nothing is deleted here.
 * - A setting that the target does not take costs the setting, not the topic; each is told.
 * - A topic whose place cannot be made is a problem in words and is left out; the others go on.
 *
 * Gotchas: two processes may create the same topic at once; "it exists" is success.
 */
import { Effect } from "effect"
import type { Cluster, TopicMetadata } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { createPartitions } from "../../wire/messages/createPartitions.ts"
import { createTopics } from "../../wire/messages/createTopics.ts"
import type { Naming } from "../naming.ts"

export interface MirroredTopic {
  readonly source: string
  readonly sourceId: string
  readonly target: string
  readonly partitions: number
}

export interface TopicProblem {
  readonly topic: string
  readonly reason: string
}

/** What the patterns want, by names alone. */
export interface Selected {
  readonly topics: ReadonlyArray<MirroredTopic>
  /** Topics that match by name but are left out on purpose (a loop), for one line in the log. */
  readonly leftOut: ReadonlyArray<TopicProblem>
  /** Topics that came from the target if it has a topic `origin`; else they are local and their name misleads. */
  readonly doubtful: ReadonlyArray<{ readonly topic: MirroredTopic; readonly origin: string; readonly reason: string }>
}

const TOPIC_ALREADY_EXISTS = 36
const CREATE_TIMEOUT_MS = 30_000

/** Which topics of the source are the flow's. */
export const selectTopics = (all: ReadonlyArray<TopicMetadata>, naming: Naming): Selected => {
  const topics: Array<MirroredTopic> = []
  const leftOut: Array<TopicProblem> = []
  const doubtful: Array<{ topic: MirroredTopic; origin: string; reason: string }> = []
  for (const topic of all) {
    if (topic.internal) continue
    const verdict = naming.verdict(topic.name)
    const mirrored = (target: string): MirroredTopic => ({
      source: topic.name,
      sourceId: topic.id,
      target,
      partitions: topic.partitions.length
    })
    if (verdict.mirrored) topics.push(mirrored(verdict.target))
    else if (verdict.origin !== undefined) {
      doubtful.push({ topic: mirrored(naming.targetName(topic.name)), origin: verdict.origin, reason: verdict.reason })
    } else if (verdict.loop) leftOut.push({ topic: topic.name, reason: verdict.reason })
  }
  return { topics, leftOut, doubtful }
}

/** Asks the target about the topics whose names look as if they came from there. `known`: it was found out before. */
export const settleDoubts = (
  target: Cluster,
  { doubtful, leftOut, topics }: Selected,
  known: (topic: string) => boolean = () => false
): Effect.Effect<
  Omit<Selected, "doubtful"> & { readonly remote: ReadonlyArray<string> },
  WireError
> =>
  Effect.gen(function*() {
    const open = doubtful.filter(({ topic }) => !known(topic.source))
    const origins = open.length === 0
      ? new Map<string, TopicMetadata>()
      : yield* target.retrying(target.topics([...new Set(open.map(({ origin }) => origin))]))
    const local = new Set(open.filter(({ origin }) => !origins.has(origin)).map(({ topic }) => topic.source))
    return {
      topics: [...topics, ...doubtful.filter(({ topic }) => local.has(topic.source)).map(({ topic }) => topic)],
      leftOut: [
        ...leftOut,
        ...doubtful.filter(({ topic }) => !local.has(topic.source)).map(({ reason, topic }) => ({
          topic: topic.source,
          reason
        }))
      ],
      remote: open.filter(({ topic }) => !local.has(topic.source)).map(({ topic }) => topic.source)
    }
  })

/** One wish for the target: a topic with at least so many partitions. */
export interface TopicWish {
  readonly name: string
  readonly partitions: number
}

export interface NamedValue {
  readonly name: string
  readonly value: string | null
}

/** Where new topics get their settings from, and who hears of those that the target does not take. */
export interface CreationSettings {
  readonly of: (
    targets: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<NamedValue>>, WireError>
  readonly refused: (topic: string, setting: string, reason: string) => void
}

const INVALID_CONFIG = 40
const POLICY_VIOLATION = 44
/** What a setting can be the reason for. */
const BY_SETTINGS: ReadonlySet<number> = new Set([INVALID_CONFIG, POLICY_VIOLATION])

interface Creation {
  readonly wish: TopicWish
  readonly settings: ReadonlyArray<NamedValue>
}

/** The error of each topic that was refused. */
const askToCreate = (
  target: Cluster,
  creations: ReadonlyArray<Creation>,
  replicationFactor: number,
  validateOnly: boolean
): Effect.Effect<ReadonlyMap<string, BrokerError>, WireError> =>
  target.retrying(
    Effect.map(
      target.request({ kind: "controller" }, createTopics, {
        topics: creations.map(({ settings, wish }) => ({
          name: wish.name,
          numPartitions: wish.partitions,
          replicationFactor,
          assignments: [],
          configs: settings
        })),
        timeoutMs: CREATE_TIMEOUT_MS,
        validateOnly
      }, { timeoutMs: CREATE_TIMEOUT_MS * 2 }),
      (answer) =>
        new Map(
          answer.topics.filter(({ errorCode }) => errorCode !== 0 && errorCode !== TOPIC_ALREADY_EXISTS).map((
            topic
          ) => [
            topic.name,
            new BrokerError({
              api: "CreateTopics",
              code: topic.errorCode,
              subject: topic.name,
              detail: topic.errorMessage
            })
          ])
        )
    ),
    { destination: { kind: "controller" } }
  )

/** The settings that the target takes, each tried alone without creating anything. */
const acceptable = Effect.fnUntraced(
  function*({ settings, wish }: Creation, target: Cluster, replicationFactor: number, told: CreationSettings) {
    const taken: Array<NamedValue> = []
    for (const setting of settings) {
      const alone = yield* askToCreate(target, [{ wish, settings: [setting] }], replicationFactor, true)
      const error = alone.get(wish.name)
      if (error === undefined) taken.push(setting)
      else told.refused(wish.name, setting.name, error.message)
    }
    return taken
  }
)

const create = Effect.fnUntraced(
  function*(
    target: Cluster,
    wishes: ReadonlyArray<TopicWish>,
    replicationFactor: number,
    settings: CreationSettings | null
  ) {
    if (wishes.length === 0) return new Map<string, string>()
    const values = settings === null ? null : yield* settings.of(wishes.map((wish) => wish.name))
    const creations = wishes.map((wish): Creation => ({ wish, settings: values?.get(wish.name) ?? [] }))
    const refused = new Map(yield* askToCreate(target, creations, replicationFactor, false))
    for (const creation of creations) {
      const { name } = creation.wish
      if (settings === null || creation.settings.length === 0 || !BY_SETTINGS.has(refused.get(name)?.code ?? 0)) {
        continue
      }
      const taken = yield* acceptable(creation, target, replicationFactor, settings)
      const again = yield* askToCreate(target, [{ wish: creation.wish, settings: taken }], replicationFactor, false)
      const error = again.get(name)
      if (error === undefined) refused.delete(name)
      else refused.set(name, error)
    }
    return new Map([...refused].map(([name, error]) => [name, error.message]))
  }
)

const grow = Effect.fnUntraced(function*(target: Cluster, wishes: ReadonlyArray<TopicWish>) {
  if (wishes.length === 0) return new Map<string, string>()
  const answer = yield* target.request({ kind: "controller" }, createPartitions, {
    topics: wishes.map((wish) => ({ name: wish.name, count: wish.partitions, assignments: null })),
    timeoutMs: CREATE_TIMEOUT_MS,
    validateOnly: false
  }, { timeoutMs: CREATE_TIMEOUT_MS * 2 })
  const refused = new Map<string, string>()
  for (const topic of answer.results) {
    if (topic.errorCode === 0) continue
    refused.set(
      topic.name,
      new BrokerError({
        api: "CreatePartitions",
        code: topic.errorCode,
        subject: topic.name,
        detail: topic.errorMessage
      }).message
    )
  }
  return refused
})

/**
 * Brings every wish about: creates what is missing, grows what is too small, and waits until each partition has a
 * leader. Gives the wishes that were refused, with the broker's reason.
 */
export const ensureTopics = Effect.fn("ensureTopics")(
  function*(
    target: Cluster,
    wishes: ReadonlyArray<TopicWish>,
    replicationFactor: number,
    settings: CreationSettings | null = null
  ) {
    const known = yield* target.retrying(target.topics(wishes.map((wish) => wish.name)))
    const missing = wishes.filter((wish) => !known.has(wish.name))
    const small = wishes.filter((wish) =>
      (known.get(wish.name)?.partitions.length ?? wish.partitions) < wish.partitions
    )
    if (missing.length === 0 && small.length === 0) return new Map<string, string>()
    const refused = yield* create(target, missing, replicationFactor, settings)
    for (
      const [topic, reason] of yield* target.retrying(grow(target, small), { destination: { kind: "controller" } })
    ) {
      // Somebody else may have grown it in the meantime: then there is nothing to complain of.
      const now = (yield* target.retrying(target.topics([topic]))).get(topic)
      const wish = small.find((w) => w.name === topic)
      if ((now?.partitions.length ?? 0) < (wish?.partitions ?? 0)) refused.set(topic, reason)
    }
    for (const wish of [...missing, ...small]) {
      if (refused.has(wish.name)) continue
      yield* target.invalidate(wish.name)
      yield* target.leader(wish.name, wish.partitions - 1)
    }
    return refused
  }
)
