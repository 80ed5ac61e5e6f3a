/**
 * A transactional producer of raw record batches. Version 2 of transactions (KIP-890) where the target has it: Produce
 * adds the partition to the transaction by itself, EndTxn brings the next epoch. Version 1 otherwise: partitions are
 * added first, and whatever leaves a request in doubt is followed by InitProducerId before the next transaction.
 *
 * Guarantees: see transactionState.ts. A batch is in a partition once and in order, as with makeProducer; a batch that
 * cannot be placed in order makes the transaction abort, nothing is ever numbered anew inside it.
 */
import { Effect, Exit, type Scope, Semaphore } from "effect"
import { addPartitions, type Coordinator, endTransaction, type TopicPartition } from "./coordinator.ts"
import { drive, type Engine } from "./drive.ts"
import { Partitions } from "./partitions.ts"
import {
  PartitionBlocked,
  type ProducerError,
  ProducerFenced,
  type ProducerRefused,
  TransactionMustAbort
} from "./produceErrors.ts"
import { type Producer, type ProducerOptions, type Stall, stallNotes } from "./producer.ts"
import type { Outgoing, ProduceOutcome } from "./produceRun.ts"
import { defaultProducerSettings } from "./producerSettings.ts"
import { Routes } from "./routes.ts"
import type { Identity } from "./sequences.ts"
import { nowMs } from "../wire/retry.ts"
import { backOff, takeOver } from "./takeOver.ts"
import { type Outcome, TransactionState } from "./transactionState.ts"

export interface TransactionalOptions extends ProducerOptions {
  /** Stable for a lane, and of no other live lane: the newer one fences the older. */
  readonly transactionalId: string
}

export interface TransactionalProducer extends Producer {
  readonly transactionalId: string
  /** Of the open transaction, or of the next one; null before the first `init`. */
  readonly identity: Effect.Effect<Identity | null>
  /** Of the transactions it makes; known after the first `init`. */
  readonly version: Effect.Effect<1 | 2>
  /** Whether `begin` would begin at once. False: something is in doubt, or nothing was asked yet, and `init` comes first. */
  readonly ready: Effect.Effect<boolean>
  /**
   * InitProducerId until it succeeds: aborts what is open under this id and settles what is in doubt. `begin` does it
   * by itself where it is needed. Fails with ProducerFenced after two fencings in a row.
   */
  readonly init: Effect.Effect<void, ProducerFenced | ProducerRefused>
  readonly begin: Effect.Effect<void, ProducerFenced | ProducerRefused>
  /**
   * As Producer.produce, inside the open transaction. An outcome that is not ok and surely not written leaves the
   * transaction good; anything else makes `commit` abort.
   */
  readonly produce: (batches: ReadonlyArray<Outgoing>) => Effect.Effect<ReadonlyArray<ProduceOutcome>, ProducerError>
  /**
   * A request that takes part in the open transaction and is no batch (an acknowledgement of KIP-1289). Without an
   * answer it may arrive late: under version 1 in the next transaction, so InitProducerId comes before that.
   */
  readonly participate: <A, E>(request: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Waits for a coordinator that cannot be reached. After "unknown" and after an interruption: `init`, then find out. */
  readonly commit: Effect.Effect<Outcome>
  /** Never "unknown": no commit was asked for. */
  readonly abort: Effect.Effect<Outcome>
  /** Why a request to the coordinator has to be repeated, while that is so. */
  readonly waiting: Effect.Effect<string | null>
}

/** Coordinators move, and load what they lead: so long it is nothing to speak of, milliseconds. */
const PATIENCE_MS = 5_000
/** Another reason is not said sooner than this after one, milliseconds: each broker that is tried has its own. */
const AGAIN_MS = 30_000

class Transactions {
  readonly #coordinator: Coordinator
  readonly #state = new TransactionState()
  readonly #partitions = new Partitions({ mayRestart: false })
  readonly #routes = new Routes()
  readonly #note: ReturnType<typeof stallNotes>
  /** Version 1: partitions of the open transaction. */
  readonly #added = new Set<string>()
  #version: 1 | 2 = 1
  readonly #onWaiting: (reason: string | null) => void
  /** Monotonic; when what waits was begun. */
  #sinceMs = 0
  #said: string | null = null
  #saidMs = 0
  waiting: string | null = null

