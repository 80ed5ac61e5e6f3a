/**
 * ShareFetch: acknowledgements that ride along, then records, acquired for the member.
 *
 * As in Kafka, whether the member belongs to the group is not asked: the session is what counts.
 */
import { shareFetch } from "../../wire/messages/shareFetch.ts"
import type { Decoded } from "../../wire/schema.ts"
import { code } from "../model/codes.ts"
import {
  abortedBetween,
  batchesBetween,
  bytesOf,
  type Log,
  lastStableOffset,
  readBatches,
  type StoredBatch
} from "../model/partitionLog.ts"
import { numberOf, settingOf } from "../model/settings.ts"
import { type ShareGroup, shareGroupOf, sharePartitionKey, sharePartitionOf, watchLocks } from "../model/shareGroup.ts"
import {
  acquire,
  type AcquiredRange,
  type Deliverable,
  firstAvailable,
  followLogStart
} from "../model/sharePartition.ts"
import {
  addToSession,
  bumpSession,
  closeSession,
  openSession,
  type SessionPartition,
  sessionError,
  sessionOf,
  type ShareSession
} from "../model/shareSession.ts"
import type { Partition } from "../model/state.ts"
import { answerOrWait, type Call, handler } from "./handler.ts"
import { endpointsOf } from "./leaders.ts"
import { type AckedPartition, applyAcks, byTopic, leaderHint, lockMsOf } from "./shareAcks.ts"

type Request = Call<Decoded<typeof shareFetch.request.fields>>

const STRICT = 1
const EMPTY = Buffer.alloc(0)

interface Entry {
  readonly errorCode: number
  readonly leader: Partition | null
  readonly records: Buffer
  readonly acquired: ReadonlyArray<AcquiredRange>
}
const nothing: Entry = { errorCode: code.NONE, leader: null, records: EMPTY, acquired: [] }
const refused = (errorCode: number, leader: Partition | null = null): Entry => ({ ...nothing, errorCode, leader })

/** A batch of a transaction that was aborted: its records must not be delivered under read_committed. */
const inAborted = (log: Log, batch: StoredBatch): boolean =>
  batch.view.isTransactional && !batch.view.isControl &&
  abortedBetween(log, batch.base, batch.last + 1).some((aborted) =>
    aborted.producerId === batch.view.producerId && aborted.firstOffset <= batch.base
  )

const acquireFrom = (
  call: Request,
  group: ShareGroup,
  topicId: string,
  partition: Partition,
  maxRecords: number,
  maxBytes: number,
  nowMs: number
): Entry => {
  const { request, state } = call
  const { log } = partition
  const shared = sharePartitionOf(state, group, topicId, partition, nowMs)
  followLogStart(shared, log.startOffset)
  const committed = settingOf(state, "group", group.id, "share.isolation.level") === "read_committed"
  const limit = committed ? lastStableOffset(log) : log.endOffset
  const read = readBatches(log, firstAvailable(shared), limit, maxBytes, true)
  const deliverable = read.map((batch): Deliverable => ({
    base: batch.base,
    last: batch.last,
    aborted: committed && inAborted(log, batch)
  }))
  const lockUntilMs = nowMs + lockMsOf(state, group.id)
  const acquired = acquire(shared, deliverable, {
    member: request.memberId ?? "",
    maxRecords,
    batchSize: request.batchSize,
    strict: request.shareAcquireMode === STRICT,
    maxInFlight: numberOf(state, "group", group.id, "share.partition.max.record.locks"),
    lockUntilMs
  })
  if (acquired.length === 0) return nothing
  watchLocks(state, group.id, shared, lockUntilMs)
  const records = bytesOf(
    batchesBetween(log, (acquired[0] as AcquiredRange).firstOffset, (acquired.at(-1) as AcquiredRange).lastOffset)
  )
  return { ...nothing, records, acquired }
}

const recordsIn = (entry: Entry): number =>
  entry.acquired.reduce((sum, range) => sum + range.lastOffset - range.firstOffset + 1, 0)

/** The session's partitions, beginning with another one each time. */
const rotated = (session: ShareSession): ReadonlyArray<readonly [string, SessionPartition]> => {
  const all = [...session.partitions]
  const from = all.length === 0 ? 0 : session.epoch % all.length
  return [...all.slice(from), ...all.slice(0, from)]
}

const readSession = (call: Request, session: ShareSession, nowMs: number): ReadonlyMap<string, Entry> => {
  const { brokerId, request, state } = call
  const group = shareGroupOf(state, session.groupId)
  const entries = new Map<string, Entry>()
  let records = 0
  let bytes = 0
  for (const [key, { partition: index, topicId }] of rotated(session)) {
    const topic = state.topicsById.get(topicId)
    const partition = topic?.partitions[index]
    if (partition === undefined) {
      entries.set(key, refused(topic === undefined ? code.UNKNOWN_TOPIC_ID : code.UNKNOWN_TOPIC_OR_PARTITION))
    } else if (partition.leader !== brokerId) entries.set(key, refused(code.NOT_LEADER_OR_FOLLOWER, partition))
    else if (records < request.maxRecords && bytes < request.maxBytes) {
      const entry = acquireFrom(
        call,
        group,
        topicId,
        partition,
        request.maxRecords - records,
        request.maxBytes - bytes,
        nowMs
      )
      entries.set(key, entry)
      records += recordsIn(entry)
      bytes += entry.records.length
    }
  }
  return entries
}

