/**
 * Acknowledgements on their way to one broker: collected per partition into requests, resolved one by one by the
 * broker's word.
 *
 * The broker decides a partition's ranges in a request together: one offset that is not ours any more refuses them
 * all (INVALID_RECORD_STATE, nothing applied). A refused group of several is therefore sent again in halves, until
 * each range has an answer of its own: a lost lock never costs its neighbours their acknowledgement.
 */
import { Deferred, Effect } from "effect"
import { BrokerError } from "../wire/errors.ts"
import type { AckPart } from "./acknowledgement.ts"
import type { Hold } from "./held.ts"
import { partitionKey } from "./session.ts"
import { ackVerdict } from "./verdicts.ts"

export interface AckResult extends AckPart {
  /**
   * done: the broker applied it. refused: the broker said no (`error`); the record comes again, unless `held`.
   * lost: it was not ours any more, nothing was sent. unknown: sent, not answered; the record may come again.
   */
  readonly outcome: "done" | "refused" | "lost" | "unknown"
  readonly error: BrokerError | null
  /** In words; "" when done. */
  readonly why: string
  /** Whether the lock is still held, so that it can be acknowledged again. */
  readonly held: boolean
}

/** One call of `acknowledge`: resolved when each of its ranges is. */
export interface AckTicket {
  readonly results: Array<AckResult>
  open: number
  readonly done: Deferred.Deferred<ReadonlyArray<AckResult>>
  /** Told the outcome, where nobody waits for it. */
  readonly report: (results: ReadonlyArray<AckResult>) => void
}
export const makeTicket = (report: AckTicket["report"] = () => {}): AckTicket => ({
  results: [],
  open: 0,
  done: Deferred.makeUnsafe(),
  report
})
/** Completes the ticket when nothing of it is open. */
export const settleTicket = (ticket: AckTicket): void => {
  if (ticket.open > 0) return
  const ordered = [...ticket.results].sort((a, b) => a.first - b.first)
  if (Deferred.doneUnsafe(ticket.done, Effect.succeed(ordered))) ticket.report(ordered)
}

export interface AckUnit {
  readonly hold: Hold
  readonly part: AckPart
  readonly ticket: AckTicket
  /** Only units of one group go into a request together. */
  group: number
  tries: number
}

/** How often a state write that failed on the broker is tried again, while the lock holds. */
const MAX_TRIES = 6

export class AckQueue {
  #pending: Array<AckUnit> = []
  #groups = 0

  get isEmpty(): boolean {
    return this.#pending.length === 0
  }
  push(hold: Hold, parts: ReadonlyArray<AckPart>, ticket: AckTicket): void {
    for (const part of parts) {
      ticket.open++
      this.#pending.push({ hold, part, ticket, group: 0, tries: 0 })
    }
  }

  /** Takes what can go in the next request, by partition: of each partition the first unit's group. */
  next(): ReadonlyMap<string, ReadonlyArray<AckUnit>> {
    const batches = new Map<string, Array<AckUnit>>()
    const rest: Array<AckUnit> = []
    for (const unit of this.#pending) {
      const key = partitionKey(unit.hold)
      const batch = batches.get(key)
      if (batch === undefined) batches.set(key, [unit])
      else if ((batch[0] as AckUnit).group === unit.group) batch.push(unit)
      else rest.push(unit)
    }
    this.#pending = rest
    return batches
  }

  /**
   * The broker's word on one partition of a request. Answers what it means for what else is held there: "moved"
   * when the partition has another leader, "again" when a back-off is due.
   */
  answered(units: ReadonlyArray<AckUnit>, api: string, code: number, detail: string | null): "ok" | "moved" | "again" {
    const verdict = ackVerdict(code)
    if (verdict === "done") {
      for (const unit of units) resolve(unit, "done", null, "", false)
      return "ok"
    }
    if (verdict === "gone" && units.length > 1) {
      this.#split(units)
      return "ok"
    }
    const first = units[0] as AckUnit
    const error = new BrokerError({ api, code, subject: `${first.hold.topic}-${first.hold.partition}`, detail })
    const again = units.filter((u) => verdict === "again" && ++u.tries < MAX_TRIES)
    const refused = again.length === 0 ? units : units.filter((u) => !again.includes(u))
    for (const unit of refused) {
      if (verdict === "gone" || verdict === "moved") unit.hold.lostWhy ??= error.message
      resolve(unit, "refused", error, error.message, verdict === "refused" || verdict === "again")
    }
    this.#pending = [...again, ...this.#pending]
    return verdict === "moved" || verdict === "again" ? verdict : "ok"
  }

  #split(units: ReadonlyArray<AckUnit>): void {
    const middle = units.length >> 1
    const left = ++this.#groups
    const right = ++this.#groups
    units.forEach((unit, i) => unit.group = i < middle ? left : right)
    this.#pending = [...units, ...this.#pending]
  }

  /** The request had no answer: it may have been applied. */
  unanswered(batches: ReadonlyMap<string, ReadonlyArray<AckUnit>>, outcome: "unknown" | "lost", why: string): void {
    for (const units of batches.values()) for (const unit of units) resolve(unit, outcome, null, why, false)
  }
  /** Nothing more will be sent in this session (`only`: of one partition). */
  lose(why: string, only?: string): void {
    const isGone = (u: AckUnit) => only === undefined || partitionKey(u.hold) === only
    const gone = this.#pending.filter(isGone)
    this.#pending = this.#pending.filter((u) => !isGone(u))
    for (const unit of gone) resolve(unit, "lost", null, why, false)
  }
}

const resolve = (
  unit: AckUnit,
  outcome: AckResult["outcome"],
  error: BrokerError | null,
  why: string,
  held: boolean
): void => {
  if (held) unit.hold.giveBack(unit.part)
  else unit.hold.settle(unit.part)
  unit.ticket.results.push({ ...unit.part, outcome, error, why, held })
  unit.ticket.open--
  settleTicket(unit.ticket)
}
