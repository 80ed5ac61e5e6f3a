/**
 * How much memory what is held takes. A fetch's answer is one buffer, and a single record that is held would keep
 * all of it: so a small part is held as a copy. What is left is bounded by bytes (laneContext.ts, lane.ts).
 */
import { splitBatches } from "../wire/batch/recordBatch.ts"
import { overlaps, rangeSet } from "../wire/ranges.ts"
import type { Output } from "./copyUnit.ts"
import { type DeliveredBatch, lastOffsetOf } from "./delivery.ts"
import type { Pending } from "./pending.ts"

/** Held by a lane: from here on a partition that cannot move is not fetched; from twice that on nothing is. */
export const HELD_BYTES = 32 * 1024 * 1024

const outputsOf = (item: Pending): ReadonlyArray<Output> =>
  item.kind === "write" ? [...item.unit.outputs, ...item.remaining] : []

const buffersOf = (item: Pending): ReadonlyArray<ArrayBufferLike> => [
  ...item.delivery.batches.map(({ view }) => view.buffer.buffer),
  ...outputsOf(item).map(({ bytes }) => bytes.buffer)
]

/** Bytes that these keep alive, each buffer once. */
export const heldBytes = (items: Iterable<Pending>): number => {
  const buffers = new Set<ArrayBufferLike>()
  for (const item of items) for (const buffer of buffersOf(item)) buffers.add(buffer)
  let bytes = 0
  for (const buffer of buffers) bytes += buffer.byteLength
  return bytes
}

const copyOf = ({ baseOffset, view }: DeliveredBatch): DeliveredBatch => {
  const [own] = splitBatches(Buffer.from(view.bytes))
  return own === undefined ? { baseOffset, view } : { baseOffset, view: own }
}

/** The item with bytes of its own, where it needs less than a quarter of what it would keep alive. */
export const compacted = <I extends Pending>(item: I): I => {
  const ranges = rangeSet(item.kind === "copy" ? item.delivery.ranges : [...item.unit.accept, ...item.unit.gaps])
  const batches = item.delivery.batches.filter((batch) =>
    overlaps(ranges, { first: batch.baseOffset, last: lastOffsetOf(batch) })
  )
  const needed = batches.reduce((sum, { view }) => sum + view.sizeInBytes, 0)
  if (needed * 4 > heldBytes([item])) return item
  const delivery = { ...item.delivery, batches: batches.map(copyOf) }
  if (item.kind === "copy") return { ...item, delivery }
  const copies = new Map<Output, Output>()
  for (const output of outputsOf(item)) copies.set(output, { ...output, bytes: Buffer.from(output.bytes) })
  const own = (outputs: ReadonlyArray<Output>) => outputs.map((output) => copies.get(output) ?? output)
  return { ...item, delivery, unit: { ...item.unit, outputs: own(item.unit.outputs) }, remaining: own(item.remaining) }
}
