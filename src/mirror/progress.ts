/**
 * Lag, and "caught up": how far the group has come against the source's ends. Asked of the source cluster, so the
 * work of members in other processes counts too.
 */
import { Deferred, Effect } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import { bothEnds, type Ends, nothingUndone } from "./control/ends.ts"
import {
  endOffsets,
  groupProgress,
  partitionName,
  type Progress,
  type ProgressMap,
  shareProgress,
  startOffsets
} from "./control/offsets.ts"
import type { MirroredTopic } from "./control/topics.ts"
import type { GapWatch, SourceGap } from "./gaps.ts"
import type { FlowState } from "./state.ts"

export interface ProgressParts {
  readonly cluster: Cluster
  readonly groupId: string
  readonly mode: "share" | "consumer"
  /** The source is read under read_committed: its end is the last stable offset. */
  readonly committed: boolean
  readonly state: FlowState
  readonly topics: () => ReadonlyArray<MirroredTopic>
  /** Called for each partition whose lag is known. */
  readonly onLag: (topic: string, partition: number, lag: number) => void
  /** Share mode: what `observeLag` compares from look to look, and who is told of a gap. */
  readonly gaps: GapWatch
  readonly onGap: (gap: SourceGap) => void
}

/** The broker's start offset may lag behind (offsets.ts): what was acknowledged here from there on counts as well. */
const withOwn = (state: FlowState, found: ProgressMap): ProgressMap =>
  new Map(
    [...found].map((
      [name, progress]
    ): readonly [string, Progress] => [name, {
      ...progress,
      position: state.acknowledgedFrom(name, progress.position)
    }])
  )

const progressOf = (
  parts: ProgressParts,
  topics: ReadonlyArray<MirroredTopic>
): Effect.Effect<ProgressMap, WireError> =>
  parts.mode === "share"
    ? shareProgress(parts.cluster, parts.groupId, topics)
    : groupProgress(parts.cluster, parts.groupId, topics)

const endsOf = (parts: ProgressParts): Effect.Effect<Ends, WireError> =>
  bothEnds(parts.cluster, parts.topics(), parts.committed)

type Offsets = ReadonlyMap<string, number>

/** Share mode: tells of what the log has dropped before the group had done with it. */
const tellGaps = (parts: ProgressParts, topics: ReadonlyArray<MirroredTopic>, found: ProgressMap, starts: Offsets) =>
  Effect.gen(function*() {
    const names = (topic: MirroredTopic) =>
      Array.from({ length: topic.partitions }, (_, p) => partitionName(topic.source, p))
    const behind = topics.filter((topic) =>
      names(topic).some((name) =>
        (parts.gaps.position(name) ?? found.get(name)?.position ?? Infinity) < (starts.get(name) ?? 0)
      )
    )
    if (behind.length === 0) return
    // Asked after the group's word: a log that has grown in between must not look like a loss.
    const high = yield* endOffsets(parts.cluster, behind, false)
    for (const topic of behind) {
      names(topic).forEach((name, partition) => {
        const progress = found.get(name)
        const gap = parts.gaps.look({
          topic: topic.source,
          partition,
          groupStart: progress?.position ?? null,
          left: progress?.left ?? null,
          logStart: starts.get(name) ?? 0,
          highWatermark: high.get(name) ?? 0,
          acknowledged: parts.state.acknowledgedIn(name)
        })
        if (gap !== null) parts.onGap(gap)
      })
    }
  })

/** One look at every partition: position and lag into the flow's state and metrics. */
export const observeLag = (parts: ProgressParts): Effect.Effect<void, WireError> =>
  Effect.gen(function*() {
    const topics = parts.topics()
    if (topics.length === 0) return
    const { high, stable: ends } = yield* endsOf(parts)
    const starts = yield* startOffsets(parts.cluster, topics)
    const found = yield* progressOf(parts, topics)
    const share = parts.mode === "share"
    if (share) yield* tellGaps(parts, topics, found, starts)
    const progress = share ? withOwn(parts.state, found) : found
    for (const topic of topics) {
      for (let partition = 0; partition < topic.partitions; partition++) {
        const name = partitionName(topic.source, partition)
        const end = ends.get(name)
        if (end === undefined) continue
        // What the log no longer holds is not behind us, it is gone.
        const known = progress.get(name)
        const position = Math.max(known?.position ?? 0, starts.get(name) ?? 0)
        const state = parts.state.partition(topic.source, partition, topic.target)
        const unstable = Math.max(0, (high.get(name) ?? end) - end)
        const left = known === undefined || known.left === null ? Infinity : Math.max(0, known.left - unstable)
        state.lag = Math.min(Math.max(0, end - position), left)
        state.position = state.lag === 0 ? Math.max(position, end) : position
        if (share && known !== undefined) {
          parts.gaps.stand(topic.source, partition, state.position)
          parts.state.forgetAcknowledged(name, found.get(name)?.position ?? 0)
        }
        parts.onLag(topic.source, partition, state.lag)
      }
    }
  })

/** What has to be reached: the ends at the start, of partitions that held anything. */
export type Goal = Map<string, number>

/** Takes the goal of `--until-caught-up`: every record that the source holds now. */
export const takeGoal = (parts: ProgressParts): Effect.Effect<Goal, WireError> =>
  Effect.gen(function*() {
    const topics = parts.topics()
    const goal: Goal = new Map()
    if (topics.length === 0) return goal
    const ends = yield* endOffsets(parts.cluster, topics, parts.committed)
    const starts = yield* startOffsets(parts.cluster, topics)
    for (const [name, end] of ends) if (end > (starts.get(name) ?? 0)) goal.set(name, end)
    return goal
  })

const GOAL_POLL = "200 millis"

/** Waits until the group has passed every offset of the goal and `lastLook` (for what it gave up) has found nothing; then completes `reached`. */
export const awaitGoal = <E>(
  parts: ProgressParts,
  goal: Goal,
  reached: Deferred.Deferred<void>,
  lastLook: Effect.Effect<void, E>
): Effect.Effect<void, WireError | E> =>
  Effect.gen(function*() {
    const open = new Map(goal)
    while (open.size > 0) {
      const before = parts.mode === "share" ? yield* endsOf(parts) : null
      const found = yield* progressOf(parts, parts.topics())
      const progress = parts.mode === "share" ? withOwn(parts.state, found) : found
      const after = before === null ? null : yield* endsOf(parts)
      for (const [name, end] of goal) {
        const known = progress.get(name)
        if (known === undefined) continue
        const passed = known.position >= end ||
          (before !== null && after !== null && (after.stable.get(name) ?? 0) >= end &&
            nothingUndone(name, known.left, before, after))
        if (passed) open.delete(name)
      }
      if (open.size > 0) yield* Effect.sleep(GOAL_POLL)
    }
    yield* lastLook
    yield* Deferred.succeed(reached, undefined)
  })
