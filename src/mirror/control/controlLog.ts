/**
 * What a flow's control tasks have to remember through restarts: which topic (by id) goes into which target topic, and
 * which rights they have copied. Keys and values in one compacted topic on the target, `__onceover_control_FLOW`.
 *
 * Guarantees: `read` gives all that was written, by any process, before it was called; what `write` has confirmed is
 * in it. Where the topic cannot be had (a missing right) it is said once, and what is noted lives as long as the
 * process.
 *
 * Gotcha: there is no lock. Who writes a key writes what any other process would write from the same facts, or leads.
 */
import { Clock, Effect, type Scope } from "effect"
import { makeProducer, type Producer } from "../../txn/producer.ts"
import { flowTopicName } from "../../txn/ledger/ledgerTopic.ts"
import { splitBatches } from "../../wire/batch/recordBatch.ts"
import { decodeRecords, encodeBatch, type Rec } from "../../wire/batch/records.ts"
import { ProtocolError } from "../../wire/bytes.ts"
import type { Cluster, Destination, TopicMetadata } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { createTopics } from "../../wire/messages/createTopics.ts"
import { fetch } from "../../wire/messages/fetch.ts"
import { listOffsets } from "../../wire/messages/listOffsets.ts"
import type { Log } from "../report.ts"

export type Notes = ReadonlyMap<string, string>

export interface ControlLog {
  /** What is known without asking. */
  readonly known: () => Notes
  /** Reads what others have written since. */
  readonly read: Effect.Effect<Notes, WireError>
  /** A value, or null to forget the key. */
  readonly write: (
    entries: ReadonlyArray<readonly [key: string, value: string | null]>
  ) => Effect.Effect<void, WireError>
  /** Why notes do not outlive this process; null: they do. */
  readonly problem: () => string | null
}

export interface ControlLogOptions {
  /** Where the topic is. */
  readonly target: Cluster
  /** For creating it; default `target`. */
  readonly targetAdmin?: Cluster
  readonly flow: string
  readonly log: Log
  /** Nothing is made: a topic that is not there has no notes. For looking only. */
  readonly lookOnly?: boolean
}

export const controlTopicName = (flow: string): string => flowTopicName("__onceover_control_", flow)

const EARLIEST = -2
const LATEST = -1
const NONE = 0
const OFFSET_OUT_OF_RANGE = 1
const TOPIC_ALREADY_EXISTS = 36
const MAX_BYTES = 1024 * 1024
const CREATE_TIMEOUT_MS = 30_000
const WRITE_TIMEOUT_MS = 30_000
/** Reads without progress before the log counts as unreadable now. */
const IDLE_READS = 20
const MAX_WAIT_MS = 250
const SETTINGS = [
  { name: "cleanup.policy", value: "compact" },
  { name: "unclean.leader.election.enable", value: "false" }
]

const decoded = (records: Buffer): Effect.Effect<ReadonlyArray<Rec & { readonly next: number }>, ProtocolError> =>
  Effect.try({
    try: () =>
      splitBatches(records).flatMap((view) =>
        view.isControl ? [] : decodeRecords(view).map((rec) => ({ ...rec, next: view.lastOffset + 1 }))
      ),
    catch: (cause) => cause instanceof ProtocolError ? cause : new ProtocolError({ what: String(cause) })
  })

class Keeper {
  readonly #options: ControlLogOptions
  readonly #producer: Producer
  readonly #name: string
  readonly #purpose: string
  #topicId = ""
  #next = -1
  #known = new Map<string, string>()
  problem: string | null = null

  constructor(options: ControlLogOptions, producer: Producer, purpose: string) {
    this.#options = options
    this.#producer = producer
    this.#purpose = purpose
    this.#name = controlTopicName(options.flow)
  }

  get known(): Notes {
    return this.#known
  }

