/**
 * librdkafka's consumer (@confluentinc/kafka-javascript, the node-rdkafka style API) turned into a queue of events:
 * assigned, revoked, lost, failed, log. Synchronous; nothing it does throws past this file's callbacks.
 *
 * Gotcha: error events lose their code on the way through the binding (1.10.1), so it is told by librdkafka's words.
 */
import Kafka from "@confluentinc/kafka-javascript"
import { Deferred, Effect, Queue } from "effect"
import { MembershipError } from "./errors.ts"
import { partitionKey, type TopicPartition } from "./position.ts"

export interface NativeError {
  readonly code?: number
  readonly message?: string
}
export interface NativePosition extends TopicPartition {
  readonly offset?: number
  readonly leaderEpoch?: number
  readonly metadata?: string | null
}
/** What we use of the native consumer; its own types lack half of it. */
interface NativeConsumer {
  on(event: string, listener: (data: unknown) => void): unknown
  connect(
    options: { readonly allTopics: boolean; readonly timeout: number },
    done: (error: NativeError | null) => void
  ): unknown
  disconnect(done: () => void): unknown
  isConnected(): boolean
  subscribe(topics: ReadonlyArray<string>): unknown
  unsubscribe(): unknown
  assign(partitions: ReadonlyArray<NativePosition>): unknown
  unassign(): unknown
  incrementalAssign(partitions: ReadonlyArray<NativePosition>): unknown
  incrementalUnassign(partitions: ReadonlyArray<NativePosition>): unknown
  pause(partitions: ReadonlyArray<TopicPartition>): unknown
  assignmentLost(): boolean
  rebalanceProtocol(): string
  setDefaultConsumeTimeout(timeoutMs: number): void
  consume(count: number, done: (error: NativeError | null) => void): void
  commitCb(positions: ReadonlyArray<NativePosition>, done: (error: NativeError | null) => void): unknown
  committed(
    partitions: ReadonlyArray<TopicPartition>,
    timeoutMs: number,
    done: (error: NativeError | null, positions: ReadonlyArray<NativePosition>) => void
  ): unknown
}

const ASSIGN_PARTITIONS = -175
export const TIMED_OUT = -185
/** What `consume` answers before the connection is there, and while it closes. */
export const NOT_CONNECTED = -172
/**
 * Errors of the client that do not pass by themselves: rights, group settings, protocol, authentication, fenced,
 * fatal. Everything else it reports (brokers down, topics that vanish) it also heals, and is a debug line.
 */
const LASTING: ReadonlySet<number> = new Set([23, 24, 26, 29, 30, 31, 35, 58, 69, 81, 82, 112, -150, -165, -169])

/** Lasting enough to end the first connection, where nothing worked before: authentication, TLS. */
const CONNECTING: ReadonlySet<number> = new Set([-169, -181])
/** Error events, and errors of single partitions, come without their code: it is told by librdkafka's words for it. */
const WORDS: ReadonlyMap<string, number> = new Map([
  ["authentication failure", -169],
  ["ssl error", -181],
  ["topic authorization failed", 29],
  ["group authorization failed", 30],
  ["fatal error", -150],
  ["required feature not supported by broker", -165],
  ["maximum application poll interval (max.poll.interval.ms) exceeded", -147]
])
/** -1: none of those that matter. */
export const codeOf = (message: string): number =>
  WORDS.get(message.toLowerCase().replace(/^(local|broker): /, "")) ?? -1

export type MemberEvent =
  | { readonly kind: "assigned" | "revoked" | "lost"; readonly partitions: ReadonlyArray<TopicPartition> }
  | { readonly kind: "failed"; readonly error: MembershipError }
  | { readonly kind: "log"; readonly text: string }

export const plain = (partitions: ReadonlyArray<TopicPartition>): ReadonlyArray<TopicPartition> =>
  partitions.map(({ partition, topic }) => ({ topic, partition }))
/** What a commit is recognised by when its outcome comes back. */
export const signature = (positions: ReadonlyArray<NativePosition>): string =>
  positions.map((p) => `${partitionKey(p)}=${p.offset}`).sort().join(" ")

/**
 * The last clients that were made, the ended ones too. When one is collected, the add-on frees it without waiting for what
 * its threads still do, and the process may end with "pure virtual method called": so not soon after its end.
 */
const kept: Array<NativeConsumer> = []
const KEPT = 64
const keep = (native: NativeConsumer): NativeConsumer => {
  if (kept.push(native) > KEPT) kept.shift()
  return native
}

