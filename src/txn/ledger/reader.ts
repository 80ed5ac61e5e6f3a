/**
 * Keeps the tail of one ledger partition up to date, for all lanes of a worker: reads the log from its start (R2)
 * and wakes who waits for what it says.
 *
 * Guarantees
 * 1. `tail()` is replaced when its next offset is no longer in the log (R11: it was pruned past us): the new one
 *    starts at the log's start, never at its end. `generation` tells; a transaction that was open across it aborts.
 * 2. Brokers that cannot be reached are waited for; what does not pass by itself (a right, a foreign record, a log
 *    that has lost its end) fails every waiter, in words.
 */
import { Effect, type Scope } from "effect"
import type { BatchView } from "../../wire/batch/recordBatch.ts"
import { ProtocolError } from "../../wire/bytes.ts"
import { passesByItself } from "../../wire/retry.ts"
import { BindingStopped } from "../binding.ts"
import { backOff } from "../takeOver.ts"
import { readBatch } from "./batches.ts"
import type { LedgerLog, LogError } from "./log.ts"
import { type Mutations, NO_MUTATIONS } from "./mutations.ts"
import { Signal } from "./signal.ts"
import { LedgerTail } from "./tail.ts"

export interface LedgerReader {
  readonly partition: number
  readonly log: LedgerLog
  readonly tail: () => LedgerTail
  /** Counts the tails there have been; 0 before the first. */
  readonly generation: () => number
  /** Returns once the test holds; it is asked after each thing read. Any wait ends with the reader. */
  readonly until: (test: (tail: LedgerTail) => boolean) => Effect.Effect<void, BindingStopped>
  /** R8: asks for the log's end now, and reads to it. The tail is ready then. */
  readonly toEnd: Effect.Effect<void, BindingStopped>
  /** Fails as soon as nothing can be read any more; never returns. */
  readonly ended: Effect.Effect<never, BindingStopped>
  /** Wakes waiters although nothing was read (patience that has passed, a stop). */
  readonly nudge: () => void
}

export interface ReaderOptions {
  readonly log: LedgerLog
  /** For messages. */
  readonly topic: string
  readonly mutations?: Mutations
  readonly onRestart?: (why: string) => void
}

const BACKOFF = { retryBackoffMs: 100, retryBackoffMaxMs: 1_000 }

const stopped = (what: string): BindingStopped => new BindingStopped({ binding: "ledger", what })
const stoppedForGood = (what: string): BindingStopped => new BindingStopped({ binding: "ledger", what, forGood: true })

class Reader implements LedgerReader {
  readonly log: LedgerLog
  readonly #options: ReaderOptions
  readonly #changed = new Signal()
  #tail = new LedgerTail(0)
  #generation = 0
  #failure: BindingStopped | null = null

  constructor(options: ReaderOptions) {
    this.#options = options
    this.log = options.log
  }

  get partition(): number {
    return this.log.partition
  }
  readonly tail = (): LedgerTail => this.#tail
  readonly generation = (): number => this.#generation
  readonly nudge = (): void => this.#changed.notify()

  readonly until = (test: (tail: LedgerTail) => boolean): Effect.Effect<void, BindingStopped> =>
    Effect.gen({ self: this }, function*() {
      while (true) {
        const { next } = this.#changed
        if (this.#failure !== null) return yield* this.#failure
        if (this.#generation > 0 && test(this.#tail)) return
        yield* next
      }
    })

  get ended(): Effect.Effect<never, BindingStopped> {
    return Effect.andThen(this.until(() => false), Effect.never)
  }

  get toEnd(): Effect.Effect<void, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const end = yield* this.#patiently("the end of", this.log.end)
      yield* this.until((tail) => tail.ready && tail.next >= end)
    })
  }

  /** Reads until interrupted; a failure stays for whoever waits. */
  get run(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      while (true) {
        yield* this.#open
        yield* this.#follow
      }
    }).pipe(
      Effect.catch((failure) =>
        Effect.sync(() => {
          this.#failure = failure
          this.#changed.notify()
        })
      ),
      Effect.catchDefect((defect) =>
        Effect.sync(() => {
          this.#failure = stopped(
            `the ledger's reader broke: ${defect instanceof Error ? defect.message : String(defect)}`
          )
          this.#changed.notify()
        })
      )
    )
  }

  get #open(): Effect.Effect<void, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const { mutations = NO_MUTATIONS } = this.#options
      const start = yield* this.#patiently(
        "the start of",
        mutations.startAtEnd === true ? this.log.end : this.log.start
      )
      const tail = new LedgerTail(start, mutations)
      tail.aim(yield* this.#patiently("the end of", this.log.end))
      this.#tail = tail
      this.#generation++
      this.#changed.notify()
    })
  }

  /** Returns when the tail's next offset is gone. */
  get #follow(): Effect.Effect<void, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const tail = this.#tail
      while (true) {
        const read = yield* this.#patiently("what is new in", this.log.read(tail.next))
        if (read.kind === "outOfRange") return yield* this.#outOfRange(tail.next)
        tail.sawLastStable(read.lastStable)
        yield* this.#take(tail, read.batches)
        this.#changed.notify()
      }
    })
  }

  #take(tail: LedgerTail, batches: ReadonlyArray<BatchView>): Effect.Effect<void, BindingStopped> {
    return Effect.try({
      try: () => {
        for (const view of batches) tail.feed(readBatch(view))
      },
      catch: (cause) =>
        stopped(
          `${this.#options.topic}-${this.partition} cannot be understood: ${
            cause instanceof ProtocolError ? cause.what : String(cause)
          }`
        )
    })
  }

  #outOfRange(next: number): Effect.Effect<void, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const name = `${this.#options.topic}-${this.partition}`
      const end = yield* this.#patiently("the end of", this.log.end)
      if (next > end) {
        return yield* stoppedForGood(
          `${name} ends at offset ${end}, but was read up to ${next}: its newest entries are lost (an unclean leader election, or the topic was created anew), and with them the proof of what is mirrored`
        )
      }
      const start = yield* this.#patiently("the start of", this.log.start)
      this.#options.onRestart?.(
        `${name} begins at offset ${start} now, past ${next}, which was to be read next: it is read again from its start`
      )
    })
  }

  #patiently<A>(what: string, effect: Effect.Effect<A, LogError>): Effect.Effect<A, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      for (let attempt = 0;; attempt++) {
        const result = yield* Effect.result(effect)
        if (result._tag === "Success") return result.success
        if (result.failure._tag === "LedgerLost") return yield* stoppedForGood(result.failure.what)
        if (!passesByItself(result.failure)) {
          return yield* stopped(
            `${what} the ledger topic ${this.#options.topic} cannot be read: ${result.failure.message}`
          )
        }
        yield* backOff(attempt, BACKOFF)
      }
    })
  }
}

/** Starts reading; stops with its scope. */
export const makeReader = (options: ReaderOptions): Effect.Effect<LedgerReader, never, Scope.Scope> =>
  Effect.gen(function*() {
    const reader = new Reader(options)
    // Its failures are in the reader, for all who wait.
    yield* Effect.forkScoped(reader.run)
    return reader
  })
