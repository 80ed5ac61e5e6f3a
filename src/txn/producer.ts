/**
 * A producer of raw record batches: idempotent, acks=all, five produce requests in flight a broker, one batch of a
 * partition in a request. Batches of a partition get into its log in the order of the calls, once each, through lost
 * requests, lost answers and leaders that move.
 *
 * Without a transactional id each partition has its own epoch of the producer id: a broker keeps a producer's state
 * per partition, so a partition whose numbers have a hole goes on under the next epoch alone, without asking anybody
 * and without holding up the others (Kafka's Java client bumps the epoch locally too, KIP-360, but for all of them).
 *
 * What is not promised: after an interruption or a delivery timeout a batch may be in the log although its outcome
 * says "unknown"; sending it again can then put it there twice. That is what transactions are for.
 */
import { Cause, Clock, Effect, Exit, Queue, Random, Result, type Scope, Semaphore } from "effect"
import type { Cluster, TopicMetadata } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { initProducerId } from "../wire/messages/initProducerId.ts"
import { produce } from "../wire/messages/produce.ts"
import type { ResponseOf } from "../wire/schema.ts"
import { type Partition, Partitions } from "./partitions.ts"
import { type ProducerError, ProducerRefused } from "./produceErrors.ts"
import { type OutgoingRequest, produceBody } from "./produceRequest.ts"
import { type Outgoing, type ProduceOutcome, ProduceRun } from "./produceRun.ts"
import { defaultProducerSettings, type ProducerSettings } from "./producerSettings.ts"
import { Routes } from "./routes.ts"
import type { Identity } from "./sequences.ts"

/** A partition that stands still, and why, for people. */
export interface Stall {
  readonly topic: string
  readonly partition: number
  readonly reason: string
  /** Clock time, milliseconds. */
  readonly sinceMs: number
}

export interface Producer {
  /**
   * Writes the batches and gives one outcome each, in their order. Calls run one after the other. Waits for a target
   * that is down (deliveryTimeoutMs, Infinity by default) and may be interrupted at any time; then what was in flight
   * may or may not be in the log.
   */
  readonly produce: (batches: ReadonlyArray<Outgoing>) => Effect.Effect<ReadonlyArray<ProduceOutcome>, ProducerError>
  /** Partitions that stand still now. */
  readonly stalls: Effect.Effect<ReadonlyArray<Stall>>
}

export interface ProducerOptions {
  readonly cluster: Cluster
  /** Names the connections: producers with different purposes never wait for each other. */
  readonly purpose: string
  readonly settings?: Partial<ProducerSettings>
  /** Called when a partition fails for the second time in a row, and with every later reason. */
  readonly onStall?: (stall: Stall) => void
  /** Called when it moves again. */
  readonly onRecover?: (topic: string, partition: number) => void
}

type Event =
  | { readonly kind: "answer"; readonly request: OutgoingRequest; readonly exit: Exit.Exit<ResponseOf<typeof produce>, WireError> }
  | { readonly kind: "metadata"; readonly exit: Exit.Exit<ReadonlyArray<LookedUp>> }
  | { readonly kind: "identity"; readonly exit: Exit.Exit<Identity, WireError> }
  | { readonly kind: "tick" }
  | { readonly kind: "deadline" }

/** A producer without transactions. Asks for its producer id with the first call, so it starts while the target is down. */
export const makeProducer = (options: ProducerOptions): Effect.Effect<Producer, never, Scope.Scope> =>
  Effect.gen(function*() {
    const settings: ProducerSettings = { ...defaultProducerSettings, ...options.settings }
    const partitions = new Partitions({ mayRestart: true })
    const routes = new Routes()
    const oneAtATime = yield* Semaphore.make(1)
    const identity: { current: Identity | null } = { current: null }
    const stalls = new Map<string, Stall>()
    yield* Effect.addFinalizer(() => options.cluster.release(options.purpose))

    const note = stallNotes(options, stalls)
    const produceAll = (batches: ReadonlyArray<Outgoing>) =>
      drive({ cluster: options.cluster, purpose: options.purpose, settings, routes, partitions, identity, transactionalId: null, maxVersion: undefined, ...note }, batches)
    return {
      produce: (batches) => batches.length === 0 ? Effect.succeed([]) : oneAtATime.withPermit(produceAll(batches)),
      stalls: Effect.sync(() => [...stalls.values()])
    }
  })

