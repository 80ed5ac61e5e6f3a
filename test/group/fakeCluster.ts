/**
 * A cluster of a few brokers on log models, behind the Cluster port: what a group consumer asks of it, with faults.
 * Requests and answers go through the real codecs, so a field that a version does not have is not seen by either side.
 */
import { Effect } from "effect"
import { Signal } from "../../src/group/signal.ts"
import type { Cluster, TopicMetadata } from "../../src/wire/cluster.ts"
import { BrokerError, ConnectionError, type WireError } from "../../src/wire/errors.ts"
import type { fetch } from "../../src/wire/messages/fetch.ts"
import { EARLIEST, LATEST, type listOffsets } from "../../src/wire/messages/listOffsets.ts"
import type { offsetForLeaderEpoch } from "../../src/wire/messages/offsetForLeaderEpoch.ts"
import { type Api, type Decoded, type RequestOf, type ResponseOf, ZERO_UUID } from "../../src/wire/schema.ts"
import { LogModel } from "./logModel.ts"

export interface FakePartition {
  readonly log: LogModel
  leader: number
  /** The fetch answers this code once, with or without the new leader's name (KIP-951). */
  readonly codes: Array<number>
  nameLeader: boolean
  /** A follower that the leader recommends; -1: none. */
  follower: number
  /** Instead of the log's bytes, once. */
  garbage: Buffer | null
}

export interface FakeOptions {
  readonly topics: Readonly<Record<string, number>>
  readonly brokers?: number
  /** Highest Fetch version that the brokers have. Default 17. */
  readonly fetchVersion?: number
}

type FetchRequest = Decoded<(typeof fetch)["request"]["fields"]>
type FetchAnswer = ResponseOf<typeof fetch>

const NOT_LEADER = 6
const FENCED = 74
const OUT_OF_RANGE = 1
const UNSUPPORTED_VERSION = 35
const UNKNOWN_TOPIC_ID = 100

const idOf = (n: number): string => Buffer.alloc(16, n).toString("base64url")

export class FakeCluster {
  readonly partitions = new Map<string, FakePartition>()
  readonly topicIds = new Map<string, string>()
  readonly requests: Array<{ readonly api: string; readonly broker: number; readonly version: number }> = []
  /** Offsets asked for in fetches, per partition. */
  readonly asked: Array<{ readonly key: string; readonly offset: number; readonly broker: number }> = []
  readonly changed = new Signal()
  /** The next requests to this broker fail. */
  readonly unreachable = new Set<number>()
  readonly #fetchVersion: number
  inFlight = new Map<number, number>()
  mostInFlight = 0
  #ids = 1

  /** Topics that this principal may not see. */
  readonly hidden = new Set<string>()

