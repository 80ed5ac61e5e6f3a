import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  narrow,
  RecordReader,
  varintSize,
  varlongSize,
  writeVarint,
  writeVarlong
} from "../../../src/wire/batch/varint.ts"
import { ProtocolError } from "../../../src/wire/bytes.ts"

const reader = (hex: string): RecordReader => new RecordReader(Buffer.from(hex, "hex"))

describe("varints", () => {
  it("have the bytes that Protocol Buffers gives them", () => {
    const known: ReadonlyArray<readonly [number, string]> = [
      [0, "00"],
      [-1, "01"],
      [1, "02"],
      [63, "7e"],
      [-64, "7f"],
      [64, "8001"],
      [300, "d804"],
      [2 ** 31 - 1, "feffffff0f"],
      [-(2 ** 31), "ffffffff0f"]
    ]
    for (const [value, hex] of known) {
      const out = Buffer.alloc(10)
      assert.strictEqual(out.toString("hex", 0, writeVarint(out, value, 0)), hex)
      assert.strictEqual(varintSize(value), hex.length / 2)
      assert.strictEqual(reader(hex).varint(), value)
      assert.strictEqual(reader(hex).varlong(), BigInt(value))
    }
    const longest = reader("ffffffffffffffffff01")
    assert.strictEqual(longest.varlong(), -(2n ** 63n))
    assert.strictEqual(longest.remaining, 0)
  })

  it("come back exactly over all of 32 and 64 bits, in the size that was foretold", () => {
    fc.assert(fc.property(fc.maxSafeInteger().map((n) => n | 0), (value) => {
      const out = Buffer.alloc(5)
      const end = writeVarint(out, value, 0)
      assert.strictEqual(end, varintSize(value))
      assert.strictEqual(new RecordReader(out, 0, end).varint(), value)
    }))
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.integer({ min: 0, max: 63 }),
        (wide, shift) => {
          const value = wide >> BigInt(shift)
          const out = Buffer.alloc(10)
          const end = writeVarlong(out, narrow(value), 0)
          assert.strictEqual(end, varlongSize(narrow(value)))
          assert.strictEqual(varlongSize(value), end)
          assert.strictEqual(new RecordReader(out, 0, end).varlong(), value)
        }
      ),
      { numRuns: 1_000 }
    )
  })

  it("of more bits than their type has, or cut short, are refused", () => {
    for (const hex of ["", "80", "ffffffff", "ffffffff10", "ffffffff7f", "808080808001"]) {
      assert.throws(() => reader(hex).varint(), ProtocolError, undefined, hex)
    }
    for (const hex of ["", "80", "ffffffffffffffffff", "ffffffffffffffffff02", "8080808080808080808001"]) {
      assert.throws(() => reader(hex).varlong(), ProtocolError, undefined, hex)
    }
  })
})
