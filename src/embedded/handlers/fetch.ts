/** Fetch, for consumers, with sessions (model/fetchSession.ts). */
import { fetch } from "../../wire/messages/fetch.ts"
import type { Decoded } from "../../wire/schema.ts"
import { code } from "../model/codes.ts"
import { abortedBetween, bytesOf, endOfEpoch, lastStableOffset, readBatches } from "../model/partitionLog.ts"
import { type FetchSession, isNews, type SessionPartition, sessionOf, told } from "../model/fetchSession.ts"
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

type Entry = Pick<Request["request"]["topics"][number], "topic" | "topicId" | "partitions">

/** All that is to be read: what the request names, or what the session has by now. */
const entriesOf = ({ request }: Request, session: FetchSession | null): ReadonlyArray<Entry> =>
  session === null
    ? request.topics
    : [...session.partitions.values() as Iterable<SessionPartition<Asked>>].map(({ asked, topic, topicId }) => ({
      topic,
      topicId,
      partitions: [asked]
    }))

const readAll = (call: Request, session: FetchSession | null) => {
  const { request, state, version } = call
  let bytes = 0
  let failures = false
  let moved = false
  let diverged = false
  const responses = entriesOf(call, session).map((entry) => {
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
  return { ready: failures || diverged || bytes >= request.minBytes, moved, responses }
}

type Responses = ReturnType<typeof readAll>["responses"]

/** What a session's answer leaves out: partitions of which there is nothing new. */
const newsOf = (session: FetchSession, responses: Responses): Responses =>
  responses.map((entry) => ({
    ...entry,
    partitions: entry.partitions.filter((answer) => {
      const news = "divergingEpoch" in answer || isNews(session, entry, answer.partitionIndex, answer)
      if (news) told(session, entry, answer.partitionIndex, answer)
      return news
    })
  })).filter(({ partitions }) => partitions.length > 0)

export const fetchHandler = handler(fetch, (call) => {
  const { brokerId, nowMs, request, state } = call
  const session = sessionOf(state, brokerId, request)
  if (typeof session === "number") return { errorCode: session, sessionId: 0, responses: [] }
  const isEmpty = session === null ? request.topics.length === 0 : session.partitions.size === 0
  return answerOrWait(nowMs, isEmpty ? 0 : request.maxWaitMs, (_now, last) => {
    const { moved, ready, responses } = readAll(call, session)
    if (!ready && !last) return null
    return {
      errorCode: code.NONE,
      sessionId: session?.id ?? 0,
      responses: session === null ? responses : newsOf(session, responses),
      ...(moved ? { nodeEndpoints: endpointsOf(state) } : {})
    }
  })
})
