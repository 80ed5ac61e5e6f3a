/**
 * The port `Cluster` on real connections: finds the broker a request is for, negotiates the version, sends it
 * once, honours throttling, and keeps what is known of leaders and coordinators.
 *
 * Gotchas:
 * - No connection is made before the first request.
 * - A request is sent once. Only what did not leave (a broker that cannot be reached) is tried elsewhere.
 */
import { Effect, type Scope } from "effect"
import { acquireAny } from "./anyBroker.ts"
import { type BrokerPool, makeBrokerPool, type Ready, unsentWithin } from "./brokerPool.ts"
import { ProtocolError } from "./bytes.ts"
import type { BrokerNode, Cluster, Destination, RequestOptions, TopicMetadata } from "./cluster.ts"
import { BrokerError, ConnectionError, type WireError } from "./errors.ts"
import { findCoordinator } from "./messages/findCoordinator.ts"
import { metadata } from "./messages/metadata.ts"
import { type MetadataAnswer, MetadataCache, topicOf } from "./metadataCache.ts"
import { askOffers, negotiateVersion, type VersionLimits } from "./offers.ts"
import { nowMs, retryWithin } from "./retry.ts"
import { type Api, type ApiHead, type Decoded, type Encoded, ZERO_UUID } from "./schema.ts"
import { parseSecurity } from "./security.ts"
import { type ClientConfig, type ClientSettings, parseClientConfig, type SettingsError } from "./settings.ts"

const CONTROL = "control"
const UNKNOWN_TOPIC_OR_PARTITION = 3
const LEADER_NOT_AVAILABLE = 5
const UNKNOWN_TOPIC_ID = 100
const REBOOTSTRAP_REQUIRED = 129
/** Metadata before version 4 creates topics when asked about them, and has no way to say no. */
const METADATA_MIN_VERSION = 4
const GONE = new Set([UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID])

type Coordinator = Extract<Destination, { readonly kind: "group" | "transaction" }>

class Client {
  readonly #config: ClientConfig
  readonly #pool: BrokerPool
  readonly #name: string
  readonly #cache = new MetadataCache()
  readonly #coordinators = new Map<string, BrokerNode>()
  #features: { readonly levels: ReadonlyMap<string, number>; readonly atMs: number } | null = null

  constructor(name: string, config: ClientConfig, pool: BrokerPool) {
    this.#name = name
    this.#config = config
    this.#pool = pool
  }

  // ---- connections

  #acquireAny(purpose: string): Effect.Effect<Ready, WireError> {
    return acquireAny(this.#pool, [...this.#cache.brokers.values()], this.#config, purpose)
  }