/** Keeps what stands still, and tells whoever wants to know. */
export const stallNotes = (options: Pick<ProducerOptions, "onStall" | "onRecover">, stalls: Map<string, Stall>) => ({
  onStall: (p: Partition, reason: string, now: number): void => {
    p.stalledSince ??= now
    const stall = { topic: p.topic, partition: p.partition, reason, sinceMs: p.stalledSince }
    stalls.set(p.key, stall)
    options.onStall?.(stall)
  },
  onRecover: (p: Partition): void => {
    stalls.delete(p.key)
    options.onRecover?.(p.topic, p.partition)
  }
})

/** What a call needs of its producer. */
export interface Engine {
  readonly cluster: Cluster
  readonly purpose: string
  readonly settings: ProducerSettings
  readonly routes: Routes
  readonly partitions: Partitions
  /** The producer id in use; null until one was given. */
  readonly identity: { current: Identity | null }
  readonly transactionalId: string | null
  /** Holds Produce down where transactions of version 1 are used. */
  readonly maxVersion: number | undefined
  readonly onStall: (p: Partition, reason: string, now: number) => void
  readonly onRecover: (p: Partition) => void
}

/** Runs one call: a single fiber owns the state; requests, look-ups and timers report to it through a queue. */
export const drive = (engine: Engine, batches: ReadonlyArray<Outgoing>): Effect.Effect<ReadonlyArray<ProduceOutcome>, ProducerError> =>
  Effect.scoped(Effect.gen(function*() {
    const scope = yield* Effect.scope
    const events = yield* Queue.unbounded<Event>()
    const leaders: Array<Parameters<Cluster["learnLeader"]>> = []
    const run = new ProduceRun({ ...engine, onLeader: (...leader) => leaders.push(leader) }, batches)
    yield* Effect.addFinalizer(() => Effect.sync(() => run.giveUp(null)))
    const fork = <E extends Event>(effect: Effect.Effect<E>) =>
      Effect.forkIn(Effect.flatMap(effect, (event) => Queue.offer(events, event)), scope, { startImmediately: true })
    const after = (ms: number, event: Event) => fork(Effect.as(Effect.sleep(ms), event))

    const { deliveryTimeoutMs } = engine.settings
    if (Number.isFinite(deliveryTimeoutMs)) yield* after(deliveryTimeoutMs, { kind: "deadline" })
    const asking = { metadata: false, identity: false, ticks: new Set<number>() }
    while (!run.done) {
      yield* pump(engine, run, asking, fork, after)
      if (run.failed !== null) return yield* run.failed
      if (run.done) break
      const event = yield* Queue.take(events)
      run.jitter = 0.8 + 0.4 * (yield* Random.next)
      yield* handle(engine, run, asking, event, yield* Clock.currentTimeMillis)
      for (const leader of leaders.splice(0)) yield* engine.cluster.learnLeader(...leader)
    }
    return run.outcomes
  }))

interface Asking {
  metadata: boolean
  identity: boolean
  /** Clock times for which a timer runs. */
  readonly ticks: Set<number>
}
type Fork = <E extends Event>(effect: Effect.Effect<E>) => Effect.Effect<unknown>

/** Starts whatever can be started now. */
const pump = (engine: Engine, run: ProduceRun, asking: Asking, fork: Fork, after: (ms: number, event: Event) => Effect.Effect<unknown>) =>
  Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    run.needsIdentity = false
    for (let request = run.nextRequest(now); request !== null; request = run.nextRequest(now)) yield* fork(send(engine, request))
    const stale = run.staleTopics(now)
    if (stale.length > 0 && !asking.metadata) {
      asking.metadata = true
      yield* fork(Effect.map(Effect.exit(lookUp(engine.cluster, stale)), (exit) => ({ kind: "metadata" as const, exit })))
    }
    if (run.needsIdentity && !asking.identity) {
      asking.identity = true
      yield* fork(Effect.map(Effect.exit(newIdentity(engine)), (exit) => ({ kind: "identity" as const, exit })))
    }
    for (const p of run.active) {
      if (p.notBefore <= now || asking.ticks.has(p.notBefore)) continue
      asking.ticks.add(p.notBefore)
      yield* after(p.notBefore - now, { kind: "tick" })
    }
  })

