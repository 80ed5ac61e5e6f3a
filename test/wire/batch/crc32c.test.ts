import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { carryCrc32c, crc32c, crc32cInTypeScript, crc32cNative } from "../../../src/wire/batch/crc32c.ts"

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))

describe("crc32c", () => {
  it("gives the published check values (RFC 3720, B.4)", () => {
    const known: ReadonlyArray<readonly [Buffer, number]> = [
      [Buffer.alloc(0), 0],
      [Buffer.from("123456789"), 0xe306_9283],
      [Buffer.alloc(32), 0x8a91_36aa],
      [Buffer.alloc(32, 0xff), 0x62a8_ab43],
      [Buffer.from(Array.from({ length: 32 }, (_, i) => i)), 0x46dd_794e],
      [Buffer.from(Array.from({ length: 32 }, (_, i) => 31 - i)), 0x113f_db5c]
    ]
    for (const [input, crc] of known) {
      assert.strictEqual(crc32c(input), crc)
      assert.strictEqual(crc32cInTypeScript(input), crc)
    }
  })

  it("is the same with and without the native add-on, at every length and alignment", () => {
    assert.isNotNull(crc32cNative, "the machine that runs the tests has the add-on")
    const all = Buffer.from(Array.from({ length: 2_100 }, (_, i) => (i * 7 + (i >> 3)) & 0xff))
    for (let start = 0; start < 9; start++) {
      for (let end = start; end < all.length; end += end < 600 ? 1 : 97) {
        const native = crc32cNative(all.subarray(start, end))
        assert.strictEqual(crc32cInTypeScript(all, start, end), native)
        assert.strictEqual(crc32c(all, start, end), native)
      }
    }
  })
})

describe("carryCrc32c", () => {
  it("equals the full computation for any change before any number of bytes", () => {
    fc.assert(
      fc.property(bytes(60), fc.uint8Array({ minLength: 60, maxLength: 60 }), bytes(5_000), (header, other, rest) => {
        const before = Buffer.concat([header, rest])
        const changed = Buffer.from(header.map((byte, i) => byte ^ (other[i] as number)))
        const carried = carryCrc32c(crc32c(before), other.subarray(0, header.length), rest.length)
        assert.strictEqual(carried, crc32c(Buffer.concat([changed, rest])))
      }),
      { numRuns: 500 }
    )
  })

  it("equals the full computation at lengths that use every operator up to 64 MiB", () => {
    const large = Buffer.alloc(2 ** 26 + 2 ** 25 + 40, 0x5a)
    for (const behind of [1, 255, 65_537, 2 ** 20 - 1, 2 ** 24 + 1, 2 ** 26 + 2 ** 25 - 1]) {
      const before = large.subarray(0, 36 + behind)
      const crc = crc32c(before)
      const difference = Buffer.from(Array.from({ length: 36 }, (_, i) => i + 1))
      for (let i = 0; i < 36; i++) large[i] = (large[i] as number) ^ (difference[i] as number)
      assert.strictEqual(carryCrc32c(crc, difference, behind), crc32c(before))
    }
  })

  it("carries over the largest batch there can be: two steps of half the length are one of the whole", () => {
    const difference = Buffer.from("any bytes")
    const whole = carryCrc32c(0, difference, 2 ** 31 - 2)
    const half = Buffer.alloc(4)
    // A register that four zero bytes have not yet passed is the difference of four bytes.
    half.writeUInt32LE(carryCrc32c(0, difference, 2 ** 30 - 1 - 4))
    assert.strictEqual(carryCrc32c(0, half, 2 ** 30 - 1), whole)
  })

  it("changes nothing when nothing changed", () => {
    assert.strictEqual(carryCrc32c(0xdead_beef, Buffer.alloc(36), 12_345), 0xdead_beef)
  })
})
