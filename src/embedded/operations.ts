/**
 * What an operator, a failure or a test does to the cluster: topics, brokers that stop, freeze and come back, leaders
 * and coordinators that move, markers that are held back. All of it happens at once, at the clock's time.
 */
import { encodeBatch, type Rec } from "../wire/batch/records.ts"
import type { Codec } from "../wire/batch/recordBatch.ts"
import type { Driver } from "./link.ts"
import { loseMarker, repeatMarker, tryMarker } from "./model/markers.ts"
import { appendBatch, deleteBefore, type Log, punchHole } from "./model/partitionLog.ts"
import { type ResourceKind, settingsOf } from "./model/settings.ts"
import { sharePartitionKey } from "./model/shareGroup.ts"
import { moveSharePartition, recordStates, type RecordState } from "./model/sharePartition.ts"
import { dropFetchSessions } from "./model/fetchSession.ts"
import { dropSessionsOfBroker } from "./model/shareSession.ts"
import { type ClusterState, type Partition, runningBrokers, type Topic } from "./model/state.ts"
import { createTopic, electLeaders, moveLeader } from "./model/topics.ts"
import type { PendingMarker } from "./model/transaction.ts"

export interface TopicOptions {
  /** Default 1. */
  readonly partitions?: number
  /** Default: as many as there are brokers, 3 at most. */
  readonly replication?: number
  readonly settings?: Readonly<Record<string, string>>
}

export interface ShareRecord {
  readonly offset: number
  readonly state: RecordState
  readonly member: string
  readonly deliveries: number
}

export interface Operations {
  /** The whole state, to look at. After a change by hand call `wake`. */
  readonly state: ClusterState
  readonly wake: () => void
  readonly createTopic: (name: string, options?: TopicOptions) => Topic
  readonly configure: (kind: ResourceKind, name: string, settings: Readonly<Record<string, string>>) => void
  readonly log: (topic: string, partition: number) => Log
  /** Appends records as one batch of a producer without idempotence; gives the first offset. */
  readonly append: (topic: string, partition: number, records: ReadonlyArray<AppendedRecord>, codec?: Codec) => number
  /** Takes the batches inside these offsets out, as compaction may. */
  readonly punchHole: (topic: string, partition: number, first: number, last: number) => void
  readonly deleteRecords: (topic: string, partition: number, before: number) => void
  /** Another replica leads from now on (this one, or the next that runs). */
  readonly moveLeader: (topic: string, partition: number, to?: number) => void
  readonly moveCoordinator: (kind: "group" | "transaction", key: string, to?: number) => void
  /** Connections close, leaders and coordinators move to brokers that run. */
  readonly stopBroker: (id: number) => void
  readonly startBroker: (id: number) => void
  /** It takes requests and answers none until it is thawed. */
  readonly freezeBroker: (id: number) => void
  readonly thawBroker: (id: number) => void
  /** Closes the connections of a client (by the name it was made with), as a crash does. */
  readonly disconnect: (client: string) => void
  readonly pendingMarkers: () => ReadonlyArray<PendingMarker>
  /** Writes the markers that are held back (those that `which` picks) now. */
  readonly releaseMarkers: (which?: (marker: PendingMarker) => boolean) => void
  /** Takes the markers that are held back (those that `which` picks) for written, and does not write them (KAFKA-20734). */
  readonly loseMarkers: (which: (marker: PendingMarker) => boolean) => void
  /** Milliseconds for markers from now on; null: hold them back. */
  readonly setMarkerDelay: (delayMs: number | (() => number) | null) => void
  /** Writes a marker that was written before once more: a late duplicate. False where the log refuses it. */
  readonly repeatMarker: (marker: PendingMarker) => boolean
  /** The start of a share partition and the records in flight; null before it was read for the first time. */
  readonly sharePartition: (
    group: string,
    topic: string,
    partition: number
  ) => { readonly start: number; readonly records: ReadonlyArray<ShareRecord> } | null
}

export interface AppendedRecord {
  readonly key?: string | null
  readonly value: string | null
  /** Default: now. */
  readonly timestampMs?: number
}

const found = (state: ClusterState, name: string, index: number): Partition => {
  const partition = state.topics.get(name)?.partitions[index]
  if (partition === undefined) throw new Error(`the embedded cluster has no partition ${name}-${index}`)
  return partition
}

