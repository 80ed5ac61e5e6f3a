/**
 * Waits for a condition instead of for a time. The only file of the tests with a timer in it.
 *
 * Gotcha: the bound is a safety net, not an expectation. It is generous (a busy machine must not fail a test) and
 * nothing may be concluded from how long a wait took.
 */
import { setTimeout as delay } from "node:timers/promises"

export interface UntilOptions {
  /** The most to wait, milliseconds. Default 60 000. */
  readonly timeoutMs?: number
  /** What is waited for, for the message of the failure; a function is asked when the time is up. */
  readonly what: string | (() => string)
  /** Time between two looks, milliseconds. Default 50. */
  readonly everyMs?: number
}

type Truthy<A> = Exclude<A, false | null | undefined | 0 | "">

/**
 * Asks `condition` until its answer is truthy, and returns that answer. A condition that throws has no answer yet;
 * its last error is told when the time is up.
 */
export const until = async <A>(condition: () => A | Promise<A>, options: UntilOptions): Promise<Truthy<A>> => {
  const { everyMs = 50, timeoutMs = 60_000, what } = options
  const end = performance.now() + timeoutMs
  let lastError: unknown
  while (true) {
    try {
      const answer = await condition()
      if (answer) return answer as Truthy<A>
      lastError = undefined
    } catch (error) {
      lastError = error
    }
    if (performance.now() >= end) {
      const text = typeof what === "string" ? what : what()
      throw new Error(`waited ${timeoutMs} ms in vain for ${text}`, { cause: lastError })
    }
    await delay(everyMs)
  }
}

/** Fails when `promise` has not ended within `timeoutMs`; the promise itself goes on. */
export const within = async <A>(promise: Promise<A>, options: UntilOptions): Promise<A> => {
  const { timeoutMs = 60_000, what } = options
  const stop = new AbortController()
  const late = delay(timeoutMs, undefined, { signal: stop.signal }).then(() => {
    throw new Error(`waited ${timeoutMs} ms in vain for ${typeof what === "string" ? what : what()}`)
  })
  late.catch(() => undefined)
  try {
    return await Promise.race([promise, late])
  } finally {
    stop.abort()
  }
}
