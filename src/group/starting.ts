/** Where the partitions of an assignment begin. */
import { Clock, Effect } from "effect"
import { EARLIEST, LATEST } from "../wire/messages/listOffsets.ts"
import { nowMs } from "../wire/retry.ts"
import { list, type Listed, type States } from "./askLeaders.ts"
import { parseCommitMetadata } from "./commitMetadata.ts"
import { type MembershipError, PositionError } from "./errors.ts"
import type { CommittedPosition, Membership } from "./membership.ts"
import { backOff, moveTo, type PartitionState, recovered, stop } from "./partition.ts"
import { partitionKey } from "./position.ts"
import { fail, isCurrent, type Shared } from "./shared.ts"

const COMMITTED_TIMEOUT_MS = 30_000

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
    // Negative numbers are names of places ("the latest"), or nothing that a broker knows.
    const since = typeof offsetReset === "object"
      ? Math.max(0, (yield* Clock.currentTimeMillis) - offsetReset.backMs)
      : LATEST
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

/** Gives the partitions their positions: by `startAt`, by what the group has committed, or by the policy. */
export const locate = (shared: Shared, membership: Membership, states: States): Effect.Effect<void> =>
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
