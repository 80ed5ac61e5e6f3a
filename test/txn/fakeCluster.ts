/**
 * The cluster port on partition logs in memory, for the producer: Metadata, InitProducerId and Produce, through their
 * real encoders, with latency on the test's clock and faults drawn from the test's seed. What a request carries is
 * taken when it is sent, as a socket would.
 */
import { Effect, Random } from "effect"
import { BatchView } from "../../src/wire/batch/recordBatch.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"
import type { Cluster, TopicMetadata } from "../../src/wire/cluster.ts"
import { ConnectionError, type WireError } from "../../src/wire/errors.ts"
import { initProducerId } from "../../src/wire/messages/initProducerId.ts"
import { produce } from "../../src/wire/messages/produce.ts"
import type { Api, Decoded, Encoded, RequestOf, ResponseOf } from "../../src/wire/schema.ts"
import { PartitionLog } from "./partitionLog.ts"

export interface Faults {
  /** The request never arrives. */
  lostRequest: number
  /** It is carried out; the answer never arrives. */
  lostAnswer: number
  /** It arrives only after the client has given up. */
  lateRequest: number
  /** The leader has moved just before it arrives. */
  leaderMoved: number
  /** Appended, then NOT_ENOUGH_REPLICAS_AFTER_APPEND. */
  failedAfterAppend: number
  /** The connection cannot be made. */
  refusedConnection: number
}
export const noFaults: Faults = {
  lostRequest: 0,
  lostAnswer: 0,
  lateRequest: 0,
  leaderMoved: 0,
  failedAfterAppend: 0,
  refusedConnection: 0
}

interface FakePartition {
  leader: number
  epoch: number
  readonly log: PartitionLog<string>
}

export class FakeCluster {
  readonly topics = new Map<string, { readonly id: string; readonly partitions: ReadonlyArray<FakePartition> }>()
  faults: Faults = { ...noFaults }
  /** Which faults have happened, by name. */
  readonly happened = new Map<string, number>()
  /** Values that no partition takes (MESSAGE_TOO_LARGE). */
  readonly refused = new Set<string>()
  /** What the next batches are answered with, instead of being looked at. */
  readonly codes: Array<number> = []
  version = 13
  #producerId = 100
  readonly #brokers: number
  /** Requests under way to each broker, and the most there ever were. */
  readonly #underWay = new Map<number, number>()
  mostUnderWay = 0

  constructor(brokers: number) {
    this.#brokers = brokers
  }

  create(topic: string, partitions: number): void {
    const id = Buffer.from(topic.padEnd(16, "_")).subarray(0, 16).toString("base64url")
    this.topics.set(topic, {
      id,
      partitions: Array.from(
        { length: partitions },
        (_, p) => ({ leader: p % this.#brokers, epoch: 0, log: new PartitionLog<string>() })
      )
    })
  }

  /** The values in a partition's log, in order. */
  values(topic: string, partition: number): ReadonlyArray<string> {
    return this.topics.get(topic)?.partitions[partition]?.log.log.map((b) => b.item) ?? []
  }

  #occurs(name: keyof Faults): Effect.Effect<boolean> {
    return Effect.map(Random.next, (drawn) => {
      if (drawn >= this.faults[name]) return false
      this.happened.set(name, (this.happened.get(name) ?? 0) + 1)
      return true
    })
  }
  #latency(): Effect.Effect<void> {
    return Effect.flatMap(Random.nextIntBetween(1, 20), (ms) => Effect.sleep(ms))
  }

  readonly cluster: Cluster = {
    request: (
      to: { readonly kind: string; readonly id?: number },
      api: Api<never, never>,
      value: unknown,
      options: { readonly maxVersion?: number; readonly timeoutMs?: number } = {}
    ) => this.#request(to.id ?? 0, api as never, value as never, options.maxVersion, options.timeoutMs ?? 30_000),
    topics: (names: ReadonlyArray<string>) => this.#metadata(names),
    learnLeader: () => Effect.void,
    release: () => Effect.void
  } as unknown as Cluster

  #metadata(names: ReadonlyArray<string>): Effect.Effect<ReadonlyMap<string, TopicMetadata>, WireError> {
    return Effect.gen({ self: this }, function*() {
      yield* this.#latency()
      if (yield* this.#occurs("refusedConnection")) return yield* refusedConnection
      const found = new Map<string, TopicMetadata>()
      for (const name of names) {
        const topic = this.topics.get(name)
        if (topic === undefined) continue
        const partitions = topic.partitions.map((p, partition) => ({
          partition,
          leader: p.leader,
          leaderEpoch: p.epoch,
          replicas: [],
          isr: []
        }))
        found.set(name, { name, id: topic.id, internal: false, partitions })
      }
      return found
    })
  }

