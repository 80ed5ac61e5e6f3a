/**
 * Share sessions: what one member reads from one broker, over one connection. The epoch tells a request that was
 * repeated or lost; 0 opens a session, -1 closes it. When the session ends, also by its connection, the member's
 * records on its partitions are released.
 */
import { code } from "./codes.ts"
import { deliveryLimit, sharePartitionKey } from "./shareGroup.ts"
import { releaseAll } from "./sharePartition.ts"
import type { ClusterState } from "./state.ts"

export interface ShareSession {
  readonly groupId: string
  readonly memberId: string
  readonly brokerId: number
  readonly connectionId: string
  epoch: number
  /** sharePartitionKey -> what it is; the order is the order of the answer. */
  readonly partitions: Map<string, SessionPartition>
}

export interface SessionPartition {
  readonly topicId: string
  readonly partition: number
  /** It has to be in the next answer, even if there is nothing to say. */
  fresh: boolean
}

const keyOf = (groupId: string, memberId: string, brokerId: number): string => `${groupId}\n${memberId}\n${brokerId}`

export const sessionOf = (
  state: ClusterState,
  groupId: string,
  memberId: string,
  brokerId: number
): ShareSession | undefined => state.shareSessions.get(keyOf(groupId, memberId, brokerId))

export const openSession = (state: ClusterState, about: Omit<ShareSession, "epoch" | "partitions">): ShareSession => {
  const session: ShareSession = { ...about, epoch: 1, partitions: new Map() }
  state.shareSessions.set(keyOf(about.groupId, about.memberId, about.brokerId), session)
  return session
}

/** Whether the epoch is the one expected; gives a code. */
export const sessionError = (session: ShareSession | undefined, epoch: number): number => {
  if (session === undefined) return code.SHARE_SESSION_NOT_FOUND
  return session.epoch === epoch ? code.NONE : code.INVALID_SHARE_SESSION_EPOCH
}

export const bumpSession = (session: ShareSession): void => {
  session.epoch = session.epoch === 0x7fffffff ? 1 : session.epoch + 1
}

export const addToSession = (session: ShareSession, topicId: string, partition: number): void => {
  const key = sharePartitionKey(topicId, partition)
  if (!session.partitions.has(key)) session.partitions.set(key, { topicId, partition, fresh: true })
}

export const closeSession = (state: ClusterState, session: ShareSession): void => {
  state.shareSessions.delete(keyOf(session.groupId, session.memberId, session.brokerId))
  const group = state.shareGroups.get(session.groupId)
  if (group === undefined) return
  for (const key of session.partitions.keys()) {
    const shared = group.partitions.get(key)
    if (shared !== undefined) releaseAll(shared, session.memberId, deliveryLimit(state, session.groupId))
  }
}

const closeWhere = (state: ClusterState, which: (session: ShareSession) => boolean): void => {
  for (const session of [...state.shareSessions.values()]) if (which(session)) closeSession(state, session)
}

export const closeSessionsOfConnection = (state: ClusterState, connectionId: string): void =>
  closeWhere(state, (session) => session.connectionId === connectionId)

/** A broker that stops knows nothing of its sessions any more; the locks it had given are gone with it. */
export const dropSessionsOfBroker = (state: ClusterState, brokerId: number): void => {
  for (const [key, session] of [...state.shareSessions]) {
    if (session.brokerId === brokerId) state.shareSessions.delete(key)
  }
}
