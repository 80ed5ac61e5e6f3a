import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { crc32c } from "../../../src/wire/batch/crc32c.ts"
import { at, bit } from "../../../src/wire/batch/recordBatch.ts"
import { decodeRecords, encodeBatch } from "../../../src/wire/batch/records.ts"
import { type ProduceHeader, rewriteForProduce } from "../../../src/wire/batch/rewrite.ts"
import { ProtocolError } from "../../../src/wire/bytes.ts"
import { anyBatch, plainBatch, view } from "./generate.ts"

const anyHeader: fc.Arbitrary<ProduceHeader> = fc.record({
  producerId: fc.integer({ min: -1, max: Number.MAX_SAFE_INTEGER }),
  producerEpoch: fc.integer({ min: -1, max: 32_767 }),
  baseSequence: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
  transactional: fc.boolean()
})

const header: ProduceHeader = { producerId: 4_711, producerEpoch: 7, baseSequence: 99, transactional: true }

/** The bytes that a rewrite may change. */
const fields: ReadonlyArray<readonly [number, number]> = [
  [at.baseOffset, at.length],
  [at.partitionLeaderEpoch, at.magic],
  [at.crc, at.lastOffsetDelta],
  [at.producerId, at.recordCount]
]
const mayChange = (position: number): boolean => fields.some(([from, to]) => position >= from && position < to)

describe("rewriteForProduce", () => {
  it("leaves a checksum that equals the full computation, and the fields as asked", () => {
    fc.assert(
      fc.property(anyBatch, anyHeader, (bytes, wanted) => {
        const batch = view(bytes)
        rewriteForProduce(batch, wanted)
        assert.strictEqual(batch.crc, crc32c(bytes, at.attributes))
        assert.strictEqual(batch.baseOffset, 0)
        assert.strictEqual(batch.partitionLeaderEpoch, -1)
        assert.strictEqual(batch.producerId, wanted.producerId)
        assert.strictEqual(batch.producerEpoch, wanted.producerEpoch)
        assert.strictEqual(batch.baseSequence, wanted.baseSequence)
        assert.strictEqual(batch.isTransactional, wanted.transactional)
      }),
      { numRuns: 300 }
    )
  })

  it("leaves every other byte as it was, also those around the batch", () => {
    fc.assert(
      fc.property(anyBatch, anyHeader, fc.integer({ min: 0, max: 100 }), (bytes, wanted, shift) => {
        const around = Buffer.concat([Buffer.alloc(shift, 0xaa), bytes, Buffer.alloc(50, 0xbb)])
        const batch = view(around.subarray(shift))
        rewriteForProduce(batch, wanted)
        for (let i = 0; i < around.length; i++) {
          const position = i - shift
          const before = position < 0 ? 0xaa : position >= bytes.length ? 0xbb : bytes[position]
          if (around[i] !== before) assert.isTrue(mayChange(position), `byte ${position} changed`)
        }
      }),
      { numRuns: 200 }
    )
  })

  it("can be done again and again, as retries with other sequences need", () => {
    const bytes = plainBatch("zstd", 20)
    const before = decodeRecords(view(bytes))
    for (let i = 0; i < 50; i++) {
      rewriteForProduce(view(bytes), { ...header, baseSequence: i * 3, transactional: i % 2 === 0 })
    }
    assert.isTrue(view(bytes).crcIsValid())
    assert.deepStrictEqual(decodeRecords(view(bytes)), before)
  })

  it("never makes damaged records look sound: the checksum stays wrong by what it was wrong before", () => {
    fc.assert(
      fc.property(anyBatch, anyHeader, fc.nat(), fc.integer({ min: 0, max: 7 }), (bytes, wanted, where, shift) => {
        // A bit flipped anywhere under the checksum but in the fields that are replaced.
        const timestamps = at.producerId - at.baseTimestamp
        const nth = where % (timestamps + bytes.length - at.records)
        const place = nth < timestamps ? at.baseTimestamp + nth : at.records + nth - timestamps
        bytes[place] = (bytes[place] as number) ^ (1 << shift)
        const batch = view(bytes)
        const wrongBy = batch.crc ^ crc32c(bytes, at.attributes)
        rewriteForProduce(batch, wanted)
        assert.strictEqual(batch.crc ^ crc32c(bytes, at.attributes), wrongBy)
        assert.notStrictEqual(wrongBy, 0)
        assert.throws(() => decodeRecords(batch), ProtocolError, "checksum")
      }),
      { numRuns: 200 }
    )
  })

  it("does not read the records: a checksum is carried over a batch whose records are not there", () => {
    const bytes = plainBatch("none", 5)
    const crc = view(bytes).crc
    const whole = Buffer.from(bytes)
    rewriteForProduce(view(whole), header)
    bytes.fill(0xee, at.records)
    rewriteForProduce(view(bytes), header)
    assert.strictEqual(view(bytes).crc, view(whole).crc)
    assert.notStrictEqual(view(bytes).crc, crc)
  })

  it("clears the delete horizon, so that the target does not drop tombstones by the source's clock; times stay", () => {
    const bytes = plainBatch()
    const before = decodeRecords(view(bytes))
    bytes[at.attributes + 1] = (bytes[at.attributes + 1] as number) | bit.deleteHorizon
    bytes.writeUInt32BE(crc32c(bytes, at.attributes), at.crc)
    assert.isTrue(view(bytes).hasDeleteHorizon)
    rewriteForProduce(view(bytes), header)
    assert.isFalse(view(bytes).hasDeleteHorizon)
    assert.isTrue(view(bytes).crcIsValid())
    assert.deepStrictEqual(decodeRecords(view(bytes)), before)
  })

  it("refuses, and does not touch, a batch that would be refused or change its meaning", () => {
    const records = decodeRecords(view(plainBatch("none", 3)))
    const withGap = records.map((record, i) => ({ ...record, offset: i * 2 }))
    const control = plainBatch()
    control[at.attributes + 1] = bit.control
    const cases: ReadonlyArray<readonly [string, Buffer]> = [
      ["gaps", encodeBatch(withGap, { codec: "none", offsets: "keep" })],
      ["log-append-time", encodeBatch(records, { codec: "none", timestampType: "logAppend" })],
      ["control", control]
    ]
    for (const [reason, bytes] of cases) {
      const before = Buffer.from(bytes)
      assert.throws(() => rewriteForProduce(view(bytes), header), ProtocolError, reason)
      assert.isTrue(bytes.equals(before))
    }
  })
})
