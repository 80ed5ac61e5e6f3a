/**
 * A flow's offsets while it runs: the notes that its lanes write, and, in the process that leads, the map they make,
 * the offsets of groups on the target, and what MirrorMaker 2's clients read.
 *
 * Guarantee: nothing here stops the mirror. Where the topic of the notes cannot be had, that is said, and there is no
 * map.
 */
import { Clock, Effect, type Scope } from "effect"
import type { ResolvedFlow } from "../../config/types.ts"
import type { WireError } from "../../wire/errors.ts"
import {
  type GroupOffset,
  groupFilter,
  type GroupSyncOptions,
  type SourceGroup,
  sourceGroups,
  syncGroups
} from "../control/groupSync.ts"
import type { Leadership } from "../control/leader.ts"
import { endOffsets } from "../control/logOffsets.ts"
import { groupProgress, partitionName, shareProgress } from "../control/offsets.ts"
import { unwritable } from "../control/rights.ts"
import type { ControlTask, TaskReport } from "../control/tasks.ts"
import type { MirroredTopic } from "../control/topics.ts"
import type { FlowClusters } from "../flowSetup.ts"
import type { Log } from "../report.ts"
import type { FloorRule } from "./floors.ts"
import { type LaneNotes, makeLaneNotes, topicIdOf } from "./laneNotes.ts"
import { mm2Tasks } from "./mm2Tasks.ts"
import type { NotedSlot } from "./note.ts"
import { ensureOffsetsTopic, type OffsetsTopic, openOffsetsTopic } from "./offsetsTopic.ts"
import { looseRun } from "./runs.ts"
import { Translator } from "./translator.ts"

export interface FlowOffsetsOptions {
  readonly flow: ResolvedFlow
  readonly clusters: FlowClusters
  /** What is in force. */
  readonly guarantee: "exactly-once" | "at-least-once"
  readonly topics: () => ReadonlyArray<MirroredTopic>
  /** Whether a source topic is fed from the target, too. */
  readonly bothWays: (source: string) => boolean
  /** Groups of the source that are onceover's. */
  readonly ownGroups: () => ReadonlySet<string>
  readonly log: Log
  /** After each pass over the groups. */
  readonly onGroups: (rows: ReadonlyArray<GroupOffset>) => void
}

export interface FlowOffsets {
  /** Of one lane; null: there is no map. */
  readonly laneNotes: () => LaneNotes | null
  /** For the process that leads. */
  readonly tasks: ReadonlyArray<ControlTask>
  /** A last pass over the groups where this process leads: before a run that has caught up ends. */
  readonly settle: (leadership: Leadership) => Effect.Effect<void>
}

export const floorRule = (mode: "share" | "consumer", guarantee: FlowOffsetsOptions["guarantee"]): FloorRule =>
  mode === "consumer" ? "order" : guarantee === "exactly-once" ? "transactions" : "looks"

/** Notes are folded when so many bytes have come, and twice what the last fold was. */
const FOLD_BYTES = 4 * 1024 * 1024
/** Runs that are kept to the record, in all and of one target partition. */
const MAX_RUNS = 1_000_000
const MAX_RUNS_PER_PLACE = 500_000
/** The longest wait for the last pass. */
const SETTLE_MS = 10_000

/**
 * A flow that had come some way before it had a map: what lies below the source's ends now may be anywhere on the
 * target, as far as nothing better is known. Noted once, with the first note of all.
 */
