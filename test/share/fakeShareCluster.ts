/**
 * Brokers with share groups, as far as one consumer can tell: membership, sessions with epochs, acquisition locks on
 * virtual time, acknowledgements that are decided per partition as a whole, leaders that move, connections that
 * break before or after a request was carried out. What the real broker does was looked at on Kafka 4.4.0.
 */
import { Effect } from "effect"
import type { Cluster, Destination, TopicMetadata } from "../../src/wire/cluster.ts"
import { guarded } from "../../src/wire/connection.ts"
import { ConnectionError, UnsupportedError, type WireError } from "../../src/wire/errors.ts"
import { nowMs } from "../../src/wire/retry.ts"
import type { ApiHead } from "../../src/wire/schema.ts"

export const TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
export const TOPIC = "orders"

export type RecordState = "available" | "acquired" | "accepted" | "archived"
interface Entry {
  state: RecordState
  member: string
  count: number
  lockEndsMs: number
}
interface Partition {
  leader: number
  readonly log: Array<Entry>
}
interface Session {
  epoch: number
  readonly partitions: Set<number>
}
/** timeout: carried out, never answered, and the broker does not know that nobody waits any more. */
export type Fault = "none" | "before" | "after" | "evict" | "timeout"

interface AckBatch {
  readonly firstOffset: number
  readonly lastOffset: number
  readonly acknowledgeTypes: ReadonlyArray<number>
}
interface PartitionRequest {
  readonly partitionIndex: number
  readonly acknowledgementBatches: ReadonlyArray<AckBatch>
}
interface ShareRequest {
  readonly memberId: string
  readonly shareSessionEpoch: number
  readonly isRenewAck?: boolean
  readonly maxWaitMs?: number
  readonly maxRecords?: number
  readonly topics: ReadonlyArray<{ readonly partitions: ReadonlyArray<PartitionRequest> }>
  readonly forgottenTopicsData?: ReadonlyArray<{ readonly partitions: ReadonlyArray<number> }>
}

export class FakeShareCluster {
  readonly partitions: ReadonlyArray<Partition>
  readonly sessions = new Map<string, Session>()
  readonly members = new Map<string, number>()
  /** Asked for each share request. */
  fault: () => Fault = () => "none"
  /** Answered instead of the next heartbeats, first in first out. */
  readonly heartbeatCodes: Array<number> = []
  readonly heartbeats: Array<
    { readonly memberEpoch: number; readonly subscribedTopicNames: ReadonlyArray<string> | null }
  > = []
  /** Answered to the next acknowledgements that are no renewals, instead of applying them. */
  readonly acknowledgeCodes: Array<number> = []
  /** What a fetch gives beside what it acquires. */
  records: (partition: number) => Buffer | null = () => null
  lockMs = 1000
  shareAcknowledgeVersion = 2
  renewals = 0
  /** Sessions that were ended by their member. */
  closes = 0
  /** Requests with an epoch that the session did not expect. */
  wrongEpochs = 0
  coordinatorLookups = 0
  #busy = new Set<string>()

  constructor(records: ReadonlyArray<number>) {
    this.partitions = records.map((count, i) => ({
      leader: (i % 2) + 1,
      log: Array.from({ length: count }, () => ({ state: "available", member: "", count: 0, lockEndsMs: 0 }))
    }))
  }

  states(): ReadonlyArray<RecordState> {
    return this.partitions.flatMap((p) => p.log.map((e) => e.state))
  }
  heldBy(member: string): number {
    return this.partitions.reduce(
      (sum, p) => sum + p.log.filter((e) => e.state === "acquired" && e.member === member).length,
      0
    )
  }
  /** Acquisitions are not handed over to the new leader. */
  moveLeader(partition: number): void {
    const moving = this.partitions[partition] as Partition
    moving.leader = 3 - moving.leader
    for (const entry of moving.log) if (entry.state === "acquired") entry.state = "available"
  }
  /** As when the connection drops, or the session is evicted. */
  drop(member: string, broker: number): void {
    this.sessions.delete(`${member}:${broker}`)
    for (const p of this.partitions) {
      if (p.leader === broker) {
        for (const e of p.log) if (e.state === "acquired" && e.member === member) e.state = "available"
      }
    }
  }

