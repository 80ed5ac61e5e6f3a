/**
 * How much one transaction holds. What a poll gave is written, and more is read into the same transaction while that
 * is worth it; each transaction costs an entry in the ledger and a commit, whatever its size.
 *
 * - A lane that has committed nothing for `transaction.max.latency.ms` commits at once: a lone record waits for nothing.
 * - Where records come in small numbers all the time, a transaction waits no longer than until so long after the one
 *   before it began to end: what came while that was committed has waited already.
 * - A large one does not wait: it takes what is there, and ends.
 * - It is cut by records, by bytes, by time and by the locks on what it holds, whichever comes first.
 */
import { Effect } from "effect"
import type { ResolvedFlow } from "../config/types.ts"
import { parseProducerSettings } from "../txn/producerSettings.ts"
import type { ClientSettings, SettingsError } from "../wire/settings.ts"

export interface Cut {
  readonly maxRecords: number
  readonly maxBytes: number
  /** `transaction.max.latency.ms`, and well below transaction.timeout.ms. */
  readonly maxLatencyMs: number
}

/** What has so much in it is worth a commit of its own. */
const LARGE_RECORDS = 500
const LARGE_BYTES = 256 * 1024

/** A wait for more is no longer than this: a stop, or a group that wants a partition back, is heard meanwhile. */
const LONGEST_WAIT_MS = 100

/** Of a flow, whose lanes share `max.in.flight.bytes`: half of a lane's share is for what is read meanwhile. */
export const cutOf = (
  { maxInFlightBytes, tasksMax, ...flow }: ResolvedFlow,
  target: ClientSettings
): Effect.Effect<Cut, SettingsError> =>
  Effect.map(parseProducerSettings(target), ({ transactionTimeoutMs }) => ({
    maxRecords: flow.transactionMaxRecords,
    maxBytes: Math.min(flow.transactionMaxBytes, Math.floor(maxInFlightBytes / tasksMax / 2)),
    maxLatencyMs: Math.min(flow.transactionMaxLatencyMs, transactionTimeoutMs / 3)
  }))

/** What counts of what was added. */
export interface Share {
  readonly records: number
  readonly bytes: number
  /** How long the lock on it lasts, milliseconds; undefined: there is none. */
  readonly lockTimeoutMs: number | undefined
}

/** The transactions of one lane, one after the other. Times are milliseconds, monotonic. Pure. */
export class Gathering {
  readonly #cut: Cut | null
  #endingAtMs = Number.NEGATIVE_INFINITY
  #startedAtMs = 0
  #records = 0
  #bytes = 0
  #lockMs = Number.POSITIVE_INFINITY

  /** null: each poll is a transaction. */
  constructor(cut: Cut | null) {
    this.#cut = cut
  }

  begin(nowMs: number): void {
    this.#startedAtMs = nowMs
    this.#records = 0
    this.#bytes = 0
    this.#lockMs = Number.POSITIVE_INFINITY
  }

  add({ bytes, lockTimeoutMs, records }: Share): void {
    this.#records += records
    this.#bytes += bytes
    if (lockTimeoutMs !== undefined) this.#lockMs = Math.min(this.#lockMs, lockTimeoutMs)
  }

  /** Nothing is added from here on. */
  end(nowMs: number): void {
    this.#endingAtMs = nowMs
  }

  /** It holds so much that it does not wait. */
  get isLarge(): boolean {
    return this.#records >= LARGE_RECORDS || this.#bytes >= LARGE_BYTES
  }

  /** How long to wait for more, whole milliseconds, 0: take what is there; null: commit now. */
  waitMs(nowMs: number): number | null {
    const cut = this.#cut
    if (cut === null || this.#records >= cut.maxRecords || this.#bytes >= cut.maxBytes) return null
    // Locks are renewed where brokers can do that; where they cannot, half of one is left for the commit.
    const untilMs = Math.min(
      Math.min(this.#endingAtMs, this.#startedAtMs) + cut.maxLatencyMs,
      this.#startedAtMs + this.#lockMs / 2
    )
    if (nowMs >= untilMs) return null
    return this.isLarge ? 0 : Math.min(Math.ceil(untilMs - nowMs), LONGEST_WAIT_MS)
  }
}
