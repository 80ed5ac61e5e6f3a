/** Random records and batches, with the shapes that go wrong: null and empty, odd header names, wide timestamps, gaps. */
import fc from "fast-check"
import { BatchView, type Codec, codecs } from "../../../src/wire/batch/recordBatch.ts"
import { encodeBatch, type Rec } from "../../../src/wire/batch/records.ts"

export const anyBytes = fc.oneof(
  { weight: 9, arbitrary: fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)) },
  // Compressible, and longer than one block of snappy's framing now and then.
  fc.tuple(fc.string({ minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 9_000 })).map(([text, times]) =>
    Buffer.from(text.repeat(times))
  )
)
const anyBytesOrNull = fc.option(anyBytes, { freq: 4 })

const anyHeader = fc.record({
  key: fc.oneof(
    fc.constantFrom("a", "b", "").map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array))
  ),
  value: anyBytesOrNull
})

export const anyTimestamp = fc.oneof(
  { weight: 4, arbitrary: fc.bigInt({ min: 1_600_000_000_000n, max: 1_800_000_000_000n }) },
  fc.constant(-1n),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
)

const anyContent = fc.record({
  timestamp: anyTimestamp,
  key: anyBytesOrNull,
  value: anyBytesOrNull,
  headers: fc.array(anyHeader, { maxLength: 4 })
})

/** Offsets ascend, with gaps. */
export const anyRecords: fc.Arbitrary<Array<Rec>> = fc.tuple(
  fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 ** 52 })),
  fc.array(
    fc.tuple(anyContent, fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 100_000 }))),
    { minLength: 1, maxLength: 12 }
  )
).map(([base, contents]) => {
  let offset = base
  return contents.map(([content, step], index) => {
    if (index > 0) offset += step
    return { offset, ...content }
  })
})

export const anyCodec: fc.Arbitrary<Codec> = fc.constantFrom(...codecs)

/** A batch that a producer could have sent, with producer fields of any kind. */
export const anyBatch: fc.Arbitrary<Buffer> = fc.tuple(
  anyRecords,
  anyCodec,
  fc.record({
    partitionLeaderEpoch: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
    producerId: fc.integer({ min: -1, max: 2 ** 52 }),
    producerEpoch: fc.integer({ min: -1, max: 32_767 }),
    baseSequence: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
    transactional: fc.boolean()
  })
).map(([records, codec, header]) => encodeBatch(records, { codec, ...header }))

/** The one batch in these bytes. */
export const view = (bytes: Buffer): BatchView => new BatchView(bytes, 0)

/** A batch of a few plain records. */
export const plainBatch = (codec: Codec = "none", count = 3): Buffer =>
  encodeBatch(
    Array.from({ length: count }, (_, i) => ({
      offset: i,
      timestamp: 1_700_000_000_000n + BigInt(i),
      key: Buffer.from(`key ${i}`),
      value: Buffer.from(`value ${i}`),
      headers: [{ key: Buffer.from("h"), value: null }]
    })),
    { codec }
  )
