/**
 * What a conformance case works with: one cluster, real or embedded, and requests to it as plain calls that give codes
 * and values. Nothing here judges or retries, but where the name says so.
 */
import { Effect } from "effect"
import { type BatchView, splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { decodeRecords, encodeBatch } from "../../src/wire/batch/records.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { addPartitionsToTxn } from "../../src/wire/messages/addPartitionsToTxn.ts"
import { createTopics } from "../../src/wire/messages/createTopics.ts"
import { endTxn } from "../../src/wire/messages/endTxn.ts"
import { fetch } from "../../src/wire/messages/fetch.ts"
import { incrementalAlterConfigs } from "../../src/wire/messages/incrementalAlterConfigs.ts"
import { initProducerId } from "../../src/wire/messages/initProducerId.ts"
import { listOffsets } from "../../src/wire/messages/listOffsets.ts"
import { produce } from "../../src/wire/messages/produce.ts"
import { kafkaError } from "../../src/wire/kafkaErrors.ts"
import { unique } from "../kit/names.ts"

/** Names instead of numbers: a failure can be read. */
export const nameOf = (code: number): string => kafkaError(code).name

export interface Identity {
  readonly code: string
  readonly pid: number
  readonly epoch: number
}

export interface ProduceOptions {
  readonly pid?: number
  readonly epoch?: number
  readonly seq?: number
  readonly txn?: string
  readonly acks?: number
  readonly maxVersion?: number
  readonly partition?: number
  readonly timestamp?: bigint
  readonly key?: string | null
  readonly codec?: "none" | "gzip" | "lz4"
  /** Changes the bytes before they are sent. */
  readonly spoil?: (bytes: Buffer) => Buffer
}

export interface Read {
  readonly code: string
  readonly high: number
  readonly stable: number
  readonly start: number
  /** Values of data records as they lie there, filtered by nobody. */
  readonly values: ReadonlyArray<string>
  readonly batches: ReadonlyArray<BatchView>
  readonly aborted: ReadonlyArray<{ readonly producerId: number; readonly firstOffset: number }>
}

export const COMMITTED = 1
export const UNCOMMITTED = 0

export const valuesOf = (batches: ReadonlyArray<BatchView>): ReadonlyArray<string> =>
  batches.filter((batch) => !batch.isControl).flatMap((batch) =>
    decodeRecords(batch).map((record) => record.value?.toString() ?? "null")
  )

/** Asks again until the answer will do; how long is the test's own bound. */
export const eventually = <A, E>(ask: Effect.Effect<A, E>, will: (answer: A) => boolean): Effect.Effect<A, E> =>
  Effect.flatMap(ask, (answer) => will(answer) ? Effect.succeed(answer) : Effect.delay(eventually(ask, will), 20))

/** What a new topic or coordinator answers before it is ready: asked again. */
const PASSING = new Set([6, 14, 15, 16])
const ready = <A, E>(ask: Effect.Effect<A, E>, codeOf: (answer: A) => number): Effect.Effect<A, E> =>
  eventually(ask, (answer) => !PASSING.has(codeOf(answer)))

export const makeBench = (cluster: Cluster) => {
  const leaderOf = (topic: string, partition = 0) =>
    Effect.map(cluster.leader(topic, partition), (found) => ({ kind: "broker", id: found.leader }) as const)
  const idOf = (topic: string) => Effect.map(cluster.topics([topic]), (found) => found.get(topic)?.id ?? "")

  const createTopic = (
    name: string,
    partitions = 1,
    settings: Readonly<Record<string, string>> = {},
    replicationFactor = 1
  ) => {
    const configs = Object.entries(settings).map(([key, value]) => ({ name: key, value }))
    const topics = [{ name, numPartitions: partitions, replicationFactor, assignments: [], configs }]
    return Effect.map(
      cluster.request({ kind: "controller" }, createTopics, { topics, timeoutMs: 10_000 }),
      (a) => nameOf(a.topics[0]!.errorCode)
    )
  }
  /** A topic of its own, ready to be used. */
  const topic = (partitions = 1, settings: Readonly<Record<string, string>> = {}) =>
    Effect.gen(function*() {
      const name = unique("conf")
      yield* createTopic(name, partitions, settings)
      yield* eventually(cluster.topics([name]), (found) =>
        found.get(name)?.partitions.every((p) => p.leader >= 0) ?? false)
      return name
    })

  const batch = (values: ReadonlyArray<string>, o: ProduceOptions) => {
    const records = values.map((value, offset) => ({
      offset,
      timestamp: o.timestamp ?? BigInt(Date.now()),
      key: o.key === undefined || o.key === null ? null : Buffer.from(o.key),
      value: Buffer.from(value),
      headers: []
    }))
    const bytes = encodeBatch(records, {
      codec: o.codec ?? "none",
      producerId: o.pid ?? -1,
      producerEpoch: o.epoch ?? -1,
      baseSequence: o.seq ?? -1,
      transactional: o.txn !== undefined
    })
    return o.spoil === undefined ? bytes : o.spoil(bytes)
  }
  const sendTo = (name: string, values: ReadonlyArray<string>, o: ProduceOptions = {}) =>
    Effect.gen(function*() {
      const partition = o.partition ?? 0
      const topicId = yield* idOf(name)
      const partitionData = [{ index: partition, records: batch(values, o) }]
      const request = {
        transactionalId: o.txn ?? null,
        acks: o.acks ?? -1,
        timeoutMs: 5000,
        topicData: [{ name, topicId, partitionData }]
      }
      const answer = yield* ready(
        cluster.request(yield* leaderOf(name, partition), produce, request, {
          purpose: "conf",
          maxVersion: o.maxVersion ?? 13
        }),
        (a) => a.responses[0]!.partitionResponses[0]!.errorCode
      )
      return answer.responses[0]!.partitionResponses[0]!
    })
  /** "NONE@12" or the code's name. */
  const send = (name: string, values: ReadonlyArray<string>, o: ProduceOptions = {}) =>
    Effect.map(sendTo(name, values, o), (p) => p.errorCode === 0 ? `NONE@${p.baseOffset}` : nameOf(p.errorCode))

  const read = (
    name: string,
    isolationLevel = UNCOMMITTED,
    offset = 0,
    partition = 0,
    o: { readonly maxBytes?: number; readonly epoch?: number } = {}
  ) =>
    Effect.gen(function*() {
      const topicId = yield* idOf(name)
      const partitions = [{
        partition,
        fetchOffset: offset,
        partitionMaxBytes: o.maxBytes ?? 1_000_000,
        currentLeaderEpoch: o.epoch ?? -1
      }]
      const request = {
        maxWaitMs: 0,
        minBytes: 0,
        maxBytes: o.maxBytes ?? 1_000_000,
        isolationLevel,
        topics: [{ topic: name, topicId, partitions }]
      }
      const answer = yield* ready(
        cluster.request(yield* leaderOf(name, partition), fetch, request, { purpose: "conf" }),
        (a) => a.responses[0]!.partitions[0]!.errorCode
      )
      const found = answer.responses[0]!.partitions[0]!
      const batches = splitBatches(found.records ?? Buffer.alloc(0))
      return {
        code: nameOf(found.errorCode),
        high: found.highWatermark,
        stable: found.lastStableOffset,
        start: found.logStartOffset,
        values: valuesOf(batches),
        batches,
        aborted: found.abortedTransactions ?? []
      } satisfies Read
    })
  const offsetAt = (name: string, timestamp: number, isolationLevel = UNCOMMITTED, currentLeaderEpoch = -1) =>
    Effect.gen(function*() {
      const request = {
        replicaId: -1,
        isolationLevel,
        topics: [{ name, partitions: [{ partitionIndex: 0, timestamp, currentLeaderEpoch }] }]
      }
      const answer = yield* ready(
        cluster.request(yield* leaderOf(name), listOffsets, request),
        (a) => a.topics[0]!.partitions[0]!.errorCode
      )
      const found = answer.topics[0]!.partitions[0]!
      return found.errorCode === 0 ? found.offset : nameOf(found.errorCode)
    })

  // ---- transactions

  const coordinator = (txn: string) => ({ kind: "transaction", key: txn }) as const
  const init = (
    txn: string | null,
    o: { readonly timeoutMs?: number; readonly pid?: number; readonly epoch?: number; readonly maxVersion?: number } =
      {}
  ) =>
    Effect.map(
      ready(
        cluster.request(txn === null ? { kind: "any" } : coordinator(txn), initProducerId, {
          transactionalId: txn,
          transactionTimeoutMs: o.timeoutMs ?? 60_000,
          producerId: o.pid ?? -1,
          producerEpoch: o.epoch ?? -1
        }, { maxVersion: o.maxVersion ?? 5 }),
        (a) => a.errorCode
      ),
      (a): Identity => ({ code: nameOf(a.errorCode), pid: a.producerId, epoch: a.producerEpoch })
    )
  /** Until the transaction before is over. */
  const initDone = (txn: string, o: Parameters<typeof init>[1] = {}) =>
    eventually(init(txn, o), (a) => a.code !== "CONCURRENT_TRANSACTIONS")
  const end = (txn: string, id: { readonly pid: number; readonly epoch: number }, committed: boolean, maxVersion = 5) =>
    Effect.map(
      cluster.request(coordinator(txn), endTxn, {
        transactionalId: txn,
        producerId: id.pid,
        producerEpoch: id.epoch,
        committed
      }, { maxVersion }),
      (a): Identity => ({ code: nameOf(a.errorCode), pid: a.producerId, epoch: a.producerEpoch })
    )
  const add = (
    txn: string,
    id: { readonly pid: number; readonly epoch: number },
    places: ReadonlyArray<readonly [string, number]>
  ) =>
    Effect.map(
      cluster.request(coordinator(txn), addPartitionsToTxn, {
        v3AndBelowTransactionalId: txn,
        v3AndBelowProducerId: id.pid,
        v3AndBelowProducerEpoch: id.epoch,
        v3AndBelowTopics: places.map(([name, partition]) => ({ name, partitions: [partition] }))
      }),
      (a) => a.resultsByTopicV3AndBelow.flatMap((t) => t.resultsByPartition.map((p) => nameOf(p.partitionErrorCode)))
    )
  /** Sends in a transaction of version 2, again while the one before is still being ended. */
  const sendIn = (
    txn: string,
    id: Identity,
    name: string,
    values: ReadonlyArray<string>,
    seq = 0,
    o: ProduceOptions = {}
  ) =>
    eventually(
      send(name, values, { ...o, pid: id.pid, epoch: id.epoch, seq, txn }),
      (code) => code !== "CONCURRENT_TRANSACTIONS"
    )
  /** Everything is decided, and was read: a broker may tell offsets that are newer than what it has read. */
  const settled = (name: string, partition = 0) =>
    eventually(
      read(name, COMMITTED, 0, partition),
      (r) => r.high === r.stable && (r.batches.at(-1)?.lastOffset ?? -1) + 1 === r.high
    )

  const configure = (resourceType: number, resourceName: string, settings: Readonly<Record<string, string | null>>) => {
    const configs = Object.entries(settings).map(([name, value]) => ({
      name,
      configOperation: value === null ? 1 : 0,
      value
    }))
    return Effect.map(
      cluster.request({ kind: "any" }, incrementalAlterConfigs, {
        resources: [{ resourceType, resourceName, configs }],
        validateOnly: false
      }),
      (a) => nameOf(a.responses[0]!.errorCode)
    )
  }
  return {
    cluster,
    unique,
    leaderOf,
    idOf,
    createTopic,
    topic,
    sendTo,
    send,
    read,
    offsetAt,
    init,
    initDone,
    end,
    add,
    sendIn,
    settled,
    configure
  }
}

export type Bench = ReturnType<typeof makeBench>

export interface Case {
  /** A claim about what every cluster does. */
  readonly name: string
  readonly run: (bench: Bench) => Effect.Effect<void, unknown>
}

export const claim = (name: string, run: (bench: Bench) => Effect.Effect<void, unknown>): Case => ({ name, run })
