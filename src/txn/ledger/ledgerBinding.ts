/**
 * Exactly-once between two clusters: the note of what is mirrored is a record on the target, in the same transaction
 * as the output, and the order of notes in one log decides who may commit. docs/ledger.md has the rules (R1 to R14)
 * and why they are safe; here is who waits for what.
 *
 * Invariant, R8: whatever leaves a request in doubt is followed by InitProducerId, and by reading to the log's end,
 * before anything else of this lane.
 */
import { Effect, type Scope, Semaphore } from "effect"
import {
  type BindingCandidate,
  BindingStopped,
  type Binding,
  type BoundTransaction,
  type Outcome,
  type SourceRange,
  type Support,
  type Triage
} from "../binding.ts"
import type { ProducerOptions } from "../producer.ts"
import { makeTransactionalProducer, type TransactionalProducer } from "../transactions.ts"
import { initProducerId } from "../../wire/messages/initProducerId.ts"
import { endTxn } from "../../wire/messages/endTxn.ts"
import { Ends } from "./ends.ts"
import { ensureLedgerTopic } from "./ledgerTopic.ts"
import { LedgerTransaction, type TransactionLane } from "./ledgerTransaction.ts"
import { type Mutations, NO_MUTATIONS } from "./mutations.ts"
import type { LedgerReader } from "./reader.ts"
import { claimsOf, sortClaim } from "./rules.ts"
import type { OpenEntry } from "./tail.ts"
import { openWorker, partitionOfSlot, sharedWhileUsed, type WorkerLedger, type WorkerOptions } from "./worker.ts"

export interface LedgerOptions extends WorkerOptions, Pick<ProducerOptions, "settings" | "onStall" | "onRecover"> {
  /** Stable for a lane of this instance, and of no other live lane anywhere. */
  readonly transactionalId: (lane: string) => string
  /** See ProducerOptions. */
  readonly onWaiting?: (transactionalId: string, reason: string | null) => void
}

const stopped = (what: string): BindingStopped => new BindingStopped({ binding: "ledger", what })
/** An interrupted lane leaves its transaction to be aborted; longer than that nobody waits for it at a stop. */
const CLOSE_ABORT_MS = 5_000
/** How often a lane that has nothing to write looks whether its last transactions have ended everywhere, milliseconds. */
const LOOK_MS = 2_000
/** What markers mostly take, milliseconds. */
const MARKER_MS = 20

/** One lane's binding. */
class LedgerLane implements TransactionLane {
  readonly #worker: WorkerLedger
  readonly #producer: TransactionalProducer
  readonly #mutations: Mutations
  readonly #ends: Ends
  /** Transactional ids of both producers: the lane fences neither. */
  readonly #ids: ReadonlyArray<string>
  readonly #oneAtATime = Semaphore.makeUnsafe(1)
  /** R8 is owed. */
  #unsettled = true
  #open = false

  constructor(
    worker: WorkerLedger,
    producer: TransactionalProducer,
    ends: Ends,
    mutations: Mutations,
    ids: ReadonlyArray<string>
  ) {
    this.#worker = worker
    this.#ids = ids
    this.#producer = producer
    this.#ends = ends
    this.#mutations = mutations
  }

  get ends(): Ends {
    return this.#ends
  }

  get mutations(): Mutations {
    return this.#mutations
  }
  get producer(): TransactionalProducer {
    return this.#producer
  }
  get worker(): WorkerLedger {
    return this.#worker
  }

  readerOf(key: string): LedgerReader {
    const { readers } = this.#worker
    return readers[partitionOfSlot(key, readers.length)] as LedgerReader
  }