/** What was asked about together, and the answer. */
interface LookedUp {
  readonly topics: ReadonlyArray<string>
  readonly result: Result.Result<ReadonlyMap<string, TopicMetadata>, WireError>
}

/** Asks for all at once; a topic that makes the broker refuse the question must not hide the others. */
const lookUp = (cluster: Cluster, topics: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<LookedUp>> =>
  Effect.gen(function*() {
    const result = yield* Effect.result(cluster.topics(topics))
    if (Result.isSuccess(result) || result.failure._tag !== "BrokerError" || topics.length === 1) return [{ topics, result }]
    return yield* Effect.forEach(topics, (topic) => Effect.map(Effect.result(cluster.topics([topic])), (one) => ({ topics: [topic], result: one })))
  })

const send = (engine: Engine, request: OutgoingRequest) => {
  const { cluster, maxVersion, purpose, settings: { requestTimeoutMs }, transactionalId } = engine
  const highest = Math.min(maxVersion ?? Infinity, request.allHaveIds ? Infinity : 12)
  return cluster.request({ kind: "broker", id: request.broker }, produce, produceBody(request, transactionalId, requestTimeoutMs), {
    purpose,
    timeoutMs: requestTimeoutMs,
    ...(Number.isFinite(highest) ? { maxVersion: highest } : {})
  }).pipe(Effect.exit, Effect.map((exit) => ({ kind: "answer" as const, request, exit })))
}

/** A fresh producer id, from any broker. The timeout in the request has no meaning without a transactional id. */
const newIdentity = (engine: Engine): Effect.Effect<Identity, WireError> =>
  engine.cluster.request({ kind: "any" }, initProducerId, { transactionalId: null, transactionTimeoutMs: 0x7fff_ffff }, {
    purpose: engine.purpose,
    timeoutMs: engine.settings.requestTimeoutMs
  }).pipe(
    Effect.flatMap((answer) =>
      answer.errorCode === 0
        ? Effect.succeed({ producerId: answer.producerId, epoch: answer.producerEpoch })
        : Effect.fail(new BrokerError({ api: "InitProducerId", code: answer.errorCode, subject: "", detail: null }))
    )
  )

/** The failure of a request; whatever else ended it (a defect) ends the call. */
const failureOf = (cause: Cause.Cause<WireError>): Effect.Effect<WireError> => {
  const reason = cause.reasons.find(Cause.isFailReason)
  return reason === undefined ? Effect.failCause(cause as Cause.Cause<never>) : Effect.succeed(reason.error)
}

const handle = (engine: Engine, run: ProduceRun, asking: Asking, event: Event, now: number): Effect.Effect<void> =>
  Effect.gen(function*() {
    switch (event.kind) {
      case "tick":
        for (const at of asking.ticks) if (at <= now) asking.ticks.delete(at)
        return
      case "deadline":
        return run.giveUp(engine.settings.deliveryTimeoutMs)
      case "answer":
        if (Exit.isSuccess(event.exit)) return run.requestAnswered(event.request, event.exit.value, now)
        return run.requestFailed(event.request, yield* failureOf(event.exit.cause), now)
      case "metadata":
        asking.metadata = false
        for (const { topics, result } of Exit.isSuccess(event.exit) ? event.exit.value : yield* Effect.failCause(event.exit.cause)) {
          if (Result.isSuccess(result)) engine.routes.apply(topics, result.success)
          else run.metadataFailed(topics, result.failure, now)
        }
        return
      case "identity": {
        asking.identity = false
        if (Exit.isSuccess(event.exit)) {
          engine.identity.current = event.exit.value
          return run.identityArrived(event.exit.value)
        }
        const error = yield* failureOf(event.exit.cause)
        if (error._tag === "UnsupportedError" || (error._tag === "BrokerError" && error.class === "authorization")) {
          run.failed = new ProducerRefused({ what: `the target gives no producer id: ${error.message}` })
        } else run.identityFailed(error.message, now)
      }
    }
  })
