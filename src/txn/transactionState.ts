/**
 * Where a transactional producer stands, and what each answer makes of it. Pure.
 *
 *   unready --initialised--> ready --begin--> open --(failed)--> mustAbort
 *      ^                       ^                |                    |
 *      |                       +---- ended -----+------ ended -------+
 *      +--- whatever leaves a request of the transaction in doubt, or tells us that we are fenced
 *
 * Invariants
 * 1. A transaction begins only in "ready": after anything in doubt, InitProducerId comes first. Without that a late
 *    Produce could join the next transaction, and a late EndTxn commit it unchecked (transactions of version 1).
 * 2. "committed" only on the coordinator's word. "aborted" only where no commit of ours can have been carried out.
 *    Everything else is "unknown".
 */
import type { Identity } from "./sequences.ts"

export type Outcome =
  | { readonly kind: "committed" }
  | { readonly kind: "aborted"; readonly reason: string }
  /** Nobody knows yet; it can be found out once InitProducerId has succeeded. */
  | { readonly kind: "unknown"; readonly reason: string }

export type Phase =
  | { readonly kind: "unready"; readonly reason: string }
  | { readonly kind: "ready" }
  /** touched: something was sent that the coordinator may have taken as the transaction's start. */
  | { readonly kind: "open"; readonly touched: boolean }
  | { readonly kind: "mustAbort"; readonly touched: boolean; readonly reason: string; readonly fenced: boolean }
  | { readonly kind: "ending"; readonly commit: boolean }

/** What an error code of EndTxn says. */
export type EndVerdict =
  | "done"
  /** Not carried out; ask again. */
  | "again"
  /** Ask again, the coordinator perhaps being another; this try may have been carried out all the same. */
  | "againMaybeDone"
  /** Not carried out, and never will be under this identity. */
  | "fenced"
  | "invalid"
  | "denied"
  | "unclear"

export const judgeEndTxn = (code: number): EndVerdict => {
  switch (code) {
    case 0:
      return "done"
    case 14: // COORDINATOR_LOAD_IN_PROGRESS
    case 51: // CONCURRENT_TRANSACTIONS: another transition is being written, perhaps by an earlier try of ours.
      return "again"
    case 7: // REQUEST_TIMED_OUT
    case 15: // COORDINATOR_NOT_AVAILABLE: also when the transaction log's append failed half-way.
    case 16: // NOT_COORDINATOR: also when it lost its leadership during the append.
      return "againMaybeDone"
    case 47: // INVALID_PRODUCER_EPOCH
    case 90: // PRODUCER_FENCED: a newer producer, or the coordinator, which timed the transaction out.
      return "fenced"
    case 48: // INVALID_TXN_STATE: not open (any more).
    case 49: // INVALID_PRODUCER_ID_MAPPING
    case 59: // UNKNOWN_PRODUCER_ID
    case 105: // TRANSACTIONAL_ID_NOT_FOUND
    case 120: // TRANSACTION_ABORTABLE
      return "invalid"
    case 31: // CLUSTER_AUTHORIZATION_FAILED
    case 53: // TRANSACTIONAL_ID_AUTHORIZATION_FAILED
      return "denied"
    default:
      return "unclear"
  }
}

/** What an error code of AddPartitionsToTxn says of one partition. */
export type AddVerdict = "added" | "again" | "coordinator" | "blocked" | "notTried" | "abort" | "fenced" | "denied"

export const judgeAddPartitions = (code: number): AddVerdict => {
  switch (code) {
    case 0:
      return "added"
    case 3: // UNKNOWN_TOPIC_OR_PARTITION: not created yet.
    case 7: // REQUEST_TIMED_OUT
    case 14: // COORDINATOR_LOAD_IN_PROGRESS
    case 51: // CONCURRENT_TRANSACTIONS: the last transaction's markers are still being written.
      return "again"
    case 15: // COORDINATOR_NOT_AVAILABLE
    case 16: // NOT_COORDINATOR
      return "coordinator"
    case 17: // INVALID_TOPIC_EXCEPTION
    case 29: // TOPIC_AUTHORIZATION_FAILED
      return "blocked"
    case 55: // OPERATION_NOT_ATTEMPTED: because of another partition in the same request.
      return "notTried"
    case 47: // INVALID_PRODUCER_EPOCH
    case 90: // PRODUCER_FENCED
      return "fenced"
    case 31: // CLUSTER_AUTHORIZATION_FAILED
    case 53: // TRANSACTIONAL_ID_AUTHORIZATION_FAILED
      return "denied"
    default: // INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING, TRANSACTION_ABORTABLE, and whatever comes.
      return "abort"
  }
}

