/** Where share groups are: described, moved, forgotten. */
import { alterShareGroupOffsets } from "../../wire/messages/alterShareGroupOffsets.ts"
import { deleteShareGroupOffsets } from "../../wire/messages/deleteShareGroupOffsets.ts"
import { describeShareGroupOffsets } from "../../wire/messages/describeShareGroupOffsets.ts"
import { ZERO_UUID } from "../../wire/schema.ts"
import { code } from "../model/codes.ts"
import { type ShareGroup, shareGroupOf, sharePartitionKey } from "../model/shareGroup.ts"
import { decidedSinceDurable, newSharePartition } from "../model/sharePartition.ts"
import { type ClusterState, coordinatorOf, type Topic } from "../model/state.ts"
import { handler } from "./handler.ts"

const describePartition = (group: ShareGroup, topic: Topic | undefined, partitionIndex: number) => {
  const partition = topic?.partitions[partitionIndex]
  const shared = group.partitions.get(sharePartitionKey(topic?.id ?? "", partitionIndex))
  if (partition === undefined || shared === undefined) {
    const errorCode = partition === undefined ? code.UNKNOWN_TOPIC_OR_PARTITION : code.NONE
    return { partitionIndex, startOffset: -1, leaderEpoch: 0, lag: -1, errorCode }
  }
  const { durableStart } = shared
  const lag = durableStart < 0 ? -1 : Math.max(0, partition.log.endOffset - durableStart - decidedSinceDurable(shared))
  return { partitionIndex, startOffset: durableStart, leaderEpoch: partition.leaderEpoch, lag, errorCode: code.NONE }
}

/** Null: all that the group has read. */
const askedTopics = (
  state: ClusterState,
  group: ShareGroup,
  topics: ReadonlyArray<{ readonly topicName: string; readonly partitions: ReadonlyArray<number> }> | null
) => {
  if (topics !== null) return topics
  const known = new Map<string, Array<number>>()
  for (const key of group.partitions.keys()) {
    const [topicId, partition] = key.split(":") as [string, string]
    const name = state.topicsById.get(topicId)?.name
    if (name !== undefined) known.set(name, [...known.get(name) ?? [], Number(partition)])
  }
  return [...known].map(([topicName, partitions]) => ({ topicName, partitions: partitions.sort((a, b) => a - b) }))
}

export const describeShareGroupOffsetsHandler = handler(describeShareGroupOffsets, ({ brokerId, request, state }) => ({
  groups: request.groups.map(({ groupId, topics }) => {
    const group = state.shareGroups.get(groupId)
    if (coordinatorOf(state, "group", groupId) !== brokerId) {
      return { groupId, topics: [], errorCode: code.NOT_COORDINATOR }
    }
    if (group === undefined) {
      return { groupId, topics: [], errorCode: code.GROUP_ID_NOT_FOUND, errorMessage: `Group ${groupId} not found.` }
    }
    const described = askedTopics(state, group, topics).map(({ partitions, topicName }) => {
      const topic = state.topics.get(topicName)
      return {
        topicName,
        topicId: topic?.id ?? ZERO_UUID,
        partitions: partitions.map((partition) => describePartition(group, topic, partition))
      }
    })
    return { groupId, topics: described, errorCode: code.NONE }
  })
}))

export const alterShareGroupOffsetsHandler = handler(alterShareGroupOffsets, ({ brokerId, request, state }) => {
  const failed = (errorCode: number, errorMessage: string | null = null) => ({ errorCode, errorMessage, responses: [] })
  const { groupId } = request
  if (coordinatorOf(state, "group", groupId) !== brokerId) return failed(code.NOT_COORDINATOR)
  if (state.groups.has(groupId)) return failed(code.GROUP_ID_NOT_FOUND, `Group ${groupId} is not a share group.`)
  const group = shareGroupOf(state, groupId)
  if (group.members.size > 0) return failed(code.NON_EMPTY_GROUP, `Group ${groupId} is not empty.`)
  const responses = request.topics.map(({ partitions, topicName }) => {
    const topic = state.topics.get(topicName)
    return {
      topicName,
      topicId: topic?.id ?? ZERO_UUID,
      partitions: partitions.map(({ partitionIndex, startOffset }) => {
        if (topic?.partitions[partitionIndex] === undefined) {
          return { partitionIndex, errorCode: code.UNKNOWN_TOPIC_OR_PARTITION }
        }
        group.partitions.set(sharePartitionKey(topic.id, partitionIndex), newSharePartition(startOffset, startOffset))
        return { partitionIndex, errorCode: code.NONE }
      })
    }
  })
  return { errorCode: code.NONE, responses }
})

export const deleteShareGroupOffsetsHandler = handler(deleteShareGroupOffsets, ({ brokerId, request, state }) => {
  const failed = (errorCode: number, errorMessage: string | null = null) => ({ errorCode, errorMessage, responses: [] })
  const group = state.shareGroups.get(request.groupId)
  if (coordinatorOf(state, "group", request.groupId) !== brokerId) return failed(code.NOT_COORDINATOR)
  if (group === undefined) return failed(code.GROUP_ID_NOT_FOUND, `Group ${request.groupId} not found.`)
  if (group.members.size > 0) return failed(code.NON_EMPTY_GROUP, `Group ${request.groupId} is not empty.`)
  const responses = request.topics.map(({ topicName }) => {
    const topic = state.topics.get(topicName)
    if (topic === undefined) return { topicName, topicId: ZERO_UUID, errorCode: code.UNKNOWN_TOPIC_OR_PARTITION }
    for (const { index } of topic.partitions) group.partitions.delete(sharePartitionKey(topic.id, index))
    return { topicName, topicId: topic.id, errorCode: code.NONE }
  })
  return { errorCode: code.NONE, responses }
})
