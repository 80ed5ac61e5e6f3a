/** Positions of consumer groups: committed, also in transactions, and fetched. */
import { offsetCommit } from "../../wire/messages/offsetCommit.ts"
import { offsetFetch } from "../../wire/messages/offsetFetch.ts"
import { txnOffsetCommit } from "../../wire/messages/txnOffsetCommit.ts"
import { code } from "../model/codes.ts"
import { type Group, groupOf, memberError } from "../model/group.ts"
import { commitOffset, type CommittedOffset, isUnstable, offsetKey, stageOffsets } from "../model/groupOffsets.ts"
import { type ClusterState, coordinatorOf, type Topic } from "../model/state.ts"
import { addParticipants, type ProducerClaim, verifyParticipant } from "../model/transactions.ts"
import { handler } from "./handler.ts"

interface Place {
  readonly name: string
  readonly topicId: string
}

const topicAt = (state: ClusterState, place: Place, byId: boolean): Topic | undefined =>
  byId ? state.topicsById.get(place.topicId) : state.topics.get(place.name)

/** Outside of a generation (-1, "") anybody may commit to a group without members. */
const committerError = (
  state: ClusterState,
  brokerId: number,
  groupId: string,
  memberId: string,
  generation: number
): number => {
  if (groupId === "") return code.INVALID_GROUP_ID
  if (coordinatorOf(state, "group", groupId) !== brokerId) return code.NOT_COORDINATOR
  if (state.shareGroups.has(groupId)) return code.GROUP_ID_NOT_FOUND
  const group = state.groups.get(groupId)
  if (generation < 0 && memberId === "") {
    return group !== undefined && group.members.size > 0
      ? code.UNKNOWN_MEMBER_ID
      : code.NONE
  }
  if (group === undefined) return code.ILLEGAL_GENERATION
  return memberError(group, memberId, generation)
}

interface Asked extends Place {
  readonly partitions: ReadonlyArray<
    {
      readonly partitionIndex: number
      readonly committedOffset: number
      readonly committedLeaderEpoch: number
      readonly committedMetadata: string | null
    }
  >
}

const commitAll = (
  state: ClusterState,
  topics: ReadonlyArray<Asked>,
  byId: boolean,
  error: number,
  commit: (offset: CommittedOffset) => void
) =>
  topics.map((asked) => {
    const topic = topicAt(state, asked, byId)
    return {
      name: asked.name,
      topicId: asked.topicId,
      partitions: asked.partitions.map(
        ({ committedLeaderEpoch, committedMetadata, committedOffset, partitionIndex }) => {
          const unknown = byId && topic === undefined ? code.UNKNOWN_TOPIC_ID : code.UNKNOWN_TOPIC_OR_PARTITION
          const errorCode = error !== code.NONE
            ? error
            : topic?.partitions[partitionIndex] === undefined
            ? unknown
            : code.NONE
          if (errorCode === code.NONE && topic !== undefined) {
            commit({
              topic: topic.name,
              partition: partitionIndex,
              offset: committedOffset,
              leaderEpoch: committedLeaderEpoch,
              metadata: committedMetadata ?? ""
            })
          }
          return { partitionIndex, errorCode }
        }
      )
    }
  })

export const offsetCommitHandler = handler(offsetCommit, ({ brokerId, nowMs, request, state, version }) => {
  const { generationIdOrMemberEpoch, groupId, memberId } = request
  const error = committerError(state, brokerId, groupId, memberId, generationIdOrMemberEpoch)
  const group = error === code.NONE ? groupOf(state, groupId) : null
  const member = group?.members.get(memberId)
  if (member !== undefined) member.lastSeenMs = nowMs
  return {
    topics: commitAll(state, request.topics, version >= 10, error, (offset) => commitOffset(group as Group, offset))
  }
})

