/**
 * Consumer groups of the classic protocol: members join, the leader assigns, generations follow each other.
 *
 * Empty -> PreparingRebalance (members join) -> CompletingRebalance (the leader's assignment is awaited) -> Stable.
 */
import { code } from "./codes.ts"
import type { CommittedOffset } from "./groupOffsets.ts"
import type { ClusterState } from "./state.ts"

export type GroupPhase = "Empty" | "PreparingRebalance" | "CompletingRebalance" | "Stable"

export interface Member {
  readonly id: string
  readonly instanceId: string | null
  readonly clientId: string
  readonly clientHost: string
  sessionTimeoutMs: number
  rebalanceTimeoutMs: number
  protocols: ReadonlyArray<{ readonly name: string; readonly metadata: Buffer }>
  assignment: Buffer
  lastSeenMs: number
  /** Waits for the generation to begin. */
  joining: boolean
}

export interface Group {
  readonly id: string
  protocolType: string
  protocolName: string
  phase: GroupPhase
  generation: number
  leader: string
  readonly members: Map<string, Member>
  /** Ids that were given out and have not joined yet (KIP-394). */
  readonly pendingIds: Set<string>
  readonly offsets: Map<string, CommittedOffset>
  /** By producer id. */
  readonly pendingOffsets: Map<number, ReadonlyArray<CommittedOffset>>
}

export const groupOf = (state: ClusterState, id: string): Group => {
  let group = state.groups.get(id)
  if (group === undefined) {
    group = {
      id,
      protocolType: "",
      protocolName: "",
      phase: "Empty",
      generation: 0,
      leader: "",
      members: new Map(),
      pendingIds: new Set(),
      offsets: new Map(),
      pendingOffsets: new Map()
    }
    state.groups.set(id, group)
  }
  return group
}

/** The protocol that all members speak and most like. */
const chosenProtocol = (group: Group): string => {
  const members = [...group.members.values()]
  const common =
    members[0]?.protocols.filter(({ name }) => members.every((m) => m.protocols.some((p) => p.name === name))) ?? []
  const votes = (name: string) =>
    members.filter((m) => m.protocols.find((p) => common.some((c) => c.name === p.name))?.name === name).length
  return [...common].sort((a, b) => votes(b.name) - votes(a.name))[0]?.name ?? ""
}

const beginGeneration = (group: Group, nowMs: number): void => {
  for (const member of [...group.members.values()]) if (!member.joining) group.members.delete(member.id)
  group.generation++
  if (group.members.size === 0) {
    group.phase = "Empty"
    return
  }
  group.protocolName = chosenProtocol(group)
  if (!group.members.has(group.leader)) group.leader = [...group.members.keys()][0] as string
  group.phase = "CompletingRebalance"
  for (const member of group.members.values()) {
    member.joining = false
    member.assignment = Buffer.alloc(0)
    member.lastSeenMs = nowMs
  }
}

const allJoining = (group: Group): boolean => [...group.members.values()].every((member) => member.joining)

/** Members have to join anew; those that do not within their rebalance time-out are out. */
export const prepareRebalance = (state: ClusterState, group: Group, nowMs: number, firstDelayMs = 0): void => {
  if (group.phase === "PreparingRebalance") return completeIfAll(group, nowMs)
  group.phase = "PreparingRebalance"
  const generation = group.generation
  const longest = Math.max(0, ...[...group.members.values()].map((member) => member.rebalanceTimeoutMs))
  state.timers.set(nowMs + longest, (now) => {
    if (group.phase === "PreparingRebalance" && group.generation === generation) beginGeneration(group, now)
  })
  if (firstDelayMs === 0) completeIfAll(group, nowMs)
}

export const completeIfAll = (group: Group, nowMs: number): void => {
  if (group.phase === "PreparingRebalance" && allJoining(group)) beginGeneration(group, nowMs)
}

export const watchSession = (state: ClusterState, group: Group, member: Member): void => {
  state.timers.set(member.lastSeenMs + member.sessionTimeoutMs, (now) => {
    if (group.members.get(member.id) !== member) return
    if (member.joining) member.lastSeenMs = now
    if (now - member.lastSeenMs < member.sessionTimeoutMs) return watchSession(state, group, member)
    removeMember(state, group, member.id, now)
  })
}

export const removeMember = (state: ClusterState, group: Group, memberId: string, nowMs: number): void => {
  if (!group.members.delete(memberId)) return
  if (group.leader === memberId) group.leader = [...group.members.keys()][0] ?? ""
  if (group.members.size === 0) {
    group.phase = "Empty"
    group.generation++
    return
  }
  prepareRebalance(state, group, nowMs)
}

/** Whether a request comes from a member of the generation that is; gives a code. */
export const memberError = (group: Group | undefined, memberId: string, generation: number): number => {
  if (group === undefined || !group.members.has(memberId)) return code.UNKNOWN_MEMBER_ID
  return group.generation === generation ? code.NONE : code.ILLEGAL_GENERATION
}
