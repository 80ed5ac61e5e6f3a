/**
 * Hanging transactions (KIP-664): over for their coordinator, open in a partition whose marker never came.
 *
 * Kafka 4.1 to 4.4 make them (KAFKA-20734): a coordinator takes a partition that has no leader now (its only replica is
 * killed, or all of them) for one that was deleted, and leaves its marker out. Readers of the partition then wait for
 * ever; and the next transaction of the same producer there decides the old records with its own end, so that outputs
 * that were aborted come twice, and committed ones are lost. So a lane looks before it goes on where that may be, and
 * writes the marker itself.
 *
 * Nothing here fails but for what the caller has to know: a partition that cannot be asked now is told as such.
 */
import { Effect, Result } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { describeProducers } from "../../wire/messages/describeProducers.ts"
import { describeTransactions } from "../../wire/messages/describeTransactions.ts"
import { writeTxnMarkers } from "../../wire/messages/writeTxnMarkers.ts"
import { coordinatorOf } from "../takeOver.ts"
import type { TopicPartition } from "../coordinator.ts"

export interface Asked extends TopicPartition {
  readonly producerId: number
}

/** A transaction that a partition's leader has open. */
export interface OpenThere extends Asked {
  readonly leader: number
  /** Under which its records are. */
  readonly epoch: number
  readonly coordinatorEpoch: number
  /** Its first offset. */
  readonly start: number
}

export interface Looked {
  readonly open: ReadonlyArray<OpenThere>
  /** Their leaders did not answer, or there is none now: to be asked again. */
  readonly later: ReadonlyArray<Asked>
}

/** Of a question; whoever does not answer in it is asked again later. */
const TIMEOUT_MS = 3_000

const byTopic = (partitions: ReadonlyArray<TopicPartition>) =>
  [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, list]) => ({
    name,
    partitionIndexes: list.map(({ partition }) => partition)
  }))

const same = (a: TopicPartition, b: TopicPartition): boolean => a.topic === b.topic && a.partition === b.partition

/** Of one leader. A partition that it may not or does not tell of (no right, an older broker) is taken for clean. */
const askLeader = (cluster: Cluster, purpose: string, leader: number, asked: ReadonlyArray<Asked>) =>
  Effect.gen(function*() {
    const answer = yield* Effect.result(
      cluster.request({ kind: "broker", id: leader }, describeProducers, { topics: byTopic(asked) }, {
        purpose,
        timeoutMs: TIMEOUT_MS
      })
    )
    if (Result.isFailure(answer)) {
      const passes = answer.failure._tag === "ConnectionError"
      return { open: [], later: passes ? asked : [] } satisfies Looked
    }
    const open: Array<OpenThere> = []
    const later: Array<Asked> = []
    for (const { name, partitions } of answer.success.topics) {
      for (const { activeProducers, errorCode, partitionIndex } of partitions) {
        const one = asked.find((at) => same(at, { topic: name, partition: partitionIndex }))
        if (one === undefined) continue
        if (errorCode !== 0) {
          const error = new BrokerError({ api: describeProducers.name, code: errorCode, subject: name, detail: null })
          if (error.class !== "retriable" && error.class !== "refresh") continue
          yield* cluster.invalidate(name)
          later.push(one)
          continue
        }
        const found = activeProducers.find((producer) => producer.producerId === one.producerId)
        if (found === undefined || found.currentTxnStartOffset < 0) continue
        open.push({
          ...one,
          leader,
          epoch: found.producerEpoch,
          coordinatorEpoch: Math.max(0, found.coordinatorEpoch),
          start: found.currentTxnStartOffset
        })
      }
    }
    return { open, later } satisfies Looked
  })

/** Which of these have a transaction of that producer open. One try, of some seconds at most. */
export const openTransactions = (
  cluster: Cluster,
  purpose: string,
  asked: ReadonlyArray<Asked>
): Effect.Effect<Looked> =>
  Effect.timeoutOrElse(look(cluster, purpose, asked), {
    duration: TIMEOUT_MS,
    orElse: () => Effect.succeed({ open: [], later: asked })
  })

