/**
 * The port that ties "these source records are dealt with" to "their output is on the target". A lane does not know
 * which binding is in force; it follows one order of calls:
 *
 *   start                       once, before the first fetch; again after `unknown`, a failure, or an interruption
 *   triage(ranges)              -> done: acknowledge, write nothing. wait: keep the locks, ask again. ours: go on.
 *   begin                       -> a transaction; one at a time
 *   transaction.produce(...)    outputs (and dead letters) of what is ours, any number of calls
 *   transaction.stage(ranges)   which source offsets those outputs stand for; all that are ours, gaps included
 *   transaction.commit          -> committed | aborted | unknown
 *   acknowledge                 committed: ACCEPT on the source (or commit positions), unless `settlesItself`.
 *                               aborted: RELEASE (or read again), unless `settlesItself`.
 *                               unknown: `start`, then triage the same ranges again; it knows by then.
 *
 * Whatever goes wrong between `begin` and `commit`: `transaction.abort`; after an interruption `start`. Nothing is acknowledged on the source before `committed` or `done`.
 *
 * A binding with `settlesItself` (KIP-1289) settles what was staged with the transaction: after commit, abort or
 * unknown the lane forgets these ranges; they come again if they were not taken.
 */
import { Effect, Schema, type Scope } from "effect"
import type { WorkerLedger } from "./ledger/worker.ts"
import type { ProducerError } from "./produceErrors.ts"
import type { Outgoing, ProduceOutcome } from "./produceRun.ts"
import type { Outcome } from "./transactionState.ts"

export type { Outcome }

export type BindingName = "kip-1289" | "ledger" | "at-least-once"
export type Guarantee = "exactly-once" | "at-least-once"

/** Offsets first to last of a source partition, both included, with the gaps between them. */
export interface SourceRange {
  readonly topic: string
  /** A topic that was deleted and created again has another id, and is another source. */
  readonly topicId: string
  readonly partition: number
  readonly first: number
  readonly last: number
}

/** A range that is staged, and what becomes of it at the commit. */
export interface StagedRange extends SourceRange {
  /** Default accept. gap: offsets that hold no record. */
  readonly type?: "accept" | "reject" | "gap"
}

/** Who holds what is staged, for a binding that acknowledges it itself. */
export interface ShareMember {
  readonly groupId: string
  readonly memberId: string
  /** 0 while not joined. */
  readonly memberEpoch: number
}

export interface Triage {
  /** Already on the target: acknowledge without output. */
  readonly done: ReadonlyArray<SourceRange>
  /** Somebody else's transaction holds them, undecided. Keep the locks and ask again soon. */
  readonly wait: ReadonlyArray<SourceRange>
  readonly ours: ReadonlyArray<SourceRange>
}

/** Where an output went, for the note that is kept of it. */
export interface Placed {
  readonly topic: string
  readonly partition: number
  /** -1: written, offset not known. */
  readonly baseOffset: number
}

/** The binding cannot go on: the lane has to end (and may be started anew, but for `forGood`). */
export class BindingStopped extends Schema.TaggedError<BindingStopped>()("BindingStopped", {
  binding: Schema.Literals(["kip-1289", "ledger", "at-least-once"]),
  what: Schema.String,
  /** Going on would break the promise: a person has to decide. */
  forGood: Schema.optional(Schema.Boolean)
}) {
  override get message(): string {
    return `${this.binding}: ${this.what}`
  }
}

export interface BoundTransaction {
  readonly produce: (
    batches: ReadonlyArray<Outgoing>
  ) => Effect.Effect<ReadonlyArray<ProduceOutcome>, ProducerError | BindingStopped>
  /**
   * May be called more than once, with ranges that do not overlap. A failure means: abort. `notes` are batches that go
   * with the transaction (where records have come to be), sent together with what the binding itself writes.
   */
  readonly stage: (
    ranges: ReadonlyArray<StagedRange>,
    outputs: ReadonlyArray<Placed>,
    notes?: ReadonlyArray<Outgoing>
  ) => Effect.Effect<void, ProducerError | BindingStopped>
  readonly commit: Effect.Effect<Outcome, BindingStopped>
  /** Never "unknown": nothing has asked for a commit. `begin` sees to what the abort may have left behind. */
  readonly abort: Effect.Effect<Outcome, BindingStopped>
}

export interface Binding {
  readonly name: BindingName
  readonly guarantee: Guarantee
  /** What is staged is acknowledged by the transaction itself. */
  readonly settlesItself: boolean
  /** Leaves nothing of an earlier transaction of this lane undecided. Runs until that is so; may be interrupted. */
  readonly start: Effect.Effect<void, BindingStopped>
  readonly triage: (ranges: ReadonlyArray<SourceRange>) => Effect.Effect<Triage, BindingStopped>
  readonly begin: Effect.Effect<BoundTransaction, BindingStopped>
}

export type Support =
  | { readonly supported: true }
  /** A sentence that names what is missing, for people. */
  | { readonly supported: false; readonly reason: string }

/** One way to bind, before it is known whether it can hold here. */
export interface BindingCandidate {
  readonly name: BindingName
  readonly guarantee: Guarantee
  /** Asks the clusters now. Asked again when their features change. */
  readonly support: Effect.Effect<Support>
  /** A binding for one lane. */
  readonly make: (
    lane: { readonly name: string; readonly member?: () => ShareMember | null }
  ) => Effect.Effect<Binding, BindingStopped, Scope.Scope>
  /** Where it keeps one: what it knows of the source's records, shared with its lanes. For positions and repair. */
  readonly ledger?: Effect.Effect<WorkerLedger, BindingStopped, Scope.Scope>
}

export interface BindingChoice {
  /** null: nothing that is allowed can hold; the flow must not run. */
  readonly candidate: BindingCandidate | null
  readonly wanted: Guarantee
  /** null when nothing can hold. */
  readonly effective: Guarantee | null
  /** Every binding that was tried and cannot hold, in the order they were tried. */
  readonly reasons: ReadonlyArray<{ readonly binding: BindingName; readonly reason: string }>
}

/**
 * The first binding of `order` that can hold. With `fallback: "at-least-once"` that one stands behind all others;
 * with "fail" nothing does. A wanted at-least-once takes it at once, without reasons.
 */
export const chooseBinding = (options: {
  /** delivery.guarantee */
  readonly wanted: Guarantee
  /** exactly.once.bindings */
  readonly order: ReadonlyArray<BindingName>
  /** exactly.once.fallback */
  readonly fallback: "at-least-once" | "fail"
  readonly candidates: ReadonlyArray<BindingCandidate>
}): Effect.Effect<BindingChoice> =>
  Effect.gen(function*() {
    const { candidates, fallback, wanted } = options
    const atLeastOnce: ReadonlyArray<BindingName> = wanted === "at-least-once" || fallback === "at-least-once"
      ? ["at-least-once"]
      : []
    const names = [
      ...new Set([
        ...(wanted === "exactly-once"
          ? options.order.filter((name) => name !== "at-least-once")
          : []),
        ...atLeastOnce
      ])
    ]
    const reasons: Array<{ binding: BindingName; reason: string }> = []
    for (const name of names) {
      const candidate = candidates.find((known) => known.name === name)
      if (candidate === undefined) {
        reasons.push({ binding: name, reason: "this version of onceover does not have it" })
        continue
      }
      const support = yield* candidate.support
      if (support.supported) return { candidate, wanted, effective: candidate.guarantee, reasons }
      reasons.push({ binding: name, reason: support.reason })
    }
    return { candidate: null, wanted, effective: null, reasons }
  })