  constructor(options: FakeOptions) {
    this.#fetchVersion = options.fetchVersion ?? 17
    const brokers = options.brokers ?? 1
    for (const [topic, count] of Object.entries(options.topics)) {
      this.topicIds.set(topic, this.#fetchVersion < 13 ? ZERO_UUID : idOf(this.#ids++))
      for (let partition = 0; partition < count; partition++) {
        this.partitions.set(`${topic}-${partition}`, {
          log: new LogModel(1),
          leader: 1 + partition % brokers,
          codes: [],
          nameLeader: true,
          follower: -1,
          garbage: null
        })
      }
    }
  }

  at(topic: string, partition = 0): FakePartition {
    return this.partitions.get(`${topic}-${partition}`) as FakePartition
  }

  append(topic: string, partition: number, values: ReadonlyArray<string>): void {
    this.at(topic, partition).log.append(values)
    this.changed.notify()
  }

  /** A new leader, in a new epoch. */
  move(topic: string, partition: number, leader: number): void {
    const state = this.at(topic, partition)
    state.leader = leader
    state.log.epoch++
    this.changed.notify()
  }

  /** Deletes the topic and makes it anew, empty. */
  recreate(topic: string): void {
    this.topicIds.set(topic, idOf(this.#ids++))
    for (const [key, state] of this.partitions) {
      if (key.startsWith(`${topic}-`)) this.partitions.set(key, { ...state, log: new LogModel(0) })
    }
    this.changed.notify()
  }

  metadata(names: ReadonlyArray<string>): ReadonlyMap<string, TopicMetadata> {
    const found = new Map<string, TopicMetadata>()
    for (const name of names) {
      const id = this.topicIds.get(name)
      if (id === undefined) continue
      const own = [...this.partitions].filter(([key]) => key.startsWith(`${name}-`))
      found.set(name, {
        name,
        id,
        internal: false,
        partitions: own.map(([, { leader, log }], partition) => ({
          partition,
          leader,
          leaderEpoch: log.epoch,
          replicas: [leader],
          isr: [leader]
        }))
      })
    }
    return found
  }

  #fetchOne(
    broker: number,
    name: string,
    part: FetchRequest["topics"][number]["partitions"][number],
    readCommitted: boolean
  ): FetchAnswer["responses"][number]["partitions"][number] {
    const key = `${name}-${part.partition}`
    const state = this.partitions.get(key)
    this.asked.push({ key, offset: part.fetchOffset, broker })
    const empty = {
      partitionIndex: part.partition,
      errorCode: 0,
      highWatermark: -1,
      lastStableOffset: -1,
      logStartOffset: -1,
      divergingEpoch: { epoch: -1, endOffset: -1 },
      currentLeader: { leaderId: -1, leaderEpoch: -1 },
      snapshotId: { endOffset: -1, epoch: -1 },
      abortedTransactions: null,
      preferredReadReplica: -1,
      records: null
    }
    if (state === undefined) return { ...empty, errorCode: UNKNOWN_TOPIC_ID }
    const { log } = state
    const code = state.codes.shift()
    if (code !== undefined) return { ...empty, errorCode: code }
    const named = state.nameLeader ? { leaderId: state.leader, leaderEpoch: log.epoch } : empty.currentLeader
    if (broker !== state.leader && broker !== state.follower) {
      return { ...empty, errorCode: NOT_LEADER, currentLeader: named }
    }
    if (part.currentLeaderEpoch >= 0 && part.currentLeaderEpoch < log.epoch) {
      return { ...empty, errorCode: FENCED, currentLeader: named }
    }
    if (part.fetchOffset < log.logStart || part.fetchOffset > log.end) return { ...empty, errorCode: OUT_OF_RANGE }
    const bounds = { highWatermark: log.end, lastStableOffset: log.lastStable, logStartOffset: log.logStart }
    if (state.follower >= 0 && broker === state.leader) {
      return { ...empty, ...bounds, preferredReadReplica: state.follower }
    }
    const { aborted, records } = log.fetch(part.fetchOffset, part.partitionMaxBytes, readCommitted)
    const garbage = state.garbage
    state.garbage = null
    return { ...empty, ...bounds, abortedTransactions: aborted, records: garbage ?? records }
  }

  #fetchAll(broker: number, request: FetchRequest): FetchAnswer {
    let left = request.maxBytes
    const byId = new Map([...this.topicIds].map(([name, id]) => [id, name]))
    const responses = request.topics.map((topic) => {
      const name = topic.topic !== "" ? topic.topic : byId.get(topic.topicId) ?? ""
      const partitions = topic.partitions.map((part) => {
        const answer = left > 0
          ? this.#fetchOne(broker, name, part, request.isolationLevel === 1)
          : { ...this.#fetchOne(broker, name, part, request.isolationLevel === 1), records: null }
        left -= answer.records?.length ?? 0
        return answer
      })
      return { topic: topic.topic, topicId: topic.topicId, partitions }
    })
    return { throttleTimeMs: 0, errorCode: 0, sessionId: 0, responses, nodeEndpoints: [] }
  }

  #hasNews(answer: FetchAnswer): boolean {
    return answer.responses.some(({ partitions }) =>
      partitions.some((p) => p.errorCode !== 0 || p.preferredReadReplica >= 0 || (p.records?.length ?? 0) > 0)
    )
  }

  /** A long poll: answers when there is something, or after maxWaitMs. */
  #fetch(broker: number, request: FetchRequest): Effect.Effect<FetchAnswer, WireError> {
    const look: Effect.Effect<FetchAnswer, WireError> = Effect.suspend(() => {
      const next = this.changed.next
      if (this.unreachable.has(broker)) return Effect.fail(refused(broker))
      const answer = this.#fetchAll(broker, request)
      return this.#hasNews(answer) ? Effect.succeed(answer) : next.pipe(Effect.andThen(look))
    })
    return look.pipe(
      Effect.timeoutOrElse({
        duration: request.maxWaitMs,
        orElse: () => Effect.sync(() => this.#fetchAll(broker, request))
      })
    )
  }

  #list(request: Decoded<(typeof listOffsets)["request"]["fields"]>): ResponseOf<typeof listOffsets> {
    return {
      throttleTimeMs: 0,
      topics: request.topics.map(({ name, partitions }) => ({
        name,
        partitions: partitions.map(({ partitionIndex, timestamp }) => {
          const { log } = this.at(name, partitionIndex)
          const isKnown = timestamp >= 0 || timestamp === EARLIEST || timestamp === LATEST
          return {
            partitionIndex,
            errorCode: isKnown ? 0 : UNSUPPORTED_VERSION,
            timestamp: -1,
            offset: !isKnown ? -1 : timestamp === LATEST ? log.end : log.logStart,
            leaderEpoch: log.epoch
          }
        })
      }))
    }
  }

