/** Share groups at their coordinator: heartbeats, and what they look like. */
import { shareGroupDescribe } from "../../wire/messages/shareGroupDescribe.ts"
import { shareGroupHeartbeat } from "../../wire/messages/shareGroupHeartbeat.ts"
import { code } from "../model/codes.ts"
import { numberOf } from "../model/settings.ts"
import { removeShareMember, shareGroupOf, shareHeartbeat, type ShareMember } from "../model/shareGroup.ts"
import { type ClusterState, coordinatorOf } from "../model/state.ts"
import { handler } from "./handler.ts"

const failed = (errorCode: number, errorMessage: string | null = null) => ({
  errorCode,
  errorMessage,
  memberEpoch: 0,
  heartbeatIntervalMs: 0
})

const assignmentOf = (member: ShareMember) => ({
  topicPartitions: [...member.assignment].map(([topicId, partitions]) => ({ topicId, partitions }))
})

export const shareGroupHeartbeatHandler = handler(
  shareGroupHeartbeat,
  ({ brokerId, connection, nowMs, request, state }) => {
    const { groupId, memberEpoch, memberId } = request
    if (groupId === "" || memberId === "") return failed(code.INVALID_REQUEST, "Group id and member id must be given")
    if (memberEpoch < -1) return failed(code.INVALID_REQUEST, "MemberEpoch is invalid.")
    if (memberEpoch === 0 && (request.subscribedTopicNames === null || request.subscribedTopicNames.length === 0)) {
      return failed(code.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    }
    if (coordinatorOf(state, "group", groupId) !== brokerId) return failed(code.NOT_COORDINATOR)
    if (state.groups.has(groupId)) return failed(code.GROUP_ID_NOT_FOUND, `Group ${groupId} is not a share group.`)
    const group = memberEpoch === 0 ? shareGroupOf(state, groupId) : state.shareGroups.get(groupId)
    if (group === undefined) return failed(code.GROUP_ID_NOT_FOUND, `Share group ${groupId} not found.`)
    const heartbeatIntervalMs = numberOf(state, "group", groupId, "share.heartbeat.interval.ms")
    if (memberEpoch === -1) {
      if (!group.members.has(memberId)) return failed(code.UNKNOWN_MEMBER_ID)
      // Its sessions stay, and its records with it, until it closes them, disconnects, or the locks end.
      removeShareMember(state, group, memberId)
      return { errorCode: code.NONE, memberId, memberEpoch: -1, heartbeatIntervalMs }
    }
    const beat = {
      groupId,
      memberId,
      memberEpoch,
      rack: request.rackId,
      topics: request.subscribedTopicNames,
      clientId: connection.clientId,
      clientHost: connection.host
    }
    const { errorCode, member, tell } = shareHeartbeat(state, group, beat, nowMs)
    if (member === null) return failed(errorCode)
    return {
      errorCode,
      memberId,
      memberEpoch: member.epoch,
      heartbeatIntervalMs,
      assignment: tell ? assignmentOf(member) : null
    }
  }
)

const describeMember = (state: ClusterState, member: ShareMember) => ({
  memberId: member.id,
  rackId: member.rack,
  memberEpoch: member.epoch,
  clientId: member.clientId,
  clientHost: member.clientHost,
  subscribedTopicNames: member.topics,
  assignment: {
    topicPartitions: [...member.assignment].map(([topicId, partitions]) => ({
      topicId,
      topicName: state.topicsById.get(topicId)?.name ?? "",
      partitions
    }))
  }
})

export const shareGroupDescribeHandler = handler(shareGroupDescribe, ({ brokerId, request, state }) => ({
  groups: request.groupIds.map((groupId) => {
    const empty = { groupId, groupState: "", groupEpoch: 0, assignmentEpoch: 0, assignorName: "", members: [] }
    if (coordinatorOf(state, "group", groupId) !== brokerId) return { ...empty, errorCode: code.NOT_COORDINATOR }
    const group = state.shareGroups.get(groupId)
    if (group === undefined) {
      const errorMessage = state.groups.has(groupId)
        ? `Group ${groupId} is not a share group.`
        : `Group ${groupId} not found.`
      return { ...empty, errorCode: code.GROUP_ID_NOT_FOUND, errorMessage }
    }
    const groupState = group.members.size === 0 ? "Empty" : "Stable"
    const members = [...group.members.values()].map((member) => describeMember(state, member))
    return {
      errorCode: code.NONE,
      groupId,
      groupState,
      groupEpoch: group.epoch,
      assignmentEpoch: group.epoch,
      assignorName: "simple",
      members
    }
  })
}))
