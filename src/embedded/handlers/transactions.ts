/** The requests to a transaction coordinator: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn. */
import { addOffsetsToTxn } from "../../wire/messages/addOffsetsToTxn.ts"
import { addPartitionsToTxn } from "../../wire/messages/addPartitionsToTxn.ts"
import { endTxn } from "../../wire/messages/endTxn.ts"
import { initProducerId } from "../../wire/messages/initProducerId.ts"
import { code } from "../model/codes.ts"
import { numberOf } from "../model/settings.ts"
import { type ClusterState, coordinatorOf } from "../model/state.ts"
import type { Participant } from "../model/transaction.ts"
import { addParticipants, endTransaction, initProducer, newProducerId } from "../model/transactions.ts"
import { handler } from "./handler.ts"

/** PRODUCER_FENCED came with KIP-588; older clients know INVALID_PRODUCER_EPOCH. */
const fenced = (errorCode: number, version: number, since: number): number =>
  errorCode === code.PRODUCER_FENCED && version < since ? code.INVALID_PRODUCER_EPOCH : errorCode

const isCoordinator = (state: ClusterState, brokerId: number, transactionalId: string): boolean =>
  coordinatorOf(state, "transaction", transactionalId) === brokerId

export const initProducerIdHandler = handler(initProducerId, ({ brokerId, nowMs, request, state, version }) => {
  const failed = (errorCode: number) => ({ errorCode, producerId: -1, producerEpoch: -1 })
  const { transactionalId } = request
  const [producerId, epoch] = [request.producerId, request.producerEpoch]
  if ((producerId < 0) !== (epoch < 0)) return failed(code.INVALID_REQUEST)
  if (transactionalId === null) return { errorCode: code.NONE, producerId: newProducerId(state), producerEpoch: 0 }
  if (transactionalId === "") return failed(code.INVALID_REQUEST)
  if (!isCoordinator(state, brokerId, transactionalId)) return failed(code.NOT_COORDINATOR)
  const longest = numberOf(state, "broker", "", "transaction.max.timeout.ms")
  if (request.transactionTimeoutMs <= 0 || request.transactionTimeoutMs > longest) {
    return failed(code.INVALID_TRANSACTION_TIMEOUT)
  }
  const identity = initProducer(
    state,
    { transactionalId, timeoutMs: request.transactionTimeoutMs, producerId, epoch },
    nowMs
  )
  return {
    errorCode: fenced(identity.errorCode, version, 4),
    producerId: identity.producerId,
    producerEpoch: identity.epoch
  }
})

const addAll = (
  state: ClusterState,
  request: { readonly id: string; readonly producerId: number; readonly epoch: number },
  participants: ReadonlyArray<Participant>,
  brokerId: number,
  nowMs: number
): number => {
  if (request.id === "") return code.INVALID_REQUEST
  if (!isCoordinator(state, brokerId, request.id)) return code.NOT_COORDINATOR
  return addParticipants(
    state,
    { transactionalId: request.id, producerId: request.producerId, epoch: request.epoch },
    participants,
    nowMs
  )
}

export const addPartitionsToTxnHandler = handler(addPartitionsToTxn, ({ brokerId, nowMs, request, state, version }) => {
  const asked = request.v3AndBelowTopics.flatMap(({ name, partitions }) =>
    partitions.map((partition) => ({ name, partition }))
  )
  const unknown = asked.filter(({ name, partition }) => state.topics.get(name)?.partitions[partition] === undefined)
  const participants = asked.flatMap(({ name, partition }): ReadonlyArray<Participant> => {
    const topic = state.topics.get(name)
    return topic === undefined ? [] : [{ kind: "partition", topic: name, topicId: topic.id, partition }]
  })
  const claim = {
    id: request.v3AndBelowTransactionalId,
    producerId: request.v3AndBelowProducerId,
    epoch: request.v3AndBelowProducerEpoch
  }
  const error = unknown.length > 0
    ? code.OPERATION_NOT_ATTEMPTED
    : fenced(addAll(state, claim, participants, brokerId, nowMs), version, 2)
  const codeOf = (name: string, partition: number) =>
    unknown.some((u) => u.name === name && u.partition === partition) ? code.UNKNOWN_TOPIC_OR_PARTITION : error
  return {
    resultsByTopicV3AndBelow: request.v3AndBelowTopics.map(({ name, partitions }) => ({
      name,
      resultsByPartition: partitions.map((partition) => ({
        partitionIndex: partition,
        partitionErrorCode: codeOf(name, partition)
      }))
    }))
  }
})

export const addOffsetsToTxnHandler = handler(addOffsetsToTxn, ({ brokerId, nowMs, request, state, version }) => {
  const claim = { id: request.transactionalId, producerId: request.producerId, epoch: request.producerEpoch }
  const error = addAll(state, claim, [{ kind: "group", groupId: request.groupId }], brokerId, nowMs)
  return { errorCode: fenced(error, version, 2) }
})

export const endTxnHandler = handler(endTxn, ({ brokerId, nowMs, request, state, version }) => {
  if (!isCoordinator(state, brokerId, request.transactionalId)) return { errorCode: code.NOT_COORDINATOR }
  const claim = {
    transactionalId: request.transactionalId,
    producerId: request.producerId,
    epoch: request.producerEpoch
  }
  const identity = endTransaction(state, claim, request.committed, version >= 5 ? 2 : 1, nowMs)
  const { epoch: producerEpoch, producerId } = identity
  return { errorCode: fenced(identity.errorCode, version, 2), ...(version >= 5 ? { producerId, producerEpoch } : {}) }
})