  #epochs(
    request: Decoded<(typeof offsetForLeaderEpoch)["request"]["fields"]>
  ): ResponseOf<typeof offsetForLeaderEpoch> {
    return {
      throttleTimeMs: 0,
      topics: request.topics.map(({ partitions, topic }) => ({
        topic,
        partitions: partitions.map(({ leaderEpoch, partition }) => ({
          partition,
          errorCode: 0,
          ...this.at(topic, partition).log.epochEnd(leaderEpoch)
        }))
      }))
    }
  }

  #serve(api: string, broker: number, request: unknown): Effect.Effect<unknown, WireError> {
    if (this.unreachable.has(broker)) return Effect.fail(refused(broker))
    if (api === "Fetch") {
      const busy = (this.inFlight.get(broker) ?? 0) + 1
      this.inFlight.set(broker, busy)
      this.mostInFlight = Math.max(this.mostInFlight, busy)
      return this.#fetch(broker, request as FetchRequest).pipe(
        Effect.ensuring(Effect.sync(() => this.inFlight.set(broker, (this.inFlight.get(broker) ?? 1) - 1)))
      )
    }
    if (api === "ListOffsets") return Effect.sync(() => this.#list(request as never))
    return Effect.sync(() => this.#epochs(request as never))
  }

  get port(): Cluster {
    const unused = Effect.die(new Error("not part of the fake"))
    const request: Cluster["request"] = <Req, Res>(
      to: Parameters<Cluster["request"]>[0],
      api: Api<Req, Res>,
      value: unknown,
      options?: { readonly maxVersion?: number }
    ) =>
      Effect.suspend(() => {
        const broker = to.kind === "broker" ? to.id : 1
        const most = api.name === "Fetch" ? Math.min(options?.maxVersion ?? 17, this.#fetchVersion) : api.versions.max
        const version = Math.min(most, api.versions.max)
        this.requests.push({ api: api.name, broker, version })
        const asked = api.request.decode(
          version,
          Buffer.concat(api.request.encode(version, (typeof value === "function" ? value(version) : value) as never))
        )
        return this.#serve(api.name, broker, asked).pipe(
          Effect.map((answer) =>
            api.response.decode(version, Buffer.concat(api.response.encode(version, answer as never)))
          )
        )
      }) as never
    return {
      name: "fake",
      clusterId: unused,
      features: Effect.succeed(new Map()),
      brokers: unused,
      request,
      negotiate: () => unused,
      topics: (names) =>
        Effect.suspend(() => {
          const seen = names.filter((name) => !this.hidden.has(name))
          if (seen.length > 0 || names.length === 0) return Effect.succeed(this.metadata(seen))
          return Effect.fail(new BrokerError({ api: "Metadata", code: 29, subject: `topic ${names[0]}`, detail: null }))
        }),
      allTopics: unused,
      leader: () => unused,
      leaders: () => unused,
      topicById: () => unused,
      invalidate: () => Effect.void,
      learnLeader: () => Effect.void,
      invalidateCoordinator: () => Effect.void,
      retrying: (effect) => effect,
      release: () => Effect.void
    }
  }
}

const refused = (broker: number): ConnectionError =>
  new ConnectionError({ address: `broker ${broker}`, kind: "refused", outcome: "unsent", what: "refused" })

export type FetchRequestOf = RequestOf<typeof fetch>
