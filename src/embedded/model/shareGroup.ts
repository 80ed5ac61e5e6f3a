/**
 * Share groups: members, their epochs, who reads what, and where each share partition begins.
 *
 * The assignment spreads partitions over members and, where there are more members than partitions, members over
 * partitions; it is worked out anew whenever members, subscriptions or partitions change, and a member learns of it
 * with its next heartbeat.
 */
import { code } from "./codes.ts"
import { firstAtTime } from "./partitionLog.ts"
import { numberOf, settingOf } from "./settings.ts"
import { expireLocks, newSharePartition, type SharePartition } from "./sharePartition.ts"
import type { ClusterState, Partition } from "./state.ts"

export interface ShareMember {
  readonly id: string
  clientId: string
  clientHost: string
  rack: string | null
  epoch: number
  previousEpoch: number
  topics: ReadonlyArray<string>
  /** Topic id -> partitions. */
  assignment: ReadonlyMap<string, ReadonlyArray<number>>
  lastSeenMs: number
}

export interface ShareGroup {
  readonly id: string
  epoch: number
  readonly members: Map<string, ShareMember>
  /** By `sharePartitionKey`. */
  readonly partitions: Map<string, SharePartition>
}

export const sharePartitionKey = (topicId: string, partition: number): string => `${topicId}:${partition}`

export const shareGroupOf = (state: ClusterState, id: string): ShareGroup => {
  let group = state.shareGroups.get(id)
  if (group === undefined) {
    state.shareGroups.set(id, group = { id, epoch: 0, members: new Map(), partitions: new Map() })
  }
  return group
}

export const deliveryLimit = (state: ClusterState, groupId: string): number =>
  numberOf(state, "group", groupId, "share.delivery.count.limit")

const isoDurationMs = (text: string): number => {
  const found = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/i.exec(text)
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = (found ?? []).slice(1).map((part) => Number(part ?? 0))
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
}

const firstStart = (state: ClusterState, groupId: string, partition: Partition, nowMs: number): number => {
  const reset = settingOf(state, "group", groupId, "share.auto.offset.reset").toLowerCase()
  const { log } = partition
  if (reset === "earliest") return log.startOffset
  if (reset === "latest") return log.endOffset
  return firstAtTime(log, nowMs - isoDurationMs(reset.slice("by_duration:".length)))?.offset ?? log.endOffset
}

/** The share partition, begun where share.auto.offset.reset says when it is read for the first time. */
export const sharePartitionOf = (
  state: ClusterState,
  group: ShareGroup,
  topicId: string,
  partition: Partition,
  nowMs: number
): SharePartition => {
  const key = sharePartitionKey(topicId, partition.index)
  let shared = group.partitions.get(key)
  if (shared === undefined) {
    shared = newSharePartition(firstStart(state, group.id, partition, nowMs))
    group.partitions.set(key, shared)
  }
  return shared
}

/** Sets a timer for locks that end then. */
export const watchLocks = (state: ClusterState, groupId: string, shared: SharePartition, untilMs: number): void =>
  state.timers.set(untilMs, (now) => expireLocks(shared, now, deliveryLimit(state, groupId)))

const assign = (state: ClusterState, group: ShareGroup): void => {
  const next = new Map<string, Map<string, Array<number>>>([...group.members.keys()].map((id) => [id, new Map()]))
  const topics = [...new Set([...group.members.values()].flatMap((member) => member.topics))].sort()
  for (const name of topics) {
    const topic = state.topics.get(name)
    if (topic === undefined) continue
    const readers = [...group.members.values()].filter((member) => member.topics.includes(name)).map((member) =>
      member.id
    ).sort()
    for (let i = 0; i < Math.max(readers.length, topic.partitions.length); i++) {
      const own = next.get(readers[i % readers.length] as string) as Map<string, Array<number>>
      const list = own.get(topic.id) ?? []
      const partition = i % topic.partitions.length
      if (!list.includes(partition)) list.push(partition)
      own.set(topic.id, list)
    }
  }
  const shown = (assignment: ReadonlyMap<string, ReadonlyArray<number>>) => JSON.stringify([...assignment])
  let changed = false
  for (const member of group.members.values()) {
    const own = next.get(member.id) as Map<string, Array<number>>
    if (shown(own) === shown(member.assignment)) continue
    member.assignment = own
    changed = true
  }
  if (changed) group.epoch++
}

export interface ShareHeartbeat {
  readonly groupId: string
  readonly memberId: string
  /** 0 joins, -1 leaves. */
  readonly memberEpoch: number
  readonly rack: string | null
  readonly topics: ReadonlyArray<string> | null
  readonly clientId: string
  readonly clientHost: string
}

const watchMember = (state: ClusterState, group: ShareGroup, member: ShareMember): void => {
  const timeoutMs = numberOf(state, "group", group.id, "share.session.timeout.ms")
  state.timers.set(member.lastSeenMs + timeoutMs, (now) => {
    if (group.members.get(member.id) !== member) return
    if (now - member.lastSeenMs < timeoutMs) return watchMember(state, group, member)
    removeShareMember(state, group, member.id)
  })
}

export const removeShareMember = (state: ClusterState, group: ShareGroup, memberId: string): void => {
  if (!group.members.delete(memberId)) return
  group.epoch++
  assign(state, group)
}

const joined = (state: ClusterState, group: ShareGroup, beat: ShareHeartbeat, nowMs: number): ShareMember => {
  const known = group.members.get(beat.memberId)
  if (known !== undefined) return known
  const member: ShareMember = {
    id: beat.memberId,
    clientId: beat.clientId,
    clientHost: beat.clientHost,
    rack: beat.rack,
    epoch: 0,
    previousEpoch: 0,
    topics: [],
    assignment: new Map(),
    lastSeenMs: nowMs
  }
  group.members.set(member.id, member)
  group.epoch++
  watchMember(state, group, member)
  return member
}

export interface HeartbeatAnswer {
  readonly errorCode: number
  readonly member: ShareMember | null
  /** Whether the member has to be told of its assignment. */
  readonly tell: boolean
}

const refused = (errorCode: number): HeartbeatAnswer => ({ errorCode, member: null, tell: false })

/** A member's heartbeat but for leaving. */
export const shareHeartbeat = (
  state: ClusterState,
  group: ShareGroup,
  beat: ShareHeartbeat,
  nowMs: number
): HeartbeatAnswer => {
  const known = group.members.get(beat.memberId)
  if (beat.memberEpoch > 0) {
    if (known === undefined) return refused(code.UNKNOWN_MEMBER_ID)
    if (beat.memberEpoch !== known.epoch && beat.memberEpoch !== known.previousEpoch) {
      return refused(code.FENCED_MEMBER_EPOCH)
    }
  }
  const member = joined(state, group, beat, nowMs)
  member.lastSeenMs = nowMs
  member.clientId = beat.clientId
  member.clientHost = beat.clientHost
  if (beat.rack !== null) member.rack = beat.rack
  if (beat.topics !== null) member.topics = [...beat.topics].sort()
  assign(state, group)
  const moved = member.epoch !== group.epoch
  if (moved) {
    member.previousEpoch = member.epoch
    member.epoch = group.epoch
  }
  return {
    errorCode: code.NONE,
    member,
    tell: moved || beat.memberEpoch === 0 || beat.topics !== null || beat.memberEpoch !== member.epoch
  }
}