const toRec = (record: AppendedRecord, offset: number, nowMs: number): Rec => ({
  offset,
  timestamp: BigInt(record.timestampMs ?? nowMs),
  key: record.key === undefined || record.key === null ? null : Buffer.from(record.key),
  value: record.value === null ? null : Buffer.from(record.value),
  headers: []
})

/** The locks that the old leader gave are gone with it. */
const moveShares = (state: ClusterState, topic: Topic, partition: Partition): void => {
  for (const group of state.shareGroups.values()) {
    const shared = group.partitions.get(sharePartitionKey(topic.id, partition.index))
    if (shared !== undefined) moveSharePartition(shared)
  }
}

const nextReplica = (state: ClusterState, partition: Partition): number =>
  partition.replicas.find((id) => id !== partition.leader && state.brokers.get(id)?.running === true) ??
    partition.leader

export const operationsOn = (driver: Driver): Operations => {
  const { engine, nowMs } = driver
  const { state } = engine
  const wake = () => {
    engine.advance(nowMs())
    driver.schedule()
  }
  const then = <A>(value: A): A => {
    wake()
    return value
  }
  const elect = () => {
    for (const { partition, topic } of electLeaders(state)) moveShares(state, topic, partition)
  }
  const configure: Operations["configure"] = (kind, name, settings) => {
    for (const [key, value] of Object.entries(settings)) settingsOf(state, kind, name).set(key, value)
    wake()
  }
  return {
    state,
    wake,
    configure,
    createTopic: (name, options = {}) => {
      const topic = createTopic(state, name, options.partitions ?? 1, options.replication)
      configure("topic", name, options.settings ?? {})
      return topic
    },
    log: (topic, partition) => found(state, topic, partition).log,
    append: (topic, index, records, codec = "none") => {
      const { leaderEpoch, log } = found(state, topic, index)
      const bytes = encodeBatch(records.map((record, i) => toRec(record, i, nowMs())), { codec })
      return then(appendBatch(log, bytes, { leaderEpoch, nowMs: nowMs(), logAppendTime: false }))
    },
    punchHole: (topic, partition, first, last) => then(punchHole(found(state, topic, partition).log, first, last)),
    deleteRecords: (topic, partition, before) => then(deleteBefore(found(state, topic, partition).log, before)),
    moveLeader: (name, index, to) => {
      const partition = found(state, name, index)
      moveLeader(partition, to ?? nextReplica(state, partition))
      moveShares(state, state.topics.get(name) as Topic, partition)
      wake()
    },
    moveCoordinator: (kind, key, to) => {
      const running = runningBrokers(state).map((broker) => broker.id)
      const before = state.movedCoordinators.get(`${kind}:${key}`)
      state.movedCoordinators.set(
        `${kind}:${key}`,
        to ?? running[(running.indexOf(before ?? -1) + 1) % running.length] ?? 1
      )
      wake()
    },
    stopBroker: (id) => {
      const broker = state.brokers.get(id)
      if (broker === undefined || !broker.running) return
      broker.running = false
      dropSessionsOfBroker(state, id)
      dropFetchSessions(state, id)
      elect()
      engine.closeAll((connection) => connection.brokerId === id, `broker ${id} has stopped`, nowMs())
      wake()
    },
    startBroker: (id) => {
      const broker = state.brokers.get(id)
      if (broker !== undefined) broker.running = true
      elect()
      wake()
    },
    freezeBroker: (id) => engine.freeze(id),
    thawBroker: (id) => then(engine.thaw(id, nowMs())),
    disconnect: (client) =>
      then(engine.closeAll((connection) => connection.client === client, "the client is gone", nowMs())),
    pendingMarkers: () => [...state.markers],
    releaseMarkers: (which = () => true) => {
      for (const marker of [...state.markers]) if (which(marker)) tryMarker(state, marker, nowMs())
      wake()
    },
    loseMarkers: (which) => {
      for (const marker of [...state.markers]) if (which(marker)) loseMarker(state, marker)
      wake()
    },
    setMarkerDelay: (delayMs) => {
      state.markerDelayMs = typeof delayMs === "number" ? () => delayMs : delayMs
    },
    repeatMarker: (marker) => then(repeatMarker(state, marker, nowMs())),
    sharePartition: (groupId, topic, partition) => {
      const key = sharePartitionKey(state.topics.get(topic)?.id ?? "", partition)
      const shared = state.shareGroups.get(groupId)?.partitions.get(key)
      return shared === undefined ? null : { start: shared.start, records: recordStates(shared) }
    }
  }
}
