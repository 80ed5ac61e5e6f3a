import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { at, codecs, splitBatches } from "../../../src/wire/batch/recordBatch.ts"
import { decodeRecords, encodeBatch, type Rec } from "../../../src/wire/batch/records.ts"
import { ProtocolError } from "../../../src/wire/bytes.ts"
import { anyCodec, anyRecords, view } from "./generate.ts"

const record = (part: Partial<Rec>): Rec => ({
  offset: 0,
  timestamp: 1_700_000_000_000n,
  key: null,
  value: null,
  headers: [],
  ...part
})

const roundTrip = (rec: Rec): Rec => decodeRecords(view(encodeBatch([rec], { codec: "none" })))[0] as Rec

describe("encodeBatch and decodeRecords", () => {
  it("give back every record exactly, with each codec, when offsets are kept", () => {
    fc.assert(
      fc.property(anyRecords, anyCodec, (records, codec) => {
        const bytes = encodeBatch(records, { codec, offsets: "keep" })
        const [batch, ...more] = splitBatches(bytes)
        assert.lengthOf(more, 0)
        assert.isDefined(batch)
        assert.isTrue(batch.crcIsValid())
        assert.strictEqual(batch.codec, codec)
        assert.strictEqual(batch.lastOffset, records.at(-1)?.offset)
        assert.deepStrictEqual(decodeRecords(batch), records)
      }),
      { numRuns: 300 }
    )
  })

  it("give offsets 0, 1, 2, ... without being told otherwise: a producer's batch has no gaps", () => {
    fc.assert(
      fc.property(anyRecords, anyCodec, (records, codec) => {
        const batch = view(encodeBatch(records, { codec }))
        assert.strictEqual(batch.lastOffsetDelta, records.length - 1)
        assert.deepStrictEqual(decodeRecords(batch), records.map((rec, offset) => ({ ...rec, offset })))
      }),
      { numRuns: 100 }
    )
  })

  it("keep null apart from empty, in keys, values and header values", () => {
    const empty = Buffer.alloc(0)
    for (const key of [null, empty]) {
      for (const value of [null, empty]) {
        const headers = [{ key: empty, value: null }, { key: empty, value: empty }]
        assert.deepStrictEqual(roundTrip(record({ key, value, headers })), record({ key, value, headers }))
      }
    }
  })

  it("keep the order of headers, doubles, and names that are not UTF-8", () => {
    const headers = [
      { key: Buffer.from([0xff, 0xfe, 0x00]), value: Buffer.from("1") },
      { key: Buffer.from("b"), value: Buffer.from("2") },
      { key: Buffer.from("a"), value: null },
      { key: Buffer.from("b"), value: Buffer.from("3") },
      { key: Buffer.from("b"), value: Buffer.from("2") }
    ]
    assert.deepStrictEqual(roundTrip(record({ headers })).headers, headers)
  })

  it("keep timestamps that are far apart, absent or at the ends of 64 bits", () => {
    const times = [
      0n,
      -1n,
      2n ** 63n - 1n,
      -(2n ** 63n),
      1n,
      2n ** 31n,
      -(2n ** 31n),
      2n ** 48n,
      -(2n ** 48n),
      2n ** 49n
    ]
    for (const first of times) {
      const records = [first, ...times].map((timestamp, offset) => record({ timestamp, offset }))
      const batch = view(encodeBatch(records, { codec: "none" }))
      assert.deepStrictEqual(decodeRecords(batch).map((rec) => rec.timestamp), [first, ...times])
      assert.strictEqual(batch.maxTimestamp, 2n ** 63n - 1n)
    }
  })

  it("show the broker's time on every record when the batch has LogAppendTime, and keep it when encoded again", () => {
    const records = [5n, 900n, 70n].map((timestamp, offset) => record({ timestamp, offset }))
    const appended = encodeBatch(records, { codec: "gzip", timestampType: "logAppend" })
    const seen = decodeRecords(view(appended))
    assert.deepStrictEqual(seen.map((rec) => rec.timestamp), [900n, 900n, 900n])
    const again = view(encodeBatch(seen, { codec: "gzip" }))
    assert.strictEqual(again.timestampType, "create")
    assert.deepStrictEqual(decodeRecords(again), seen)
  })

  it("take a header without records, which compaction leaves, for no records, whatever its codec", () => {
    for (const codec of codecs) {
      const header = encodeBatch([record({})], { codec }).subarray(0, at.records)
      header.writeInt32BE(at.records - 12, at.length)
      header.writeInt32BE(0, at.recordCount)
      const batch = view(header)
      header.writeUInt32BE(computed(header), at.crc)
      assert.deepStrictEqual(decodeRecords(batch), [])
    }
  })

  it("refuse no records, and offsets that do not ascend where they are kept", () => {
    assert.throws(() => encodeBatch([], { codec: "none" }), ProtocolError, "at least one record")
    for (const offsets of [[3, 3], [3, 2]]) {
      const records = offsets.map((offset) => record({ offset }))
      assert.throws(() => encodeBatch(records, { codec: "none", offsets: "keep" }), ProtocolError, "must ascend")
      assert.lengthOf(decodeRecords(view(encodeBatch(records, { codec: "none" }))), 2)
    }
    const far = [record({ offset: 0 }), record({ offset: 2 ** 31 })]
    assert.throws(() => encodeBatch(far, { codec: "none", offsets: "keep" }), ProtocolError, "do not fit")
  })
})

/** The checksum by the definition, a bit at a time: independent of the code under test. */
function computed(bytes: Buffer): number {
  let crc = -1
  for (const byte of bytes.subarray(at.attributes)) {
    crc ^= byte
    for (let i = 0; i < 8; i++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f6_3b78
  }
  return ~crc >>> 0
}
