/**
 * One transaction under the ledger: outputs and the entries that stand for them, R4 to R8 of docs/ledger.md.
 *
 * Invariants
 * 1. R4: all of a transaction's entries for one ledger partition are one batch (but for absurd sizes): their place in
 *    the log is one, so waiting for what is before it cannot go round in a circle.
 * 2. R5: EndTxn(commit) is asked for only when everything below our own entry was read and nothing of it that
 *    overlaps is committed or undecided.
 */
import { Effect } from "effect"
import { format } from "../../wire/ranges.ts"
import { BindingStopped, type BoundTransaction, type Outcome, type Placed, type SourceRange } from "../binding.ts"
import { HeldBack } from "../produceErrors.ts"
import type { Outgoing, ProduceOutcome } from "../produceRun.ts"
import type { TransactionalProducer } from "../transactions.ts"
import { entryRanges, type LedgerBatch, ledgerBatches } from "./batches.ts"
import { type Ending, type Ends, placeKey } from "./ends.ts"
import type { DoneEntry, Target } from "./entry.ts"
import type { Mutations } from "./mutations.ts"
import type { LedgerReader } from "./reader.ts"
import { checkClaims, type Claim, claimsOf, type Producing } from "./rules.ts"
import type { OpenEntry } from "./tail.ts"
import type { WorkerLedger } from "./worker.ts"

/** What a transaction needs of its lane. */
export interface TransactionLane {
  readonly mutations: Mutations
  readonly producer: TransactionalProducer
  readonly worker: WorkerLedger
  readonly ends: Ends
  readonly readerOf: (key: string) => LedgerReader
  /** Fences, in time, those whose entries are in the way; gives how long to wait at most, milliseconds. */
  readonly consider: (reader: LedgerReader, entries: ReadonlyArray<OpenEntry>) => Effect.Effect<number>
  /** It has ended so: whether R8 is owed is noted. */
  readonly ended: (outcome: Outcome) => Outcome
}

const rewound = (name: string, x: number, next: number): BindingStopped =>
  new BindingStopped({
    binding: "ledger",
    what:
      `${name} gave an entry the offset ${x}, but was read up to ${next} before: it was created anew or has lost its end, and with it the proof of what is mirrored`,
    forGood: true
  })
const aborted = (reason: string): Outcome => ({ kind: "aborted", reason })

const sameClaim = (entry: DoneEntry, claim: Claim): boolean => entry.slot === claim.slot

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

export class LedgerTransaction {
  readonly #lane: TransactionLane
  readonly #own: Producing
  readonly #version: 1 | 2
  readonly #generations: ReadonlyArray<number>
  readonly #ranges: Array<SourceRange> = []
  readonly #outputs: Array<Placed> = []
  /** To be sent with the first entry. */
  #notes: ReadonlyArray<Outgoing> = []
  readonly #ending: Ending
  /** Its first offset in each partition. */
  readonly #first = new Map<string, number>()
  #produced = false
  /** Why it can only be aborted. */
  #doomed: string | null = null

  constructor(lane: TransactionLane, own: Producing, version: 1 | 2, ending: Ending) {
    this.#lane = lane
    this.#ending = ending
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
      return Effect.andThen(this.#touch(batches), this.#lane.producer.produce(batches)).pipe(
        Effect.tap((outcomes) => Effect.sync(() => this.#noteFirst(batches, outcomes))),
        Effect.catchTags({ TransactionMustAbort: doom, ProducerFenced: doom })
      )
    })
  }

  #touch(batches: ReadonlyArray<Outgoing>): Effect.Effect<void, BindingStopped> {
    const { ends } = this.#lane
    const unknown = ends.touch(this.#ending, batches)
    return unknown.length === 0
      ? Effect.void
      : Effect.asVoid(ends.inherit(this.#own.producerId, this.#version, unknown))
  }

  #noteFirst(batches: ReadonlyArray<Outgoing>, outcomes: ReadonlyArray<ProduceOutcome>): void {
    outcomes.forEach((outcome, n) => {
      const at = batches[n]
      if (!outcome.ok || outcome.baseOffset < 0 || at === undefined) return
      const key = placeKey(at)
      this.#first.set(key, Math.min(outcome.baseOffset, this.#first.get(key) ?? Infinity))
    })
  }

  #abort(reason: string): Effect.Effect<Outcome> {
    return Effect.map(
      this.#lane.producer.abort,
      (outcome) => this.#ended(outcome.kind === "aborted" ? aborted(reason) : outcome)
    )
  }

  #ended(outcome: Outcome): Outcome {
    this.#ending.outcome = outcome.kind
    return this.#lane.ended(outcome)
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
      const behind = yield* this.#lane.ends.behind(this.#ending, this.#first)
      if (behind !== null) return yield* this.#abort(behind)
      // R6, or R8 when nobody answers.
      const outcome = yield* producer.commit
      if (mutations.acceptBeforeCommit === true) return this.#ended({ kind: "committed" })
      return this.#ended(outcome)
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
      this.#ending.entry = true
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