  /** R8 is owed: something of it may be undecided, or nothing was begun yet. */
  get owes(): Effect.Effect<boolean> {
    return Effect.map(this.#producer.ready, (ready) => this.#unsettled || !ready)
  }

  /** R8, R9. */
  get start(): Effect.Effect<void, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      this.#unsettled = true
      yield* this.#ends.ask
      yield* Effect.mapError(this.#producer.init, (error) => stopped(error.message))
      yield* this.#toEnd
      const settled = yield* this.#ends.settle
      if (settled || (yield* this.#inherit)) yield* this.#toEnd
      this.#unsettled = false
    })
  }

  get #toEnd(): Effect.Effect<void, BindingStopped> {
    return Effect.forEach(this.#worker.readers, (reader) => reader.toEnd, { discard: true })
  }

  /** All markers of this id should be in the ledger now. */
  get #inherit(): Effect.Effect<boolean, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const own = yield* this.#producer.identity
      const { readers, topic } = this.#worker
      const places = readers.filter((reader) =>
        reader.tail().open.some(({ producerId }) => producerId === own?.producerId)
      ).map(({ partition }) => ({ topic: topic.name, partition }))
      if (own === null || places.length === 0) return false
      return yield* this.#ends.inherit(own.producerId, yield* this.#producer.version, places)
    })
  }

  /** Looks, between transactions. A lane that fails here fails with its next transaction. */
  get look(): Effect.Effect<void> {
    return this.alone(Effect.suspend(() => this.#open ? Effect.void : Effect.ignore(this.#lookAround)))
  }

  /** Something hangs, or its marker has not come yet: R8 waits for it, or writes it. */
  get #lookAround(): Effect.Effect<void, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      if (!(yield* this.#ends.mayHang)) return
      for (let waitMs = MARKER_MS; waitMs < 16 * MARKER_MS; waitMs *= 2) {
        if ((yield* this.#ends.find).length === 0) return
        yield* Effect.sleep(waitMs)
      }
      yield* this.start
    })
  }

  /** R3. */
  triage(ranges: ReadonlyArray<SourceRange>): Effect.Effect<Triage, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const triage: Record<keyof Triage, Array<SourceRange>> = { done: [], wait: [], ours: [] }
      for (const claim of claimsOf(this.#worker.sourceClusterId, ranges)) {
        const reader = this.readerOf(claim.key)
        yield* reader.until((tail) => tail.ready)
        const sorted = sortClaim(reader.tail(), claim)
        const topicId = ranges.find((range) =>
          range.topic === claim.topic && range.partition === claim.slot.partition
        )?.topicId ?? claim.slot.topicId
        for (const part of ["done", "wait", "ours"] as const) {
          for (const range of sorted[part]) {
            triage[part].push({ topic: claim.topic, topicId, partition: claim.slot.partition, ...range })
          }
        }
        if (sorted.obstacles.length > 0) yield* this.consider(reader, sorted.obstacles)
      }
      return triage
    })
  }

  consider(reader: LedgerReader, entries: ReadonlyArray<OpenEntry>): Effect.Effect<number> {
    return this.#worker.fencer.consider(reader.partition, entries, reader.tail().open, this.#ids)
  }

  /** No look comes in between. */
  alone<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return this.#oneAtATime.withPermit(effect)
  }

  get begin(): Effect.Effect<BoundTransaction, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      if (yield* this.owes) yield* this.start
      else yield* this.#lookAround
      yield* Effect.mapError(this.#producer.begin, (error) => stopped(error.message))
      const own = yield* this.#producer.identity
      if (own === null) return yield* stopped("the producer has no identity after it was given one")
      this.#worker.producerIds.add(own.producerId)
      // Until it has ended for good: an interruption leaves this set.
      this.#unsettled = true
      this.#open = true
      const version = yield* this.#producer.version
      return new LedgerTransaction(this, own, version, yield* this.#ends.begin(own, version)).bound
    })
  }

  ended(outcome: Outcome): Outcome {
    this.#open = false
    this.#unsettled = outcome.kind === "unknown"
    return outcome
  }
}

/** One producer of a lane with what sees to its ends. */
const openLane = (
  options: LedgerOptions,
  worker: WorkerLedger,
  purpose: string,
  transactionalId: string,
  ids: ReadonlyArray<string>
): Effect.Effect<LedgerLane, never, Scope.Scope> =>
  Effect.gen(function*() {
    const producer = yield* makeTransactionalProducer({
      cluster: options.target,
      purpose,
      transactionalId,
      onWaiting: (reason) => options.onWaiting?.(transactionalId, reason),
      ...(options.settings === undefined ? {} : { settings: options.settings }),
      ...(options.onStall === undefined ? {} : { onStall: options.onStall }),
      ...(options.onRecover === undefined ? {} : { onRecover: options.onRecover })
    })
    const ends = new Ends({
      cluster: options.target,
      purpose,
      transactionalId,
      recorded: ({ epoch, producerId }) => {
        const said = worker.readers.map((reader) => reader.tail().fateOf(producerId, epoch))
        return said.find((one) => one === "open") ?? said.find((one) => one !== null) ?? null
      },
      whole: () => worker.readers.every((reader) => reader.tail().whole),
      log: options.log
    })
    const bound = new LedgerLane(worker, producer, ends, options.mutations ?? NO_MUTATIONS, ids)
    // Nobody waits for this fiber: what breaks in it is said here.
    const look = Effect.catchDefect(bound.look, (defect) =>
      Effect.sync(() =>
        options.log("warn", `ledger: whether transactions have ended cannot be seen: ${String(defect)}`)
      ))
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(LOOK_MS), look)))
    return bound
  })

