/**
 * Runs one call of `produce`: sends what produceRun.ts says may be sent, and tells it what came of it. A single fiber
 * owns the state; requests, look-ups and timers report to it through a queue.
 *
 * Guarantee: whatever ends the call (done, failed, interrupted), nothing it started goes on, and the partitions are
 * left fit for the next call.
 */
import { Cause, Effect, Exit, Queue, Random, Result } from "effect"
import type { Cluster, TopicMetadata } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { initProducerId } from "../wire/messages/initProducerId.ts"
import { produce } from "../wire/messages/produce.ts"
import { nowMs } from "../wire/retry.ts"
import type { ResponseOf } from "../wire/schema.ts"
import type { Partition, Partitions } from "./partitions.ts"
import { type ProducerError, ProducerRefused } from "./produceErrors.ts"
import { type OutgoingRequest, produceBody } from "./produceRequest.ts"
import { type Outgoing, type ProduceOutcome, ProduceRun } from "./produceRun.ts"
import type { ProducerSettings } from "./producerSettings.ts"
import type { Routes } from "./routes.ts"
import type { Identity } from "./sequences.ts"

type Event =
  | {
    readonly kind: "answer"
    readonly request: OutgoingRequest
    readonly exit: Exit.Exit<ResponseOf<typeof produce>, WireError>
  }
  | { readonly kind: "metadata"; readonly exit: Exit.Exit<ReadonlyArray<LookedUp>> }
  | { readonly kind: "identity"; readonly exit: Exit.Exit<Identity, WireError> }
  | { readonly kind: "tick"; readonly at: number }
  | { readonly kind: "deadline" }

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
  /** See PartitionSequences.assign. */
  readonly zeroFirst: boolean
  /** What Produce is held to: 11 at most in transactions of version 1, 12 at least in those of version 2. */
  readonly versions: { readonly min?: number; readonly max?: number }
  readonly onStall: (p: Partition, reason: string, now: number) => void
  readonly onRecover: (p: Partition) => void
}

/** All that is open is in flight: nothing has to be asked for, or waited for, but answers. */
const isUnderWay = (run: ProduceRun, now: number): boolean => {
  if (run.needsIdentity || run.failed !== null) return false
  for (const { notBefore, sequences: { slots } } of run.active) {
    if (slots.length > 0 && (notBefore > now || slots.some(({ state }) => state !== "inFlight"))) return false
  }
  return true
}

type Leaders = Array<Parameters<Cluster["learnLeader"]>>

const learn = ({ cluster }: Engine, leaders: Leaders): Effect.Effect<void> =>
  leaders.length === 0
    ? Effect.void
    : Effect.forEach(leaders.splice(0), (leader) => cluster.learnLeader(...leader), { discard: true })

/**
 * The short way: a call that is one request, whose answer settles it, needs no queue and no other fiber. Gives the
 * requests that are to be sent the long way; with none of them the request was answered, and what is open goes on there.
 */
const straight = (
  engine: Engine,
  run: ProduceRun,
  leaders: Leaders
): Effect.Effect<ReadonlyArray<OutgoingRequest>> =>
  Effect.gen(function*() {
    const now = yield* nowMs
    const requests = requestsOf(run, now)
    const [request] = requests
    if (request === undefined || requests.length > 1 || !isUnderWay(run, now)) return requests
    const event = yield* send(engine, request)
    run.jitter = 0.8 + 0.4 * (yield* Random.next)
    yield* handle(engine, run, newAsking(), event, yield* nowMs)
    yield* learn(engine, leaders)
    return []
  })

export const drive = (
  engine: Engine,
  batches: ReadonlyArray<Outgoing>
): Effect.Effect<ReadonlyArray<ProduceOutcome>, ProducerError> =>
  Effect.suspend(() => {
    const leaders: Leaders = []
    const run = new ProduceRun({ ...engine, onLeader: (...leader) => leaders.push(leader) }, batches)
    return Effect.gen(function*() {
      const begun = yield* nowMs
      const requests = run.done ? [] : yield* straight(engine, run, leaders)
      if (run.failed !== null) return yield* run.failed
      if (!run.done) yield* Effect.scoped(longWay(engine, run, leaders, requests, begun))
      return run.outcomes
    }).pipe(Effect.ensuring(Effect.sync(() => run.giveUp(null))))
  })

const longWay = (
  engine: Engine,
  run: ProduceRun,
  leaders: Leaders,
  requests: ReadonlyArray<OutgoingRequest>,
  begun: number
) =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const events = yield* Queue.unbounded<Event>()
    const fork = <E extends Event>(effect: Effect.Effect<E>) =>
      Effect.forkIn(Effect.flatMap(effect, (event) => Queue.offer(events, event)), scope, { startImmediately: true })
    const after = (ms: number, event: Event) => fork(Effect.as(Effect.sleep(Math.max(0, ms)), event))

    const { deliveryTimeoutMs } = engine.settings
    if (Number.isFinite(deliveryTimeoutMs)) {
      yield* after(begun + deliveryTimeoutMs - (yield* nowMs), { kind: "deadline" })
    }
    const asking = newAsking()
    for (const request of requests) yield* fork(send(engine, request))
    while (!run.done) {
      yield* pump(engine, run, asking, fork, after)
      if (run.failed !== null) return yield* run.failed
      if (run.done) break
      const event = yield* Queue.take(events)
      run.jitter = 0.8 + 0.4 * (yield* Random.next)
      yield* handle(engine, run, asking, event, yield* nowMs)
      yield* learn(engine, leaders)
    }
  })

