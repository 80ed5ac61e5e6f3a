/**
 * The service: every flow of a configuration, side by side.
 *
 * Guarantees
 * - One flow's failure never stops another. A failed flow is started again, with back-off, and its state says why;
 *   one that a person has to look at (FlowStopped) stays failed.
 * - When no flow could be started at all, or all have stopped for good, the service fails with one line for each.
 * - A stop (interruption) lets rounds at work finish within shutdown.timeout.ms, then interrupts; what is held goes
 *   back to the source.
 */
import { Cause, Clock, Deferred, Effect, Exit, Fiber, Random, type Scope } from "effect"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import { makeFlowMetrics } from "../metrics/flowMetrics.ts"
import { History, keepHistory } from "../metrics/history.ts"
import { serveHttp } from "../metrics/http.ts"
import { exportMetrics } from "../metrics/otlp.ts"
import { processMetrics } from "../metrics/processMetrics.ts"
import type { StatusInput } from "../metrics/status.ts"
import { VERSION } from "../version.ts"
import { FlowStopped, GuaranteeChanged, ServiceError } from "./errors.ts"
import { type FlowHandle, runFlow } from "./flow.ts"
import { FlowState } from "./state.ts"
import { Rates, readings, statusDocument } from "./statusDocument.ts"
import { unplacedLines } from "./unplaced.ts"

export interface ServiceOptions {
  /** End when everything the source held at the start is mirrored and acknowledged. */
  readonly untilCaughtUp: boolean
}

/** One run of a flow: until it is told to stop, or with what is in the way. Tests give their own. */
export type RunFlow = (
  config: ResolvedConfig,
  handle: FlowHandle
) => Effect.Effect<void, { readonly message: string }, Scope.Scope>

interface Supervised {
  readonly handle: FlowHandle
  /** How the flow ended for good; null while it runs or is retried. */
  end: "stopped" | "failed" | null
  /** Completed with the outcome of the first start: null, or what was in the way. */
  readonly firstStart: Deferred.Deferred<string | null>
  /** Whether the first start failed; null until it is known. */
  failedFirst: boolean | null
}

const RETRY_FLOOR_MS = 1_000
const RETRY_CEILING_MS = 60_000

const sentence = (cause: Cause.Cause<unknown>): string => {
  // A stop interrupts too, but says so first: this one came from inside, and is a failure like any other.
  if (Cause.hasInterruptsOnly(cause)) return "a part of the flow was interrupted"
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

const makeSupervised = (
  flow: ResolvedFlow,
  options: ServiceOptions,
  stopping: () => boolean
): Effect.Effect<Supervised, never, Scope.Scope> =>
  Effect.gen(function*() {
    const mode = flow.groupProtocol.value
    const metrics = yield* makeFlowMetrics(flow.name, mode)
    const state = new FlowState({
      name: flow.name,
      source: flow.source,
      target: flow.target,
      mode,
      lanes: flow.tasksMax,
      wanted: flow.deliveryGuarantee,
      nowMs: yield* Clock.currentTimeMillis
    })
    const caughtUp = options.untilCaughtUp ? { reached: yield* Deferred.make<void>(), goal: null, missed: [] } : null
    const handle: FlowHandle = {
      flow,
      state,
      metrics,
      stopping,
      caughtUp,
      started: yield* Deferred.make<void>(),
      ledgerMemory: { topicId: null }
    }
    return { handle, end: null, firstStart: yield* Deferred.make<string | null>(), failedFirst: null }
  })

/** Runs a flow again and again until it stops, or fails in a way that only a person can mend. */
const supervise = (
  config: ResolvedConfig,
  supervised: Supervised,
  all: ReadonlyArray<Supervised>,
  run: RunFlow
): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { handle } = supervised
    const { state } = handle
    let delayMs = RETRY_FLOOR_MS
    const first = Effect.gen(function*() {
      yield* Deferred.await(handle.started)
      supervised.failedFirst ??= false
      yield* Deferred.succeed(supervised.firstStart, null)
    })
    yield* Effect.forkChild(first)
    while (!handle.stopping()) {
      const startedAt = yield* Clock.currentTimeMillis
      const exit = yield* Effect.exit(Effect.scoped(run(config, handle)))
      const now = yield* Clock.currentTimeMillis
      if (Exit.isSuccess(exit) || handle.stopping()) break
      const reason = sentence(exit.cause)
      const began = Deferred.isDoneUnsafe(handle.started)
      yield* Deferred.succeed(supervised.firstStart, began ? null : reason)
      supervised.failedFirst ??= !began
      // The service ends with this, and says so in its own line: nothing is started again.
      const last = all.every((other) => other.failedFirst === true)
      if (Cause.hasDies(exit.cause)) yield* Effect.logError(Cause.pretty(exit.cause))
      if (Cause.squash(exit.cause) instanceof FlowStopped) {
        supervised.end = "failed"
        state.become("failed", reason, now)
        const alone = all.every((other) => other.end === "failed")
        return yield* last || alone ? Effect.void : Effect.logError(`the flow has stopped: ${reason}`)
      }
      if (Cause.squash(exit.cause) instanceof GuaranteeChanged) {
        state.become("retrying", reason, now)
        yield* Effect.logWarning(`the guarantee changes: ${reason}`)
        continue
      }
      // A flow that ran for a while has earned a quick new start.
      if (now - startedAt > RETRY_CEILING_MS) delayMs = RETRY_FLOOR_MS
      state.become("retrying", reason, now)
      if (last) return
      yield* Effect.logWarning(`the flow failed and is started again in ${Math.round(delayMs / 1000)} s: ${reason}`)
      yield* Effect.sleep(delayMs * (0.8 + 0.4 * (yield* Random.next)))
      delayMs = Math.min(delayMs * 2, RETRY_CEILING_MS)
    }
    supervised.end = "stopped"
    state.become("stopped", null, yield* Clock.currentTimeMillis)
    yield* Effect.logInfo(`the flow has stopped; it has mirrored ${state.mirrored} records since it was started`)
  }).pipe(Effect.annotateLogs({ flow: supervised.handle.flow.name }))