/** One native consumer and its callbacks, turned into events of a queue. Synchronous; throws nothing. */
export class NativeMember {
  readonly native: NativeConsumer
  readonly events: Queue.Queue<MemberEvent>
  readonly groupId: string
  readonly waiting = new Map<string, Deferred.Deferred<void, MembershipError>>()
  closing = false
  /** Hears of lasting errors while there is nobody else to tell: during the first connection. */
  onLasting: ((error: MembershipError) => void) | null = null
  #lastFailure = ""

  constructor(
    groupId: string,
    settings: Readonly<Record<string, string | number | boolean>>,
    events: Queue.Queue<MemberEvent>
  ) {
    this.groupId = groupId
    this.events = events
    const conf = {
      ...settings,
      rebalance_cb: (error: NativeError | undefined, partitions: ReadonlyArray<TopicPartition>) =>
        this.#rebalance(error, partitions),
      offset_commit_cb: (error: NativeError | undefined, positions: ReadonlyArray<NativePosition>) =>
        this.#committed(error, positions)
    }
    this.native = keep(new Kafka.KafkaConsumer(conf as never, {}) as unknown as NativeConsumer)
    this.native.setDefaultConsumeTimeout(0)
    this.native.on("event.error", (error) => this.report("poll", error as NativeError))
    this.native.on("error", (error) => this.report("poll", error as NativeError))
    this.native.on("event.log", (line) => this.#logged(line as { fac?: unknown; message?: unknown }))
  }

  error(operation: string, error: unknown): MembershipError {
    const { code = -1, message = String(error) } = (error ?? {}) as NativeError
    return new MembershipError({
      operation,
      groupId: this.groupId,
      code: Number.isInteger(code) ? code : -1,
      what: message
    })
  }

  /** An error that the client came up with by itself. */
  report(operation: string, error: NativeError): void {
    const code = error.code === undefined || error.code === -1 ? codeOf(error.message ?? "") : error.code
    const detail = CONNECTING.has(code) && this.#lastFailure !== "" ? `: ${this.#lastFailure}` : ""
    const known = this.error(operation, { code, message: `${error.message ?? "unknown"}${detail}` })
    if (LASTING.has(code) || CONNECTING.has(code)) this.onLasting?.(known)
    this.#offer(LASTING.has(code) ? { kind: "failed", error: known } : { kind: "log", text: known.message })
  }

  /** The client's own log: its failures tell more than its errors do. */
  #logged(line: { readonly fac?: unknown; readonly message?: unknown }): void {
    const text = String(line.message).replace(/^\[thrd:[^\]]*\]: /, "")
    if (line.fac === "FAIL") this.#lastFailure = text
    this.#offer({ kind: "log", text })
  }

  #offer(event: MemberEvent): void {
    Queue.offerUnsafe(this.events, event)
  }

  #rebalance(error: NativeError | undefined, partitions: ReadonlyArray<TopicPartition>): void {
    try {
      if (error?.code === ASSIGN_PARTITIONS) return this.#assign(plain(partitions))
      // Not asked of a client that is being closed, whose end this question does not look for: nobody hears the answer.
      const lost = !this.closing && this.native.isConnected() && this.native.assignmentLost()
      if (!lost && !this.closing) return this.#offer({ kind: "revoked", partitions: plain(partitions) })
      this.giveUp(partitions)
      if (lost) this.#offer({ kind: "lost", partitions: plain(partitions) })
    } catch (cause) {
      this.report("assign", cause as NativeError)
    }
  }

  #assign(partitions: ReadonlyArray<TopicPartition>): void {
    // An explicit offset spares the client its own look-up of committed offsets, whose answer nobody needs.
    const positions = partitions.map((at) => ({ ...at, offset: 0 }))
    if (this.native.rebalanceProtocol() === "COOPERATIVE") this.native.incrementalAssign(positions)
    else this.native.assign(positions)
    if (partitions.length === 0) return
    this.native.pause(partitions)
    this.#offer({ kind: "assigned", partitions })
  }

  /** Tells the group that these are free. */
  giveUp(partitions: ReadonlyArray<TopicPartition>): void {
    if (this.native.rebalanceProtocol() === "COOPERATIVE") this.native.incrementalUnassign(plain(partitions))
    else this.native.unassign()
  }

  #committed(error: NativeError | undefined, positions: ReadonlyArray<NativePosition>): void {
    const key = signature(positions)
    const waiting = this.waiting.get(key)
    if (waiting === undefined) return
    this.waiting.delete(key)
    Deferred.doneUnsafe(
      waiting,
      error?.code === undefined || error.code === 0 ? Effect.void : Effect.fail(this.error("commit", error))
    )
  }
}
