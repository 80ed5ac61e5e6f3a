/**
 * Where the logs of partitions begin and end, by their leaders' word. Names are `partitionName`.
 *
 * Two ways to ask: `reachable...` gives what can be told now, and why the rest cannot: a partition without a leader
 * keeps nobody from what is known of the others. The ones without that word give all or fail, for whoever must not
 * conclude anything from a part; they wait within `default.api.timeout.ms`.
 */
import { Effect } from "effect"
import type { Cluster, TopicMetadata } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { EARLIEST, LATEST, listOffsets } from "../../wire/messages/listOffsets.ts"
import { partitionName, type TopicPartition } from "./offsets.ts"
import type { MirroredTopic } from "./topics.ts"

export interface LogOffsets {
  readonly found: ReadonlyMap<string, number>
  /** Epochs of the leaders that told; -1: they do not say (before Kafka 2.1). */
  readonly epochs: ReadonlyMap<string, number>
  /** Partitions that nobody can be asked of now, or that their leader refuses to speak of. */
  readonly missing: ReadonlyMap<string, WireError>
}

interface Question {
  /** Milliseconds since 1970, or EARLIEST, LATEST. */
  readonly timestamp: number
  readonly committed: boolean
}

const UNKNOWN_TOPIC_OR_PARTITION = 3
const LEADER_NOT_AVAILABLE = 5

const partitionsOf = (topics: ReadonlyArray<MirroredTopic>): ReadonlyArray<TopicPartition> =>
  topics.flatMap((t) => Array.from({ length: t.partitions }, (_, partition) => ({ topic: t.source, partition })))

const namesOf = (partitions: ReadonlyArray<TopicPartition>): ReadonlyArray<string> => [
  ...new Set(partitions.map((at) => at.topic))
]

const noLeader = (at: TopicPartition, topic: TopicMetadata | undefined): WireError =>
  new BrokerError({
    api: "Metadata",
    code: topic?.partitions[at.partition] === undefined ? UNKNOWN_TOPIC_OR_PARTITION : LEADER_NOT_AVAILABLE,
    subject: partitionName(at.topic, at.partition),
    detail: null
  })

/** One leader about its partitions. */
const askLeader = (cluster: Cluster, id: number, of: ReadonlyArray<TopicPartition>, question: Question) =>
  Effect.map(
    cluster.request({ kind: "broker", id }, listOffsets, {
      replicaId: -1,
      isolationLevel: question.committed ? 1 : 0,
      topics: [...Map.groupBy(of, ({ topic }) => topic)].map(([name, partitions]) => ({
        name,
        partitions: partitions.map(({ partition }) => ({ partitionIndex: partition, timestamp: question.timestamp }))
      }))
    }),
    (answer) => answer.topics.flatMap(({ name, partitions }) => partitions.map((part) => ({ ...part, topic: name })))
  )

/** Every leader once, all at the same time. */
const askOnce = (
  cluster: Cluster,
  partitions: ReadonlyArray<TopicPartition>,
  question: Question
): Effect.Effect<LogOffsets, WireError> =>
  Effect.gen(function*() {
    const topics = yield* cluster.leaders(namesOf(partitions))
    const found = new Map<string, number>()
    const epochs = new Map<string, number>()
    const missing = new Map<string, WireError>()
    const leaderOf = (at: TopicPartition) => topics.get(at.topic)?.partitions[at.partition]?.leader ?? -1
    const byLeader = Map.groupBy(partitions, (at) => Math.max(-1, leaderOf(at)))
    for (const at of byLeader.get(-1) ?? []) {
      missing.set(partitionName(at.topic, at.partition), noLeader(at, topics.get(at.topic)))
    }
    byLeader.delete(-1)
    yield* Effect.forEach(byLeader, ([leader, of]) =>
      Effect.gen(function*() {
        const answer = yield* Effect.result(askLeader(cluster, leader, of, question))
        if (answer._tag === "Failure") {
          for (const at of of) missing.set(partitionName(at.topic, at.partition), answer.failure)
          return
        }
        for (const { errorCode, leaderEpoch, offset, partitionIndex, topic } of answer.success) {
          const name = partitionName(topic, partitionIndex)
          if (errorCode === 0) {
            found.set(name, offset)
            epochs.set(name, leaderEpoch)
          } else {missing.set(
              name,
              new BrokerError({ api: "ListOffsets", code: errorCode, subject: name, detail: null })
            )}
        }
      }), { concurrency: "unbounded", discard: true })
    return { found, epochs, missing }
  })