/** Fails when no flow could be started: then it is the configuration or the network, and somebody should know now. */
const firstStarts = (all: ReadonlyArray<Supervised>): Effect.Effect<void, ServiceError> =>
  Effect.gen(function*() {
    const outcomes = yield* Effect.forEach(all, (one) =>
      Effect.map(Deferred.await(one.firstStart), (reason) => ({ one, reason })), { concurrency: "unbounded" })
    if (
      outcomes.some(({ reason }) =>
        reason === null
      )
    ) return
    return yield* new ServiceError({
      lines: outcomes.map(({ one, reason }) => `flow ${one.handle.flow.name}: ${reason}`)
    })
  })

const allFailed = (
  all: ReadonlyArray<Supervised>,
  fibers: ReadonlyArray<Fiber.Fiber<void>>
): Effect.Effect<void, ServiceError> =>
  Effect.gen(function*() {
    yield* Effect.forEach(fibers, Fiber.await, { concurrency: "unbounded", discard: true })
    const lines = all.filter((one) => one.end !== "stopped").map((one) =>
      `flow ${one.handle.flow.name}: ${one.handle.state.reason ?? "ended"}`
    )
    if (lines.length > 0) return yield* new ServiceError({ lines })
  })

/** Completes when each flow has reached its goal; fails when one cannot: it has failed for good, or left topics out. */
const allCaughtUp = (
  all: ReadonlyArray<Supervised>,
  fibers: ReadonlyArray<Fiber.Fiber<void>>
): Effect.Effect<void, ServiceError> =>
  Effect.forEach(all, ({ handle }, n) => {
    const { caughtUp } = handle
    if (caughtUp === null) return Effect.void
    const ended = Effect.andThen(
      Fiber.await(fibers[n] as Fiber.Fiber<void>),
      Effect.suspend(() =>
        Effect.fail(
          new ServiceError({
            lines: [`flow ${handle.flow.name}: ${handle.state.reason ?? "ended before it had caught up"}`]
          })
        )
      )
    )
    return Effect.raceFirst(Deferred.await(caughtUp.reached), ended)
  }, { concurrency: "unbounded", discard: true }).pipe(Effect.andThen(Effect.suspend(() => {
    const lines = all.flatMap(({ handle }) => unplacedLines(handle.flow.name, handle.caughtUp?.missed ?? []))
    return lines.length === 0 ? Effect.void : Effect.fail(new ServiceError({ lines }))
  })))

