/**
 * Exactly-once between two clusters: the note of what is mirrored is a record on the target, in the same transaction
 * as the output, and the order of notes in one log decides who may commit. docs/ledger.md has the rules (R1 to R12)
 * and why they are safe; here is who waits for what.
 *
 * Invariants
 * 1. R4: all of a transaction's entries for one ledger partition are one batch (but for absurd sizes): their place in
 *    the log is one, so waiting for what is before it cannot go round in a circle.
 * 2. R5: EndTxn(commit) is asked for only when everything below our own entry was read and nothing of it that
 *    overlaps is committed or undecided.
 * 3. R8: whatever leaves a request in doubt is followed by InitProducerId, and by reading to the log's end, before
 *    anything else of this lane.
 */
import { Effect, type Scope } from "effect"
import { format } from "../../wire/ranges.ts"
import {
  type BindingCandidate,
  BindingStopped,
  type Binding,
  type BoundTransaction,
  type Outcome,
  type Placed,
  type SourceRange,
  type Support,
  type Triage
} from "../binding.ts"
import { HeldBack } from "../produceErrors.ts"
import type { ProducerOptions } from "../producer.ts"
import type { Outgoing, ProduceOutcome } from "../produceRun.ts"
import { makeTransactionalProducer, type TransactionalProducer } from "../transactions.ts"
import { initProducerId } from "../../wire/messages/initProducerId.ts"
import { endTxn } from "../../wire/messages/endTxn.ts"
import { entryRanges, type LedgerBatch, ledgerBatches } from "./batches.ts"
import type { DoneEntry, Target } from "./entry.ts"
import { ensureLedgerTopic } from "./ledgerTopic.ts"
import { type Mutations, NO_MUTATIONS } from "./mutations.ts"
import type { LedgerReader } from "./reader.ts"
import { checkClaims, type Claim, claimsOf, type Producing, sortClaim } from "./rules.ts"
import type { OpenEntry } from "./tail.ts"
import { openWorker, partitionOfSlot, sharedWhileUsed, type WorkerLedger, type WorkerOptions } from "./worker.ts"

export interface LedgerOptions extends WorkerOptions, Pick<ProducerOptions, "settings" | "onStall" | "onRecover"> {
  /** Stable for a lane of this instance, and of no other live lane anywhere. */
  readonly transactionalId: (lane: string) => string
}

const stopped = (what: string): BindingStopped => new BindingStopped({ binding: "ledger", what })
const rewound = (name: string, x: number, next: number): BindingStopped =>
  new BindingStopped({
    binding: "ledger",
    what:
      `${name} gave an entry the offset ${x}, but was read up to ${next} before: it was created anew or has lost its end, and with it the proof of what is mirrored`,
    forGood: true
  })
const aborted = (reason: string): Outcome => ({ kind: "aborted", reason })
/** An interrupted lane leaves its transaction to be aborted; longer than that nobody waits for it at a stop. */
const CLOSE_ABORT_MS = 5_000

const sameClaim = (entry: DoneEntry, claim: Claim): boolean => entry.slot === claim.slot

/** One lane's binding. */
class LedgerLane {
  readonly #worker: WorkerLedger
  readonly #producer: TransactionalProducer
  readonly #mutations: Mutations
  /** R8 is owed. */
  #unsettled = true