/** Fails where nothing of the cluster can be reached. A leader that has moved is asked where it is now. */
const reachable = (
  cluster: Cluster,
  partitions: ReadonlyArray<TopicPartition>,
  question: Question
): Effect.Effect<LogOffsets, WireError> =>
  Effect.gen(function*() {
    const first = yield* askOnce(cluster, partitions, question)
    const failed = partitions.filter((at) => first.missing.has(partitionName(at.topic, at.partition)))
    if (failed.length === 0) return first
    for (const name of namesOf(failed)) yield* cluster.invalidate(name)
    // A broker that does not answer would have been waited for twice.
    const answered = failed.filter((at) =>
      first.missing.get(partitionName(at.topic, at.partition))?._tag !== "ConnectionError"
    )
    const second = answered.length === 0 ? null : yield* askOnce(cluster, answered, question)
    const found = new Map([...first.found, ...second?.found ?? []])
    const epochs = new Map([...first.epochs, ...second?.epochs ?? []])
    const missing = new Map([...first.missing, ...second?.missing ?? []])
    for (const name of found.keys()) missing.delete(name)
    const [reason] = missing.values()
    const silent = found.size === 0 && [...missing.values()].every((error) => error._tag === "ConnectionError")
    if (silent && reason !== undefined) return yield* Effect.fail(reason)
    return { found, epochs, missing }
  })

const all = (
  cluster: Cluster,
  topics: ReadonlyArray<MirroredTopic>,
  question: Question
): Effect.Effect<ReadonlyMap<string, number>, WireError> =>
  cluster.retrying(
    Effect.flatMap(reachable(cluster, partitionsOf(topics), question), ({ found, missing }) => {
      const [reason] = missing.values()
      return reason === undefined ? Effect.succeed(found) : Effect.fail(reason)
    })
  )

/** The end of each partition that can be asked: the last stable offset under read_committed, else the high watermark. */
export const reachableEnds = (
  cluster: Cluster,
  topics: ReadonlyArray<MirroredTopic>,
  committed: boolean
): Effect.Effect<LogOffsets, WireError> =>
  cluster.retrying(reachable(cluster, partitionsOf(topics), { timestamp: LATEST, committed }))

/** The first offset that is still in the log, of each partition that can be asked. */
export const reachableStarts = (
  cluster: Cluster,
  topics: ReadonlyArray<MirroredTopic>
): Effect.Effect<LogOffsets, WireError> =>
  cluster.retrying(reachable(cluster, partitionsOf(topics), { timestamp: EARLIEST, committed: false }))

/** The end of every partition. */
export const endOffsets = (
  cluster: Cluster,
  topics: ReadonlyArray<MirroredTopic>,
  committed: boolean
): Effect.Effect<ReadonlyMap<string, number>, WireError> => all(cluster, topics, { timestamp: LATEST, committed })

/** The first offset that is still in the log, of every partition. */
export const startOffsets = (
  cluster: Cluster,
  topics: ReadonlyArray<MirroredTopic>
): Effect.Effect<ReadonlyMap<string, number>, WireError> =>
  all(cluster, topics, { timestamp: EARLIEST, committed: false })

/** The first offset whose record is not older than a time (milliseconds since 1970); -1: none is. */
export const offsetsAtTime = (
  cluster: Cluster,
  topics: ReadonlyArray<MirroredTopic>,
  timeMs: number
): Effect.Effect<ReadonlyMap<string, number>, WireError> =>
  all(cluster, topics, { timestamp: timeMs, committed: false })