/** Stops in two steps: rounds at work may finish, then what is left is interrupted. */
const stop = (
  all: ReadonlyArray<Supervised>,
  fibers: ReadonlyArray<Fiber.Fiber<void>>,
  begin: () => void,
  timeoutMs: number
): Effect.Effect<void> =>
  Effect.gen(function*() {
    begin()
    const now = yield* Clock.currentTimeMillis
    if (all.some(({ handle }) => handle.state.state === "running")) {
      yield* Effect.logInfo(`stops: what is being written is finished first, for ${timeoutMs} ms at the most`)
    }
    // A flow that is still connecting, or waits for its next try, has nothing to finish.
    yield* Fiber.interruptAll(fibers.filter((_, n) => all[n]?.handle.state.state !== "running"))
    for (const { end, handle } of all) if (end === null) handle.state.become("stopping", null, now)
    const finished = Effect.forEach(fibers, Fiber.await, { concurrency: "unbounded", discard: true })
    yield* Effect.timeoutOrElse(finished, {
      duration: timeoutMs,
      orElse: () => Effect.logWarning(`not finished within shutdown.timeout.ms (${timeoutMs}); the rest is given back`)
    })
    yield* Fiber.interruptAll(fibers)
  })

/** A service that has been begun; it stops, in order, when its scope closes. */
export interface RunningService {
  /** What /status says now; never waits. */
  readonly status: Effect.Effect<StatusInput>
  /** Completes when the first flow runs; fails with ServiceError when none could be started. */
  readonly started: Effect.Effect<void, ServiceError>
  /** Ends when every flow has (or is caught up, where that was asked for); ServiceError where one has failed for good. */
  readonly ended: Effect.Effect<void, ServiceError>
}

/** Begins every enabled flow. Fails when none is enabled, and when HTTP or the metrics' export cannot be begun. */
export const startService = (
  config: ResolvedConfig,
  options: ServiceOptions,
  run: RunFlow = runFlow
): Effect.Effect<RunningService, ServiceError, Scope.Scope> =>
  Effect.gen(function*() {
    const startedAtMs = yield* Clock.currentTimeMillis
    const enabled = config.flows.filter((flow) => flow.enabled)
    if (enabled.length === 0) return yield* new ServiceError({ lines: [`${config.path}: no flow is enabled`] })
    let stopping = false
    const all = yield* Effect.forEach(enabled, (flow) => makeSupervised(flow, options, () => stopping))
    const handles = all.map(({ handle }) => handle)
    const rates = new Rates()
    yield* processMetrics(VERSION)
    const collector = yield* Effect.mapError(
      exportMetrics(VERSION),
      (error) => new ServiceError({ lines: [error.message] })
    )
    if (collector !== null) yield* Effect.logInfo(`metrics go to ${collector}`)
    const status = Effect.map(
      Clock.currentTimeMillis,
      (nowMs) => statusDocument(handles, { version: VERSION, startedAtMs, nowMs }, rates)
    )
    if (config.http !== null) {
      const history = new History()
      yield* Effect.forkScoped(keepHistory(history, () => readings(handles)))
      const served = yield* Effect.mapError(
        serveHttp({ ...config.http, status, history: () => history.document() }),
        (error) => new ServiceError({ lines: [error.message] })
      )
      yield* Effect.logInfo(`status at ${served.url}/`)
    }
    const fibers = yield* Effect.acquireRelease(
      Effect.forEach(all, (one) => Effect.forkDetach(supervise(config, one, all, run))),
      (running) =>
        stop(all, running, () => {
          stopping = true
        }, config.shutdownTimeoutMs)
    )
    const started = firstStarts(all)
    const end = options.untilCaughtUp ? allCaughtUp(all, fibers) : allFailed(all, fibers)
    return { status, started, ended: Effect.andThen(started, end) }
  })

/**
 * Runs every enabled flow until interrupted (or caught up, where that is asked for). Fails with ServiceError when
 * no flow can run.
 */
export const runService = (
  config: ResolvedConfig,
  options: ServiceOptions,
  run: RunFlow = runFlow
): Effect.Effect<void, ServiceError> =>
  Effect.scoped(Effect.flatMap(startService(config, options, run), (service) => service.ended))
