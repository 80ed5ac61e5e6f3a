/**
 * Brings partitions to where they can be fetched, and back there after something changed: leaders, starting
 * positions, validation of positions after a change of leaders (KIP-320), positions out of range.
 *
 * One fiber, woken when a partition's stage changes; requests are made for all partitions of a leader at once. What
 * passes by itself is tried again with back-off, for the partitions concerned only; what does not pass ends either
 * the partition (a problem in its state) or the consumer (a missing right, an answer that is no answer).
 */
import { Clock, Effect } from "effect"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { kafkaError } from "../wire/kafkaErrors.ts"
import { listOffsets } from "../wire/messages/listOffsets.ts"
import { offsetForLeaderEpoch } from "../wire/messages/offsetForLeaderEpoch.ts"
import { nowMs } from "../wire/retry.ts"
import { askTopics, TOPIC_AUTHORIZATION_FAILED } from "./askTopics.ts"
import { parseCommitMetadata } from "./commitMetadata.ts"
import { type MembershipError, PositionError, SourceRecordError } from "./errors.ts"
import { judgeEpoch, judgeOutOfRange, makeGap } from "./gap.ts"
import type { CommittedPosition, Membership } from "./membership.ts"
import { partitionKey } from "./position.ts"
import { adoptLeader, backOff, moveTo, type PartitionState, recovered, stop } from "./partition.ts"
import { fail, isCurrent, passGap, type Shared } from "./shared.ts"

const EARLIEST = -2
const LATEST = -1
const COMMITTED_TIMEOUT_MS = 30_000

type States = ReadonlyArray<PartitionState>

const passes = (error: WireError): boolean => {
  if (error._tag === "ConnectionError") return error.kind !== "authentication" && error.kind !== "tls"
  return error._tag === "BrokerError" && ["retriable", "refresh", "coordinator"].includes(error.class)
}

/** An effect about some partitions: its failure is theirs when it passes, the consumer's when not. */
const about = (shared: Shared, states: States, effect: Effect.Effect<void, WireError>): Effect.Effect<void> =>
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

const refreshLeaders = (shared: Shared, states: States): Effect.Effect<void> => {
  const names = [...new Set(states.map((state) => state.topic))]
  return about(
    shared,
    states,
    Effect.gen(function*() {
      const { refused, topics } = yield* askTopics(shared.cluster, names)
      const now = yield* nowMs
      for (const state of states) {
        if (!isCurrent(shared, state)) continue
        const topic = topics.get(state.topic)
        const partition = topic?.partitions.find((p) => p.partition === state.partition)
        if (topic === undefined || partition === undefined) {
          backOff(state, now, refused.get(state.topic) ?? `${state.key} is not there on the source`)
          continue
        }
        if (partition.leader < 0) {
          backOff(state, now, `${state.key} has no leader`)
          continue
        }
        if (state.topicId !== "" && state.topicId !== topic.id && state.position >= 0) {
          state.recreated = true
          moveTo(state, "range")
        }
        state.topicId = topic.id
        shared.counts.set(state.topic, topic.partitions.length)
        adoptLeader(state, partition.leader, partition.leaderEpoch)
      }
    })
  )
}

const byLeader = (states: States): ReadonlyArray<readonly [number, Array<PartitionState>]> => {
  const groups = new Map<number, Array<PartitionState>>()
  for (const state of states) {
    const group = groups.get(state.leader)
    if (group === undefined) groups.set(state.leader, [state])
    else group.push(state)
  }
  return [...groups]
}

const byTopic = <A>(
  states: States,
  part: (state: PartitionState) => A
): ReadonlyArray<{ readonly name: string; readonly parts: ReadonlyArray<A> }> => {
  const topics = new Map<string, Array<A>>()
  for (const state of states) {
    const parts = topics.get(state.topic)
    if (parts === undefined) topics.set(state.topic, [part(state)])
    else parts.push(part(state))
  }
  return [...topics].map(([name, parts]) => ({ name, parts }))
}

interface Listed {
  readonly offset: number
  readonly leaderEpoch: number
}

