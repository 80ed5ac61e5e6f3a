/** The classic consumer protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup. */
import { heartbeat } from "../../wire/messages/heartbeat.ts"
import { joinGroup } from "../../wire/messages/joinGroup.ts"
import { leaveGroup } from "../../wire/messages/leaveGroup.ts"
import { syncGroup } from "../../wire/messages/syncGroup.ts"
import type { Decoded } from "../../wire/schema.ts"
import { code } from "../model/codes.ts"
import {
  type Group,
  groupOf,
  type Member,
  memberError,
  prepareRebalance,
  removeMember,
  watchSession
} from "../model/group.ts"
import { numberOf } from "../model/settings.ts"
import { type ClusterState, coordinatorOf, newUuid } from "../model/state.ts"
import { answerOrWait, type Call, handler } from "./handler.ts"

type Join = Decoded<typeof joinGroup.request.fields>

const groupError = (state: ClusterState, brokerId: number, groupId: string): number => {
  if (groupId === "") return code.INVALID_GROUP_ID
  if (coordinatorOf(state, "group", groupId) !== brokerId) return code.NOT_COORDINATOR
  return state.shareGroups.has(groupId) ? code.INCONSISTENT_GROUP_PROTOCOL : code.NONE
}

const joinFailed = (errorCode: number, memberId: string, version: number) => ({
  errorCode,
  generationId: -1,
  protocolType: null,
  protocolName: version >= 7 ? null : "",
  leader: "",
  memberId,
  members: []
})

const speaksAlike = (group: Group, request: Join): boolean => {
  if (group.members.size === 0) return true
  if (group.protocolType !== request.protocolType) return false
  return request.protocols.some(({ name }) =>
    [...group.members.values()].every((m) => m.protocols.some((p) => p.name === name))
  )
}

const enrol = (call: Call<Join>, group: Group, memberId: string): Member => {
  const { connection, nowMs, request, state } = call
  const known = group.members.get(memberId)
  if (known !== undefined) return known
  const member: Member = {
    id: memberId,
    instanceId: request.groupInstanceId,
    clientId: connection.clientId,
    clientHost: connection.host,
    sessionTimeoutMs: request.sessionTimeoutMs,
    rebalanceTimeoutMs: request.rebalanceTimeoutMs,
    protocols: [],
    assignment: Buffer.alloc(0),
    lastSeenMs: nowMs,
    joining: true
  }
  group.members.set(memberId, member)
  watchSession(state, group, member)
  return member
}

/** A follower that joins again with what it had is told the generation as it is; anything else rebalances. */
const changes = (group: Group, member: Member, request: Join): boolean => {
  if (group.phase !== "Stable" && group.phase !== "CompletingRebalance") return true
  const shown = (protocols: Member["protocols"]) =>
    protocols.map((p) => `${p.name}:${p.metadata.toString("base64")}`).join()
  return member.id === group.leader || shown(member.protocols) !== shown(request.protocols)
}

const joined = (group: Group, member: Member, version: number) => ({
  errorCode: code.NONE,
  generationId: group.generation,
  protocolType: version >= 7 ? group.protocolType : null,
  protocolName: group.protocolName,
  leader: group.leader,
  memberId: member.id,
  members: member.id !== group.leader ? [] : [...group.members.values()].map(({ id, instanceId, protocols }) => ({
    memberId: id,
    groupInstanceId: instanceId,
    metadata: protocols.find((p) => p.name === group.protocolName)?.metadata ?? Buffer.alloc(0)
  }))
})

