/**
 * Transactions of the source that stay open: nothing behind the first of their records can be mirrored, nor read by
 * anybody under read_committed, until somebody ends them. Said when one has held a partition back for a minute, with
 * the offset that `kafka-transactions.sh abort --start-offset` wants.
 */
import { Clock, Effect } from "effect"
import type { Ends } from "./control/ends.ts"
import type { Log } from "./report.ts"
import type { FlowState } from "./state.ts"

/** Longer than most applications keep a transaction open. */
const PATIENCE_MS = 60_000

export interface HeldBack {
  /** "orders-0" */
  readonly partition: string
  /** The first record of the oldest open transaction: the last stable offset. */
  readonly offset: number
  /** Offsets from there to the end. */
  readonly behind: number
}

/** Compares looks at the ends of partitions. */
export class OpenTransactions {
  readonly #since = new Map<string, { readonly offset: number; readonly atMs: number }>()

  /** Partitions whose last stable offset has stood still below their end for a minute. */
  look({ high, stable }: Ends, nowMs: number): ReadonlyArray<HeldBack> {
    const held: Array<HeldBack> = []
    for (const [partition, offset] of stable) {
      const behind = (high.get(partition) ?? offset) - offset
      const before = this.#since.get(partition)
      if (behind <= 0) this.#since.delete(partition)
      else if (before?.offset !== offset) this.#since.set(partition, { offset, atMs: nowMs })
      else if (nowMs - before.atMs >= PATIENCE_MS) held.push({ partition, offset, behind })
    }
    // A topic that is gone holds nobody back.
    for (const partition of this.#since.keys()) if (!stable.has(partition)) this.#since.delete(partition)
    return held
  }
}

export const heldBackSentence = ({ behind, offset, partition }: HeldBack): string =>
  `${partition}: a transaction of the source that begins at offset ${offset} is open for over a minute; ${behind} offsets wait for its end, here and for every reader of read_committed`

const TASK = "transactions"

/** Into /status, the log (each transaction once) and the metrics of control tasks. */
export const tellOpenTransactions = (
  state: FlowState,
  log: Log,
  onCount: (task: string, held: number) => void
): (ends: Ends) => Effect.Effect<void> => {
  const watch = new OpenTransactions()
  let said = new Set<string>()
  return (ends) =>
    Effect.map(Clock.currentTimeMillis, (atMs) => {
      const held = watch.look(ends, atMs)
      if (held.length === 0 && said.size === 0) return
      const now = new Set(held.map(({ offset, partition }) => `${partition} ${offset}`))
      for (const one of held) if (!said.has(`${one.partition} ${one.offset}`)) log("warn", heldBackSentence(one))
      said = now
      state.task(TASK, { state: held.length === 0 ? "ok" : "problem", reasons: held.map(heldBackSentence), atMs })
      onCount(TASK, held.length)
    })
}
