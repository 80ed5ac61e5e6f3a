/**
 * Requests to the coordinator of a transactional id, repeated until they are answered for good: AddPartitionsToTxn
 * and EndTxn. What an answer means is transactionState.ts's to say.
 *
 * Why EndTxn is not repeated after silence: the first one may still arrive, after the second one was answered, and
 * under transactions of version 1 end the next transaction. Silence makes the outcome unknown; InitProducerId clears it.
 */
import { Effect } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import { BrokerError, isOwnMistake, type WireError } from "../wire/errors.ts"
import { addPartitionsToTxn } from "../wire/messages/addPartitionsToTxn.ts"
import { endTxn } from "../wire/messages/endTxn.ts"
import { nowMs } from "../wire/retry.ts"
import { ProducerRefused, TransactionMustAbort } from "./produceErrors.ts"
import type { ProducerSettings } from "./producerSettings.ts"
import type { Identity } from "./sequences.ts"
import { backOff, coordinatorOf } from "./takeOver.ts"
import { judgeAddPartitions, judgeEndTxn, type Outcome, type TransactionState } from "./transactionState.ts"

export interface Coordinator {
  readonly cluster: Cluster
  readonly transactionalId: string
  readonly purpose: string
  readonly settings: ProducerSettings
  readonly state: TransactionState
  /** Why a request has to be repeated; null when none has to be any more. */
  readonly onWait: (reason: string | null) => Effect.Effect<void>
}

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** The request never left: the coordinator could not be found or reached. */
const unsent = (error: WireError): boolean =>
  error._tag === "BrokerError" || (error._tag === "ConnectionError" && error.outcome === "unsent")

/** Will not pass by itself; nothing was carried out. */
const denied = (error: WireError): boolean =>
  error._tag === "UnsupportedError" || isOwnMistake(error) ||
  (error._tag === "BrokerError" && error.class === "authorization")

const described = (api: string, code: number, transactionalId: string): string =>
  new BrokerError({ api, code, subject: `transactional id ${transactionalId}`, detail: null }).message

/** `why`: what an abort is for. `bumps`: version 2 of transactions, whose EndTxn brings the next identity. */
export const endTransaction = (c: Coordinator, commit: boolean, why: string, bumps: boolean): Effect.Effect<Outcome> =>
  Effect.gen(function*() {
    const identity = c.state.identity ?? { producerId: -1, epoch: -1 }
    const once = c.cluster.request(coordinatorOf(c.transactionalId), endTxn, {
      transactionalId: c.transactionalId,
      producerId: identity.producerId,
      producerEpoch: identity.epoch,
      committed: commit
    }, {
      purpose: c.purpose,
      timeoutMs: c.settings.requestTimeoutMs,
      ...(bumps ? { minVersion: 5 } : { maxVersion: 4 })
    })
    let maybeDone = false
    for (let attempt = 0;; attempt++) {
      const result = yield* Effect.result(once)
      let reason: string
      if (result._tag === "Failure") {
        reason = result.failure.message
        if (denied(result.failure)) return c.state.notEnded(commit, "denied", maybeDone, reason)
        if (!unsent(result.failure)) return c.state.noAnswer(commit, reason)
        yield* c.cluster.invalidateCoordinator(coordinatorOf(c.transactionalId))
      } else {
        const { errorCode, producerEpoch, producerId } = result.success
        const verdict = judgeEndTxn(errorCode)
        if (verdict === "done") {
          yield* c.onWait(null)
          return c.state.ended(commit, why, bumps && producerId >= 0 ? { producerId, epoch: producerEpoch } : null)
        }
        reason = described("EndTxn", errorCode, c.transactionalId)
        if (verdict !== "again" && verdict !== "againMaybeDone") {
          return c.state.notEnded(commit, verdict, maybeDone, reason)
        }
        maybeDone ||= verdict === "againMaybeDone"
        if (verdict === "againMaybeDone") yield* c.cluster.invalidateCoordinator(coordinatorOf(c.transactionalId))
      }
      yield* c.onWait(reason)
      yield* backOff(attempt, c.settings)
    }
  })

