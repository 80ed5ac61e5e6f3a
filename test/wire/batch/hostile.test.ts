import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { compress } from "../../../src/wire/batch/compression.ts"
import { crc32c } from "../../../src/wire/batch/crc32c.ts"
import { at, codecs, splitBatches } from "../../../src/wire/batch/recordBatch.ts"
import { decodeRecords } from "../../../src/wire/batch/records.ts"
import { ProtocolError } from "../../../src/wire/bytes.ts"
import { plainBatch } from "./generate.ts"

/** The batch with other records behind its header, and a length and checksum that fit them. */
const withRecords = (batch: Buffer, records: Buffer): Buffer => {
  const bytes = Buffer.concat([batch.subarray(0, at.records), records])
  bytes.writeInt32BE(bytes.length - 12, at.length)
  bytes.writeUInt32BE(crc32c(bytes, at.attributes), at.crc)
  return bytes
}

/** Reads all of it; fails the test on anything that is not a ProtocolError. */
const read = (bytes: Buffer): "read" | "refused" => {
  try {
    for (const batch of splitBatches(bytes)) decodeRecords(batch, 10_000_000)
    return "read"
  } catch (error) {
    assert.instanceOf(error, ProtocolError)
    return "refused"
  }
}

const recordsOf = (bytes: Buffer): Buffer => bytes.subarray(at.records)

describe("bytes that are not what they claim", () => {
  it("are refused when records are cut at any byte though header and checksum fit", () => {
    for (const codec of codecs) {
      const batch = plainBatch(codec, 5)
      const whole = codec === "none" ? recordsOf(batch) : recordsOf(plainBatch("none", 5))
      for (let length = 0; length < whole.length; length++) {
        const cut = withRecords(batch, compress(codec, whole.subarray(0, length)))
        assert.strictEqual(read(cut), "refused", `${codec}, ${length} bytes of records`)
      }
      assert.strictEqual(read(withRecords(batch, compress(codec, whole))), "read")
      assert.strictEqual(read(withRecords(batch, compress(codec, Buffer.concat([whole, Buffer.from([0])])))), "refused")
    }
  })

  it("end in a ProtocolError or in records when any byte is changed under a checksum that fits", () => {
    const batch = plainBatch("none", 4)
    let refused = 0
    for (let place = at.records; place < batch.length; place++) {
      for (const value of [0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff]) {
        const records = Buffer.from(recordsOf(batch))
        records[place - at.records] = value
        if (read(withRecords(batch, records)) === "refused") refused++
      }
    }
    assert.isAbove(refused, 0)
  })

  it("never throw anything else, with random bytes and random damage anywhere", () => {
    const codec = fc.constantFrom(...codecs)
    fc.assert(
      fc.property(codec, fc.uint8Array({ maxLength: 200 }), fc.boolean(), (name, array, raw) => {
        const records = Buffer.from(array)
        read(withRecords(plainBatch(name, 3), raw ? records : compress(name, records)))
        read(records)
      }),
      { numRuns: 2_000 }
    )
    fc.assert(
      fc.property(
        codec,
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        (name, edits, fits) => {
          const bytes = Buffer.concat([plainBatch(name, 3), plainBatch("none", 2)])
          for (const [place, value] of edits) bytes[place % bytes.length] = value
          if (fits) bytes.writeUInt32BE(crc32c(bytes, at.attributes, plainBatch(name, 3).length), at.crc)
          read(bytes)
        }
      ),
      { numRuns: 5_000 }
    )
  })

  it("cannot make the reader take memory for what they announce", () => {
    const varint = (value: number): Buffer => {
      const out: Array<number> = []
      let bits = ((value << 1) ^ (value >> 31)) >>> 0
      for (; bits > 0x7f; bits >>>= 7) out.push((bits & 0x7f) | 0x80)
      return Buffer.from([...out, bits])
    }
    const body = (...parts: ReadonlyArray<number | Buffer>): Buffer => {
      const bytes = Buffer.concat(parts.map((part) => typeof part === "number" ? varint(part) : part))
      return Buffer.concat([varint(bytes.length + 1), Buffer.from([0]), bytes])
    }
    const one = plainBatch("none", 1)
    const x = Buffer.from("x")
    assert.strictEqual(read(withRecords(one, body(0, 0, 1, x, 1, x, 0))), "read")
    const absurd: Readonly<Record<string, Buffer>> = {
      "record length": varint(0x7fff_ffff),
      "negative record length": varint(-5),
      "key length": body(0, 0, 0x7fff_ffff, x, -1, 0),
      "negative key length": body(0, 0, -2, -1, 0),
      "value length": body(0, 0, -1, 0x7fff_ffff, 0),
      "header count": body(0, 0, -1, -1, 0x7fff_ffff),
      "negative header count": body(0, 0, -1, -1, -1),
      "header without a name": body(0, 0, -1, -1, 1, -1, -1),
      "offset beyond the last": body(0, 1, -1, -1, 0),
      "negative offset": body(0, -1, -1, -1, 0),
      "varint of six bytes": Buffer.from([0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
      "varint beyond 32 bits": Buffer.from([0xff, 0xff, 0xff, 0xff, 0x7f]),
      "timestamp of eleven bytes": Buffer.concat([varint(16), Buffer.alloc(1), Buffer.alloc(11, 0x80), Buffer.alloc(4)])
    }
    // One less than its fields take, though the fields follow each other without a fault.
    const short = body(0, 0, 1, x, 1, x, 0)
    short[0] = (short[0] as number) - 2
    assert.strictEqual(read(withRecords(one, short)), "refused")
    for (const [name, records] of Object.entries(absurd)) {
      assert.strictEqual(read(withRecords(one, records)), "refused", name)
    }
    const many = Buffer.from(one)
    many.writeInt32BE(0x7fff_fffe, at.lastOffsetDelta)
    many.writeInt32BE(0x7fff_ffff, at.recordCount)
    assert.strictEqual(read(withRecords(many, recordsOf(one))), "refused")
  })

  it("name the offset of the batch that is at fault", () => {
    const bytes = plainBatch("lz4", 3)
    bytes.writeBigInt64BE(123_456n, at.baseOffset)
    bytes[bytes.length - 9] = (bytes[bytes.length - 9] as number) ^ 0x40
    assert.throws(() => splitBatches(bytes).forEach((batch) => decodeRecords(batch)), ProtocolError, "offset 123456")
  })
})