  constructor(options: TransactionalOptions, stalls: Map<string, Stall>) {
    const { cluster, purpose, transactionalId } = options
    const settings = { ...defaultProducerSettings, ...options.settings }
    this.#coordinator = {
      cluster,
      purpose,
      transactionalId,
      settings,
      state: this.#state,
      onWait: (reason) => this.#waits(reason)
    }
    this.#onWaiting = options.onWaiting ?? (() => {})
    this.#note = stallNotes(options, stalls)
  }

  get identity(): Identity | null {
    return this.#state.identity
  }

  get version(): 1 | 2 {
    return this.#version
  }
  get ready(): boolean {
    return this.#state.phase.kind === "ready"
  }

  /** Something is asked of the coordinator. */
  get #asks(): Effect.Effect<void> {
    return Effect.map(nowMs, (now) => void (this.#sinceMs = now))
  }

  #waits(reason: string | null): Effect.Effect<void> {
    return Effect.map(nowMs, (now) => {
      this.waiting = reason
      if (reason === this.#said || (reason !== null && now - this.#sinceMs < PATIENCE_MS)) return
      if (reason !== null && this.#said !== null && now - this.#saidMs < AGAIN_MS) return
      this.#said = reason
      this.#saidMs = now
      this.#onWaiting(reason)
    })
  }

  get init(): Effect.Effect<void, ProducerFenced | ProducerRefused> {
    return Effect.gen({ self: this }, function*() {
      yield* this.#asks
      const { cluster, onWait, purpose, settings, transactionalId } = this.#coordinator
      if (this.#state.fencedForGood) {
        return yield* new ProducerFenced({
          transactionalId,
          what: "fenced twice in a row: another live producer uses the same transactional id"
        })
      }
      const identity = yield* takeOver({ cluster, purpose, transactionalId, ...settings, onWait })
      this.#version = yield* this.#newestVersion
      yield* onWait(null)
      this.#state.initialised(identity)
    })
  }

  get #newestVersion(): Effect.Effect<1 | 2> {
    return Effect.gen({ self: this }, function*() {
      const { cluster, onWait, settings } = this.#coordinator
      for (let attempt = 0;; attempt++) {
        const features = yield* Effect.result(cluster.features)
        if (features._tag === "Success") return (features.success.get("transaction.version") ?? 0) >= 2 ? 2 : 1
        yield* onWait(features.failure.message)
        yield* backOff(attempt, settings)
      }
    })
  }

  get begin(): Effect.Effect<void, ProducerFenced | ProducerRefused> {
    return Effect.gen({ self: this }, function*() {
      if (this.#state.phase.kind !== "ready") yield* this.init
      this.#state.begin()
      this.#added.clear()
      const { identity } = this.#state
      for (const p of this.#partitions.all()) {
        if (identity !== null && p.sequences.identity !== identity) {
          p.sequences.assign(identity, { zeroFirst: this.#version === 2 })
        }
      }
    })
  }

  produce(batches: ReadonlyArray<Outgoing>): Effect.Effect<ReadonlyArray<ProduceOutcome>, ProducerError> {
    return Effect.gen({ self: this }, function*() {
      const { phase } = this.#state
      if (phase.kind !== "open") {
        return yield* new TransactionMustAbort({
          what: phase.kind === "mustAbort" ? phase.reason : "no transaction is open"
        })
      }
      this.#state.touch()
      const blocked = this.#version === 1 ? yield* this.#addPartitions(batches) : new Map<string, number>()
      const open = batches.filter((batch) => !blocked.has(keyOf(batch)))
      const produced = open.length === 0 ? [] : yield* drive(this.#engine(), open)
      if (produced.some((outcome) => !outcome.ok && outcome.error.written === "unknown")) {
        this.#state.inDoubt()
        this.#state.fail("a batch may or may not be in the log")
      }
      const rest = produced[Symbol.iterator]()
      return batches.map((batch) => blockedOutcome(batch, blocked) ?? rest.next().value as ProduceOutcome)
    }).pipe(Effect.onExit((exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit)) return
        this.#note.giveUp(this.#partitions.all())
        this.#state.inDoubt()
        this.#state.fail("not everything was produced")
      })
    ))
  }

  participate<A, E>(request: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      this.#state.touch()
      return Effect.onError(request, () =>
        Effect.sync(() => {
          this.#state.inDoubt()
          this.#state.fail("not every request of it was answered")
        }))
    })
  }

