/**
 * TxnShareAcknowledge (KIP-1289), both drafts: what a member holds waits for the end of its producer's transaction.
 *
 * Order of checks as the drafts have it: the feature, the ids, the member and its epoch, the transaction, and then
 * each partition's records.
 */
import {
  SHARE_FEATURE,
  SHARE_VERSION,
  TRANSACTIONAL_ACKNOWLEDGE_TYPES,
  txnShareAcknowledgeA,
  txnShareAcknowledgeB
} from "../../wire/kip1289.ts"
import { code } from "../model/codes.ts"
import { sharePartitionKey } from "../model/shareGroup.ts"
import { type AckBatch, stagePending } from "../model/sharePartition.ts"
import type { Participant } from "../model/transaction.ts"
import { addParticipants } from "../model/transactions.ts"
import { type Call, handler } from "./handler.ts"
import { batchesError } from "./shareAcks.ts"

interface Common {
  readonly transactionalId: string | null
  readonly groupId: string
  readonly producerId: number
  readonly producerEpoch: number
  readonly memberId: string
  readonly memberEpoch: number
}
interface AskedTopic {
  readonly topicId: string
  readonly partitions: ReadonlyArray<{ readonly partitionIndex: number; readonly batches: ReadonlyArray<AckBatch> }>
}

const callerError = ({ request, state }: Call<Common>): number => {
  if ((state.features.get(SHARE_FEATURE)?.level ?? 0) < SHARE_VERSION) return code.UNSUPPORTED_VERSION
  if (request.groupId === "" || request.memberId === "" || (request.transactionalId ?? "") === "") {
    return code.INVALID_REQUEST
  }
  const group = state.shareGroups.get(request.groupId)
  if (group === undefined) return code.GROUP_ID_NOT_FOUND
  const member = group.members.get(request.memberId)
  if (member === undefined) return code.UNKNOWN_MEMBER_ID
  return member.epoch === request.memberEpoch ? code.NONE : code.STALE_MEMBER_EPOCH
}

/** The participants of a transaction are the parts of the group's state, one a partition. */
const joinTransaction = ({ nowMs, request, state }: Call<Common>, topics: ReadonlyArray<AskedTopic>): number => {
  const participants = topics.flatMap(({ partitions, topicId }) =>
    partitions.map(({ partitionIndex }): Participant => ({
      kind: "share",
      groupId: request.groupId,
      topicId,
      partition: partitionIndex
    }))
  )
  const claim = {
    transactionalId: request.transactionalId ?? "",
    producerId: request.producerId,
    epoch: request.producerEpoch
  }
  return addParticipants(state, claim, participants, nowMs)
}

const stage = (
  { brokerId, request, state }: Call<Common>,
  topicId: string,
  partitionIndex: number,
  batches: ReadonlyArray<AckBatch>
): number => {
  const topic = state.topicsById.get(topicId)
  const partition = topic?.partitions[partitionIndex]
  if (partition === undefined) return topic === undefined ? code.UNKNOWN_TOPIC_ID : code.UNKNOWN_TOPIC_OR_PARTITION
  if (partition.leader !== brokerId) return code.NOT_LEADER_OR_FOLLOWER
  if (batchesError(batches, 3) !== null) return code.INVALID_REQUEST
  if (batches.some((batch) => batch.acknowledgeTypes.some((type) => !TRANSACTIONAL_ACKNOWLEDGE_TYPES.has(type)))) {
    return code.INVALID_REQUEST
  }
  const shared = state.shareGroups.get(request.groupId)?.partitions.get(sharePartitionKey(topicId, partitionIndex))
  return shared === undefined
    ? code.INVALID_RECORD_STATE
    : stagePending(shared, request.memberId, batches, request.producerId)
}

const run = (call: Call<Common>, topics: ReadonlyArray<AskedTopic>) => {
  const error = callerError(call) || joinTransaction(call, topics)
  if (error !== code.NONE) return { errorCode: error, topics: [] }
  return {
    errorCode: code.NONE,
    topics: topics.map(({ partitions, topicId }) => ({
      topicId,
      partitions: partitions.map(({ batches, partitionIndex }) => ({
        partitionIndex,
        errorCode: stage(call, topicId, partitionIndex, batches)
      }))
    }))
  }
}

export const txnShareAcknowledgeAHandler = handler(
  txnShareAcknowledgeA,
  (call) =>
    run(
      call,
      call.request.topics.map(({ partitions, topicId }) => ({
        topicId,
        partitions: partitions.map(({ acknowledgementBatches, partitionIndex }) => ({
          partitionIndex,
          batches: acknowledgementBatches.map(({ acknowledgeType, firstOffset, lastOffset }) => ({
            firstOffset,
            lastOffset,
            acknowledgeTypes: [acknowledgeType]
          }))
        }))
      }))
    )
)

export const txnShareAcknowledgeBHandler = handler(txnShareAcknowledgeB, (call) => {
  const { errorCode, topics } = run(
    call,
    call.request.topics.map(({ partitions, topicId }) => ({
      topicId,
      partitions: partitions.map(({ acknowledgementBatches, partitionIndex }) => ({
        partitionIndex,
        batches: acknowledgementBatches
      }))
    }))
  )
  return { errorCode, responses: topics }
})