  #error(api: string, code: number, detail: string | null = null): BrokerError {
    return new BrokerError({ api, code, subject: this.#name, detail })
  }

  get #create(): Effect.Effect<void, WireError> {
    const cluster = this.#options.targetAdmin ?? this.#options.target
    const ask = Effect.gen({ self: this }, function*() {
      const replicationFactor = Math.max(1, Math.min(3, (yield* cluster.brokers).length))
      const answer = yield* cluster.request({ kind: "controller" }, createTopics, {
        topics: [{ name: this.#name, numPartitions: 1, replicationFactor, assignments: [], configs: SETTINGS }],
        timeoutMs: CREATE_TIMEOUT_MS
      }, { timeoutMs: 2 * CREATE_TIMEOUT_MS })
      const code = answer.topics[0]?.errorCode ?? NONE
      if (code !== NONE && code !== TOPIC_ALREADY_EXISTS) {
        return yield* this.#error("CreateTopics", code, answer.topics[0]?.errorMessage ?? null)
      }
    })
    return cluster.retrying(ask, { destination: { kind: "controller" } })
  }

  /** The topic, made when it is missed. */
  get #topic(): Effect.Effect<TopicMetadata, WireError> {
    const { target } = this.#options
    const look = Effect.map(target.retrying(target.topics([this.#name])), (found) => found.get(this.#name))
    return Effect.gen({ self: this }, function*() {
      const there = yield* look
      if (there !== undefined) return there
      yield* this.#create
      yield* target.leader(this.#name, 0)
      return (yield* look) ?? (yield* new ProtocolError({ what: `${this.#name} was created, but no broker shows it` }))
    })
  }

  get #leader(): Effect.Effect<Destination, WireError> {
    return Effect.map(this.#options.target.leader(this.#name, 0), ({ leader }) => ({ kind: "broker", id: leader }))
  }

  #offset(timestamp: number): Effect.Effect<number, WireError> {
    const { target } = this.#options
    const ask = Effect.gen({ self: this }, function*() {
      const answer = yield* target.request(yield* this.#leader, listOffsets, {
        replicaId: -1,
        isolationLevel: 0,
        topics: [{ name: this.#name, partitions: [{ partitionIndex: 0, timestamp }] }]
      }, { purpose: this.#purpose })
      const found = answer.topics[0]?.partitions[0]
      if (found?.errorCode !== NONE) return yield* this.#error("ListOffsets", found?.errorCode ?? -1)
      return found.offset
    })
    return target.retrying(ask, { topic: this.#name })
  }

  #fetch(offset: number): Effect.Effect<Buffer | "outOfRange", WireError> {
    const { target } = this.#options
    const ask = Effect.gen({ self: this }, function*() {
      const partitions = [{ partition: 0, fetchOffset: offset, partitionMaxBytes: MAX_BYTES }]
      const answer = yield* target.request(yield* this.#leader, fetch, {
        maxWaitMs: MAX_WAIT_MS,
        minBytes: 1,
        maxBytes: MAX_BYTES,
        topics: [{ topic: this.#name, topicId: this.#topicId, partitions }]
      }, { purpose: this.#purpose })
      const found = answer.responses[0]?.partitions[0]
      const code = answer.errorCode !== NONE ? answer.errorCode : found?.errorCode ?? NONE
      if (code === OFFSET_OUT_OF_RANGE) return "outOfRange" as const
      if (code !== NONE) return yield* this.#error("Fetch", code)
      return found?.records ?? Buffer.alloc(0)
    })
    return target.retrying(ask, { topic: this.#name })
  }

  /** Everything from `#next` to the end as it is now. */
  get #catchUp(): Effect.Effect<void, WireError> {
    return Effect.gen({ self: this }, function*() {
      const end = yield* this.#offset(LATEST)
      let idle = 0
      while (this.#next < end && idle < IDLE_READS) {
        const bytes = yield* this.#fetch(this.#next)
        if (bytes === "outOfRange") {
          this.#next = yield* this.#offset(EARLIEST)
          idle++
          continue
        }
        const found = yield* decoded(bytes)
        idle = found.length === 0 ? idle + 1 : 0
        for (const { key, next, value } of found) {
          this.#next = Math.max(this.#next, next)
          if (key === null) continue
          if (value === null) this.#known.delete(key.toString())
          else this.#known.set(key.toString(), value.toString())
        }
      }
    })
  }

  get #refresh(): Effect.Effect<void, WireError> {
    return Effect.gen({ self: this }, function*() {
      if (this.#options.lookOnly === true) {
        const { target } = this.#options
        if (!(yield* target.retrying(target.topics([this.#name]))).has(this.#name)) return
      }
      const topic = yield* this.#topic
      if (topic.id !== this.#topicId || this.#next < 0) {
        // What is known of a topic that was deleted since is still true: it goes into the new one.
        const before = this.#known
        this.#known = new Map()
        this.#topicId = topic.id
        this.#next = yield* this.#offset(EARLIEST)
        yield* this.#catchUp
        const lost = [...before].filter(([key]) => !this.#known.has(key))
        if (lost.length > 0) yield* this.#append(lost)
      } else yield* this.#catchUp
      this.problem = null
    })
  }

  /** A missing right, or a topic that may not be made, costs the memory and not the flow. */
  #degraded(work: Effect.Effect<void, WireError>): Effect.Effect<void, WireError> {
    return Effect.catchTag(work, "BrokerError", (error) =>
      Effect.suspend(() => {
        if (["retriable", "refresh", "coordinator"].includes(error.class)) return Effect.fail(error)
        const reason = `the topic ${this.#name} on "${this.#options.target.name}" cannot be used: ${error.message}`
        if (this.problem === null) {
          this.#options.log(
            "warn",
            `which topics were created again, and which rights were copied, is known for the life of this process only: ${reason}`
          )
        }
        this.problem = reason
        return Effect.void
      }))
  }

  get read(): Effect.Effect<Notes, WireError> {
    return Effect.map(this.#degraded(this.#refresh), () => this.#known)
  }

  #append(entries: ReadonlyArray<readonly [string, string | null]>): Effect.Effect<void, WireError> {
    return Effect.gen({ self: this }, function*() {
      const timestamp = BigInt(yield* Clock.currentTimeMillis)
      const records = entries.map(([key, value], offset): Rec => ({
        offset,
        timestamp,
        key: Buffer.from(key),
        value: value === null ? null : Buffer.from(value),
        headers: []
      }))
      const outcome = yield* this.#producer.produce([{
        topic: this.#name,
        partition: 0,
        bytes: encodeBatch(records, { codec: "none" })
      }]).pipe(
        Effect.timeout(WRITE_TIMEOUT_MS),
        Effect.mapError((error) => new ProtocolError({ what: `${this.#name} cannot be written now: ${error.message}` }))
      )
      const first = outcome[0]
      if (first !== undefined && !first.ok) {
        const code = "code" in first.error && typeof first.error.code === "number" ? first.error.code : -1
        return yield* this.#error("Produce", code, first.error.message)
      }
      for (const [key, value] of entries) {
        if (value === null) this.#known.delete(key)
        else this.#known.set(key, value)
      }
    })
  }

  write(entries: ReadonlyArray<readonly [string, string | null]>): Effect.Effect<void, WireError> {
    return Effect.gen({ self: this }, function*() {
      if (entries.length === 0) return
      if (this.#next < 0) yield* this.read
      if (this.problem === null) yield* this.#degraded(this.#append(entries))
      for (const [key, value] of entries) {
        if (value === null) this.#known.delete(key)
        else this.#known.set(key, value)
      }
    })
  }
}

/** Nothing is asked or made before the first `read` or `write`. Closes with the scope. */
export const makeControlLog = (options: ControlLogOptions): Effect.Effect<ControlLog, never, Scope.Scope> =>
  Effect.gen(function*() {
    const purpose = `control-notes-${options.flow}`
    const producer = yield* makeProducer({ cluster: options.target, purpose })
    const log = new Keeper(options, producer, purpose)
    return {
      known: () => log.known,
      // Not a value: each read is to look anew.
      read: Effect.suspend(() => log.read),
      write: (entries) => log.write(entries),
      problem: () => log.problem
    }
  })
