/**
 * Fetch, for consumers. There are no fetch sessions (KIP-227): every answer says so with session id 0, as a broker
 * does that has no room for one, and clients send everything each time.
 */
import { fetch } from "../../wire/messages/fetch.ts"
import type { Decoded } from "../../wire/schema.ts"
import { code } from "../model/codes.ts"
import { abortedBetween, bytesOf, endOfEpoch, lastStableOffset, readBatches } from "../model/partitionLog.ts"
import type { Partition, Topic } from "../model/state.ts"
import { epochError, ledPartition } from "../model/topics.ts"
import { answerOrWait, type Call, handler } from "./handler.ts"
import { endpointsOf } from "./leaders.ts"

type Request = Call<Decoded<typeof fetch.request.fields>>
type Asked = Request["request"]["topics"][number]["partitions"][number]

const READ_COMMITTED = 1
const EMPTY = Buffer.alloc(0)

const failed = (partitionIndex: number, errorCode: number, partition?: Partition) => ({
  partitionIndex,
  errorCode,
  highWatermark: -1,
  lastStableOffset: -1,
  logStartOffset: -1,
  abortedTransactions: null,
  records: EMPTY,
  ...(errorCode === code.NOT_LEADER_OR_FOLLOWER && partition !== undefined
    ? { currentLeader: { leaderId: partition.leader, leaderEpoch: partition.leaderEpoch } }
    : {})
})

const diverging = (partition: Partition, asked: Asked) => {
  if (asked.lastFetchedEpoch === undefined || asked.lastFetchedEpoch < 0) return null
  const { endOffset, epoch } = endOfEpoch(partition.log, asked.lastFetchedEpoch, partition.leaderEpoch)
  return epoch < asked.lastFetchedEpoch || endOffset < asked.fetchOffset ? { epoch, endOffset } : null
}

const read = (call: Request, partition: Partition, asked: Asked, maxBytes: number, atLeastOne: boolean) => {
  const { log } = partition
  const committed = call.request.isolationLevel === READ_COMMITTED
  const stable = lastStableOffset(log)
  const head = {
    partitionIndex: partition.index,
    errorCode: code.NONE,
    highWatermark: log.endOffset,
    lastStableOffset: stable,
    logStartOffset: log.startOffset
  }
  const divergingEpoch = diverging(partition, asked)
  if (divergingEpoch !== null) return { ...head, divergingEpoch, abortedTransactions: null, records: EMPTY }
  const limit = committed ? stable : log.endOffset
  const batches = readBatches(log, asked.fetchOffset, limit, Math.min(maxBytes, asked.partitionMaxBytes), atLeastOne)
  const end = (batches.at(-1)?.last ?? asked.fetchOffset - 1) + 1
  const aborted = committed && batches.length > 0 ? abortedBetween(log, asked.fetchOffset, end) : []
  return {
    ...head,
    abortedTransactions: committed ? aborted.map(({ firstOffset, producerId }) => ({ producerId, firstOffset })) : null,
    records: bytesOf(batches)
  }
}

const readOrRefuse = (call: Request, topic: Topic | undefined, asked: Asked, maxBytes: number, atLeastOne: boolean) => {
  if (topic === undefined) {
    return failed(asked.partition, call.version >= 13 ? code.UNKNOWN_TOPIC_ID : code.UNKNOWN_TOPIC_OR_PARTITION)
  }
  const led = ledPartition(call.brokerId, topic, asked.partition)
  if (typeof led === "number") return failed(asked.partition, led, topic.partitions[asked.partition])
  const epoch = epochError(led, asked.currentLeaderEpoch ?? -1)
  if (epoch !== code.NONE) return failed(asked.partition, epoch)
  if (asked.fetchOffset < led.log.startOffset || asked.fetchOffset > led.log.endOffset) {
    return failed(asked.partition, code.OFFSET_OUT_OF_RANGE)
  }
  return read(call, led, asked, maxBytes, atLeastOne)
}

const readAll = (call: Request) => {
  const { request, state, version } = call
  let bytes = 0
  let failures = false
  let moved = false
  let diverged = false
  const responses = request.topics.map((entry) => {
    const topic = version >= 13 ? state.topicsById.get(entry.topicId ?? "") : state.topics.get(entry.topic ?? "")
    const partitions = entry.partitions.map((asked) => {
      const answer = readOrRefuse(call, topic, asked, (request.maxBytes ?? 0x7fffffff) - bytes, bytes === 0)
      bytes += answer.records.length
      failures ||= answer.errorCode !== code.NONE
      moved ||= answer.errorCode === code.NOT_LEADER_OR_FOLLOWER
      diverged ||= "divergingEpoch" in answer
      return answer
    })
    return { topic: entry.topic ?? "", topicId: entry.topicId ?? "", partitions }
  })
  return { bytes, ready: failures || diverged || bytes >= request.minBytes, moved, responses }
}

export const fetchHandler = handler(fetch, (call) => {
  const { nowMs, request, state } = call
  if ((request.sessionId ?? 0) !== 0) {
    return { errorCode: code.FETCH_SESSION_ID_NOT_FOUND, sessionId: 0, responses: [] }
  }
  const waitMs = request.topics.length === 0 ? 0 : request.maxWaitMs
  return answerOrWait(nowMs, waitMs, (_now, last) => {
    const { moved, ready, responses } = readAll(call)
    if (!ready && !last) return null
    return { errorCode: code.NONE, sessionId: 0, responses, ...(moved ? { nodeEndpoints: endpointsOf(state) } : {}) }
  })
})