const UNKNOWN_TOPIC_OR_PARTITION = 3
const key = ({ partition, topic }: TopicPartition): string => `${topic}/${partition}`

/** One AddPartitionsToTxn: the code of each partition; empty where it was not carried out or nobody knows. */
const askToAdd = (
  c: Coordinator,
  identity: Identity,
  partitions: Iterable<TopicPartition>
): Effect.Effect<ReadonlyMap<string, number>, ProducerRefused> =>
  Effect.gen(function*() {
    const topics = new Map<string, Array<number>>()
    for (const { partition, topic } of partitions) topics.set(topic, [...topics.get(topic) ?? [], partition])
    const result = yield* Effect.result(c.cluster.request(coordinatorOf(c.transactionalId), addPartitionsToTxn, {
      v3AndBelowTransactionalId: c.transactionalId,
      v3AndBelowProducerId: identity.producerId,
      v3AndBelowProducerEpoch: identity.epoch,
      v3AndBelowTopics: [...topics].map(([name, indexes]) => ({ name, partitions: indexes }))
    }, { purpose: c.purpose, timeoutMs: c.settings.requestTimeoutMs }))
    if (result._tag === "Success") {
      return new Map(result.success.resultsByTopicV3AndBelow.flatMap((topic) =>
        topic.resultsByPartition.map((p) => [`${topic.name}/${p.partitionIndex}`, p.partitionErrorCode] as const)
      ))
    }
    yield* c.onWait(result.failure.message)
    if (denied(result.failure)) {
      c.state.fail(result.failure.message)
      return yield* new ProducerRefused({ what: result.failure.message })
    }
    if (unsent(result.failure)) {
      yield* c.cluster.invalidateCoordinator(coordinatorOf(c.transactionalId))
    } else c.state.inDoubt()
    return new Map()
  })

/**
 * Version 1: adds the partitions to the open transaction. Gives the codes of those that cannot be added because of
 * their topic; all others are in when it returns.
 */
export const addPartitions = (
  c: Coordinator,
  wanted: ReadonlyArray<TopicPartition>
): Effect.Effect<ReadonlyMap<string, number>, ProducerRefused | TransactionMustAbort> =>
  Effect.gen(function*() {
    const identity = c.state.identity ?? { producerId: -1, epoch: -1 }
    const missing = new Map(wanted.map((p) => [key(p), p]))
    const blocked = new Map<string, number>()
    const leaveOutAt = (yield* nowMs) + c.settings.partitionPatienceMs
    for (let attempt = 0;; attempt++) {
      const codes = yield* askToAdd(c, identity, missing.values())
      const late = (yield* nowMs) >= leaveOutAt
      for (const [name, code] of codes) {
        // A topic that is not there keeps all others out of the request.
        const verdict = late && code === UNKNOWN_TOPIC_OR_PARTITION ? "blocked" : judgeAddPartitions(code)
        if (verdict === "added" || verdict === "blocked") missing.delete(name)
        if (verdict === "blocked") blocked.set(name, code)
        if (verdict === "added" || verdict === "blocked" || verdict === "notTried") continue
        const reason = described("AddPartitionsToTxn", code, c.transactionalId)
        if (verdict === "fenced" || verdict === "abort" || verdict === "denied") {
          c.state.fail(reason, { fenced: verdict === "fenced" })
          return yield* verdict === "denied"
            ? new ProducerRefused({ what: reason })
            : new TransactionMustAbort({ what: reason })
        }
        yield* c.onWait(reason)
        if (verdict === "coordinator") yield* c.cluster.invalidateCoordinator(coordinatorOf(c.transactionalId))
      }
      if (missing.size === 0) break
      // The markers of the last transaction take some milliseconds: a short back-off.
      yield* backOff(Math.min(attempt, 3), c.settings)
    }
    yield* c.onWait(null)
    return blocked
  })