export class TransactionState {
  #phase: Phase = { kind: "unready", reason: "just started" }
  #identity: Identity | null = null
  /** A request of this transaction may still be on its way. */
  #dirty = false
  #fencedInARow = 0

  get phase(): Phase {
    return this.#phase
  }
  get identity(): Identity | null {
    return this.#identity
  }
  /** Fenced twice without a commit in between: two live producers with one transactional id would go on for ever. */
  get fencedForGood(): boolean {
    return this.#fencedInARow >= 2
  }

  /** InitProducerId has succeeded: nothing of an earlier transaction is open, nothing late can count. */
  initialised(identity: Identity): void {
    this.#identity = identity
    this.#dirty = false
    this.#phase = { kind: "ready" }
  }

  /** False when InitProducerId must come first. */
  begin(): boolean {
    if (this.#phase.kind !== "ready") return false
    this.#phase = { kind: "open", touched: false }
    return true
  }

  touch(): void {
    if (this.#phase.kind === "open") this.#phase = { kind: "open", touched: true }
  }

  /** Something of the open transaction may still arrive late, although it goes on. */
  inDoubt(): void {
    if (this.#phase.kind === "open" || this.#phase.kind === "mustAbort") this.#dirty = true
  }

  /** The open transaction cannot be committed any more. */
  fail(reason: string, options: { readonly fenced?: boolean } = {}): void {
    if (this.#phase.kind !== "open") return
    this.#phase = { kind: "mustAbort", touched: this.#phase.touched, reason, fenced: options.fenced ?? false }
  }

  /** What has to be sent to end the transaction; null when nothing has to be, and the outcome is known. */
  end(commit: boolean): { readonly kind: "ask"; readonly commit: boolean; readonly reason: string } | Outcome {
    const phase = this.#phase
    if (phase.kind !== "open" && phase.kind !== "mustAbort") return this.#doubt(commit, "no transaction is open")
    const reason = phase.kind === "mustAbort" ? phase.reason : "given up"
    if (phase.kind === "mustAbort" && phase.fenced) {
      this.#fenced(reason)
      return { kind: "aborted", reason }
    }
    if (!phase.touched) {
      this.#settle(null)
      return phase.kind === "open" && commit ? { kind: "committed" } : { kind: "aborted", reason }
    }
    const really = commit && phase.kind === "open"
    this.#phase = { kind: "ending", commit: really }
    return { kind: "ask", commit: really, reason }
  }

  /** The coordinator has ended it. `next`: the identity for the next transaction, where the answer names one. */
  ended(commit: boolean, reason: string, next: Identity | null): Outcome {
    this.#settle(next)
    if (!commit) return { kind: "aborted", reason }
    this.#fencedInARow = 0
    return { kind: "committed" }
  }

  /** The coordinator did not end it. `maybeDone`: an earlier try may have. */
  notEnded(commit: boolean, verdict: EndVerdict, maybeDone: boolean, reason: string): Outcome {
    if (verdict === "fenced") this.#fenced(reason)
    else this.#phase = { kind: "unready", reason }
    if (commit && (maybeDone || verdict === "unclear")) return { kind: "unknown", reason }
    return { kind: "aborted", reason }
  }

  /** No answer came. */
  noAnswer(commit: boolean, reason: string): Outcome {
    return this.#doubt(commit, reason)
  }

  #doubt(commit: boolean, reason: string): Outcome {
    this.#phase = { kind: "unready", reason }
    return commit ? { kind: "unknown", reason } : { kind: "aborted", reason }
  }
  #fenced(reason: string): void {
    this.#fencedInARow++
    this.#phase = { kind: "unready", reason }
  }
  #settle(next: Identity | null): void {
    if (next !== null) this.#identity = next
    this.#phase = this.#dirty
      ? { kind: "unready", reason: "a request of the last transaction may still arrive" }
      : { kind: "ready" }
  }
}
