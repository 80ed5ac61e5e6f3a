/**
 * The transaction coordinator: who may use a transactional id, what takes part in its transaction, and its end.
 *
 * Two versions side by side, as in a broker: version 1, where a producer keeps its epoch from transaction to
 * transaction, and version 2 (KIP-890), where every end bumps it and the markers carry the bumped epoch. What was
 * learned from TransactionCoordinator (Kafka 4.x) is said where it surprises.
 */
import { code } from "./codes.ts"
import { scheduleMarkers } from "./markers.ts"
import type { ClusterState } from "./state.ts"
import { type Participant, participantKey, type Transaction } from "./transaction.ts"

/** A producer may not use the last epoch: the coordinator needs it to fence. */
const EXHAUSTED = 32_766

export interface Identity {
  readonly errorCode: number
  readonly producerId: number
  readonly epoch: number
}
const failed = (errorCode: number): Identity => ({ errorCode, producerId: -1, epoch: -1 })
const identityOf = (transaction: Transaction): Identity => ({
  errorCode: code.NONE,
  producerId: transaction.producerId,
  epoch: transaction.epoch
})

export const newProducerId = (state: ClusterState): number => state.nextProducerId++

const preparing = (transaction: Transaction): boolean =>
  transaction.phase === "PrepareCommit" || transaction.phase === "PrepareAbort"

const newTransaction = (state: ClusterState, id: string, timeoutMs: number): Transaction => ({
  id,
  producerId: newProducerId(state),
  previousProducerId: -1,
  epoch: -1,
  lastEpoch: -1,
  timeoutMs,
  phase: "Empty",
  participants: new Map(),
  startedMs: -1,
  serial: 0,
  version: 1,
  outstanding: 0
})

const rotate = (state: ClusterState, transaction: Transaction): void => {
  transaction.previousProducerId = transaction.producerId
  transaction.producerId = newProducerId(state)
  transaction.epoch = 0
  transaction.lastEpoch = -1
}

export interface InitRequest {
  readonly transactionalId: string
  readonly timeoutMs: number
  /** -1, or what the producer believes to be (KIP-360). */
  readonly producerId: number
  readonly epoch: number
}

/** Whether the identity that a producer brings along may still be its own. */
const knows = (transaction: Transaction, request: InitRequest): boolean =>
  transaction.epoch === -1 || request.producerId === transaction.producerId ||
  (request.producerId === transaction.previousProducerId && request.epoch >= EXHAUSTED)

const bump = (state: ClusterState, transaction: Transaction, request: InitRequest): Identity => {
  const expected = request.producerId >= 0 ? request.epoch : -1
  // The same request again, whose answer was lost.
  if (expected >= 0 && transaction.epoch >= 0 && expected !== transaction.epoch) {
    return expected === transaction.lastEpoch ? identityOf(transaction) : failed(code.PRODUCER_FENCED)
  }
  transaction.timeoutMs = request.timeoutMs
  transaction.phase = "Empty"
  if (transaction.epoch >= EXHAUSTED) rotate(state, transaction)
  else {
    transaction.lastEpoch = expected >= 0 ? transaction.epoch : -1
    transaction.epoch++
  }
  return identityOf(transaction)
}

export const initProducer = (state: ClusterState, request: InitRequest, nowMs: number): Identity => {
  let transaction = state.transactions.get(request.transactionalId)
  if (transaction === undefined) {
    transaction = newTransaction(state, request.transactionalId, request.timeoutMs)
    state.transactions.set(request.transactionalId, transaction)
  }
  if (request.producerId >= 0 && !knows(transaction, request)) return failed(code.PRODUCER_FENCED)
  if (preparing(transaction)) return failed(code.CONCURRENT_TRANSACTIONS)
  if (transaction.phase !== "Ongoing") return bump(state, transaction, request)
  if (request.producerId >= 0 && request.epoch !== transaction.epoch) return failed(code.PRODUCER_FENCED)
  // The epoch of the abort is never given to anybody: the client asks again and gets one above it.
  abortByCoordinator(state, transaction, nowMs)
  return failed(code.CONCURRENT_TRANSACTIONS)
}

/** Fences the producer and aborts its transaction: InitProducerId of a successor, or the time-out. */
export const abortByCoordinator = (state: ClusterState, transaction: Transaction, nowMs: number): void => {
  const version = state.features.get("transaction.version")?.level === 2 ? 2 : 1
  if (version === 1 && transaction.epoch < EXHAUSTED) transaction.epoch++
  transaction.lastEpoch = -1
  decide(state, transaction, false, version, nowMs)
}

export interface ProducerClaim {
  readonly transactionalId: string
  readonly producerId: number
  readonly epoch: number
}

/** Whether the claim names the producer that may use the id now. */
const claimError = (transaction: Transaction | undefined, claim: ProducerClaim): number => {
  if (transaction === undefined || transaction.producerId !== claim.producerId) return code.INVALID_PRODUCER_ID_MAPPING
  if (transaction.epoch !== claim.epoch) return code.PRODUCER_FENCED
  return preparing(transaction) ? code.CONCURRENT_TRANSACTIONS : code.NONE
}

