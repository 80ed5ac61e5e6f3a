/**
 * The port between a lane and the target: record batches in, one outcome each. The producer (src/txn) stands
 * behind it; tests put a log in memory there.
 */
import type { Effect } from "effect"
import type { Output } from "./copy.ts"

export type WriteOutcome =
  | { readonly kind: "written"; readonly baseOffset: number }
  /**
   * The target will not take this batch as it is ("records": taking it apart or leaving a record out helps), or the
   * partition takes none at all ("partition": a right or a policy is in the way). The error says why.
   */
  | { readonly kind: "refused"; readonly scope: "records" | "partition"; readonly error: Error }
  /** Not tried, since an earlier batch of the partition was refused. */
  | { readonly kind: "skipped" }

export interface Sink<E> {
  /**
   * Writes batches; those of one partition in their order. Waits as long as the target is away (the caller
   * interrupts). Outcomes are in the order of `outputs`.
   */
  readonly write: (outputs: ReadonlyArray<Output>) => Effect.Effect<ReadonlyArray<WriteOutcome>, E>
}
