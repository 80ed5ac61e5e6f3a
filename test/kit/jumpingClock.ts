/**
 * A wall clock that somebody sets while the program runs (an operator, NTP, a virtual machine that was resumed). Time
 * that passes is not touched by it, so sleeps and the monotonic time go on as before.
 */
import { Clock, Effect } from "effect"

/** Runs `body` under such a clock; `jump` moves it by so many milliseconds, forth or back. */
export const withJumpingClock = <A, E, R>(
  body: (jump: (byMs: number) => void) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.clockWith((clock) => {
    let offMs = 0
    const millis = (): number => clock.currentTimeMillisUnsafe() + offMs
    const nanos = (): bigint => clock.currentTimeNanosUnsafe() + BigInt(offMs) * 1_000_000n
    const jumping: Clock.Clock = {
      ...clock,
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos)
    }
    return Effect.provideService(body((byMs) => void (offMs += byMs)), Clock.Clock, jumping)
  })

export const HOUR_MS = 3_600_000
