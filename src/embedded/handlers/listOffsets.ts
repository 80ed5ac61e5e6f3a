/** ListOffsets and OffsetForLeaderEpoch: where a log begins, ends, and was at some time or epoch. */
import { EARLIEST, LATEST, listOffsets } from "../../wire/messages/listOffsets.ts"
import { offsetForLeaderEpoch } from "../../wire/messages/offsetForLeaderEpoch.ts"
import { code } from "../model/codes.ts"
import { endOfEpoch, firstAtTime, type Found, lastStableOffset, latestTimestamp } from "../model/partitionLog.ts"
import type { Partition } from "../model/state.ts"
import { epochError, ledPartition } from "../model/topics.ts"
import { handler } from "./handler.ts"

const MAX_TIMESTAMP = -3
const EARLIEST_LOCAL = -4

const lookUp = (partition: Partition, timestamp: number, committed: boolean): Found | null => {
  const { leaderEpoch, log } = partition
  switch (timestamp) {
    case LATEST:
      return { offset: committed ? lastStableOffset(log) : log.endOffset, timestampMs: -1, leaderEpoch }
    case EARLIEST:
    case EARLIEST_LOCAL:
      return { offset: log.startOffset, timestampMs: -1, leaderEpoch: log.epochs[0]?.epoch ?? leaderEpoch }
    case MAX_TIMESTAMP:
      return latestTimestamp(log)
    default:
      return timestamp < 0 ? null : firstAtTime(log, timestamp)
  }
}

export const listOffsetsHandler = handler(listOffsets, ({ brokerId, request, state }) => ({
  topics: request.topics.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map(({ currentLeaderEpoch, partitionIndex, timestamp }) => {
      const failed = (errorCode: number) => ({ partitionIndex, errorCode, timestamp: -1, offset: -1, leaderEpoch: -1 })
      const led = ledPartition(brokerId, state.topics.get(name), partitionIndex)
      if (typeof led === "number") return failed(led)
      const epoch = epochError(led, currentLeaderEpoch)
      if (epoch !== code.NONE) return failed(epoch)
      const found = lookUp(led, timestamp, request.isolationLevel === 1)
      if (found === null) return failed(code.NONE)
      return {
        partitionIndex,
        errorCode: code.NONE,
        timestamp: found.timestampMs,
        offset: found.offset,
        leaderEpoch: found.leaderEpoch
      }
    })
  }))
}))

export const offsetForLeaderEpochHandler = handler(offsetForLeaderEpoch, ({ brokerId, request, state }) => ({
  topics: request.topics.map(({ partitions, topic }) => ({
    topic,
    partitions: partitions.map(({ currentLeaderEpoch, leaderEpoch, partition }) => {
      const led = ledPartition(brokerId, state.topics.get(topic), partition)
      const errorCode = typeof led === "number" ? led : epochError(led, currentLeaderEpoch)
      if (errorCode !== code.NONE) return { errorCode, partition, leaderEpoch: -1, endOffset: -1 }
      const { endOffset, epoch } = endOfEpoch((led as Partition).log, leaderEpoch, (led as Partition).leaderEpoch)
      return { errorCode, partition, leaderEpoch: epoch, endOffset }
    })
  }))
}))
