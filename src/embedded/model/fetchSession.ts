/** Fetch sessions (KIP-227): what a broker remembers of a consumer's requests, and what it leaves out of its answers. */
import { code } from "./codes.ts"
import type { ClusterState } from "./state.ts"

/** A partition of a session, as it was asked for last. */
export interface SessionPartition<Asked> {
  readonly topic: string
  readonly topicId: string
  readonly asked: Asked
  /** As told last; -1: not told, or an error was. */
  highWatermark: number
  logStart: number
}

export interface FetchSession {
  readonly id: number
  readonly brokerId: number
  /** Of the next request. */
  epoch: number
  /** In the order in which they are read: those that gave records go behind the others. */
  readonly partitions: Map<string, SessionPartition<unknown>>
}

interface Entry<P> {
  readonly topic?: string
  readonly topicId?: string
  readonly partitions: ReadonlyArray<P>
}

export interface SessionRequest<Asked> {
  readonly sessionId?: number
  readonly sessionEpoch?: number
  readonly topics: ReadonlyArray<Entry<Asked>>
  readonly forgottenTopicsData?: ReadonlyArray<Entry<number>>
}

const FULL = 0
const LEGACY = -1

const keyOf = ({ topic = "", topicId = "" }: Pick<Entry<unknown>, "topic" | "topicId">, partition: number): string =>
  `${topicId}/${topic}/${partition}`

const update = <Asked extends { readonly partition: number }>(
  session: FetchSession,
  { forgottenTopicsData = [], topics }: SessionRequest<Asked>
): void => {
  for (const entry of forgottenTopicsData) {
    for (const partition of entry.partitions) session.partitions.delete(keyOf(entry, partition))
  }
  for (const entry of topics) {
    for (const asked of entry.partitions) {
      const key = keyOf(entry, asked.partition)
      const known = session.partitions.get(key)
      session.partitions.set(key, {
        topic: entry.topic ?? "",
        topicId: entry.topicId ?? "",
        asked,
        highWatermark: known?.highWatermark ?? -1,
        logStart: known?.logStart ?? -1
      })
    }
  }
}

/** The session that a request is of, brought up to date; null: it is of none; a number: the error that refuses it. */
export const sessionOf = <Asked extends { readonly partition: number }>(
  state: ClusterState,
  brokerId: number,
  request: SessionRequest<Asked>
): FetchSession | null | number => {
  const { sessionEpoch = LEGACY, sessionId = 0 } = request
  if (sessionEpoch === LEGACY || sessionEpoch === FULL) {
    state.fetchSessions.delete(sessionId)
    if (sessionEpoch === LEGACY) return null
    const session: FetchSession = { id: ++state.lastFetchSession, brokerId, epoch: 1, partitions: new Map() }
    state.fetchSessions.set(session.id, session)
    update(session, request)
    return session
  }
  const session = state.fetchSessions.get(sessionId)
  if (session === undefined || session.brokerId !== brokerId) return code.FETCH_SESSION_ID_NOT_FOUND
  if (session.epoch !== sessionEpoch) return code.INVALID_FETCH_SESSION_EPOCH
  session.epoch++
  update(session, request)
  return session
}

interface Answered {
  readonly errorCode: number
  readonly highWatermark: number
  readonly logStartOffset: number
  readonly records: Buffer
}

/** Whether the answer has to name the partition. */
export const isNews = (session: FetchSession, entry: Entry<unknown>, partition: number, answer: Answered): boolean => {
  const known = session.partitions.get(keyOf(entry, partition))
  if (known === undefined) return true
  return answer.errorCode !== code.NONE || answer.records.length > 0 ||
    known.highWatermark !== answer.highWatermark || known.logStart !== answer.logStartOffset
}

/** Notes what an answer has told. */
export const told = (session: FetchSession, entry: Entry<unknown>, partition: number, answer: Answered): void => {
  const key = keyOf(entry, partition)
  const known = session.partitions.get(key)
  if (known === undefined) return
  known.highWatermark = answer.errorCode === code.NONE ? answer.highWatermark : -1
  known.logStart = answer.logStartOffset
  if (answer.records.length === 0) return
  session.partitions.delete(key)
  session.partitions.set(key, known)
}

/** They go with the broker. */
export const dropFetchSessions = (state: ClusterState, brokerId: number): void => {
  for (const [id, session] of state.fetchSessions) if (session.brokerId === brokerId) state.fetchSessions.delete(id)
}