export const joinGroupHandler = handler(joinGroup, (call) => {
  const { brokerId, connection, nowMs, request, state, version } = call
  const error = groupError(state, brokerId, request.groupId)
  if (error !== code.NONE) return joinFailed(error, request.memberId, version)
  const group = groupOf(state, request.groupId)
  const isNew = request.memberId === ""
  const staticId = [...group.members.values()].find((m) =>
    request.groupInstanceId !== null && m.instanceId === request.groupInstanceId
  )?.id
  const memberId = isNew ? staticId ?? `${connection.clientId}-${newUuid(state)}` : request.memberId
  if (isNew && version >= 4 && request.groupInstanceId === null) {
    group.pendingIds.add(memberId)
    return joinFailed(code.MEMBER_ID_REQUIRED, memberId, version)
  }
  if (!isNew && !group.members.has(memberId) && !group.pendingIds.delete(memberId)) {
    return joinFailed(code.UNKNOWN_MEMBER_ID, memberId, version)
  }
  if (!speaksAlike(group, request)) return joinFailed(code.INCONSISTENT_GROUP_PROTOCOL, memberId, version)
  const fresh = !group.members.has(memberId)
  const member = enrol(call, group, memberId)
  if (!fresh && !changes(group, member, request)) return joined(group, member, version)
  group.protocolType = request.protocolType
  Object.assign(member, {
    protocols: request.protocols,
    joining: true,
    rebalanceTimeoutMs: Math.max(request.rebalanceTimeoutMs, 0),
    sessionTimeoutMs: request.sessionTimeoutMs
  })
  const wasEmpty = group.members.size === 1 && fresh
  const delayMs = wasEmpty ? numberOf(state, "broker", "", "group.initial.rebalance.delay.ms") : 0
  const generation = group.generation
  prepareRebalance(state, group, nowMs, delayMs)
  if (delayMs > 0) state.timers.set(nowMs + delayMs, (now) => prepareRebalance(state, group, now))
  return answerOrWait(nowMs, Math.max(request.rebalanceTimeoutMs, request.sessionTimeoutMs) + 1, (_now, last) => {
    if (!group.members.has(memberId)) return joinFailed(code.UNKNOWN_MEMBER_ID, memberId, version)
    if (group.generation > generation && !member.joining) return joined(group, member, version)
    return last ? joinFailed(code.REBALANCE_IN_PROGRESS, memberId, version) : null
  })
})

export const syncGroupHandler = handler(syncGroup, ({ brokerId, nowMs, request, state, version }) => {
  const failed = (errorCode: number) => ({ errorCode, assignment: Buffer.alloc(0) })
  const error = groupError(state, brokerId, request.groupId)
  if (error !== code.NONE) return failed(error)
  const group = state.groups.get(request.groupId)
  const wrong = memberError(group, request.memberId, request.generationId)
  if (wrong !== code.NONE || group === undefined) return failed(wrong)
  const member = group.members.get(request.memberId) as Member
  member.lastSeenMs = nowMs
  if (group.phase === "PreparingRebalance") return failed(code.REBALANCE_IN_PROGRESS)
  if (group.phase === "CompletingRebalance" && member.id === group.leader) {
    for (const { assignment, memberId } of request.assignments) {
      const assigned = group.members.get(memberId)
      if (assigned !== undefined) assigned.assignment = Buffer.from(assignment)
    }
    group.phase = "Stable"
  }
  const generation = group.generation
  const answer = () => ({
    errorCode: code.NONE,
    protocolType: version >= 5 ? group.protocolType : null,
    protocolName: version >= 5 ? group.protocolName : null,
    assignment: member.assignment
  })
  return answerOrWait(nowMs, member.rebalanceTimeoutMs, (_now, last) => {
    if (group.generation !== generation || group.phase === "PreparingRebalance") {
      return failed(code.REBALANCE_IN_PROGRESS)
    }
    if (group.phase === "Stable") return answer()
    return last ? failed(code.REBALANCE_IN_PROGRESS) : null
  })
})

export const heartbeatHandler = handler(heartbeat, ({ brokerId, nowMs, request, state }) => {
  const error = groupError(state, brokerId, request.groupId)
  if (error !== code.NONE) return { errorCode: error }
  const group = state.groups.get(request.groupId)
  const wrong = memberError(group, request.memberId, request.generationId)
  if (wrong !== code.NONE || group === undefined) return { errorCode: wrong }
  ;(group.members.get(request.memberId) as Member).lastSeenMs = nowMs
  return { errorCode: group.phase === "PreparingRebalance" ? code.REBALANCE_IN_PROGRESS : code.NONE }
})

export const leaveGroupHandler = handler(leaveGroup, ({ brokerId, nowMs, request, state, version }) => {
  const error = groupError(state, brokerId, request.groupId)
  if (error !== code.NONE) return { errorCode: error }
  const group = state.groups.get(request.groupId)
  const leaving = version >= 3 ? request.members : [{ memberId: request.memberId, groupInstanceId: null }]
  const members = leaving.map(({ groupInstanceId, memberId }) => {
    const id = [...group?.members.values() ?? []].find((m) =>
      m.id === memberId || (groupInstanceId !== null && m.instanceId === groupInstanceId)
    )?.id
    if (group === undefined || id === undefined) return { memberId, groupInstanceId, errorCode: code.UNKNOWN_MEMBER_ID }
    removeMember(state, group, id, nowMs)
    return { memberId, groupInstanceId, errorCode: code.NONE }
  })
  return version >= 3 ? { errorCode: code.NONE, members } : { errorCode: members[0]?.errorCode ?? code.NONE }
})
