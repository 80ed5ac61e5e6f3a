/** What a lane tells of its work; metrics, status and the log listen. Called once per delivery or unit, never per record. */
import type { RangeSet } from "../wire/ranges.ts"
import type { CopyUnit } from "./copyUnit.ts"
import type { Delivery, Settled, Settlement } from "./delivery.ts"

export interface LaneEvents {
  readonly acquired: (delivery: Delivery) => void
  /** Their output was committed before: accepted without writing it again. */
  readonly alreadyDone: (delivery: Delivery, ranges: RangeSet) => void
  /** Every output of the unit is committed on the target. */
  readonly mirrored: (delivery: Delivery, unit: CopyUnit, nowMs: number) => void
  readonly settled: (
    delivery: Delivery,
    settlements: ReadonlyArray<Settlement>,
    settled: Settled,
    nowMs: number
  ) => void
  readonly transaction: (outcome: "committed" | "aborted" | "fenced") => void
  readonly blocked: (delivery: Delivery, reason: string) => void
  readonly unblocked: (delivery: Delivery) => void
  readonly deadLettered: (delivery: Delivery, offset: number, error: Error) => void
  readonly skipped: (delivery: Delivery, offset: number, error: Error) => void
}
