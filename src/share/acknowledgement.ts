/**
 * Acknowledgements on the wire: ranges of offsets with one type each, per partition ascending and disjoint, as the
 * broker insists (else INVALID_REQUEST for the whole partition).
 */
import type { OffsetRange } from "../wire/ranges.ts"

export type AckType = "gap" | "accept" | "release" | "reject"
export interface AckPart extends OffsetRange {
  readonly type: AckType
}

const CODES = { gap: 0, accept: 1, release: 2, reject: 3, renew: 4 } as const
export type WireAckType = keyof typeof CODES
export const ackTypeCode = (type: WireAckType): number => CODES[type]

export interface AckBatch {
  readonly firstOffset: number
  readonly lastOffset: number
  /** One entry for the whole range, or one for each offset. */
  readonly acknowledgeTypes: ReadonlyArray<number>
}

/** Bytes of a batch on the wire beside its types: two offsets, the list's length, the tagged fields' count. */
const BATCH_OVERHEAD = 18

interface Growing {
  firstOffset: number
  lastOffset: number
  acknowledgeTypes: Array<number>
}
const spelled = (batch: Growing): Array<number> => {
  const count = batch.lastOffset - batch.firstOffset + 1
  return batch.acknowledgeTypes.length === count
    ? batch.acknowledgeTypes
    : new Array<number>(count).fill(batch.acknowledgeTypes[0] as number)
}

/**
 * The fewest bytes for these ranges: neighbours of one type become one range; short neighbours of different types
 * become one range with a type for each offset. The ranges must be disjoint; any order.
 */
export const ackBatches = (ranges: Iterable<OffsetRange & { readonly type: WireAckType }>): ReadonlyArray<AckBatch> => {
  const out: Array<Growing> = []
  for (const range of [...ranges].sort((a, b) => a.first - b.first)) {
    const type = CODES[range.type]
    const end = out[out.length - 1]
    const next = { firstOffset: range.first, lastOffset: range.last, acknowledgeTypes: [type] }
    if (end === undefined || end.lastOffset + 1 !== range.first) {
      out.push(next)
    } else if (end.acknowledgeTypes.length === 1 && end.acknowledgeTypes[0] === type) {
      end.lastOffset = range.last
    } else if (spelledCost(end) + (range.last - range.first + 1) <= BATCH_OVERHEAD + 1) {
      end.acknowledgeTypes = [...spelled(end), ...spelled(next)]
      end.lastOffset = range.last
    } else out.push(next)
  }
  return out
}

/** How many more bytes it takes to give each offset of the batch a type of its own. */
const spelledCost = (batch: Growing): number =>
  batch.acknowledgeTypes.length > 1 ? 0 : batch.lastOffset - batch.firstOffset
