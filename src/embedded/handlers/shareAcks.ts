/** Acknowledgements, as ShareFetch and ShareAcknowledge carry them: checked, applied, one code a partition. */
import { code } from "../model/codes.ts"
import { numberOf, settingOf } from "../model/settings.ts"
import { deliveryLimit, shareGroupOf, sharePartitionKey, watchLocks } from "../model/shareGroup.ts"
import { ack, type AckBatch, acknowledge } from "../model/sharePartition.ts"
import type { ClusterState, Partition } from "../model/state.ts"

export interface AckedPartition {
  readonly topicId: string
  readonly partition: number
  readonly errorCode: number
  readonly errorMessage: string | null
  /** Where it leads, when it does not lead here. */
  readonly leader: Partition | null
}

export interface AckTopic {
  readonly topicId: string
  readonly partitions: ReadonlyArray<
    { readonly partitionIndex: number; readonly acknowledgementBatches: ReadonlyArray<AckBatch> }
  >
}

export interface AckRequest {
  readonly groupId: string
  readonly memberId: string
  readonly brokerId: number
  readonly renewing: boolean
  readonly nowMs: number
}

/** Ranges ascend and do not overlap; one type for all of a range or one an offset; types that are known. */
export const batchesError = (batches: ReadonlyArray<AckBatch>, highestType: number): string | null => {
  let before = -1
  for (const { acknowledgeTypes, firstOffset, lastOffset } of batches) {
    if (firstOffset > lastOffset) return "The first offset is greater than the last"
    // As Kafka has it: an offset that two ranges share is only found out by its state.
    if (firstOffset < before) return "The acknowledgement batches overlap or do not ascend"
    if (acknowledgeTypes.length === 0) return "There are no acknowledge types"
    if (acknowledgeTypes.length > 1 && acknowledgeTypes.length !== lastOffset - firstOffset + 1) {
      return "There must be one acknowledge type, or as many as there are offsets"
    }
    if (acknowledgeTypes.some((type) => type < 0 || type > highestType)) return "An acknowledge type is not valid"
    before = lastOffset
  }
  return null
}

export const lockMsOf = (state: ClusterState, groupId: string): number =>
  numberOf(state, "group", groupId, "share.record.lock.duration.ms")

const applyTo = (
  state: ClusterState,
  request: AckRequest,
  topicId: string,
  partition: Partition,
  batches: ReadonlyArray<AckBatch>
) => {
  const { groupId, memberId, nowMs } = request
  const shared = shareGroupOf(state, groupId).partitions.get(sharePartitionKey(topicId, partition.index))
  if (shared === undefined) return code.UNKNOWN_TOPIC_OR_PARTITION
  const renews = batches.some((batch) => batch.acknowledgeTypes.includes(ack.renew))
  if (renews && settingOf(state, "group", groupId, "share.renew.acknowledge.enable") !== "true") {
    return code.INVALID_RECORD_STATE
  }
  const untilMs = nowMs + lockMsOf(state, groupId)
  const error = acknowledge(shared, memberId, batches, deliveryLimit(state, groupId), untilMs)
  if (renews && error === code.NONE) watchLocks(state, groupId, shared, untilMs)
  return error
}

export const applyAcks = (
  state: ClusterState,
  request: AckRequest,
  topics: ReadonlyArray<AckTopic>
): ReadonlyArray<AckedPartition> =>
  topics.flatMap(({ partitions, topicId }) =>
    partitions.filter(({ acknowledgementBatches }) => acknowledgementBatches.length > 0).map(
      ({ acknowledgementBatches, partitionIndex }): AckedPartition => {
        const answer = (errorCode: number, errorMessage: string | null = null, leader: Partition | null = null) => ({
          topicId,
          partition: partitionIndex,
          errorCode,
          errorMessage,
          leader
        })
        const wrong = batchesError(acknowledgementBatches, request.renewing ? ack.renew : ack.reject)
        if (wrong !== null) return answer(code.INVALID_REQUEST, wrong)
        const topic = state.topicsById.get(topicId)
        const partition = topic?.partitions[partitionIndex]
        if (partition === undefined) {
          return answer(topic === undefined ? code.UNKNOWN_TOPIC_ID : code.UNKNOWN_TOPIC_OR_PARTITION)
        }
        if (partition.leader !== request.brokerId) return answer(code.NOT_LEADER_OR_FOLLOWER, null, partition)
        return answer(applyTo(state, request, topicId, partition, acknowledgementBatches))
      }
    )
  )

/** Partitions by topic, as answers list them; the order is that of their first mention. */
export const byTopic = <P>(entries: ReadonlyArray<readonly [topicId: string, partition: P]>) => {
  const topics = new Map<string, Array<P>>()
  for (const [topicId, partition] of entries) {
    const known = topics.get(topicId)
    if (known === undefined) topics.set(topicId, [partition])
    else known.push(partition)
  }
  return [...topics].map(([topicId, partitions]) => ({ topicId, partitions }))
}

export const leaderHint = (partition: Partition | null) =>
  partition === null
    ? { leaderId: -1, leaderEpoch: -1 }
    : { leaderId: partition.leader, leaderEpoch: partition.leaderEpoch }
