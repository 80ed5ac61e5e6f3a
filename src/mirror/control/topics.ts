/**
 * The topics of a flow: which of the source's match, and that each has its place on the target before a record of
 * it is produced.
 *
 * Guarantees
 * - A target topic is created with the source's partition count and never gets fewer; it grows when the source
 *   has grown. Nothing is deleted here.
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

export interface TopicsFound {
  readonly topics: ReadonlyArray<MirroredTopic>
  /** Topics that match but cannot be mirrored now. */
  readonly problems: ReadonlyArray<TopicProblem>
  /** Topics that match by name but are left out on purpose (a loop), for one line in the log. */
  readonly leftOut: ReadonlyArray<TopicProblem>
}

const TOPIC_ALREADY_EXISTS = 36
const CREATE_TIMEOUT_MS = 30_000

/** Which topics of the source are the flow's. `ids`, where an error says so, are the source's own. */
export const selectTopics = (
  all: ReadonlyArray<TopicMetadata>,
  naming: Naming
): { readonly topics: ReadonlyArray<MirroredTopic>; readonly leftOut: ReadonlyArray<TopicProblem> } => {
  const topics: Array<MirroredTopic> = []
  const leftOut: Array<TopicProblem> = []
  for (const topic of all) {
    if (topic.internal) continue
    const verdict = naming.verdict(topic.name)
    if (verdict.mirrored) {
      topics.push({
        source: topic.name,
        sourceId: topic.id,
        target: verdict.target,
        partitions: topic.partitions.length
      })
    } else if (verdict.loop) leftOut.push({ topic: topic.name, reason: verdict.reason })
  }
  return { topics, leftOut }
}

/** One wish for the target: a topic with at least so many partitions. */
export interface TopicWish {
  readonly name: string
  readonly partitions: number
}

const create = Effect.fnUntraced(
  function*(target: Cluster, wishes: ReadonlyArray<TopicWish>, replicationFactor: number) {
    if (wishes.length === 0) return new Map<string, string>()
    const answer = yield* target.request({ kind: "controller" }, createTopics, {
      topics: wishes.map((wish) => ({
        name: wish.name,
        numPartitions: wish.partitions,
        replicationFactor,
        assignments: [],
        configs: []
      })),
      timeoutMs: CREATE_TIMEOUT_MS
    }, { timeoutMs: CREATE_TIMEOUT_MS * 2 })
    const refused = new Map<string, string>()
    for (const topic of answer.topics) {
      if (topic.errorCode === 0 || topic.errorCode === TOPIC_ALREADY_EXISTS) continue
      refused.set(
        topic.name,
        new BrokerError({ api: "CreateTopics", code: topic.errorCode, subject: topic.name, detail: topic.errorMessage })
          .message
      )
    }
    return refused
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
  function*(target: Cluster, wishes: ReadonlyArray<TopicWish>, replicationFactor: number) {
    const known = yield* target.retrying(target.topics(wishes.map((wish) => wish.name)))
    const missing = wishes.filter((wish) => !known.has(wish.name))
    const small = wishes.filter((wish) =>
      (known.get(wish.name)?.partitions.length ?? wish.partitions) < wish.partitions
    )
    if (missing.length === 0 && small.length === 0) return new Map<string, string>()
    const refused = yield* target.retrying(create(target, missing, replicationFactor), {
      destination: { kind: "controller" }
    })
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

/** Finds the flow's topics on the source and makes their places on the target. */
export const refreshTopics = Effect.fn("refreshTopics")(function*(
  source: Cluster,
  target: Cluster,
  naming: Naming,
  replicationFactor: number
): Effect.fn.Return<TopicsFound, WireError> {
  const selected = selectTopics(yield* source.retrying(source.allTopics), naming)
  const refused = yield* ensureTopics(
    target,
    selected.topics.map((t) => ({ name: t.target, partitions: t.partitions })),
    replicationFactor
  )
  return {
    topics: selected.topics.filter((t) => !refused.has(t.target)),
    problems: selected.topics.flatMap((t) => {
      const reason = refused.get(t.target)
      return reason === undefined ? [] : [{ topic: t.source, reason }]
    }),
    leftOut: selected.leftOut
  }
})