  #addPartitions(batches: ReadonlyArray<Outgoing>): Effect.Effect<ReadonlyMap<string, number>, ProducerError> {
    return Effect.gen({ self: this }, function*() {
      const missing = new Map(
        batches.filter((batch) => !this.#added.has(keyOf(batch))).map((batch) => [keyOf(batch), batch])
      )
      if (missing.size === 0) return new Map()
      yield* this.#asks
      const blocked = yield* addPartitions(this.#coordinator, [...missing.values()])
      for (const key of missing.keys()) if (!blocked.has(key)) this.#added.add(key)
      return blocked
    })
  }

  #engine(): Engine {
    const { cluster, purpose, settings, transactionalId } = this.#coordinator
    return {
      cluster,
      purpose,
      transactionalId,
      settings,
      routes: this.#routes,
      partitions: this.#partitions,
      identity: { current: this.#state.identity },
      // Produce 12 and up would add partitions under version 2's rules; 11 and below would not add them at all.
      zeroFirst: this.#version === 2,
      versions: this.#version === 2 ? { min: 12 } : { max: 11 },
      ...this.#note
    }
  }

  end(commit: boolean): Effect.Effect<Outcome> {
    return Effect.suspend(() => {
      // Under version 1 the numbers go on in the next transaction, so a missing one needs a new epoch.
      const missing = this.#version === 1 && [...this.#partitions.all()].some((p) => p.sequences.hasHole)
      if (missing) this.#state.inDoubt()
      const next = this.#state.end(commit)
      if (next.kind !== "ask") return Effect.succeed(next)
      const { commit: really, reason } = next
      return Effect.andThen(
        this.#asks,
        endTransaction(this.#coordinator, really, reason, this.#version === 2)
      )
    })
  }
}

const keyOf = ({ partition, topic }: TopicPartition): string => `${topic}/${partition}`

const blockedOutcome = (batch: Outgoing, blocked: ReadonlyMap<string, number>): ProduceOutcome | null => {
  const code = blocked.get(keyOf(batch))
  if (code === undefined) return null
  return {
    ok: false,
    error: new PartitionBlocked({ topic: batch.topic, partition: batch.partition, code, detail: null, written: "no" })
  }
}

/** Starts without asking anything: the first `init` or `begin` does. */
export const makeTransactionalProducer = (
  options: TransactionalOptions
): Effect.Effect<TransactionalProducer, never, Scope.Scope> =>
  Effect.gen(function*() {
    const stalls = new Map<string, Stall>()
    const transactions = new Transactions(options, stalls)
    const oneAtATime = yield* Semaphore.make(1)
    yield* Effect.addFinalizer(() => options.cluster.release(options.purpose))
    return {
      transactionalId: options.transactionalId,
      identity: Effect.sync(() => transactions.identity),
      version: Effect.sync(() => transactions.version),
      ready: Effect.sync(() => transactions.ready),
      init: oneAtATime.withPermit(Effect.suspend(() => transactions.init)),
      begin: oneAtATime.withPermit(Effect.suspend(() => transactions.begin)),
      produce: (batches) =>
        batches.length === 0 ? Effect.succeed([]) : oneAtATime.withPermit(transactions.produce(batches)),
      participate: (request) => oneAtATime.withPermit(transactions.participate(request)),
      commit: oneAtATime.withPermit(Effect.suspend(() => transactions.end(true))),
      abort: oneAtATime.withPermit(Effect.suspend(() => transactions.end(false))),
      stalls: Effect.sync(() => [...stalls.values()]),
      waiting: Effect.sync(() => transactions.waiting)
    }
  })
