/** Whether a position still stands: after a change of leaders (KIP-320), and when a broker has refused it as out of range. */
import { Effect } from "effect"
import { offsetForLeaderEpoch } from "../wire/messages/offsetForLeaderEpoch.ts"
import { EARLIEST, LATEST } from "../wire/messages/listOffsets.ts"
import { nowMs } from "../wire/retry.ts"
import { about, byLeader, byTopic, list, onPartitionCode, type States } from "./askLeaders.ts"
import { judgeEpoch, judgeOutOfRange, makeGap } from "./gap.ts"
import type { WireError } from "../wire/errors.ts"
import { backOff, moveTo, type PartitionState, recovered } from "./partition.ts"
import { isCurrent, passGap, type Shared } from "./shared.ts"

/**
 * Leaders are asked by the topic's name. What they say is of our topic only if the name stands for it still; of another
 * the partition's metadata is asked for anew, which shows that the topic was made again.
 */
const isOurs = (shared: Shared, state: PartitionState): Effect.Effect<boolean, WireError> =>
  Effect.gen(function*() {
    const found = (yield* shared.cluster.topics([state.topic])).get(state.topic)
    if (found?.id === state.topicId) return true
    backOff(state, yield* nowMs, `${state.key} is being made again on the source`)
    return false
  })

/** Positions whose last record an older leader wrote: is it still there? */
export const validate = (shared: Shared, states: States): Effect.Effect<void> => {
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
            else if (yield* isOurs(shared, state)) passGap(shared, state, gap, part.leaderEpoch)
          }
        }
      })
    ), { concurrency: "unbounded", discard: true })
}

/** Positions that a broker refused, or that belong to a topic that is no more. */
export const judgeRange = (shared: Shared, states: States): Effect.Effect<void> =>
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
      else if (yield* isOurs(shared, state)) passGap(shared, state, gap, -1)
    }
  }).pipe((judged) => about(shared, states, judged))