const adopted = ({ clusters, flow, topics }: FlowOffsetsOptions): Effect.Effect<ReadonlyArray<NotedSlot>, WireError> =>
  Effect.gen(function*() {
    const list = topics()
    const { source, target } = clusters
    const progress = yield* flow.groupProtocol.value === "share"
      ? shareProgress(source, flow.groupId, list)
      : groupProgress(source, flow.groupId, list)
    const begun = list.filter((topic) =>
      Array.from({ length: topic.partitions }, (_, n) => progress.get(partitionName(topic.source, n))?.position ?? 0)
        .some((position) => position > 0)
    )
    if (begun.length === 0) return []
    const ends = yield* endOffsets(source, begun, false)
    const there = yield* target.retrying(target.topics(begun.map((topic) => topic.target)))
    const targetEnds = yield* endOffsets(
      target,
      [...there.values()].map(({ name, partitions }) => ({
        source: name,
        sourceId: "",
        target: name,
        partitions: partitions.length
      })),
      false
    )
    return begun.flatMap((topic) =>
      Array.from({ length: topic.partitions }, (_, partition): NotedSlot | null => {
        const name = partitionName(topic.source, partition)
        const position = progress.get(name)?.position ?? 0
        const end = Math.max(position, ends.get(name) ?? 0)
        if (position === 0) return null
        const high = (targetEnds.get(partitionName(topic.target, partition)) ?? 1) - 1
        return {
          topicId: topicIdOf(topic.source, topic.sourceId),
          partition,
          covered: [{ first: 0, last: position - 1 }],
          places: [{ topic: topic.target, partition, runs: [looseRun(0, end, 0, Math.max(0, high))] }]
        }
      }).filter((slot) => slot !== null)
    )
  })

const open = (options: FlowOffsetsOptions): Effect.Effect<OffsetsTopic | null, WireError, Scope.Scope> =>
  Effect.gen(function*() {
    const { clusters, flow, log } = options
    const refused = yield* ensureOffsetsTopic(clusters.targetAdmin, flow.name)
    if (refused !== null) {
      log("warn", `there is no map of offsets, and offsets of groups are not kept on "${flow.target}": ${refused}`)
      return null
    }
    const topic = yield* openOffsetsTopic(clusters.target, flow.name, clusters.sourceId)
    // A note that is refused aborts its transaction: where it would be, none is written.
    if ((yield* unwritable(clusters.target, [topic.name])).length > 0) {
      log("warn", `there is no map of offsets: the principal may not WRITE ${topic.name} on "${flow.target}"`)
      return null
    }
    if (yield* topic.isNew) {
      const slots = yield* adopted(options)
      if (slots.length > 0) {
        log("info", "the map of offsets begins now: where earlier records are on the target is not known to the record")
      }
      yield* topic.append([{ clusterId: clusters.sourceId, slots }])
    }
    return topic
  }).pipe(
    Effect.catchTags({
      BrokerError: (error) => unusable(options, error),
      ProtocolError: (error) => unusable(options, error)
    })
  )

const unusable = (options: FlowOffsetsOptions, error: WireError): Effect.Effect<null, WireError> => {
  if (error._tag === "BrokerError" && error.class !== "authorization" && error.class !== "fatal") {
    return Effect.fail(error)
  }
  options.log("warn", `there is no map of offsets: ${error.message}`)
  return Effect.succeed(null)
}

const places = (topic: OffsetsTopic): number => {
  let count = 0
  for (const slot of topic.map.slots) count += slot.places.size
  return count
}

/** Keeps the topic small: what the source has dropped is forgotten, what is old and much is thinned out. */
const foldWhenDue = (
  { topics }: FlowOffsetsOptions,
  topic: OffsetsTopic,
  translator: Translator
): Effect.Effect<void, WireError> =>
  Effect.suspend(() => {
    const { folded, unfolded } = topic.weight()
    if (unfolded < Math.max(FOLD_BYTES, 2 * folded)) return Effect.void
    for (const { partitions, source, sourceId } of topics()) {
      for (let partition = 0; partition < partitions; partition++) {
        const start = translator.starts.get(partitionName(source, partition))
        if (start !== undefined) topic.map.forgetBelow(topicIdOf(source, sourceId), partition, start)
      }
    }
    topic.map.thin(Math.min(MAX_RUNS_PER_PLACE, Math.max(1_000, Math.floor(MAX_RUNS / Math.max(1, places(topic))))))
    return topic.fold
  })

