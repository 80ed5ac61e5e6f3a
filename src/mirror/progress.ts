/**
 * Lag, and "caught up": how far the group has come against the source's ends. Asked of the source cluster, so the
 * work of members in other processes counts too.
 */
import { Deferred, Effect } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import { bothEnds, type Ends, nothingUndone } from "./control/ends.ts"
import { type LogOffsets, reachableEnds, reachableStarts } from "./control/logOffsets.ts"
import { groupProgress, partitionName, type Progress, type ProgressMap, shareProgress } from "./control/offsets.ts"
import type { MirroredTopic } from "./control/topics.ts"
import { TailWatch } from "./emptyTail.ts"
import type { GapWatch, SourceGap } from "./gaps.ts"
import type { Log } from "./report.ts"
import type { FlowState } from "./state.ts"
import type { EndNow, Truncation, TruncationWatch } from "./truncation.ts"

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
  /** Where offsets say what is mirrored: looks for logs that were cut back. Null: the source sees to it by itself. */
  readonly truncations: TruncationWatch | null
  /** The end of what is mirrored by another word than the group's; 0: there is none. */
  readonly doneEnd: (at: { readonly topic: string; readonly topicId: string; readonly partition: number }) => number
  readonly onTruncated: (cut: Truncation) => void
  /** What `observeLag` has seen of the partitions' ends. */
  readonly onEnds?: (ends: Ends) => Effect.Effect<void>
  readonly log: Log
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
    const high = (yield* reachableEnds(parts.cluster, behind, false)).found
    for (const topic of behind) {
      names(topic).forEach((name, partition) => {
        if (!starts.has(name) || !high.has(name)) return
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

/** Tells of logs that were cut back. */
const tellTruncations = (
  { cluster, doneEnd, onTruncated, truncations }: ProgressParts,
  topics: ReadonlyArray<MirroredTopic>,
  { epochs, high }: Ends,
  found: ProgressMap
): Effect.Effect<void, WireError> =>
  Effect.gen(function*() {
    if (truncations === null) return
    const nameOf = ({ partition, topic }: EndNow): string => partitionName(topic, partition)
    const positionOf = (end: EndNow): number => Math.max(found.get(nameOf(end))?.position ?? 0, doneEnd(end))
    const ends = topics.flatMap(({ partitions, source, sourceId }) =>
      Array.from({ length: partitions }, (_, partition): EndNow => ({
        topic: source,
        topicId: sourceId,
        partition,
        highWatermark: high.get(partitionName(source, partition)) ?? -1,
        leaderEpoch: epochs.get(partitionName(source, partition)) ?? -1
      })).filter(({ highWatermark }) => highWatermark >= 0)
    )
    for (const cut of yield* truncations.look(ends)) onTruncated(cut)
    const above = ends.filter((end) => positionOf(end) > end.highWatermark)
    if (above.length === 0) return
    // Asked after the group's word: the group may just have got ahead of what was asked before it.
    const names = new Set(above.map(({ topic }) => topic))
    const again = yield* reachableEnds(cluster, topics.filter(({ source }) => names.has(source)), false)
    for (const end of above) {
      const highWatermark = again.found.get(nameOf(end))
      const cut = highWatermark === undefined
        ? null
        : yield* truncations.above({ ...end, highWatermark }, positionOf(end))
      if (cut !== null) onTruncated(cut)
    }
  })

/** One look at every partition that has a leader: position and lag into the flow's state and metrics. */
export const observeLag = (parts: ProgressParts): Effect.Effect<void, WireError> =>
  Effect.gen(function*() {
    const topics = parts.topics()
    if (topics.length === 0) return
    const both = yield* endsOf(parts)
    const { high, stable: ends } = both
    if (parts.onEnds !== undefined) yield* parts.onEnds(both)
    const starts = (yield* reachableStarts(parts.cluster, topics)).found
    const found = yield* progressOf(parts, topics)
    const share = parts.mode === "share"
    yield* tellTruncations(parts, topics, both, found)
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

/**
 * What has to be reached: the ends at the start, of partitions that held anything. Infinity: nobody could say where the
 * partition ends (it has no leader); set as soon as somebody can.
 */
export type Goal = Map<string, number>

interface LogRanges {
  readonly starts: LogOffsets
  readonly ends: LogOffsets
}

const rangesOf = (parts: ProgressParts, topics: ReadonlyArray<MirroredTopic>): Effect.Effect<LogRanges, WireError> =>
  Effect.gen(function*() {
    const ends = yield* reachableEnds(parts.cluster, topics, parts.committed)
    return { ends, starts: yield* reachableStarts(parts.cluster, topics) }
  })

const setGoal = (goal: Goal, name: string, { ends, starts }: LogRanges): void => {
  const end = ends.found.get(name)
  const start = starts.found.get(name)
  if (end === undefined || start === undefined) goal.set(name, Infinity)
  else if (end > start) goal.set(name, end)
  else goal.delete(name)
}

/** Takes the goal of `--until-caught-up`: every record that the source holds now. */
export const takeGoal = (parts: ProgressParts): Effect.Effect<Goal, WireError> =>
  Effect.gen(function*() {
    const topics = parts.topics()
    const goal: Goal = new Map()
    if (topics.length === 0) return goal
    const ranges = yield* rangesOf(parts, topics)
    for (const name of [...ranges.ends.found.keys(), ...ranges.ends.missing.keys()]) setGoal(goal, name, ranges)
    for (const [name, end] of goal) {
      if (end !== Infinity) continue
      const { message } = ranges.ends.missing.get(name) ?? ranges.starts.missing.get(name) ?? { message: "no answer" }
      parts.log("warn", `${name} cannot be asked where it ends, and the end of this run waits for it: ${message}`)
    }
    return goal
  })

/** Partitions that could not be asked when the goal was taken. */
const completeGoal = (parts: ProgressParts, goal: Goal): Effect.Effect<void, WireError> =>
  Effect.gen(function*() {
    const waits = [...goal].filter(([, end]) => end === Infinity).map(([name]) => name)
    if (waits.length === 0) return
    const topics = parts.topics().filter(({ source }) =>
      waits.some((name) => name.slice(0, name.lastIndexOf("-")) === source)
    )
    const ranges = yield* rangesOf(parts, topics)
    for (const name of waits) setGoal(goal, name, ranges)
  })

/**
 * Names of `open` of which nothing is left but offsets without a record; from then on the goal is the position. A
 * partition that the group has no position in counts from the log's start.
 */
const emptyTails = (
  parts: ProgressParts,
  tails: TailWatch,
  goal: Goal,
  open: ReadonlySet<string>,
  progress: ProgressMap
): Effect.Effect<ReadonlyArray<string>, WireError> =>
  Effect.gen(function*() {
    const empty: Array<string> = []
    for (const topic of parts.topics()) {
      const names = Array.from({ length: topic.partitions }, (_, p) => partitionName(topic.source, p))
      const strange = names.some((name) => open.has(name) && !progress.has(name))
      const starts = strange ? (yield* reachableStarts(parts.cluster, [topic])).found : new Map<string, number>()
      for (const [partition, name] of names.entries()) {
        const end = goal.get(name) ?? Infinity
        const position = progress.get(name)?.position ?? starts.get(name)
        if (!open.has(name) || end === Infinity || position === undefined) continue
        const at = { topic: topic.source, topicId: topic.sourceId, partition }
        if (!(yield* tails.look(at, { position, left: progress.get(name)?.left ?? null }, end))) continue
        parts.log("info", `${name}: offsets ${position} to ${end - 1} hold no record, there is nothing to wait for`)
        goal.set(name, position)
        empty.push(name)
      }
    }
    return empty
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
    const open = new Set(goal.keys())
    const tails = new TailWatch(parts.cluster, parts.committed)
    while (open.size > 0) {
      yield* completeGoal(parts, goal)
      for (const name of open) if (!goal.has(name)) open.delete(name)
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
      for (const name of yield* emptyTails(parts, tails, goal, open, progress)) open.delete(name)
      if (open.size > 0) yield* Effect.sleep(GOAL_POLL)
    }
    yield* lastLook
    yield* Deferred.succeed(reached, undefined)
  })