const start = (state: ClusterState, transaction: Transaction, nowMs: number): void => {
  transaction.phase = "Ongoing"
  transaction.startedMs = nowMs
  const serial = ++transaction.serial
  state.timers.set(nowMs + transaction.timeoutMs, (now) => {
    if (transaction.serial === serial && transaction.phase === "Ongoing") abortByCoordinator(state, transaction, now)
  })
}

/** Adds participants, beginning a transaction with the first. */
export const addParticipants = (
  state: ClusterState,
  claim: ProducerClaim,
  participants: ReadonlyArray<Participant>,
  nowMs: number
): number => {
  const transaction = state.transactions.get(claim.transactionalId)
  const error = claimError(transaction, claim)
  if (error !== code.NONE || transaction === undefined) return error
  if (transaction.phase !== "Ongoing") start(state, transaction, nowMs)
  for (const participant of participants) transaction.participants.set(participantKey(participant), participant)
  return code.NONE
}

/** Version 1: the partition must have been added before it is written to. */
export const verifyParticipant = (state: ClusterState, claim: ProducerClaim, participant: Participant): number => {
  const transaction = state.transactions.get(claim.transactionalId)
  const error = claimError(transaction, claim)
  if (error !== code.NONE || transaction === undefined) return error
  const isIn = transaction.phase === "Ongoing" && transaction.participants.has(participantKey(participant))
  return isIn ? code.NONE : code.TRANSACTION_ABORTABLE
}

/** The decision is made here; the markers follow. */
const decide = (
  state: ClusterState,
  transaction: Transaction,
  committed: boolean,
  version: 1 | 2,
  nowMs: number
): void => {
  const { participants, producerId } = transaction
  if (version === 2) {
    transaction.lastEpoch = transaction.epoch
    transaction.epoch++
  }
  const marker = { transactionalId: transaction.id, producerId, epoch: transaction.epoch, committed, version }
  if (version === 2 && transaction.epoch > EXHAUSTED) rotate(state, transaction)
  transaction.version = version
  transaction.serial++
  transaction.phase = committed ? "PrepareCommit" : "PrepareAbort"
  transaction.outstanding = participants.size
  const markers = [...participants.values()].map((participant) => ({ ...marker, participant }))
  participants.clear()
  if (markers.length === 0) complete(transaction)
  else {scheduleMarkers(state, markers, nowMs, (written) => {
      const owner = state.transactions.get(written.transactionalId)
      if (owner !== undefined && --owner.outstanding === 0) complete(owner)
    })}
}

const complete = (transaction: Transaction): void => {
  transaction.phase = transaction.phase === "PrepareCommit" ? "CompleteCommit" : "CompleteAbort"
  transaction.startedMs = -1
}

/** EndTxn by a client of version 2 that was answered already, and that answer was lost. */
const isRepeated = (transaction: Transaction, claim: ProducerClaim): boolean =>
  transaction.version === 2 && (
    (transaction.producerId === claim.producerId && transaction.epoch === claim.epoch + 1 &&
      transaction.lastEpoch === claim.epoch) ||
    (transaction.previousProducerId === claim.producerId && claim.epoch >= EXHAUSTED && transaction.epoch === 0)
  )

const endFinished = (
  state: ClusterState,
  transaction: Transaction,
  committed: boolean,
  version: 1 | 2,
  repeated: boolean,
  nowMs: number
): Identity => {
  const same = (transaction.phase === "CompleteCommit") === committed && transaction.phase !== "Empty"
  if (repeated || version === 1) return same ? identityOf(transaction) : failed(code.INVALID_TXN_STATE)
  // Version 2: nothing was added, so there is nothing to commit; an abort of nothing bumps the epoch all the same.
  if (committed) return failed(code.INVALID_TXN_STATE)
  decide(state, transaction, false, 2, nowMs)
  return identityOf(transaction)
}

/** EndTxn. `version` 2: of request version 5 and up. */
export const endTransaction = (
  state: ClusterState,
  claim: ProducerClaim,
  committed: boolean,
  version: 1 | 2,
  nowMs: number
): Identity => {
  const transaction = state.transactions.get(claim.transactionalId)
  if (transaction === undefined) return failed(code.INVALID_PRODUCER_ID_MAPPING)
  const repeated = version === 2 && isRepeated(transaction, claim)
  if (!repeated && transaction.producerId !== claim.producerId) return failed(code.INVALID_PRODUCER_ID_MAPPING)
  if (!repeated && transaction.epoch !== claim.epoch) return failed(code.PRODUCER_FENCED)
  switch (transaction.phase) {
    case "Ongoing":
      decide(state, transaction, committed, version, nowMs)
      return identityOf(transaction)
    case "PrepareCommit":
    case "PrepareAbort":
      return failed(
        (transaction.phase === "PrepareCommit") === committed ? code.CONCURRENT_TRANSACTIONS : code.INVALID_TXN_STATE
      )
    default:
      return endFinished(state, transaction, committed, version, repeated, nowMs)
  }
}