/**
 * Transactions of one lane go by two producers in turn, one after the other all the same: a transaction begins when the
 * one before it is confirmed. Its markers are still on their way then, and a broker keeps the next transaction of the
 * same producer waiting for them, 20 ms at a time.
 */
const inTurn = (lanes: readonly [LedgerLane, LedgerLane]): Binding => {
  const [first, second] = lanes
  let last: LedgerLane = second
  return {
    name: "ledger",
    guarantee: "exactly-once",
    settlesItself: false,
    start: Effect.forEach(lanes, (lane) => lane.alone(Effect.suspend(() => lane.start)), { discard: true }),
    triage: (ranges) => last.triage(ranges),
    begin: Effect.gen(function*() {
      const [turn, other] = last === first ? [second, first] : [first, second]
      // What the other one owes is seen to before anything else.
      const [now, rests] = (yield* other.owes) ? [other, turn] : [turn, other]
      last = now
      yield* rests.look
      return yield* now.alone(Effect.suspend(() => now.begin))
    })
  }
}

/** Not what an instance.id may hold: no other lane can have it. */
const SECOND = "~2"

const makeBinding = (
  options: LedgerOptions,
  acquire: Effect.Effect<WorkerLedger, BindingStopped, Scope.Scope>,
  lane: string
): Effect.Effect<Binding, BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const worker = yield* acquire
    const purpose = `ledger-produce-${lane}`
    const transactionalId = options.transactionalId(lane)
    const ids = [transactionalId, `${transactionalId}${SECOND}`] as const
    const first = yield* openLane(options, worker, purpose, ids[0], ids)
    const second = yield* openLane(options, worker, purpose, ids[1], ids)
    // Readers of the target wait for an open transaction: none is left behind by an orderly stop. Both before either of
    // them gives its connections back.
    yield* Effect.addFinalizer(() =>
      Effect.forEach([first, second], ({ producer }) => Effect.timeoutOption(producer.abort, CLOSE_ABORT_MS), {
        concurrency: "unbounded",
        discard: true
      })
    )
    return inTurn([first, second])
  })

const unsupported = (reason: string): Support => ({ supported: false, reason })

const support = (options: LedgerOptions): Effect.Effect<Support> =>
  Effect.gen(function*() {
    const { flow, partitions, replicationFactor, source, target, targetAdmin = target } = options
    yield* source.retrying(source.clusterId)
    for (const api of [initProducerId, endTxn]) {
      const offered = yield* Effect.result(target.negotiate({ kind: "any" }, api))
      if (offered._tag === "Failure") return unsupported(`the target has no transactions: ${offered.failure.message}`)
    }
    const topic = yield* ensureLedgerTopic({
      cluster: targetAdmin,
      flow,
      mode: "validate",
      ...(partitions === undefined ? {} : { partitions }),
      ...(replicationFactor === undefined ? {} : { replicationFactor })
    })
    return topic.ok ? { supported: true } as const : unsupported(topic.reason)
  }).pipe(Effect.catch((error) => Effect.succeed(unsupported(error.message))))

export type LedgerCandidate = BindingCandidate & Required<Pick<BindingCandidate, "ledger">>

export const ledger = (options: LedgerOptions): LedgerCandidate => {
  const worker = sharedWhileUsed(openWorker(options))
  return {
    name: "ledger",
    guarantee: "exactly-once",
    support: support(options),
    make: ({ name }) => makeBinding(options, worker, name),
    ledger: worker
  }
}