const look = (cluster: Cluster, purpose: string, asked: ReadonlyArray<Asked>): Effect.Effect<Looked> =>
  Effect.gen(function*() {
    if (asked.length === 0) return { open: [], later: [] }
    const topics = yield* Effect.result(cluster.leaders([...new Set(asked.map(({ topic }) => topic))]))
    if (Result.isFailure(topics)) return { open: [], later: asked }
    const later: Array<Asked> = []
    const byLeader = new Map<number, Array<Asked>>()
    for (const at of asked) {
      const leader = topics.success.get(at.topic)?.partitions.find((p) => p.partition === at.partition)?.leader ?? -1
      if (leader < 0) later.push(at)
      else byLeader.set(leader, [...byLeader.get(leader) ?? [], at])
    }
    const looked = yield* Effect.forEach(byLeader, ([leader, list]) => askLeader(cluster, purpose, leader, list), {
      concurrency: "unbounded"
    })
    return {
      open: looked.flatMap(({ open }) => open),
      later: [...later, ...looked.flatMap((one) => one.later)]
    }
  })

/** Writes the marker that a partition lacks. `version`: of the transaction; under 2 its marker carries the next epoch. */
export const writeMarker = (
  cluster: Cluster,
  purpose: string,
  at: OpenThere,
  committed: boolean,
  version: 1 | 2
): Effect.Effect<void, WireError> =>
  Effect.gen(function*() {
    const answer = yield* cluster.request({ kind: "broker", id: at.leader }, writeTxnMarkers, {
      markers: [{
        producerId: at.producerId,
        producerEpoch: version === 2 ? at.epoch + 1 : at.epoch,
        transactionResult: committed,
        topics: [{ name: at.topic, partitionIndexes: [at.partition] }],
        coordinatorEpoch: at.coordinatorEpoch,
        transactionVersion: version
      }]
    }, { purpose, timeoutMs: 2 * TIMEOUT_MS })
    const code = answer.markers.flatMap(({ topics }) => topics.flatMap(({ partitions }) => partitions))[0]?.errorCode ??
      0
    // INVALID_PRODUCER_EPOCH: the marker has come in the meantime.
    if (code === 0 || code === 47) return
    const subject = `${at.topic}-${at.partition}`
    return yield* new BrokerError({ api: writeTxnMarkers.name, code, subject, detail: null })
  })

/** What a coordinator has decided last under a transactional id. */
export interface Decision {
  readonly producerId: number
  /** Of the producer now: under version 2 the one after the transaction's. */
  readonly epoch: number
  readonly fate: "committed" | "aborted"
}

/** Null: nothing, or it does not say. To be asked before InitProducerId, which forgets it. */
export const decisionOf = (
  cluster: Cluster,
  purpose: string,
  transactionalId: string
): Effect.Effect<Decision | null> =>
  Effect.gen(function*() {
    const to = coordinatorOf(transactionalId)
    const ask = cluster.request(to, describeTransactions, { transactionalIds: [transactionalId] }, {
      purpose,
      timeoutMs: TIMEOUT_MS
    }).pipe(Effect.flatMap(({ transactionStates: [state] }) => {
      const code = state?.errorCode ?? 0
      return code === 0
        ? Effect.succeed(state)
        : Effect.fail(
          new BrokerError({ api: describeTransactions.name, code, subject: transactionalId, detail: null })
        )
    }))
    const state = yield* Effect.catch(cluster.retrying(ask, { destination: to }), () => Effect.succeed(undefined))
    if (state === undefined) return null
    const { producerEpoch: epoch, producerId, transactionState } = state
    if (transactionState.endsWith("Commit")) return { producerId, epoch, fate: "committed" }
    return transactionState.endsWith("Abort") ? { producerId, epoch, fate: "aborted" } : null
  })