  #expire(now: number): void {
    for (const p of this.partitions) {
      for (const e of p.log) if (e.state === "acquired" && e.lockEndsMs <= now) e.state = "available"
    }
  }

  #acknowledge(broker: number, request: ShareRequest, at: PartitionRequest, now: number): number {
    const partition = this.partitions[at.partitionIndex]
    if (partition === undefined) return 3
    if (partition.leader !== broker) return 6
    const code = request.isRenewAck === true ? undefined : this.acknowledgeCodes.shift()
    if (code !== undefined) return code
    let next = 0
    const changes: Array<() => void> = []
    for (const batch of at.acknowledgementBatches) {
      const count = batch.lastOffset - batch.firstOffset + 1
      if (batch.firstOffset < next || count < 1 || ![1, count].includes(batch.acknowledgeTypes.length)) return 42
      next = batch.lastOffset + 1
      for (let offset = batch.firstOffset; offset <= batch.lastOffset; offset++) {
        const type = batch
          .acknowledgeTypes[batch.acknowledgeTypes.length === 1 ? 0 : offset - batch.firstOffset] as number
        const entry = partition.log[offset]
        if (entry === undefined || (type === 4 && request.isRenewAck !== true)) return 42
        if (entry.state !== "acquired" || entry.member !== request.memberId) return 121
        changes.push(() => {
          if (type === 4) entry.lockEndsMs = now + this.lockMs
          else entry.state = type === 2 ? "available" : type === 1 ? "accepted" : "archived"
        })
      }
    }
    for (const change of changes) change()
    if (changes.length > 0 && request.isRenewAck === true) this.renewals++
    return 0
  }

  #session(broker: number, request: ShareRequest): Session | number {
    const key = `${request.memberId}:${broker}`
    if (request.shareSessionEpoch === 0) {
      this.sessions.set(key, { epoch: 1, partitions: new Set() })
      return this.sessions.get(key) as Session
    }
    const session = this.sessions.get(key)
    if (session === undefined) return 122
    if (request.shareSessionEpoch === -1) return session
    if (session.epoch !== request.shareSessionEpoch) {
      this.wrongEpochs++
      return 123
    }
    session.epoch++
    return session
  }

  #acquire(broker: number, session: Session, request: ShareRequest, now: number) {
    let left = request.maxRecords ?? 0
    return [...session.partitions].map((index) => {
      const partition = this.partitions[index] as Partition
      if (partition.leader !== broker) return { index, code: 6, acquired: [] }
      const acquired: Array<{ firstOffset: number; lastOffset: number; deliveryCount: number }> = []
      partition.log.forEach((entry, offset) => {
        if (entry.state !== "available" || left <= 0) return
        left--
        Object.assign(entry, {
          state: "acquired",
          member: request.memberId,
          count: entry.count + 1,
          lockEndsMs: now + this.lockMs
        })
        const end = acquired[acquired.length - 1]
        if (end !== undefined && end.lastOffset === offset - 1 && end.deliveryCount === entry.count) {
          end.lastOffset = offset
        } else acquired.push({ firstOffset: offset, lastOffset: offset, deliveryCount: entry.count })
      })
      return { index, code: 0, acquired }
    })
  }

  #share(broker: number, fetching: boolean, request: ShareRequest): Effect.Effect<unknown> {
    return Effect.gen({ self: this }, function*() {
      const now = yield* nowMs
      this.#expire(now)
      const answer = (errorCode: number, partitions: ReadonlyArray<object> = []) => ({
        throttleTimeMs: 0,
        errorCode,
        errorMessage: null,
        acquisitionLockTimeoutMs: this.lockMs,
        responses: partitions.length === 0 ? [] : [{ topicId: TOPIC_ID, partitions }],
        nodeEndpoints: []
      })
      const session = this.#session(broker, request)
      if (typeof session === "number") return answer(session)
      const named = request.topics.flatMap((t) => t.partitions)
      if (request.shareSessionEpoch === 0 && named.some((p) => p.acknowledgementBatches.length > 0)) return answer(42)
      const acked = new Map(
        named.filter((p) => p.acknowledgementBatches.length > 0).map((
          p
        ) => [p.partitionIndex, this.#acknowledge(broker, request, p, now)])
      )
      if (request.shareSessionEpoch === -1) {
        this.closes++
        this.drop(request.memberId, broker)
      }
      const base = {
        errorMessage: null,
        acknowledgeErrorMessage: null,
        currentLeader: { leaderId: -1, leaderEpoch: -1 },
        records: null
      }
      if (!fetching) {
        return answer(0, [...acked].map(([partitionIndex, errorCode]) => ({ ...base, partitionIndex, errorCode })))
      }
      for (const p of named) session.partitions.add(p.partitionIndex)
      for (const t of request.forgottenTopicsData ?? []) for (const p of t.partitions) session.partitions.delete(p)
      let got = this.#acquire(broker, session, request, now)
      if (got.every((g) => g.code === 0 && g.acquired.length === 0)) {
        yield* Effect.sleep(request.maxWaitMs ?? 0)
        const later = yield* nowMs
        this.#expire(later)
        // Dropped while it waited: a broker gives nothing to a connection that is gone.
        if (this.sessions.get(`${request.memberId}:${broker}`) === session) {
          got = this.#acquire(broker, session, request, later)
        }
      }
      const indexes = new Set([...got.map((g) => g.index), ...acked.keys()])
      return answer(
        0,
        [...indexes].map((partitionIndex) => {
          const found = got.find((g) => g.index === partitionIndex)
          return {
            ...base,
            partitionIndex,
            errorCode: found?.code ?? 0,
            acknowledgeErrorCode: acked.get(partitionIndex) ?? 0,
            acquiredRecords: found?.acquired ?? [],
            records: (found?.acquired.length ?? 0) > 0 ? this.records(partitionIndex) : null
          }
        })
      )
    })
  }

  #heartbeat(
    request: {
      readonly memberId: string
      readonly memberEpoch: number
      readonly subscribedTopicNames: ReadonlyArray<string> | null
    }
  ): unknown {
    this.heartbeats.push(request)
    const code = this.heartbeatCodes.shift() ?? 0
    const known = this.members.get(request.memberId)
    const answer = (errorCode: number, memberEpoch: number, assigned: boolean) => ({
      throttleTimeMs: 0,
      errorCode,
      errorMessage: null,
      memberId: request.memberId,
      memberEpoch,
      heartbeatIntervalMs: 1000,
      assignment: assigned
        ? { topicPartitions: [{ topicId: TOPIC_ID, partitions: this.partitions.map((_, i) => i) }] }
        : null
    })
    if (code !== 0) {
      if (code === 25 || code === 110) this.members.delete(request.memberId)
      return answer(code, 0, false)
    }
    if (request.memberEpoch === -1) {
      this.members.delete(request.memberId)
      return answer(0, -1, false)
    }
    if (request.memberEpoch === 0) {
      this.members.set(request.memberId, this.members.size + 1)
      return answer(0, this.members.get(request.memberId) as number, true)
    }
    return known === undefined ? answer(25, 0, false) : answer(known === request.memberEpoch ? 0 : 110, known, false)
  }

  /** A share request with the faults of a network. */
  #withFaults(
    broker: number,
    fetching: boolean,
    request: ShareRequest,
    purpose: string
  ): Effect.Effect<unknown, WireError> {
    return Effect.gen({ self: this }, function*() {
      // A real connection answers in order; two requests at once on one session would be a mistake of the consumer.
      if (this.#busy.has(purpose)) return yield* Effect.die(new Error(`two requests at once on ${purpose}`))
      this.#busy.add(purpose)
      const lost = () => {
        this.drop(request.memberId, broker)
        return new ConnectionError({
          address: `broker ${broker}`,
          kind: "closed",
          outcome: "unknown",
          what: "the connection broke"
        })
      }
      const fault = this.fault()
      if (fault === "evict") this.drop(request.memberId, broker)
      if (fault === "before") return yield* Effect.fail(lost())
      const answer = yield* this.#share(broker, fetching, request)
      if (fault === "after") return yield* Effect.fail(lost())
      if (fault === "timeout") {
        return yield* new ConnectionError({
          address: `broker ${broker}`,
          kind: "timeout",
          outcome: "unknown",
          what: "no answer"
        })
      }
      return answer
    }).pipe(Effect.ensuring(Effect.sync(() => this.#busy.delete(purpose))))
  }

  get cluster(): Cluster {
    const topic = (): TopicMetadata => ({
      name: TOPIC,
      id: TOPIC_ID,
      internal: false,
      partitions: this.partitions.map((p, partition) => ({
        partition,
        leader: p.leader,
        leaderEpoch: 0,
        replicas: [1, 2],
        isr: [1, 2]
      }))
    })
    const request = (
      to: Destination,
      api: ApiHead & { readonly request: { readonly encode: (version: number, value: never) => unknown } },
      value: unknown,
      options?: { readonly purpose?: string }
    ): Effect.Effect<unknown, WireError> =>
      // As a connection does: what cannot be written is not sent.
      Effect.flatMap(guarded(() => api.request.encode(api.versions.max, value as never)), () => {
        switch (api.key) {
          case 76:
            return Effect.succeed(this.#heartbeat(value as never))
          case 78:
          case 79:
            return this.#withFaults(
              to.kind === "broker" ? to.id : 0,
              api.key === 78,
              value as ShareRequest,
              options?.purpose ?? ""
            )
          default:
            return Effect.fail(new UnsupportedError({ api: String(api.key), what: "not here" }))
        }
      })
    const cluster: Partial<Cluster> = {
      name: "fake",
      request: request as Cluster["request"],
      negotiate: () => Effect.succeed(this.shareAcknowledgeVersion),
      topicById: (id) => Effect.sync(() => (id === TOPIC_ID ? topic() : null)),
      invalidate: () => Effect.void,
      learnLeader: () => Effect.void,
      invalidateCoordinator: () => Effect.sync(() => void this.coordinatorLookups++),
      release: (purpose) =>
        Effect.sync(() => {
          const [, member, broker] = purpose.split(":")
          this.drop(member ?? "", Number(broker))
        })
    }
    return cluster as Cluster
  }
}
