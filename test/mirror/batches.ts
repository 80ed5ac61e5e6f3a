/** Deliveries made of real record batches, for tests without a broker. */
import type { Delivery, DeliveredRange } from "../../src/mirror/delivery.ts"
import { deliveredBatches } from "../../src/mirror/delivery.ts"
import { type Codec, splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { encodeBatch, type Rec } from "../../src/wire/batch/records.ts"

export const rec = (offset: number, value: string | null = `v${offset}`, key: string | null = `k${offset}`): Rec => ({
  offset,
  timestamp: BigInt(1_700_000_000_000 + offset),
  key: key === null ? null : Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
  headers: [{ key: Buffer.from("n"), value: Buffer.from(String(offset)) }]
})

/** A batch as a broker has it: base offset of its own; offsets that are left out are compaction's. */
export const storedBatch = (records: ReadonlyArray<Rec>, codec: Codec = "none"): Buffer =>
  encodeBatch(records, { codec, offsets: "keep" })

export const delivery = (
  ranges: ReadonlyArray<readonly [first: number, last: number, count?: number]>,
  batches: ReadonlyArray<Buffer>
): Delivery => ({
  topic: "orders",
  topicId: "AAAAAAAAAAAAAAAAAAAAAQ",
  partition: 0,
  ranges: ranges.map(([first, last, deliveryCount = 1]): DeliveredRange => ({ first, last, deliveryCount })),
  batches: deliveredBatches(splitBatches(Buffer.concat(batches))),
  acquiredAtMs: 0,
  token: null
})