/** Asks each leader for one offset of each of its partitions. Partitions with an error are absent, and dealt with. */
const list = (
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

/** The offset that the policy names for partitions the group has no offset of. */
const reset = (shared: Shared, states: States): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { offsetReset, readCommitted } = shared.settings
    if (offsetReset === "none") {
      for (const state of states) {
        stop(state, new PositionError({ topic: state.topic, partition: state.partition, groupId: shared.groupId }))
      }
      return
    }
    const skip = (state: PartitionState) => state.partition < (shared.firstCounts.get(state.topic) ?? 0)
    const early = offsetReset === "earliest" ? states : states.filter((state) => !skip(state))
    const late = offsetReset === "earliest" ? [] : states.filter(skip)
    const since = typeof offsetReset === "object" ? (yield* Clock.currentTimeMillis) - offsetReset.backMs : LATEST
    const place = (group: States, listed: ReadonlyMap<string, Listed>) => {
      for (const state of group) {
        const found = listed.get(state.key)
        if (found !== undefined && found.offset >= 0 && isCurrent(shared, state)) {
          start(shared, state, found.offset, -1, -1)
        }
      }
    }
    if (early.length > 0) {
      place(early, yield* list(shared, early, EARLIEST, false))
    }
    if (late.length === 0) {
      return
    }
    const listed = yield* list(shared, late, since, readCommitted)
    place(late, listed)
    // No record is as young as the duration says: the end it is.
    const empty = late.filter((state) => listed.get(state.key)?.offset === -1)
    if (empty.length > 0) place(empty, yield* list(shared, empty, LATEST, readCommitted))
    // A start that skips records must not move when we restart before the first record comes.
    for (const state of late) if (state.position >= 0) confirmStart(shared, state)
  })

const confirmStart = (shared: Shared, { generation, partition, position, topic }: PartitionState): void => {
  shared.book.confirm({ topic, partition, offset: position, leaderEpoch: -1, generation })
}

const start = (shared: Shared, state: PartitionState, position: number, epoch: number, committed: number): void => {
  state.position = position
  state.positionEpoch = epoch
  state.deliveredTo = position
  recovered(state)
  shared.book.open(state, state.generation, committed)
  moveTo(state, "validate")
}

/**
 * Where the group has offsets of other partitions of these topics, what is committed beside them says how many
 * partitions there were when it began: a partition that was added while nobody ran is then known to be new.
 */
const recallFirstCounts = (
  shared: Shared,
  membership: Membership,
  states: States
): Effect.Effect<void, MembershipError> =>
  Effect.gen(function*() {
    const siblings = [...new Set(states.map(({ topic }) => topic))].flatMap((topic) =>
      Array.from({ length: shared.counts.get(topic) ?? 0 }, (_, partition) => ({ topic, partition }))
    )
    for (const { metadata, topic } of yield* membership.committed(siblings, COMMITTED_TIMEOUT_MS)) {
      const { partitions } = parseCommitMetadata(metadata)
      if (partitions !== null) shared.firstCounts.set(topic, partitions)
    }
  })

/** Where partitions begin by another word than the group's (startAt); null: there is none of this one. */
const placesOf = (
  shared: Shared,
  states: States,
  known: ReadonlyMap<string, CommittedPosition>
): Effect.Effect<ReadonlyMap<string, number | null>> =>
  Effect.gen(function*() {
    const { startAt } = shared
    const places = new Map<string, number | null>()
    if (startAt === null) {
      for (const state of states) places.set(state.key, null)
      return places
    }
    const starts = yield* list(shared, states, EARLIEST, false)
    for (const state of states) {
      const logStart = starts.get(state.key)
      if (logStart === undefined) continue
      places.set(state.key, yield* startAt(state, known.get(state.key)?.offset ?? null, logStart.offset))
    }
    return places
  })

const locate = (shared: Shared, membership: Membership, states: States): Effect.Effect<void> =>
  Effect.gen(function*() {
    const known = new Map((yield* membership.committed(states, COMMITTED_TIMEOUT_MS)).map((p) => [partitionKey(p), p]))
    const places = yield* placesOf(shared, states, known)
    const fresh: Array<PartitionState> = []
    for (const state of states) {
      const place = places.get(state.key)
      if (place === undefined || !isCurrent(shared, state)) continue
      const committed = known.get(state.key)
      const offset = place ?? committed?.offset
      if (offset === undefined) {
        fresh.push(state)
        continue
      }
      start(shared, state, offset, offset === committed?.offset ? committed.leaderEpoch : -1, committed?.offset ?? -1)
      // So that others see where we are, also when nothing comes.
      if (place !== null && place !== committed?.offset) confirmStart(shared, state)
      if (committed === undefined) continue
      const { partitions, topicId } = parseCommitMetadata(committed.metadata)
      if (partitions !== null) shared.firstCounts.set(state.topic, partitions)
      if (topicId !== null && topicId !== state.topicId) {
        state.recreated = true
        moveTo(state, "range")
      }
    }
    if (fresh.length === 0) return
    if (shared.settings.offsetReset !== "earliest") yield* recallFirstCounts(shared, membership, fresh)
    yield* reset(shared, fresh.filter((state) => isCurrent(shared, state)))
  }).pipe(Effect.catchTag("MembershipError", (error) =>
    Effect.gen(function*() {
      if (!error.retriable && !error.rebalanced) return fail(shared, error)
      yield* Effect.logDebug(error.message)
      const now = yield* nowMs
      for (const state of states) if (isCurrent(shared, state)) backOff(state, now, error.message)
    })))