const respond = (
  call: Request,
  session: ShareSession | null,
  entries: ReadonlyMap<string, Entry>,
  acked: ReadonlyArray<AckedPartition>
) => {
  const { request, state } = call
  const acks = new Map(acked.map((a) => [sharePartitionKey(a.topicId, a.partition), a]))
  const wanted = new Map<string, { readonly topicId: string; readonly partition: number }>(acks)
  for (const [key, place] of session?.partitions ?? []) {
    const entry = entries.get(key)
    if (place.fresh || (entry !== undefined && (entry.errorCode !== code.NONE || entry.acquired.length > 0))) {
      wanted.set(key, place)
    }
    place.fresh = entry !== undefined && entry.errorCode !== code.NONE
  }
  let moved = false
  const partitions = [...wanted].map(([key, { partition, topicId }]) => {
    const entry = entries.get(key) ?? nothing
    const ackd = acks.get(key)
    moved ||= entry.leader !== null
    return [topicId, {
      partitionIndex: partition,
      errorCode: entry.errorCode,
      acknowledgeErrorCode: ackd?.errorCode ?? code.NONE,
      acknowledgeErrorMessage: ackd?.errorMessage ?? null,
      currentLeader: leaderHint(entry.leader ?? ackd?.leader ?? null),
      records: entry.records,
      acquiredRecords: entry.acquired
    }] as const
  })
  return {
    throttleTimeMs: 0,
    errorCode: code.NONE,
    acquisitionLockTimeoutMs: lockMsOf(state, request.groupId ?? ""),
    responses: byTopic(partitions),
    nodeEndpoints: moved ? endpointsOf(state) : []
  }
}

const failed = (errorCode: number, errorMessage: string | null = null) => ({
  throttleTimeMs: 0,
  errorCode,
  errorMessage,
  acquisitionLockTimeoutMs: 0,
  responses: [],
  nodeEndpoints: []
})

const requestError = ({ request, version }: Request): string | null => {
  if (request.groupId === null || request.groupId === "") return "There is no group id"
  if (request.memberId === null || request.memberId === "" || request.memberId.length > 36) {
    return "The member id is not valid"
  }
  if (!(version >= 2 && request.isRenewAck)) return null
  const fetches = request.maxBytes !== 0 || request.minBytes !== 0 || request.maxRecords !== 0 ||
    request.maxWaitMs !== 0
  return fetches ? "A renewal must not fetch: its limits have to be 0" : null
}

const hasAcks = ({ request }: Request): boolean =>
  request.topics.some((topic) => topic.partitions.some((partition) => partition.acknowledgementBatches.length > 0))

/** Opens or continues the session; a code where that fails. */
const enter = (call: Request): ShareSession | number => {
  const { brokerId, connection, request, state } = call
  const [groupId, memberId, epoch] = [request.groupId ?? "", request.memberId ?? "", request.shareSessionEpoch]
  let session = sessionOf(state, groupId, memberId, brokerId)
  if (epoch === 0) {
    if (hasAcks(call)) return code.INVALID_REQUEST
    // A session before this one is forgotten; what the member holds stays with it.
    session = openSession(state, { groupId, memberId, brokerId, connectionId: connection.id })
  } else {
    const error = sessionError(session, epoch)
    if (error !== code.NONE || session === undefined) return error
    bumpSession(session)
  }
  for (const topic of request.topics) {
    for (const { partitionIndex } of topic.partitions) addToSession(session, topic.topicId, partitionIndex)
  }
  for (const topic of request.forgottenTopicsData) {
    for (const partition of topic.partitions) session.partitions.delete(sharePartitionKey(topic.topicId, partition))
  }
  return session
}

export const shareFetchHandler = handler(shareFetch, (call) => {
  const { brokerId, nowMs, request, state, version } = call
  const wrong = requestError(call)
  if (wrong !== null) return failed(code.INVALID_REQUEST, wrong)
  const [groupId, memberId] = [request.groupId ?? "", request.memberId ?? ""]
  const renewing = version >= 2 && request.isRenewAck
  const acks = { groupId, memberId, brokerId, renewing, nowMs }
  if (request.shareSessionEpoch === -1) {
    const session = sessionOf(state, groupId, memberId, brokerId)
    if (session === undefined) return failed(code.SHARE_SESSION_NOT_FOUND)
    const acked = applyAcks(state, acks, request.topics)
    closeSession(state, session)
    return respond(call, null, new Map(), acked)
  }
  const session = enter(call)
  if (typeof session === "number") return failed(session)
  const acked = applyAcks(state, acks, request.topics)
  if (renewing) return respond(call, session, new Map(), acked)
  return answerOrWait(nowMs, request.maxWaitMs, (now, last) => {
    if (sessionOf(state, groupId, memberId, brokerId) !== session) return failed(code.SHARE_SESSION_NOT_FOUND)
    const entries = readSession(call, session, now)
    const ready = [...entries.values()].some((entry) => entry.errorCode !== code.NONE || entry.acquired.length > 0)
    return ready || last || entries.size === 0 ? respond(call, session, entries, acked) : null
  })
})