export const txnOffsetCommitHandler = handler(txnOffsetCommit, ({ brokerId, nowMs, request, state, version }) => {
  const { generationIdOrMemberEpoch, groupId, memberId } = request
  const claim: ProducerClaim = {
    transactionalId: request.transactionalId,
    producerId: request.producerId,
    epoch: request.producerEpoch
  }
  const participant = { kind: "group", groupId } as const
  const unbound = generationIdOrMemberEpoch < 0 && memberId === ""
  let error = unbound
    ? (coordinatorOf(state, "group", groupId) === brokerId ? code.NONE : code.NOT_COORDINATOR)
    : committerError(state, brokerId, groupId, memberId, generationIdOrMemberEpoch)
  if (error === code.NONE) {
    const group = groupOf(state, groupId)
    error = version >= 5
      ? addParticipants(state, claim, [participant], nowMs)
      : verifyParticipant(state, claim, participant)
    if (error === code.PRODUCER_FENCED) error = code.INVALID_PRODUCER_EPOCH
    return {
      topics: commitAll(
        state,
        request.topics,
        version >= 6,
        error,
        (offset) => stageOffsets(group, request.producerId, [offset])
      )
    }
  }
  return { topics: commitAll(state, request.topics, version >= 6, error, () => {}) }
})

const NOTHING = { committedOffset: -1, committedLeaderEpoch: -1, metadata: "" }

const fetchOne = (
  group: Group | undefined,
  topic: Topic | undefined,
  partitionIndex: number,
  requireStable: boolean,
  unknown: number
) => {
  if (topic === undefined && unknown !== code.NONE) return { partitionIndex, ...NOTHING, errorCode: unknown }
  if (group === undefined || topic === undefined) return { partitionIndex, ...NOTHING, errorCode: code.NONE }
  if (requireStable && isUnstable(group, topic.name, partitionIndex)) {
    return { partitionIndex, ...NOTHING, errorCode: code.UNSTABLE_OFFSET_COMMIT }
  }
  const found = group.offsets.get(offsetKey(topic.name, partitionIndex))
  if (found === undefined) return { partitionIndex, ...NOTHING, errorCode: code.NONE }
  return {
    partitionIndex,
    committedOffset: found.offset,
    committedLeaderEpoch: found.leaderEpoch,
    metadata: found.metadata,
    errorCode: code.NONE
  }
}

/** null: all that the group has committed. */
const placesOf = (
  state: ClusterState,
  group: Group | undefined,
  topics: ReadonlyArray<Place & { readonly partitionIndexes: ReadonlyArray<number> }> | null
) => {
  if (topics !== null) return topics
  const known = new Map<string, Array<number>>()
  for (const { partition, topic } of group?.offsets.values() ?? []) {
    known.set(topic, [...known.get(topic) ?? [], partition])
  }
  return [...known].map(([name, partitionIndexes]) => ({
    name,
    topicId: state.topics.get(name)?.id ?? "",
    partitionIndexes
  }))
}

export const offsetFetchHandler = handler(offsetFetch, ({ brokerId, request, state, version }) => {
  const fetchGroup = (groupId: string, topics: Parameters<typeof placesOf>[2]) => {
    if (coordinatorOf(state, "group", groupId) !== brokerId) {
      return { groupId, topics: [], errorCode: code.NOT_COORDINATOR }
    }
    const group = state.groups.get(groupId)
    const byId = version >= 10
    return {
      groupId,
      errorCode: code.NONE,
      topics: placesOf(state, group, topics).map((place) => {
        const topic = topicAt(state, place, byId && topics !== null)
        const unknown = byId ? code.UNKNOWN_TOPIC_ID : code.NONE
        return {
          name: topic?.name ?? place.name,
          topicId: topic?.id ?? place.topicId,
          partitions: place.partitionIndexes.map((index) =>
            fetchOne(group, topic, index, request.requireStable, unknown)
          )
        }
      })
    }
  }
  if (version >= 8) return { groups: request.groups.map(({ groupId, topics }) => fetchGroup(groupId, topics)) }
  const { errorCode, topics } = fetchGroup(request.groupId, request.topics?.map((t) => ({ ...t, topicId: "" })) ?? null)
  return { errorCode, topics }
})