  constructor(worker: WorkerLedger, producer: TransactionalProducer, mutations: Mutations) {
    this.#worker = worker
    this.#producer = producer
    this.#mutations = mutations
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

  /** R8, R9. */
  get start(): Effect.Effect<void, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      this.#unsettled = true
      yield* Effect.mapError(this.#producer.init, (error) => stopped(error.message))
      yield* Effect.forEach(this.#worker.readers, (reader) => reader.toEnd, { discard: true })
      this.#unsettled = false
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
    return this.#worker.fencer.consider(reader.partition, entries, reader.tail().open, this.#producer.transactionalId)
  }

  get begin(): Effect.Effect<BoundTransaction, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      if (this.#unsettled || !(yield* this.#producer.ready)) yield* this.start
      yield* Effect.mapError(this.#producer.begin, (error) => stopped(error.message))
      const own = yield* this.#producer.identity
      if (own === null) return yield* stopped("the producer has no identity after it was given one")
      this.#worker.producerIds.add(own.producerId)
      // Until it has ended for good: an interruption leaves this set.
      this.#unsettled = true
      return new LedgerTransaction(this, own, yield* this.#producer.version).bound
    })
  }

  ended(outcome: Outcome): Outcome {
    this.#unsettled = outcome.kind === "unknown"
    return outcome
  }
}

const isTwice = (ranges: ReadonlyArray<SourceRange>): boolean => {
  const sorted = ranges.toSorted((a, b) =>
    a.topicId.localeCompare(b.topicId) || a.topic.localeCompare(b.topic) || a.partition - b.partition ||
    a.first - b.first
  )
  return sorted.some((range, n) => {
    const before = sorted[n - 1]
    return before !== undefined && before.topicId === range.topicId && before.topic === range.topic &&
      before.partition === range.partition && before.last >= range.first
  })
}

/** Entries in the log, and what they hold. */
interface Written {
  readonly x: number
  readonly claims: ReadonlyArray<Claim>
}

class LedgerTransaction {
  readonly #lane: LedgerLane
  readonly #own: Producing
  readonly #version: 1 | 2
  readonly #generations: ReadonlyArray<number>
  readonly #ranges: Array<SourceRange> = []
  readonly #outputs: Array<Placed> = []
  /** To be sent with the first entry. */
  #notes: ReadonlyArray<Outgoing> = []
  #produced = false
  /** Why it can only be aborted. */
  #doomed: string | null = null

  constructor(lane: LedgerLane, own: Producing, version: 1 | 2) {
    this.#lane = lane
    this.#own = own
    this.#version = version
    this.#generations = lane.worker.readers.map((reader) => reader.generation())
  }

  get bound(): BoundTransaction {
    return {
      produce: (batches) => this.#produce(batches),
      stage: (ranges, outputs, notes = []) =>
        Effect.sync(() => {
          // R5 compares with other transactions: two outputs of one record in this one it would not see.
          if (isTwice([...this.#ranges, ...ranges])) this.#doomed ??= "it holds the same source offsets twice"
          this.#ranges.push(...ranges)
          this.#outputs.push(...outputs)
          this.#notes = [...this.#notes, ...notes]
        }),
      commit: Effect.suspend(() => this.#commit),
      abort: Effect.suspend(() => this.#abort("given up"))
    }
  }

  /** A transaction that can only be aborted takes nothing more: the lane keeps what it has and hears "aborted" from `commit`. */
  #produce(batches: ReadonlyArray<Outgoing>): ReturnType<BoundTransaction["produce"]> {
    const heldBack = (): ReadonlyArray<ProduceOutcome> =>
      batches.map(({ partition, topic }) => ({
        ok: false,
        error: new HeldBack({ topic, partition, written: "unknown" })
      }))
    return Effect.suspend(() => {
      if (this.#doomed !== null) return Effect.succeed(heldBack())
      this.#produced = true
      const doom = (error: { readonly message: string }) =>
        Effect.sync(() => {
          this.#doomed = error.message
          return heldBack()
        })
      return this.#lane.producer.produce(batches).pipe(
        Effect.catchTags({ TransactionMustAbort: doom, ProducerFenced: doom })
      )
    })
  }

  #abort(reason: string): Effect.Effect<Outcome> {
    return Effect.map(
      this.#lane.producer.abort,
      (outcome) => this.#lane.ended(outcome.kind === "aborted" ? aborted(reason) : outcome)
    )
  }

  get #commit(): Effect.Effect<Outcome, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const { mutations, producer, worker } = this.#lane
      if (this.#doomed !== null) return yield* this.#abort(this.#doomed)
      if (this.#ranges.length === 0 && this.#produced) {
        return yield* this.#abort("it has outputs that stand for no source record")
      }
      const claims = claimsOf(worker.sourceClusterId, this.#ranges)
      // R4b: ascending, each partition passed before the next is written.
      for (const reader of worker.readers) {
        const here = claims.filter((claim) => this.#lane.readerOf(claim.key) === reader)
        if (here.length === 0) continue
        const problem = yield* this.#pass(reader, here)
        if (problem !== null) return yield* this.#abort(problem)
      }
      // R6, or R8 when nobody answers.
      const outcome = yield* producer.commit
      if (mutations.acceptBeforeCommit === true) return this.#lane.ended({ kind: "committed" })
      return this.#lane.ended(outcome)
    })
  }

  /** R4 and R5 in one ledger partition. Null, or why the transaction must be aborted. */
  #pass(reader: LedgerReader, claims: ReadonlyArray<Claim>): Effect.Effect<string | null, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const batches = ledgerBatches(this.#entries(claims))
      const written = yield* this.#write(reader, batches, claims)
      if (typeof written === "string") return written
      for (const one of written) {
        const problem = yield* this.#check(reader, one)
        if (problem !== null) return problem
      }
      return null
    })
  }

  #entries(claims: ReadonlyArray<Claim>): ReadonlyArray<DoneEntry> {
    const all = this.#outputs.map((placed): Target => ({
      topic: placed.topic,
      partition: placed.partition,
      baseOffset: placed.baseOffset,
      sourceOffset: -1
    }))
    // Which output is of which slot is not known here, but for a transaction over a single one.
    const targets = claims.length === 1 ? all : []
    return claims.flatMap(({ ranges, slot }) =>
      entryRanges(ranges).map((part, n): DoneEntry => ({
        kind: "done",
        slot,
        ranges: part,
        transactionalId: this.#lane.producer.transactionalId,
        transactionVersion: this.#version,
        targets: n === 0 ? targets : []
      }))
    )
  }

  #write(
    reader: LedgerReader,
    batches: ReadonlyArray<LedgerBatch<DoneEntry>>,
    claims: ReadonlyArray<Claim>
  ): Effect.Effect<ReadonlyArray<Written> | string, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const { name } = this.#lane.worker.topic
      const { next } = reader.tail()
      const notes = this.#notes
      this.#notes = []
      const produced = yield* Effect.result(
        this.#produce([...batches.map(({ bytes }) => ({ topic: name, partition: reader.partition, bytes })), ...notes])
      )
      if (produced._tag === "Failure") return `its ledger entry could not be written: ${produced.failure.message}`
      if (this.#doomed !== null) return this.#doomed
      const written: Array<Written> = []
      const noted = produced.success.slice(batches.length).find((outcome) => !outcome.ok)
      if (noted?.ok === false) return `its offset note could not be written: ${noted.error.message}`
      for (const [n, outcome] of produced.success.slice(0, batches.length).entries()) {
        if (!outcome.ok) return `its ledger entry could not be written: ${outcome.error.message}`
        const entries = batches[n]?.entries ?? []
        // What was read does not lie below it: R5 would hold of another log.
        if (outcome.baseOffset >= 0 && outcome.baseOffset < next) {
          return yield* rewound(`${name}-${reader.partition}`, outcome.baseOffset, next)
        }
        const held = claims.filter((claim) => entries.some((entry) => sameClaim(entry, claim)))
        const x = outcome.baseOffset >= 0 ? outcome.baseOffset : yield* this.#find(reader)
        if (x === null) return "its ledger entry is gone: the transaction was aborted by somebody else"
        written.push({ x, claims: held })
      }
      return written
    })
  }

  /** Where our entry is, when the broker only knows that it has it: the highest place it can be. */
  #find(reader: LedgerReader): Effect.Effect<number | null, BindingStopped> {
    return Effect.map(reader.toEnd, () => {
      const own = reader.tail().open.filter((entry) =>
        entry.producerId === this.#own.producerId && entry.epoch === this.#own.epoch
      )
      return own.at(-1)?.offset ?? null
    })
  }

  /** R5. */
  #check(reader: LedgerReader, { claims, x }: Written): Effect.Effect<string | null, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const { mutations } = this.#lane
      const generation = this.#generations[reader.partition]
      const pruned = () => reader.generation() !== generation && mutations.goOnWhenPruned !== true
      if (mutations.skipCheck === true) return null
      while (true) {
        yield* reader.until((tail) => pruned() || tail.next >= x)
        // R11: what was pruned past us may have decided against us.
        if (pruned()) return "the ledger was pruned past this worker while the transaction was open"
        const verdict = checkClaims(reader.tail(), x, this.#own, claims, mutations)
        if (verdict.kind === "commit") return null
        if (verdict.kind === "abort") {
          return `${verdict.claim.topic}-${verdict.claim.slot.partition}: ${
            format(verdict.committed)
          } is mirrored already by another transaction`
        }
        yield* this.#awaitOne(reader, verdict.entries)
      }
    })
  }

  /** Until one of the entries is decided, the tail was replaced, or patience should be looked at again. */
  #awaitOne(reader: LedgerReader, entries: ReadonlyArray<OpenEntry>): Effect.Effect<void, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const leftMs = yield* this.#lane.consider(reader, entries)
      const generation = reader.generation()
      const decided = reader.until((tail) =>
        reader.generation() !== generation || entries.some((entry) => !tail.open.includes(entry))
      )
      yield* Effect.timeoutOption(decided, leftMs)
    })
  }
}

const makeBinding = (
  options: LedgerOptions,
  acquire: Effect.Effect<WorkerLedger, BindingStopped, Scope.Scope>,
  lane: string
): Effect.Effect<Binding, BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const worker = yield* acquire
    const producer = yield* makeTransactionalProducer({
      cluster: options.target,
      purpose: `ledger-produce-${lane}`,
      transactionalId: options.transactionalId(lane),
      ...(options.settings === undefined ? {} : { settings: options.settings }),
      ...(options.onStall === undefined ? {} : { onStall: options.onStall }),
      ...(options.onRecover === undefined ? {} : { onRecover: options.onRecover })
    })
    // Readers of the target wait for an open transaction: none is left behind by an orderly stop.
    yield* Effect.addFinalizer(() => Effect.timeoutOption(producer.abort, CLOSE_ABORT_MS))
    const bound = new LedgerLane(worker, producer, options.mutations ?? NO_MUTATIONS)
    return {
      name: "ledger",
      guarantee: "exactly-once",
      settlesItself: false,
      start: Effect.suspend(() => bound.start),
      triage: (ranges) => bound.triage(ranges),
      begin: Effect.suspend(() => bound.begin)
    }
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
