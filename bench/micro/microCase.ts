/** What a micro benchmark is: one operation of the core on data that is made beforehand, always the same. */
import type { Codec } from "../../src/wire/batch/recordBatch.ts"
import { encodeBatch, type Rec } from "../../src/wire/batch/records.ts"

export interface MicroCase {
  /** Unique; the key in baseline.json. */
  readonly name: string
  /** How often the operation runs before anything is counted: the compiler must be done with it. */
  readonly warmUp: number
  /** How often it runs while it is counted. What it allocates in all must fit into the young generation (sample.ts). */
  readonly operations: number
  /** Makes the data and gives the operation. Its result is kept, so that no compiler leaves the work out. */
  readonly prepare: () => (n: number) => unknown
}

/** Text that compresses to about half, as logs and JSON do; the same on each run. */
const words = Array.from({ length: 4096 }, (_, n) => (n * 2_654_435_761 >>> 0).toString(36))
const valueOf = (n: number, bytes: number): Buffer => {
  let text = `${n}|`
  for (let i = n; text.length < bytes; i += 7) text += words[(i * 31) % words.length] as string
  return Buffer.from(text.slice(0, bytes), "latin1")
}

/** Records with a key, a value of so many bytes, and a header each. */
export const recordsOf = (count: number, bytes: number): ReadonlyArray<Rec> =>
  Array.from({ length: count }, (_, n) => ({
    offset: n,
    timestamp: 1_700_000_000_000n + BigInt(n),
    key: Buffer.from(`key-${n}`),
    value: valueOf(n, bytes),
    headers: [{ key: Buffer.from("trace"), value: Buffer.from(`t-${n}`) }]
  }))

/** A batch as a producer has written it. */
export const batchOf = (count: number, bytes: number, codec: Codec): Buffer =>
  encodeBatch(recordsOf(count, bytes), { codec, producerId: 7, producerEpoch: 1, baseSequence: 0 })
