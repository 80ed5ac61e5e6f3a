/**
 * Produce. A transactional batch needs its partition in the transaction: from version 12 on it is added here
 * (KIP-890), below it must have been added before.
 */
import type { BatchView } from "../../wire/batch/recordBatch.ts"
import { decodeRecords } from "../../wire/batch/records.ts"
import { produce } from "../../wire/messages/produce.ts"
import type { Decoded } from "../../wire/schema.ts"
import { code } from "../model/codes.ts"
import { appendBatch } from "../model/partitionLog.ts"
import { checkBatch } from "../model/produceChecks.ts"
import { judgeSequence } from "../model/producerState.ts"
import { numberOf, settingOf } from "../model/settings.ts"
import { type ClusterState, coordinatorOf, type Partition, type Topic } from "../model/state.ts"
import { addParticipants, type ProducerClaim, verifyParticipant } from "../model/transactions.ts"
import { ledPartition } from "../model/topics.ts"
import { type Call, handler, SILENT } from "./handler.ts"
import { endpointsOf } from "./leaders.ts"

const TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
const IMPLICIT_ADD_FROM = 12
const ABORTABLE_FROM = 11

type Request = Call<Decoded<typeof produce.request.fields>>
interface Written {
  readonly errorCode: number
  readonly baseOffset: number
  readonly errorMessage: string | null
}
const failed = (errorCode: number, errorMessage: string | null = null): Written => ({
  errorCode,
  baseOffset: -1,
  errorMessage
})

/** The coordinator's word, in the codes that a producer of this version may get. */
const shown = (errorCode: number, version: number): number => {
  switch (errorCode) {
    case code.PRODUCER_FENCED:
      return code.INVALID_PRODUCER_EPOCH
    case code.CONCURRENT_TRANSACTIONS:
      return version >= IMPLICIT_ADD_FROM ? errorCode : code.NOT_ENOUGH_REPLICAS
    case code.TRANSACTION_ABORTABLE:
      return version >= ABORTABLE_FROM ? errorCode : code.INVALID_TXN_STATE
    default:
      return errorCode
  }
}

const transactionError = (call: Request, topic: Topic, partition: Partition, batch: BatchView): number => {
  const { nowMs, request, state, version } = call
  const transactionalId = request.transactionalId ?? ""
  const entry = partition.log.producers.get(batch.producerId)
  if (entry !== undefined && entry.transactionStart !== null && entry.epoch === batch.producerEpoch) return code.NONE
  if (coordinatorOf(state, "transaction", transactionalId) < 0) return code.NOT_ENOUGH_REPLICAS
  const claim: ProducerClaim = { transactionalId, producerId: batch.producerId, epoch: batch.producerEpoch }
  const participant = { kind: "partition", topic: topic.name, topicId: topic.id, partition: partition.index } as const
  const error = version >= IMPLICIT_ADD_FROM
    ? addParticipants(state, claim, [participant], nowMs)
    : verifyParticipant(state, claim, participant)
  return shown(error, version)
}

const keysError = (state: ClusterState, topic: Topic, batch: BatchView): number => {
  if (!settingOf(state, "topic", topic.name, "cleanup.policy").includes("compact")) return code.NONE
  return decodeRecords(batch).some((record) => record.key === null) ? code.INVALID_RECORD : code.NONE
}

const append = (call: Request, topic: Topic, partition: Partition, batch: BatchView): Written => {
  const { nowMs, state, version } = call
  const { log } = partition
  if (batch.isTransactional) {
    const error = transactionError(call, topic, partition, batch)
    if (error !== code.NONE) return failed(error)
  }
  if (batch.producerId >= 0) {
    const entry = log.producers.get(batch.producerId)
    const verdict = judgeSequence(entry, {
      producerId: batch.producerId,
      epoch: batch.producerEpoch,
      firstSequence: batch.baseSequence,
      recordSpan: batch.lastOffsetDelta + 1
    })
    if (verdict.kind === "duplicate") {
      return { errorCode: code.NONE, baseOffset: verdict.baseOffset, errorMessage: null }
    }
    if (verdict.kind === "refused") return failed(verdict.code)
    if (entry === undefined && batch.isTransactional && version >= IMPLICIT_ADD_FROM && batch.baseSequence !== 0) {
      return failed(code.OUT_OF_ORDER_SEQUENCE_NUMBER)
    }
  }
  const logAppendTime = settingOf(state, "topic", topic.name, "message.timestamp.type") === "LogAppendTime"
  const baseOffset = appendBatch(log, batch.bytes, { leaderEpoch: partition.leaderEpoch, nowMs, logAppendTime })
  return { errorCode: code.NONE, baseOffset, errorMessage: null }
}

const enoughReplicas = (state: ClusterState, topic: Topic, partition: Partition): boolean =>
  partition.replicas.filter((id) => state.brokers.get(id)?.running === true).length >=
    Math.min(partition.replicas.length, numberOf(state, "topic", topic.name, "min.insync.replicas"))

const write = (call: Request, topic: Topic, partition: Partition, records: Buffer | null): Written => {
  const { request, state } = call
  if (![-1, 0, 1].includes(request.acks)) return failed(code.INVALID_REQUIRED_ACKS)
  if (request.acks === -1 && !enoughReplicas(state, topic, partition)) return failed(code.NOT_ENOUGH_REPLICAS)
  const checked = checkBatch(records, numberOf(state, "topic", topic.name, "max.message.bytes"))
  if (!checked.ok) return failed(checked.code, checked.message)
  if (checked.batch.isTransactional && request.transactionalId === null) {
    return failed(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
  }
  const keys = keysError(state, topic, checked.batch)
  if (keys !== code.NONE) return failed(keys, "One or more records have been rejected: a compacted topic needs keys")
  return append(call, topic, partition, checked.batch)
}

const answerFor = (call: Request, topic: Topic | undefined, index: number, records: Buffer | null) => {
  const { nowMs, state, version } = call
  const led = topic === undefined
    ? (version >= 13 ? code.UNKNOWN_TOPIC_ID : code.UNKNOWN_TOPIC_OR_PARTITION)
    : ledPartition(call.brokerId, topic, index)
  if (typeof led === "number") {
    const partition = topic?.partitions[index]
    const currentLeader = { leaderId: partition?.leader ?? -1, leaderEpoch: partition?.leaderEpoch ?? -1 }
    return { index, errorCode: led, baseOffset: -1, ...(led === code.NOT_LEADER_OR_FOLLOWER ? { currentLeader } : {}) }
  }
  const written = write(call, topic as Topic, led, records)
  const appended = written.errorCode === code.NONE
  const byBroker = appended &&
    settingOf(state, "topic", (topic as Topic).name, "message.timestamp.type") === "LogAppendTime"
  return {
    index,
    ...written,
    logAppendTimeMs: byBroker ? nowMs : -1,
    logStartOffset: appended ? led.log.startOffset : -1
  }
}

export const produceHandler = handler(produce, (call) => {
  const { request, state, version } = call
  const responses = request.topicData.map((entry) => {
    const topic = version >= 13 ? state.topicsById.get(entry.topicId) : state.topics.get(entry.name)
    const partitionResponses = entry.partitionData.map(({ index, records }) => answerFor(call, topic, index, records))
    return { name: entry.name, topicId: entry.topicId, partitionResponses }
  })
  if (request.acks === 0) return SILENT
  const moved = responses.some((r) => r.partitionResponses.some((p) => p.errorCode === code.NOT_LEADER_OR_FOLLOWER))
  return { responses, ...(moved ? { nodeEndpoints: endpointsOf(state) } : {}) }
})
