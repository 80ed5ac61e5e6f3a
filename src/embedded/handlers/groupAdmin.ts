/** Groups of all kinds: listed, described, deleted. */
import { deleteGroups } from "../../wire/messages/deleteGroups.ts"
import { describeGroups } from "../../wire/messages/describeGroups.ts"
import { listGroups } from "../../wire/messages/listGroups.ts"
import { code } from "../model/codes.ts"
import type { Group } from "../model/group.ts"
import { type ClusterState, coordinatorOf } from "../model/state.ts"
import { handler } from "./handler.ts"

const listed = (state: ClusterState) => [
  ...[...state.groups.values()].map((group) => ({
    groupId: group.id,
    protocolType: group.protocolType,
    groupState: group.phase as string,
    groupType: "classic"
  })),
  ...[...state.shareGroups.values()].map((group) => ({
    groupId: group.id,
    protocolType: "share",
    groupState: group.members.size === 0 ? "Empty" : "Stable",
    groupType: "share"
  }))
]

export const listGroupsHandler = handler(listGroups, ({ brokerId, request, state }) => {
  const has = (filter: ReadonlyArray<string>, value: string) =>
    filter.length === 0 || filter.some((wanted) => wanted.toLowerCase() === value.toLowerCase())
  return {
    errorCode: code.NONE,
    groups: listed(state).filter((group) =>
      coordinatorOf(state, "group", group.groupId) === brokerId &&
      has(request.statesFilter, group.groupState) && has(request.typesFilter, group.groupType)
    )
  }
})

const describe = (group: Group) => ({
  errorCode: code.NONE,
  groupId: group.id,
  groupState: group.phase,
  protocolType: group.protocolType,
  protocolData: group.phase === "Stable" ? group.protocolName : "",
  members: [...group.members.values()].map((member) => ({
    memberId: member.id,
    groupInstanceId: member.instanceId,
    clientId: member.clientId,
    clientHost: member.clientHost,
    memberMetadata: member.protocols.find((p) => p.name === group.protocolName)?.metadata ?? Buffer.alloc(0),
    memberAssignment: member.assignment
  }))
})

export const describeGroupsHandler = handler(describeGroups, ({ brokerId, request, state, version }) => ({
  groups: request.groups.map((groupId) => {
    const nothing = { groupId, protocolType: "", protocolData: "", members: [] }
    if (coordinatorOf(state, "group", groupId) !== brokerId) {
      return { ...nothing, groupState: "", errorCode: code.NOT_COORDINATOR }
    }
    const group = state.groups.get(groupId)
    if (group !== undefined) return describe(group)
    const errorMessage = state.shareGroups.has(groupId)
      ? `Group ${groupId} is not a classic group.`
      : `Group ${groupId} not found.`
    return version >= 6
      ? { ...nothing, groupState: "Dead", errorCode: code.GROUP_ID_NOT_FOUND, errorMessage }
      : { ...nothing, groupState: "Dead", errorCode: code.NONE }
  })
}))

const deletionError = (state: ClusterState, brokerId: number, groupId: string): number => {
  if (coordinatorOf(state, "group", groupId) !== brokerId) return code.NOT_COORDINATOR
  const group = state.groups.get(groupId) ?? state.shareGroups.get(groupId)
  if (group === undefined) return code.GROUP_ID_NOT_FOUND
  return group.members.size > 0 ? code.NON_EMPTY_GROUP : code.NONE
}

export const deleteGroupsHandler = handler(deleteGroups, ({ brokerId, request, state }) => ({
  results: request.groupsNames.map((groupId) => {
    const errorCode = deletionError(state, brokerId, groupId)
    if (errorCode === code.NONE) {
      state.groups.delete(groupId)
      state.shareGroups.delete(groupId)
    }
    return { groupId, errorCode }
  })
}))