/** Positions whose last record an older leader wrote: is it still there? */
const validate = (shared: Shared, states: States): Effect.Effect<void> => {
  const doubtful = states.filter((state) => state.positionEpoch >= 0 && state.leaderEpoch >= 0)
  for (const state of states) if (!doubtful.includes(state)) moveTo(state, "ready")
  return Effect.forEach(byLeader(doubtful), ([leader, group]) =>
    about(
      shared,
      group,
      Effect.gen(function*() {
        const topics = byTopic(
          group,
          (state) => ({
            partition: state.partition,
            currentLeaderEpoch: state.leaderEpoch,
            leaderEpoch: state.positionEpoch
          })
        )
        const answer = yield* shared.cluster.request({ kind: "broker", id: leader }, offsetForLeaderEpoch, {
          replicaId: -1,
          topics: topics.map(({ name, parts }) => ({ topic: name, partitions: parts }))
        }).pipe(Effect.catchTag("UnsupportedError", () => Effect.succeed(null)))
        const now = yield* nowMs
        if (answer === null) {
          for (const state of group) if (state.stage === "validate") moveTo(state, "ready")
          return
        }
        for (const topic of answer.topics) {
          for (const part of topic.partitions) {
            const state = shared.partitions.get(`${topic.topic}-${part.partition}`)
            if (state === undefined || state.stage !== "validate") continue
            if (part.errorCode !== 0) {
              onPartitionCode(shared, state, "OffsetForLeaderEpoch", part.errorCode, now)
              continue
            }
            const gap = judgeEpoch(state, state.position, part)
            if (gap === null) moveTo(state, "ready")
            else passGap(shared, state, gap, part.leaderEpoch)
          }
        }
      })
    ), { concurrency: "unbounded", discard: true })
}

/** Positions that a broker refused, or that belong to a topic that is no more. */
const judgeRange = (shared: Shared, states: States): Effect.Effect<void> =>
  Effect.gen(function*() {
    const starts = yield* list(shared, states, EARLIEST, false)
    const ends = yield* list(shared, states, LATEST, false)
    for (const state of states) {
      const first = starts.get(state.key)
      const last = ends.get(state.key)
      if (first === undefined || last === undefined || state.stage !== "range" || !isCurrent(shared, state)) continue
      recovered(state)
      state.logStart = first.offset
      const gap = state.recreated
        ? makeGap(state, "recreated", state.position, first.offset)
        : judgeOutOfRange(state, state.position, { start: first.offset, end: last.offset })
      if (gap === null) moveTo(state, "ready")
      else passGap(shared, state, gap, -1)
    }
  })

/** One round over all partitions that wait for something. */
const round = (shared: Shared, membership: Membership): Effect.Effect<void> =>
  Effect.gen(function*() {
    const now = yield* nowMs
    const due = (wanted: (state: PartitionState) => boolean): States =>
      [...shared.partitions.values()].filter((state) =>
        state.stage !== "stopped" && state.stage !== "revoked" && state.notBefore <= now && wanted(state)
      )
    const step = (stage: PartitionState["stage"], work: (states: States) => Effect.Effect<void>) => {
      const states = due((state) => state.stage === stage && state.leader >= 0)
      return states.length === 0 ? Effect.void : work(states)
    }
    const leaderless = due((state) => state.leader < 0)
    if (leaderless.length > 0) yield* refreshLeaders(shared, leaderless)
    yield* Effect.suspend(() => step("locate", (states) => locate(shared, membership, states)))
    yield* Effect.suspend(() => step("range", (states) => judgeRange(shared, states)))
    yield* Effect.suspend(() => step("validate", (states) => validate(shared, states)))
  })

/** Milliseconds until a partition is due; Infinity when none waits. */
const untilDue = (shared: Shared, now: number): number => {
  let wait = Infinity
  for (const state of shared.partitions.values()) {
    if (state.stage === "stopped" || state.stage === "revoked" || (state.stage === "ready" && state.leader >= 0)) {
      continue
    }
    wait = Math.min(wait, Math.max(10, state.notBefore - now))
  }
  return wait
}

/** Runs for as long as the consumer. `settled` is called after each round: partitions may be ready now. */
export const runSteward = (
  shared: Shared,
  membership: Membership,
  settled: Effect.Effect<void>
): Effect.Effect<never> =>
  Effect.gen(function*() {
    const changed = shared.work.next
    yield* round(shared, membership)
    yield* settled
    const wait = untilDue(shared, yield* nowMs)
    yield* wait === Infinity ? changed : changed.pipe(Effect.timeoutOption(wait), Effect.asVoid)
  }).pipe(Effect.forever)