const WORDS: Readonly<Record<string, string>> = {
  active: "is not touched on the target",
  unmapped: "has no translated offset",
  failed: "cannot be moved on the target"
}

/** What the target refuses is told with its place there, which a transform may have named. */
const placeOf = (row: GroupOffset): string =>
  row.state === "failed"
    ? partitionName(row.targetTopic, row.targetPartition)
    : partitionName(row.topic, row.partition)

/** One sentence a group and reason. */
export const groupSentences = (
  rows: ReadonlyArray<GroupOffset>,
  states: ReadonlySet<string>
): ReadonlyArray<string> => {
  const found = Map.groupBy(
    rows.filter((row) => states.has(row.state)),
    (row) => `group ${row.group} ${WORDS[row.state] ?? row.state}: ${row.reason ?? ""}`
  )
  return [...found].map(([sentence, of]) =>
    `${sentence} (${of.length === 1 ? placeOf(of[0] as GroupOffset) : `${of.length} partitions`})`
  )
}

const PROBLEMS = new Set(["failed", "unmapped"])
const NOTES = new Set(["active"])

const groupTask = (
  options: FlowOffsetsOptions,
  topic: OffsetsTopic,
  translator: Translator,
  onRows: (rows: ReadonlyArray<GroupOffset>) => void
): ControlTask => {
  const { clusters, flow, topics } = options
  const settings = flow.offsets
  const sync: GroupSyncOptions = {
    ...clusters,
    translator,
    topics,
    matches: groupFilter(settings.groups, settings.groupsExclude, options.ownGroups)
  }
  let groups: ReadonlyArray<SourceGroup> = []
  let lookedAtMs = -Infinity
  const pass = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    if (now - lookedAtMs >= settings.refreshGroupsIntervalMs) {
      groups = yield* sourceGroups(sync)
      lookedAtMs = now
    }
    const before = yield* syncGroups(sync, groups, settings.syncGroups)
    onRows(before)
    yield* foldWhenDue(options, topic, translator)
    return {
      changed: before.filter((row) => row.state === "synced" && row.targetCurrent !== row.targetPosition).length,
      problems: groupSentences(before, PROBLEMS),
      notes: groupSentences(before, NOTES)
    } satisfies TaskReport
  })
  return { name: "groups", intervalMs: settings.syncGroupsIntervalMs, pass }
}

const nowhere: FlowOffsets = { laneNotes: () => null, tasks: [], settle: () => Effect.void }

/** The flow's topics must have been looked for. */
export const openFlowOffsets = (options: FlowOffsetsOptions): Effect.Effect<FlowOffsets, WireError, Scope.Scope> =>
  Effect.gen(function*() {
    const { clusters, flow, guarantee, topics } = options
    const topic = flow.offsets.map ? yield* open(options) : null
    if (topic === null) return { ...nowhere, tasks: yield* mm2Tasks(options, null) }
    const translator = new Translator({
      ...clusters,
      offsets: topic,
      rule: floorRule(flow.groupProtocol.value, guarantee),
      transactional: guarantee === "exactly-once",
      groupId: flow.groupId,
      topics,
      bothWays: options.bothWays
    })
    let rows: ReadonlyArray<GroupOffset> = []
    const groups = groupTask(options, topic, translator, (found) => {
      rows = found
      options.onGroups(found)
    })
    const others = yield* mm2Tasks(options, { topic, translator, rows: () => rows })
    const wanted = flow.offsets.syncGroups || flow.offsets.checkpoints || flow.offsets.offsetSyncs
    const last = Effect.gen(function*() {
      yield* groups.pass
      for (const task of others) yield* task.pass
    })
    return {
      laneNotes: () => makeLaneNotes(topic.name, clusters.sourceId),
      tasks: [...(wanted ? [groups] : []), ...others],
      settle: (leadership) =>
        wanted ? Effect.ignore(Effect.timeoutOption(leadership.whileLeading(last), SETTLE_MS)) : Effect.void
    }
  })
