/**
 * The control tasks that write what MirrorMaker 2's clients read: heartbeats, checkpoints, pairs of offsets. Formats and
 * names are in control/mm2Formats.ts.
 */
import { Clock, Effect, type Scope } from "effect"
import { makeProducer, type Producer } from "../../txn/producer.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { GroupOffset } from "../control/groupSync.ts"
import { checkpointsOf, type Emit, makeEmitter, newestPair } from "../control/mm2Emitters.ts"
import { checkpointsTopic, heartbeatRecord, offsetSyncRecord, offsetSyncsTopic } from "../control/mm2Formats.ts"
import type { ControlTask, TaskReport } from "../control/tasks.ts"
import { HEARTBEATS } from "../naming.ts"
import type { FlowOffsetsOptions } from "./flowOffsets.ts"
import { topicIdOf } from "./laneNotes.ts"
import type { OffsetsTopic } from "./offsetsTopic.ts"
import type { Translator } from "./translator.ts"

/** What checkpoints and pairs are made from. */
export interface Mapped {
  readonly topic: OffsetsTopic
  readonly translator: Translator
  readonly rows: () => ReadonlyArray<GroupOffset>
}

interface Place {
  readonly cluster: Cluster
  readonly admin: Cluster
  readonly producer: Producer
}

const together = (reports: ReadonlyArray<TaskReport>): TaskReport => ({
  changed: reports.reduce((sum, { changed }) => sum + changed, 0),
  problems: reports.flatMap(({ problems }) => problems),
  notes: reports.flatMap(({ notes }) => notes)
})

/** On the source it is what a flow in the other direction writes: the aliases change places. */
const heartbeats = ({ flow }: FlowOffsetsOptions, target: Place, source: Place): ControlTask => {
  const { heartbeatsAt: at, heartbeatsIntervalMs: intervalMs, heartbeatsReplicas: replicas } = flow.offsets
  const emitter = (place: Place): Emit => makeEmitter({ ...place, topic: HEARTBEATS, replicas }, true)
  const ends = [
    ...(at === "source" ? [] : [{ from: flow.source, to: flow.target, emit: emitter(target) }]),
    ...(at === "target" ? [] : [{ from: flow.target, to: flow.source, emit: emitter(source) }])
  ]
  const pass = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const reports = yield* Effect.forEach(
      ends,
      ({ emit, from, to }) =>
        // One end that cannot be reached does not keep the other's back.
        Effect.catch(
          emit([heartbeatRecord(from, to, now)]),
          (error) => Effect.succeed<TaskReport>({ changed: 0, problems: [error.message], notes: [] })
        ),
      { concurrency: 2 }
    )
    return together(reports)
  })
  return { name: "heartbeats", intervalMs, pass }
}

const checkpoints = ({ flow }: FlowOffsetsOptions, place: Place, { rows }: Mapped): ControlTask => {
  const { checkpointsIntervalMs: intervalMs, checkpointsReplicas: replicas, internalSeparator } = flow.offsets
  const emit = makeEmitter({ ...place, topic: checkpointsTopic(flow.source, internalSeparator), replicas })
  return { name: "checkpoints", intervalMs, pass: Effect.suspend(() => emit(checkpointsOf(rows()))) }
}

const offsetSyncs = (
  { flow, topics }: FlowOffsetsOptions,
  place: Place,
  { topic, translator }: Mapped
): ControlTask => {
  const { internalSeparator, offsetSyncsAt, offsetSyncsReplicas: replicas, syncGroupsIntervalMs } = flow.offsets
  const other = offsetSyncsAt === "source" ? flow.target : flow.source
  const emit = makeEmitter({ ...place, topic: offsetSyncsTopic(other, internalSeparator), replicas })
  const pairs = () =>
    topics().flatMap((one) =>
      Array.from({ length: one.partitions }, (_, partition) => {
        const slot = topic.map.slot(topicIdOf(one.source, one.sourceId), partition)
        const found = slot?.places.get(`${one.target}/${partition}`)
        if (found === undefined) return null
        const at = { topic: one.source, partition }
        return newestPair(found.runs, translator.floorOf(one, partition), at)
      }).filter((pair) => pair !== null).map(offsetSyncRecord)
    )
  return { name: "offset-syncs", intervalMs: syncGroupsIntervalMs, pass: Effect.suspend(() => emit(pairs())) }
}

/** `mapped` null: the flow has no map of offsets, and heartbeats are all there is. */
export const mm2Tasks = (
  options: FlowOffsetsOptions,
  mapped: Mapped | null
): Effect.Effect<ReadonlyArray<ControlTask>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { clusters, flow } = options
    const settings = flow.offsets
    const purpose = `mm2-${flow.name}`
    const place = (cluster: Cluster, admin: Cluster) =>
      Effect.map(makeProducer({ cluster, purpose }), (producer): Place => ({ cluster, admin, producer }))
    const target = yield* place(clusters.target, clusters.targetAdmin)
    // Written to only where a setting says so.
    const source = yield* place(clusters.source, clusters.source)
    const tasks: Array<ControlTask> = []
    if (settings.heartbeats) tasks.push(heartbeats(options, target, source))
    if (settings.checkpoints && mapped !== null) tasks.push(checkpoints(options, target, mapped))
    if (settings.offsetSyncs && mapped !== null) {
      tasks.push(offsetSyncs(options, settings.offsetSyncsAt === "source" ? source : target, mapped))
    }
    return tasks
  })
