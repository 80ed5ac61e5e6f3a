/**
 * Markers: the end of a transaction, on its way from the coordinator to what took part in it.
 *
 * They are written after EndTxn was answered, each when its own time has come, in any order. One whose partition has
 * no leader stays and is tried again.
 */
import { settleGroupOffsets } from "./groupOffsets.ts"
import { appendMarker } from "./partitionLog.ts"
import { settlePending } from "./sharePartition.ts"
import { sharePartitionKey } from "./shareGroup.ts"
import type { ClusterState } from "./state.ts"
import type { PendingMarker } from "./transaction.ts"

const RETRY_MS = 20

const appendTo = (
  state: ClusterState,
  marker: PendingMarker,
  nowMs: number
): "written" | "refused" | "later" | "gone" => {
  const { participant } = marker
  if (participant.kind !== "partition") return "gone"
  const partition = state.topicsById.get(participant.topicId)?.partitions[participant.partition]
  if (partition === undefined) return "gone"
  if (partition.leader < 0) return "later"
  const options = { leaderEpoch: partition.leaderEpoch, nowMs, logAppendTime: false }
  return appendMarker(partition.log, { ...marker, transactionVersion: marker.version }, options) ? "written" : "refused"
}

/** A duplicate of a marker, arriving late: WriteTxnMarkers sent twice. */
export const repeatMarker = (state: ClusterState, marker: PendingMarker, nowMs: number): boolean =>
  appendTo(state, marker, nowMs) === "written"

/** False: not now. A participant that is gone needs no marker. */
const write = (state: ClusterState, marker: PendingMarker, nowMs: number): boolean => {
  const { participant } = marker
  switch (participant.kind) {
    case "group": {
      const group = state.groups.get(participant.groupId)
      if (group !== undefined) settleGroupOffsets(group, marker.producerId, marker.committed)
      return true
    }
    case "share": {
      const key = sharePartitionKey(participant.topicId, participant.partition)
      const shared = state.shareGroups.get(participant.groupId)?.partitions.get(key)
      if (shared !== undefined) settlePending(shared, marker.producerId, marker.committed)
      return true
    }
    case "partition":
      return appendTo(state, marker, nowMs) !== "later"
  }
}

type Done = (marker: PendingMarker) => void
/** What is told when a marker is in its log; kept beside the markers, which are data. */
const listeners = new WeakMap<PendingMarker, Done>()

/** Writes one marker, if it still is outstanding and can be written now. */
export const tryMarker = (state: ClusterState, marker: PendingMarker, nowMs: number): boolean => {
  if (!state.markers.has(marker)) return true
  if (!write(state, marker, nowMs)) return false
  state.markers.delete(marker)
  listeners.get(marker)?.(marker)
  return true
}

/** Leaves a marker out and takes it for written, as Kafka 4.1 to 4.4 do where a partition has no leader (KAFKA-20734). */
export const loseMarker = (state: ClusterState, marker: PendingMarker): void => {
  if (state.markers.delete(marker)) listeners.get(marker)?.(marker)
}

const tryLater = (state: ClusterState, marker: PendingMarker, atMs: number): void => {
  state.timers.set(atMs, (now) => {
    if (!tryMarker(state, marker, now)) tryLater(state, marker, now + RETRY_MS)
  })
}

export const scheduleMarkers = (
  state: ClusterState,
  markers: ReadonlyArray<PendingMarker>,
  nowMs: number,
  done: Done
): void => {
  for (const marker of markers) {
    state.markers.add(marker)
    listeners.set(marker, done)
    if (state.markerDelayMs !== null) tryLater(state, marker, nowMs + state.markerDelayMs())
  }
}