  #acquire(to: Destination, purpose: string, timeoutMs: number): Effect.Effect<Ready, WireError> {
    return Effect.gen({ self: this }, function*() {
      if (to.kind === "any") return yield* this.#acquireAny(purpose)
      const node = yield* this.#nodeFor(to, timeoutMs)
      if (node === null) return yield* this.#acquireAny(purpose)
      return yield* this.#pool.acquire({ host: node.host, port: node.port }, purpose).pipe(
        Effect.tapError(() =>
          Effect.sync(() => {
            // It may have moved: the next look-up asks again.
            this.#cache.brokersAtMs = -Infinity
            if (to.kind === "group" || to.kind === "transaction") this.#coordinators.delete(`${to.kind}:${to.key}`)
          })
        )
      )
    })
  }

  /** null: any broker will do. */
  #nodeFor(
    to: Exclude<Destination, { readonly kind: "any" }>,
    timeoutMs: number
  ): Effect.Effect<BrokerNode | null, WireError> {
    switch (to.kind) {
      case "broker":
        return this.#brokerById(to.id)
      case "controller":
        return Effect.map(this.#freshBrokers, (brokers) => brokers.get(this.#cache.controllerId) ?? null)
      case "group":
      case "transaction":
        return this.#coordinator(to, timeoutMs)
    }
  }

  #brokerById(id: number): Effect.Effect<BrokerNode, WireError> {
    return Effect.gen({ self: this }, function*() {
      const known = (yield* this.#freshBrokers).get(id) ??
        (yield* Effect.andThen(this.#askMetadata([]), Effect.sync(() => this.#cache.brokers.get(id))))
      if (known !== undefined) return known
      const what = `the cluster ${this.#name} has no broker ${id} now`
      return yield* new ConnectionError({ address: `broker ${id}`, kind: "resolve", outcome: "unsent", what })
    })
  }

  // ---- requests

  request<Req, Res>(
    to: Destination,
    api: Api<Req, Res>,
    value: Encoded<Req> | ((version: number) => Encoded<Req>),
    options: RequestOptions = {}
  ): Effect.Effect<Decoded<Res>, WireError> {
    return Effect.gen({ self: this }, function*() {
      const timeoutMs = options.timeoutMs ?? this.#config.requestTimeoutMs
      const startedMs = yield* nowMs
      const deadline = startedMs + timeoutMs
      const ready = this.#readyNow(to, options, startedMs) ?? (yield* this.#readyFor(to, options, timeoutMs))
      const address = ready.link.address
      const throttle = ready.throttledUntilMs - (yield* nowMs)
      if (throttle > 0) {
        yield* unsentWithin(
          Effect.sleep(throttle),
          deadline - (yield* nowMs),
          address,
          "the broker's quota allows no request"
        )
      }
      const version = yield* negotiateVersion(address, ready.offers, api, options)
      const left = Math.max(1, deadline - (yield* nowMs))
      const answer = yield* ready.link.send(api, version, typeof value === "function" ? value(version) : value, left)
      const throttleMs = (answer as { readonly throttleTimeMs?: unknown }).throttleTimeMs
      if (typeof throttleMs === "number" && throttleMs > 0) ready.throttledUntilMs = (yield* nowMs) + throttleMs
      return answer
    })
  }

  /** An open connection to a broker that is known, without a wait: the way of nearly every request. null: there is none. */
  #readyNow(to: Destination, options: RequestOptions, now: number): Ready | null {
    const node = this.#knownNode(to, now)
    return node === undefined ? null : this.#pool.open({ host: node.host, port: node.port }, options.purpose ?? CONTROL)
  }

  #knownNode(to: Destination, now: number): BrokerNode | undefined {
    switch (to.kind) {
      case "broker":
        return this.#cache.brokersAtMs < now - this.#config.metadataMaxAgeMs
          ? undefined
          : this.#cache.brokers.get(to.id)
      case "group":
      case "transaction":
        return this.#coordinators.get(`${to.kind}:${to.key}`)
      case "any":
      case "controller":
        return undefined
    }
  }

  #readyFor(to: Destination, options: RequestOptions, timeoutMs: number): Effect.Effect<Ready, WireError> {
    return unsentWithin(
      this.#acquire(to, options.purpose ?? CONTROL, timeoutMs),
      timeoutMs,
      this.#name,
      "no connection to a broker"
    )
  }

  negotiate(to: Destination, api: ApiHead, options: RequestOptions = {}): Effect.Effect<number, WireError> {
    return this.#readyFor(to, options, options.timeoutMs ?? this.#config.requestTimeoutMs).pipe(
      Effect.flatMap((ready) => negotiateVersion(ready.link.address, ready.offers, api, options as VersionLimits))
    )
  }

  // ---- metadata

  #metadataRequest(
    topics: ReadonlyArray<{ readonly name: string | null; readonly topicId?: string }> | null,
    minVersion: number
  ) {
    return this.request({ kind: "any" }, metadata, { topics, allowAutoTopicCreation: false }, { minVersion }).pipe(
      Effect.flatMap((answer) =>
        Effect.gen({ self: this }, function*() {
          if (answer.errorCode === REBOOTSTRAP_REQUIRED) this.#cache.brokers = new Map()
          if (answer.errorCode !== 0) {
            return yield* new BrokerError({
              api: metadata.name,
              code: answer.errorCode,
              subject: this.#name,
              detail: null
            })
          }
          const before = this.#cache.clusterId
          if (before !== null && answer.clusterId !== null && answer.clusterId !== before) {
            return yield* new ProtocolError({
              what:
                `the addresses of ${this.#name} now lead to another cluster: its id was ${before} and is ${answer.clusterId}`
            })
          }
          const atMs = yield* nowMs
          this.#cache.applyBrokers(answer, atMs)
          return { answer, atMs }
        })
      )
    )
  }

  #askMetadata(names: ReadonlyArray<string> | null): Effect.Effect<ReadonlyMap<string, TopicMetadata>, WireError> {
    return this.#metadataRequest(names === null ? null : names.map((name) => ({ name })), METADATA_MIN_VERSION).pipe(
      Effect.flatMap(({ answer, atMs }) => this.#takeTopics(answer, atMs))
    )
  }

  #takeTopics(answer: MetadataAnswer, atMs: number): Effect.Effect<ReadonlyMap<string, TopicMetadata>, BrokerError> {
    const found = new Map<string, TopicMetadata>()
    const refused: Array<BrokerError> = []
    for (const entry of answer.topics) {
      const topic = topicOf(entry)
      // A leader that is missing shows in the partitions (leader -1); the topic itself is there.
      if (entry.errorCode === 0 || (entry.errorCode === LEADER_NOT_AVAILABLE && topic.partitions.length > 0)) {
        found.set(topic.name, this.#cache.applyTopic(topic, atMs))
      } else if (GONE.has(entry.errorCode) || entry.errorCode === LEADER_NOT_AVAILABLE) this.#cache.remove(topic.name)
      else {refused.push(
          new BrokerError({
            api: metadata.name,
            code: entry.errorCode,
            subject: `topic ${topic.name || topic.id}`,
            detail: null
          })
        )}
    }
    // One topic that this principal may not see must not stop the others; asked for alone it says why.
    const [first] = refused
    return first !== undefined && refused.length === answer.topics.length ? Effect.fail(first) : Effect.succeed(found)
  }

  get #freshBrokers(): Effect.Effect<ReadonlyMap<number, BrokerNode>, WireError> {
    return Effect.gen({ self: this }, function*() {
      if (this.#cache.brokersAtMs < (yield* nowMs) - this.#config.metadataMaxAgeMs) yield* this.#askMetadata([])
      return this.#cache.brokers
    })
  }

  get brokers(): Effect.Effect<ReadonlyArray<BrokerNode>, WireError> {
    return Effect.map(this.#freshBrokers, (brokers) => [...brokers.values()])
  }

  get clusterId(): Effect.Effect<string, WireError> {
    return Effect.gen({ self: this }, function*() {
      if (this.#cache.clusterId === null) yield* this.#askMetadata([])
      return this.#cache.clusterId ??
        (yield* new ProtocolError({ what: `the cluster ${this.#name} does not say its id` }))
    })
  }

  topics(names: ReadonlyArray<string>): Effect.Effect<ReadonlyMap<string, TopicMetadata>, WireError> {
    return names.length === 0 ? Effect.succeed(new Map()) : this.#askMetadata(names)
  }

  get allTopics(): Effect.Effect<ReadonlyArray<TopicMetadata>, WireError> {
    return Effect.map(this.#askMetadata(null), (found) => {
      this.#cache.retain(new Set(found.keys()))
      return [...found.values()]
    })
  }

  leader(topic: string, partition: number) {
    const ask = Effect.gen({ self: this }, function*() {
      const oldest = (yield* nowMs) - this.#config.metadataMaxAgeMs
      const known = (t: TopicMetadata | null | undefined) => t?.partitions.find((p) => p.partition === partition)
      const cached = known(this.#cache.topic(topic, oldest))
      if (cached !== undefined && cached.leader >= 0) return cached
      const found = known((yield* this.#askMetadata([topic])).get(topic))
      if (found !== undefined && found.leader >= 0) return found
      const code = found === undefined ? UNKNOWN_TOPIC_OR_PARTITION : LEADER_NOT_AVAILABLE
      return yield* new BrokerError({ api: metadata.name, code, subject: `${topic}-${partition}`, detail: null })
    })
    return retryWithin(ask, this.#retry(this.#config.apiTimeoutMs))
  }

  leaders(names: ReadonlyArray<string>) {
    return Effect.gen({ self: this }, function*() {
      const oldest = (yield* nowMs) - this.#config.metadataMaxAgeMs
      const found = this.#cache.led(names, oldest)
      for (const topic of (yield* this.topics(names.filter((name) => !found.has(name)))).values()) {
        found.set(topic.name, topic)
      }
      return found
    })
  }

  topicById(id: string): Effect.Effect<TopicMetadata | null, WireError> {
    return Effect.gen({ self: this }, function*() {
      const cached = this.#cache.topicById(id, (yield* nowMs) - this.#config.metadataMaxAgeMs)
      if (cached !== null || id === ZERO_UUID) return cached
      const { answer, atMs } = yield* this.#metadataRequest([{ name: null, topicId: id }], 12)
      return [...(yield* this.#takeTopics(answer, atMs)).values()].find((topic) => topic.id === id) ?? null
    })
  }

  invalidate(topic: string): Effect.Effect<void> {
    return Effect.sync(() => this.#cache.expire(topic))
  }

  learnLeader(
    topic: string,
    partition: number,
    leader: { readonly id: number; readonly epoch: number },
    endpoint?: BrokerNode
  ): Effect.Effect<void> {
    return Effect.sync(() => {
      if (endpoint !== undefined) this.#cache.addBroker(endpoint)
      this.#cache.learnLeader(topic, partition, leader)
    })
  }

  // ---- coordinators

  #coordinator(to: Coordinator, timeoutMs: number): Effect.Effect<BrokerNode, WireError> {
    return Effect.suspend(() => {
      const cached = this.#coordinators.get(`${to.kind}:${to.key}`)
      return cached === undefined
        ? retryWithin(this.#askCoordinator(to), this.#retry(timeoutMs * 0.9))
        : Effect.succeed(cached)
    })
  }

  #askCoordinator(to: Coordinator): Effect.Effect<BrokerNode, WireError> {
    return Effect.gen({ self: this }, function*() {
      const keyType = to.kind === "group" ? 0 : 1
      const answer = yield* this.request(
        { kind: "any" },
        findCoordinator,
        (version) => version >= 4 ? { keyType, coordinatorKeys: [to.key] } : { keyType, key: to.key },
        { minVersion: 1 }
      )
      const found = answer.coordinators.find((c) => c.key === to.key) ?? answer
      if (found.errorCode !== 0) {
        const subject = `${to.kind === "group" ? "group" : "transactional id"} ${to.key}`
        return yield* new BrokerError({
          api: findCoordinator.name,
          code: found.errorCode,
          subject,
          detail: found.errorMessage
        })
      }
      const node = {
        id: found.nodeId,
        host: found.host,
        port: found.port,
        rack: this.#cache.brokers.get(found.nodeId)?.rack ?? null
      }
      this.#coordinators.set(`${to.kind}:${to.key}`, node)
      return node
    })
  }

  invalidateCoordinator(to: Destination): Effect.Effect<void> {
    return Effect.sync(() => {
      if (to.kind === "group" || to.kind === "transaction") this.#coordinators.delete(`${to.kind}:${to.key}`)
      if (to.kind === "controller") this.#cache.brokersAtMs = -Infinity
    })
  }

  // ---- features

  get features(): Effect.Effect<ReadonlyMap<string, number>, WireError> {
    return Effect.gen({ self: this }, function*() {
      const known = this.#features
      if (known !== null && known.atMs >= (yield* nowMs) - this.#config.metadataMaxAgeMs) return known.levels
      const ready = yield* this.#readyFor({ kind: "any" }, {}, this.#config.requestTimeoutMs)
      const { features } = yield* askOffers(ready.link, this.#config.requestTimeoutMs)
      // A broker that has just started does not know yet: say what it says, but do not keep it.
      if (features.epoch >= 0) this.#features = { levels: features.levels, atMs: yield* nowMs }
      return features.levels
    })
  }

  // ---- retrying

  #retry(timeoutMs: number) {
    return { timeoutMs, backoffMs: this.#config.retryBackoffMs, backoffMaxMs: this.#config.retryBackoffMaxMs }
  }

  retrying<A, R>(
    effect: Effect.Effect<A, WireError, R>,
    options: { readonly timeoutMs?: number; readonly destination?: Destination; readonly topic?: string } = {}
  ): Effect.Effect<A, WireError, R> {
    const before = (error: WireError) =>
      Effect.gen({ self: this }, function*() {
        const lost = error._tag === "ConnectionError"
        const stale = error._tag === "BrokerError" && error.class === "refresh"
        if (
          options.destination !== undefined &&
          (lost || stale || (error._tag === "BrokerError" && error.class === "coordinator"))
        ) {
          yield* this.invalidateCoordinator(options.destination)
        }
        if (options.topic !== undefined && (lost || stale)) yield* this.invalidate(options.topic)
      })
    return retryWithin(effect, { ...this.#retry(options.timeoutMs ?? this.#config.apiTimeoutMs), before })
  }
}

/** The client over connections of whatever kind: sockets, or a cluster in this process. */
export const clusterOn = (name: string, config: ClientConfig, pool: BrokerPool): Cluster => {
  const client = new Client(name, config, pool)
  return {
    name,
    clusterId: client.clusterId,
    features: client.features,
    brokers: client.brokers,
    request: (to, api, value, options) => client.request(to, api, value, options),
    negotiate: (to, api, options) => client.negotiate(to, api, options),
    topics: (names) => client.topics(names),
    allTopics: client.allTopics,
    leader: (topic, partition) => client.leader(topic, partition),
    leaders: (names) => client.leaders(names),
    topicById: (id) => client.topicById(id),
    invalidate: (topic) => client.invalidate(topic),
    learnLeader: (topic, partition, leader, endpoint) => client.learnLeader(topic, partition, leader, endpoint),
    invalidateCoordinator: (to) => client.invalidateCoordinator(to),
    retrying: (effect, options) => client.retrying(effect, options),
    release: (purpose) => pool.release(purpose)
  }
}

/**
 * A client of the cluster with these settings (Kafka's names). Connections are made when first needed and closed
 * with the scope. Fails with SettingsError, naming the key, when a setting is wrong.
 */
export const makeCluster = (
  name: string,
  settings: ClientSettings
): Effect.Effect<Cluster, SettingsError | WireError, Scope.Scope> =>
  Effect.gen(function*() {
    const config = yield* parseClientConfig(settings)
    const security = yield* parseSecurity(settings)
    return clusterOn(name, config, yield* makeBrokerPool(config, security))
  })
