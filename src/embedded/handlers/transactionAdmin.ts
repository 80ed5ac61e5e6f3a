/** What transactions there are, and markers written by an operator (KIP-664). */
import { describeProducers } from "../../wire/messages/describeProducers.ts"
import { describeTransactions } from "../../wire/messages/describeTransactions.ts"
import { listTransactions } from "../../wire/messages/listTransactions.ts"
import { writeTxnMarkers } from "../../wire/messages/writeTxnMarkers.ts"
import { code } from "../model/codes.ts"
import { appendMarker } from "../model/partitionLog.ts"
import { coordinatorOf } from "../model/state.ts"
import { ledPartition } from "../model/topics.ts"
import type { Transaction } from "../model/transaction.ts"
import { handler } from "./handler.ts"

const topicsIn = (transaction: Transaction) => {
  const topics = new Map<string, Array<number>>()
  for (const participant of transaction.participants.values()) {
    if (participant.kind === "partition") {
      topics.set(participant.topic, [...topics.get(participant.topic) ?? [], participant.partition])
    }
  }
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }))
}

export const describeTransactionsHandler = handler(describeTransactions, ({ brokerId, request, state }) => ({
  transactionStates: request.transactionalIds.map((transactionalId) => {
    const nothing = {
      transactionalId,
      transactionState: "",
      transactionTimeoutMs: 0,
      transactionStartTimeMs: 0,
      producerId: 0,
      producerEpoch: 0,
      topics: []
    }
    if (coordinatorOf(state, "transaction", transactionalId) !== brokerId) {
      return { ...nothing, errorCode: code.NOT_COORDINATOR }
    }
    const transaction = state.transactions.get(transactionalId)
    if (transaction === undefined) return { ...nothing, errorCode: code.TRANSACTIONAL_ID_NOT_FOUND }
    return {
      errorCode: code.NONE,
      transactionalId,
      transactionState: transaction.phase,
      transactionTimeoutMs: transaction.timeoutMs,
      transactionStartTimeMs: transaction.startedMs,
      producerId: transaction.producerId,
      producerEpoch: transaction.epoch,
      topics: topicsIn(transaction)
    }
  })
}))

export const listTransactionsHandler = handler(listTransactions, ({ brokerId, nowMs, request, state }) => {
  const pattern = request.transactionalIdPattern === null || request.transactionalIdPattern === ""
    ? null
    : new RegExp(`^(?:${request.transactionalIdPattern})$`)
  const wanted = [...state.transactions.values()].filter((t) =>
    coordinatorOf(state, "transaction", t.id) === brokerId &&
    (request.stateFilters.length === 0 || request.stateFilters.includes(t.phase)) &&
    (request.producerIdFilters.length === 0 || request.producerIdFilters.includes(t.producerId)) &&
    (request.durationFilter < 0 || (t.phase === "Ongoing" && nowMs - t.startedMs > request.durationFilter)) &&
    (pattern === null || pattern.test(t.id))
  )
  return {
    errorCode: code.NONE,
    unknownStateFilters: [],
    transactionStates: wanted.map((t) => ({
      transactionalId: t.id,
      producerId: t.producerId,
      transactionState: t.phase
    }))
  }
})

export const describeProducersHandler = handler(describeProducers, ({ brokerId, request, state }) => ({
  topics: request.topics.map(({ name, partitionIndexes }) => ({
    name,
    partitions: partitionIndexes.map((partitionIndex) => {
      const led = ledPartition(brokerId, state.topics.get(name), partitionIndex)
      if (typeof led === "number") return { partitionIndex, errorCode: led, activeProducers: [] }
      const activeProducers = [...led.log.producers].map(([producerId, entry]) => ({
        producerId,
        producerEpoch: entry.epoch,
        lastSequence: entry.batches.at(-1)?.lastSequence ?? -1,
        lastTimestamp: entry.lastTimestampMs,
        coordinatorEpoch: 0,
        currentTxnStartOffset: entry.transactionStart ?? -1
      }))
      return { partitionIndex, errorCode: code.NONE, activeProducers }
    })
  }))
}))

export const writeTxnMarkersHandler = handler(writeTxnMarkers, ({ brokerId, nowMs, request, state }) => ({
  markers: request.markers.map((marker) => ({
    producerId: marker.producerId,
    topics: marker.topics.map(({ name, partitionIndexes }) => ({
      name,
      partitions: partitionIndexes.map((partitionIndex) => {
        const led = ledPartition(brokerId, state.topics.get(name), partitionIndex)
        if (typeof led === "number") return { partitionIndex, errorCode: led }
        const written = appendMarker(led.log, {
          producerId: marker.producerId,
          epoch: marker.producerEpoch,
          committed: marker.transactionResult,
          transactionVersion: marker.transactionVersion === 2 ? 2 : 1
        }, { leaderEpoch: led.leaderEpoch, nowMs, logAppendTime: false })
        return { partitionIndex, errorCode: written ? code.NONE : code.INVALID_PRODUCER_EPOCH }
      })
    }))
  }))
}))
