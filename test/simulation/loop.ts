/**
 * Virtual time and the one scheduler that every fiber of a simulation runs on: nothing happens but what is due next,
 * and time jumps from event to event. The same inputs give the same run, step by step.
 *
 * Why not TestClock: it is moved by fixed steps, and a simulation of a minute with requests that take milliseconds
 * would be mostly steps in which nothing happens. Sleeps here end in the order of their time, then of their start.
 */
import { type Clock, Duration, Effect, type Scheduler } from "effect"

export interface Timer {
  readonly atMs: number
  readonly order: number
  /** null: cancelled. */
  run: (() => void) | null
}

const before = (a: Timer, b: Timer): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)

/** What reaches a process from outside: let through, or kept while the process is stopped (SIGSTOP). */
export class Gate {
  readonly #kept: Array<() => void> = []
  #closed = false

  get closed(): boolean {
    return this.#closed
  }
  pass(run: () => void): void {
    if (this.#closed) this.#kept.push(run)
    else run()
  }
  close(): void {
    this.#closed = true
  }
  /** All that came meanwhile comes now, in its order. */
  open(): void {
    this.#closed = false
    while (!this.#closed && this.#kept.length > 0) this.#kept.shift()?.()
  }
}

/** Long after the epoch, so that no age or time-out is near zero. */
export const START_MS = 1_000_000_000

export class Loop {
  #nowMs = START_MS
  #order = 0
  readonly #heap: Array<Timer> = []
  #tasks: Array<() => void> = []
  /** Events so far. */
  steps = 0

  readonly scheduler: Scheduler.Scheduler = {
    executionMode: "async",
    shouldYield: (fiber) => fiber.currentOpCount >= fiber.cache.maxOpsBeforeYield,
    makeDispatcher: () => ({ scheduleTask: (task) => void this.#tasks.push(task), flush: () => this.#runTasks() })
  }

  get nowMs(): number {
    return this.#nowMs
  }

  at(atMs: number, run: () => void): Timer {
    const timer: Timer = { atMs: Math.max(Math.ceil(atMs), this.#nowMs), order: this.#order++, run }
    const heap = this.#heap
    let at = heap.push(timer) - 1
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (!before(timer, heap[parent] as Timer)) break
      heap[at] = heap[parent] as Timer
      at = parent
    }
    heap[at] = timer
    return timer
  }

  after(delayMs: number, run: () => void): Timer {
    return this.at(this.#nowMs + delayMs, run)
  }

  #pop(): Timer | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    while (true) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1] as Timer, heap[child] as Timer)) child++
      if (!before(heap[child] as Timer, last)) break
      heap[at] = heap[child] as Timer
      at = child
    }
    heap[at] = last
    return first
  }

  #runTasks(): void {
    while (this.#tasks.length > 0) {
      const tasks = this.#tasks
      this.#tasks = []
      for (const task of tasks) task()
    }
  }

  /** Until nothing can happen without time passing. The turn of the real event loop is for promises (codecs). */
  async settle(): Promise<void> {
    do {
      this.#runTasks()
      await new Promise<void>((resolve) => void setImmediate(resolve))
    } while (this.#tasks.length > 0)
  }

  /** The next event and all that follows from it at once; false when there is none before `untilMs`. */
  async step(untilMs: number): Promise<boolean> {
    while (this.#heap[0]?.run === null) this.#pop()
    const next = this.#heap[0]
    if (next === undefined || next.atMs > untilMs) {
      this.#nowMs = Math.max(this.#nowMs, untilMs)
      return false
    }
    this.#pop()
    this.#nowMs = next.atMs
    this.steps++
    const { run } = next
    next.run = null
    run?.()
    await this.settle()
    return true
  }

  /** The clock of one process. */
  clock(gate: Gate): Clock.Clock {
    // Between the milliseconds, as a real one is: what is computed from it is no whole number of milliseconds.
    const nanos = () => BigInt(this.#nowMs) * 1_000_000n + BigInt((this.#nowMs * 617) % 1_000) * 1_000n
    return {
      currentTimeMillisUnsafe: () => this.#nowMs,
      currentTimeMillis: Effect.sync(() => this.#nowMs),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: nanos,
      monotonicTimeNanos: Effect.sync(nanos),
      sleep: (duration: Duration.Duration) => {
        const millis = Duration.toMillis(duration)
        if (millis <= 0) return Effect.void
        return Effect.callback<void>((resume) => {
          if (millis === Infinity) return undefined
          const timer = this.at(this.#nowMs + millis, () => gate.pass(() => resume(Effect.void)))
          return Effect.sync(() => void (timer.run = null))
        })
      }
    }
  }
}