  #request<Req, Res>(
    broker: number,
    api: Api<Req, Res>,
    value: Encoded<Req> | ((version: number) => Encoded<Req>),
    maxVersion = Infinity,
    timeoutMs: number
  ): Effect.Effect<Decoded<Res>, WireError> {
    return Effect.gen({ self: this }, function*() {
      const version = Math.min(api.versions.max, maxVersion, api.key === produce.key ? this.version : Infinity)
      const sent = Buffer.concat(
        api.request.encode(
          version,
          typeof value === "function" ? (value as (version: number) => Encoded<Req>)(version) : value
        )
      )
      if (yield* this.#occurs("refusedConnection")) return yield* refusedConnection
      const carriedOut = Effect.gen({ self: this }, function*() {
        yield* this.#latency()
        return yield* this.#carryOut(broker, api as unknown as Api<never, never>, version, sent)
      })
      this.#count(broker, 1)
      return yield* this.#underFaults(carriedOut, timeoutMs).pipe(
        Effect.ensuring(Effect.sync(() => this.#count(broker, -1)))
      ) as Effect.Effect<Decoded<Res>, WireError>
    })
  }

  #count(broker: number, change: number): void {
    const now = (this.#underWay.get(broker) ?? 0) + change
    this.#underWay.set(broker, now)
    this.mostUnderWay = Math.max(this.mostUnderWay, now)
  }

  #underFaults(carriedOut: Effect.Effect<unknown>, timeoutMs: number): Effect.Effect<unknown, WireError> {
    return Effect.gen({ self: this }, function*() {
      if (yield* this.#occurs("lostRequest")) return yield* timedOut(timeoutMs)
      if (yield* this.#occurs("lateRequest")) {
        const late = yield* Random.nextIntBetween(timeoutMs, timeoutMs * 3)
        yield* Effect.forkDetach(Effect.delay(carriedOut, late))
        return yield* timedOut(timeoutMs)
      }
      const lost = yield* this.#occurs("lostAnswer")
      const answer = yield* carriedOut
      if (lost) return yield* closed
      yield* this.#latency()
      return answer
    })
  }

  #carryOut(broker: number, api: Api<never, never>, version: number, sent: Buffer): Effect.Effect<unknown> {
    return Effect.gen({ self: this }, function*() {
      if (api.key === initProducerId.key) {
        return { throttleTimeMs: 0, errorCode: 0, producerId: this.#producerId++, producerEpoch: 0 }
      }
      const request = produce.request.decode(version, sent)
      const answer: Array<RequestOrAnswer> = []
      for (const topic of request.topicData) {
        const name = topic.name !== ""
          ? topic.name
          : [...this.topics].find(([, t]) => t.id === topic.topicId)?.[0] ?? ""
        const partitionResponses = []
        for (const { index, records } of topic.partitionData) {
          const moved = yield* this.#occurs("leaderMoved")
          const afterAppend = yield* this.#occurs("failedAfterAppend")
          partitionResponses.push(this.#append(broker, name, index, records ?? Buffer.alloc(0), moved, afterAppend))
        }
        answer.push({ name: topic.name, topicId: topic.topicId, partitionResponses })
      }
      const body = produce.response.encode(
        version,
        { responses: answer, throttleTimeMs: 0 } as Encoded<typeof produce.response.fields>
      )
      return produce.response.decode(version, Buffer.concat(body))
    })
  }

  #append(broker: number, topic: string, index: number, records: Buffer, moved: boolean, afterAppend: boolean) {
    const partition = this.topics.get(topic)?.partitions[index]
    const answer = (errorCode: number, baseOffset = -1) => ({
      index,
      errorCode,
      baseOffset,
      logAppendTimeMs: -1,
      logStartOffset: 0,
      recordErrors: [],
      errorMessage: null
    })
    if (partition === undefined) return answer(3)
    if (moved) {
      partition.leader = (partition.leader + 1) % this.#brokers
      partition.epoch++
    }
    if (broker !== partition.leader) {
      return { ...answer(6), currentLeader: { leaderId: partition.leader, leaderEpoch: partition.epoch } }
    }
    const code = this.codes.shift()
    if (code !== undefined) return answer(code)
    const batch = new BatchView(records, 0)
    if (!batch.crcIsValid()) return answer(2)
    const value = decodeRecords(batch)[0]?.value?.toString() ?? ""
    if (this.refused.has(value)) return answer(10)
    const appended = partition.log.append(
      value,
      batch.producerId,
      batch.producerEpoch,
      batch.baseSequence,
      batch.lastOffsetDelta + 1
    )
    return appended.code === 0 && afterAppend ? answer(20) : answer(appended.code, appended.baseOffset)
  }
}

type RequestOrAnswer = Omit<ResponseOf<typeof produce>["responses"][number], "partitionResponses"> & {
  readonly partitionResponses: ReadonlyArray<unknown>
}
export type ProduceRequest = RequestOf<typeof produce>

const refusedConnection = Effect.fail(
  new ConnectionError({ address: "fake:9092", kind: "refused", outcome: "unsent", what: "connection refused" })
)
const closed = Effect.fail(
  new ConnectionError({ address: "fake:9092", kind: "closed", outcome: "unknown", what: "the connection was closed" })
)
const timedOut = (ms: number) =>
  Effect.delay(
    Effect.fail(new ConnectionError({ address: "fake:9092", kind: "timeout", outcome: "unknown", what: "no answer" })),
    ms
  )
