/**
 * Trying again, by the class of the failure and within a deadline.
 *
 * Guarantees: waits are exponential with full jitter (a random share of the ceiling, so that many workers do not
 * come back at the same moment); nothing runs past the deadline; the failure that is reported is the last real
 * one. Only what passes by itself is tried again.
 */
import { Clock, Effect, Random } from "effect"
import { ConnectionError, type WireError } from "./errors.ts"

/** Monotonic milliseconds: deadlines must not move when somebody sets the wall clock. */
export const nowMs: Effect.Effect<number> = Effect.map(
  Clock.monotonicTimeNanos,
  (nanos) => Number(nanos / 1000n) / 1000
)

/** min(max, base x 2^attempt), attempts counted from 0. */
export const backoffCeilingMs = (attempt: number, baseMs: number, maxMs: number): number =>
  Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30))

/** The wait before the next try. */
export const backoffMs = (attempt: number, baseMs: number, maxMs: number): Effect.Effect<number> =>
  Effect.map(Random.next, (share) => Math.ceil(share * backoffCeilingMs(attempt, baseMs, maxMs)))

/** Whether a failure may be gone when the same thing is tried again (after the look-ups its class asks for). */
export const passesByItself = (error: WireError): boolean => {
  switch (error._tag) {
    case "BrokerError":
      return error.class === "retriable" || error.class === "refresh" || error.class === "coordinator"
    case "ConnectionError":
      return error.kind !== "tls" && error.kind !== "authentication"
    case "ProtocolError":
    case "UnsupportedError":
      return false
  }
}

export interface RetryOptions {
  /** Whole time, milliseconds. */
  readonly timeoutMs: number
  readonly backoffMs: number
  readonly backoffMaxMs: number
  /** Which failures are tried again; default `passesByItself`. */
  readonly passes?: (error: WireError) => boolean
  /** What to do before the next try (look up a leader anew, ...). */
  readonly before?: (error: WireError) => Effect.Effect<void>
}

const tooLate = (options: RetryOptions): ConnectionError =>
  new ConnectionError({
    address: "cluster",
    kind: "timeout",
    outcome: "unknown",
    what: `not done within ${options.timeoutMs} ms`
  })

/** Runs `effect` until it succeeds, fails for good, or the time is up. */
export const retryWithin = <A, R>(
  effect: Effect.Effect<A, WireError, R>,
  options: RetryOptions
): Effect.Effect<A, WireError, R> =>
  Effect.gen(function*() {
    const deadline = (yield* nowMs) + options.timeoutMs
    const passes = options.passes ?? passesByItself
    let last: WireError | null = null
    for (let attempt = 0;; attempt++) {
      const left = deadline - (yield* nowMs)
      const result = yield* Effect.result(effect.pipe(
        Effect.timeoutOrElse({ duration: Math.max(1, left), orElse: () => Effect.fail(last ?? tooLate(options)) })
      ))
      if (result._tag === "Success") return result.success
      last = result.failure
      if (!passes(last)) return yield* Effect.fail(last)
      const wait = yield* backoffMs(attempt, options.backoffMs, options.backoffMaxMs)
      if ((yield* nowMs) + wait >= deadline) return yield* Effect.fail(last)
      yield* Effect.sleep(wait)
      if (options.before !== undefined) yield* options.before(last)
    }
  })
