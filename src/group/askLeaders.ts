/**
 * What the steward asks leaders about partitions, and what becomes of one that cannot be told: what passes by itself is
 * tried again with back-off, for the partitions concerned only; what does not pass ends either the partition (a problem
 * in its state) or the consumer (a missing right, an answer that is no answer).
 */
import { Effect } from "effect"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { kafkaError } from "../wire/kafkaErrors.ts"
import { listOffsets } from "../wire/messages/listOffsets.ts"
import { nowMs } from "../wire/retry.ts"
import { TOPIC_AUTHORIZATION_FAILED } from "./askTopics.ts"
import { SourceRecordError } from "./errors.ts"
import { backOff, type PartitionState, stop } from "./partition.ts"
import { fail, isCurrent, type Shared } from "./shared.ts"

export type States = ReadonlyArray<PartitionState>

const passes = (error: WireError): boolean => {
  if (error._tag === "ConnectionError") return error.kind !== "authentication" && error.kind !== "tls"
  return error._tag === "BrokerError" && ["retriable", "refresh", "coordinator"].includes(error.class)
}

/** An effect about some partitions: its failure is theirs when it passes, the consumer's when not. */
export const about = (shared: Shared, states: States, effect: Effect.Effect<void, WireError>): Effect.Effect<void> =>
  effect.pipe(Effect.catch((error) =>
    Effect.gen(function*() {
      if (!passes(error)) return fail(shared, error)
      yield* Effect.logDebug(`group ${shared.groupId}: ${error.message}`)
      const now = yield* nowMs
      for (const state of states) if (isCurrent(shared, state)) backOff(state, now, error.message)
    })
  ))

/** A code in a partition's part of an answer. */
export const onPartitionCode = (
  shared: Shared,
  state: PartitionState,
  api: string,
  code: number,
  now: number
): void => {
  const error = new BrokerError({ api, code, subject: state.key, detail: null })
  switch (kafkaError(code).class) {
    case "authorization":
      // A right on one topic is that topic's affair, and it can be granted; one on the group ends the consumer.
      return code === TOPIC_AUTHORIZATION_FAILED ? backOff(state, now, error.message) : fail(shared, error)
    case "retriable":
    case "refresh":
    case "coordinator":
    case "fenced":
      return backOff(state, now, error.message)
    default:
      // The broker's own trouble (-1) is worth another try; it is seen in the log until then.
      if (code === -1) return backOff(state, now, error.message)
      return stop(
        state,
        new SourceRecordError({
          topic: state.topic,
          partition: state.partition,
          offset: Math.max(0, state.position),
          what: error.message
        })
      )
  }
}

export const byLeader = (states: States): ReadonlyMap<number, States> => Map.groupBy(states, ({ leader }) => leader)

export const byTopic = <A>(
  states: States,
  part: (state: PartitionState) => A
): ReadonlyArray<{ readonly name: string; readonly parts: ReadonlyArray<A> }> =>
  [...Map.groupBy(states, ({ topic }) => topic)].map(([name, group]) => ({ name, parts: group.map(part) }))

export interface Listed {
  readonly offset: number
  readonly leaderEpoch: number
}

/** Asks each leader for one offset of each of its partitions. Partitions with an error are absent, and dealt with. */
export const list = (
  shared: Shared,
  states: States,
  timestamp: number,
  readCommitted: boolean
): Effect.Effect<ReadonlyMap<string, Listed>> =>
  Effect.gen(function*() {
    const found = new Map<string, Listed>()
    yield* Effect.forEach(byLeader(states), ([leader, group]) =>
      about(
        shared,
        group,
        Effect.gen(function*() {
          const topics = byTopic(
            group,
            (state) => ({ partitionIndex: state.partition, currentLeaderEpoch: state.leaderEpoch, timestamp })
          )
          const answer = yield* shared.cluster.request({ kind: "broker", id: leader }, listOffsets, {
            replicaId: -1,
            isolationLevel: readCommitted ? 1 : 0,
            topics: topics.map(({ name, parts }) => ({ name, partitions: parts }))
          })
          const now = yield* nowMs
          for (const topic of answer.topics) {
            for (const part of topic.partitions) {
              const state = shared.partitions.get(`${topic.name}-${part.partitionIndex}`)
              if (state === undefined || !isCurrent(shared, state)) continue
              if (part.errorCode !== 0) onPartitionCode(shared, state, "ListOffsets", part.errorCode, now)
              else found.set(state.key, { offset: part.offset, leaderEpoch: part.leaderEpoch })
            }
          }
        })
      ), { concurrency: "unbounded", discard: true })
    return found
  })