interface Asking {
  metadata: boolean
  identity: boolean
  /** Monotonic times for which a timer runs. */
  readonly ticks: Set<number>
}
const newAsking = (): Asking => ({ metadata: false, identity: false, ticks: new Set() })
type Fork = <E extends Event>(effect: Effect.Effect<E>) => Effect.Effect<unknown>

/** What can be sent now. */
const requestsOf = (run: ProduceRun, now: number): ReadonlyArray<OutgoingRequest> => {
  const requests: Array<OutgoingRequest> = []
  run.needsIdentity = false
  for (let request = run.nextRequest(now); request !== null; request = run.nextRequest(now)) requests.push(request)
  return requests
}

/** Starts whatever can be started now. */
const pump = (
  engine: Engine,
  run: ProduceRun,
  asking: Asking,
  fork: Fork,
  after: (ms: number, event: Event) => Effect.Effect<unknown>
) =>
  Effect.gen(function*() {
    const now = yield* nowMs
    for (const request of requestsOf(run, now)) yield* fork(send(engine, request))
    const stale = run.staleTopics(now)
    if (stale.length > 0 && !asking.metadata) {
      asking.metadata = true
      yield* fork(
        Effect.map(Effect.exit(lookUp(engine.cluster, stale)), (exit) => ({ kind: "metadata" as const, exit }))
      )
    }
    if (run.needsIdentity && !asking.identity) {
      asking.identity = true
      yield* fork(Effect.map(Effect.exit(newIdentity(engine)), (exit) => ({ kind: "identity" as const, exit })))
    }
    for (const p of run.active) {
      if (p.notBefore <= now || asking.ticks.has(p.notBefore)) continue
      asking.ticks.add(p.notBefore)
      yield* after(p.notBefore - now, { kind: "tick", at: p.notBefore })
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
    if (Result.isSuccess(result) || result.failure._tag !== "BrokerError" || topics.length === 1) {
      return [{ topics, result }]
    }
    return yield* Effect.forEach(
      topics,
      (topic) => Effect.map(Effect.result(cluster.topics([topic])), (one) => ({ topics: [topic], result: one }))
    )
  })

const send = (engine: Engine, request: OutgoingRequest) => {
  const { cluster, purpose, settings: { requestTimeoutMs }, transactionalId, versions } = engine
  const highest = Math.min(versions.max ?? Infinity, request.allHaveIds ? Infinity : 12)
  return cluster.request(
    { kind: "broker", id: request.broker },
    produce,
    produceBody(request, transactionalId, requestTimeoutMs),
    {
      purpose,
      timeoutMs: requestTimeoutMs,
      ...(versions.min === undefined ? {} : { minVersion: versions.min }),
      ...(Number.isFinite(highest) ? { maxVersion: highest } : {})
    }
  ).pipe(Effect.exit, Effect.map((exit) => ({ kind: "answer" as const, request, exit })))
}

/** A fresh producer id, from any broker. The timeout in the request has no meaning without a transactional id. */
const newIdentity = (engine: Engine): Effect.Effect<Identity, WireError> =>
  engine.cluster.request(
    { kind: "any" },
    initProducerId,
    { transactionalId: null, transactionTimeoutMs: 0x7fff_ffff },
    {
      purpose: engine.purpose,
      timeoutMs: engine.settings.requestTimeoutMs
    }
  ).pipe(
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
        // By name and not by the clock: a timer may go off a little early, and then needs another one after it.
        asking.ticks.delete(event.at)
        return
      case "deadline":
        return run.giveUp(engine.settings.deliveryTimeoutMs)
      case "answer":
        if (Exit.isSuccess(event.exit)) return run.requestAnswered(event.request, event.exit.value, now)
        return run.requestFailed(event.request, yield* failureOf(event.exit.cause), now)
      case "metadata":
        asking.metadata = false
        for (
          const { topics, result } of Exit.isSuccess(event.exit)
            ? event.exit.value
            : yield* Effect.failCause(event.exit.cause)
        ) {
          if (Result.isSuccess(result)) engine.routes.apply(topics, result.success)
          else run.metadataFailed(topics, result.failure, now)
        }
        return
      case "identity": {
        asking.identity = false
        if (Exit.isSuccess(event.exit)) {
          engine.identity.current = event.exit.value
          return
        }
        const error = yield* failureOf(event.exit.cause)
        if (error._tag === "UnsupportedError" || (error._tag === "BrokerError" && error.class === "authorization")) {
          run.failed = new ProducerRefused({ what: `the target gives no producer id: ${error.message}` })
        } else run.identityFailed(error.message, now)
      }
    }
  })
