/**
 * Brings partitions to where they can be fetched, and back there after something changed: leaders, starting
 * positions, validation of positions after a change of leaders (KIP-320), positions out of range.
 *
 * One fiber, woken when a partition's stage changes; requests are made for all partitions of a leader at once. What
 * passes by itself is tried again with back-off, for the partitions concerned only; what does not pass ends either
 * the partition or the consumer (askLeaders.ts).
 */
import { Effect } from "effect"
import { nowMs } from "../wire/retry.ts"
import { about, type States } from "./askLeaders.ts"
import { askTopics } from "./askTopics.ts"
import type { Membership } from "./membership.ts"
import { adoptLeader, backOff, moveTo, type PartitionState } from "./partition.ts"
import { isCurrent, type Shared } from "./shared.ts"
import { judgeRange, validate } from "./standing.ts"
import { locate } from "./starting.ts"

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
