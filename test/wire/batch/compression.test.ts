import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { gzipSync, zstdCompressSync } from "node:zlib"
import { compressSync as snappyBlock } from "snappy"
import lz4 from "lz4-napi"
import { compress, decompress } from "../../../src/wire/batch/compression.ts"
import { type Codec, codecs } from "../../../src/wire/batch/recordBatch.ts"
import { ProtocolError } from "../../../src/wire/bytes.ts"
import { anyBytes } from "./generate.ts"

const real: ReadonlyArray<Codec> = codecs.filter((codec) => codec !== "none")
const text = Buffer.from("onceover puts every record on the target exactly once. ".repeat(4_000))

/** A megabyte of zeros as each codec makes it: a few hundred bytes to a few thousand. */
const bombs: Readonly<Record<string, Buffer>> = {
  gzip: gzipSync(Buffer.alloc(1_000_000)),
  snappy: compress("snappy", Buffer.alloc(1_000_000)),
  "snappy raw": snappyBlock(Buffer.alloc(1_000_000)),
  lz4: lz4.compressFrameSync(Buffer.alloc(1_000_000)),
  zstd: zstdCompressSync(Buffer.alloc(1_000_000))
}
const codecOf = (name: string): Codec => name.split(" ")[0] as Codec

describe("compress and decompress", () => {
  it("give back the bytes", () => {
    for (const codec of codecs) {
      fc.assert(
        fc.property(anyBytes, (bytes) => assert.isTrue(decompress(codec, compress(codec, bytes)).equals(bytes)))
      )
      assert.isTrue(decompress(codec, compress(codec, text)).equals(text))
      if (codec !== "none") assert.isBelow(compress(codec, text).length, text.length / 4)
    }
  })

  it("read raw snappy blocks, as librdkafka writes them, and write xerial's framing, as Java does", () => {
    assert.isTrue(decompress("snappy", snappyBlock(text)).equals(text))
    assert.strictEqual(compress("snappy", text).toString("latin1", 1, 7), "SNAPPY")
  })

  it("write lz4 frames with independent blocks, the only ones that Java reads", () => {
    const frame = compress("lz4", text)
    assert.strictEqual(frame.readUInt32LE(0), 0x184d_2204)
    assert.strictEqual((frame[4] as number) & 0xe0, 0x60)
  })

  it("stop at the limit, and take what is exactly as large", () => {
    for (const [name, bytes] of Object.entries(bombs)) {
      assert.throws(() => decompress(codecOf(name), bytes, 999_999), ProtocolError, "more than 999999 bytes")
    }
    for (const codec of real) {
      // lz4's bound is by blocks, so exactness is only promised for incompressible ones.
      if (codec !== "lz4") assert.lengthOf(decompress(codec, compress(codec, text), text.length), text.length)
    }
  })

  it("refuse a snappy block by the size it announces, before memory is taken for it", () => {
    const fourGigabytes = Buffer.from("ffffffff0f00", "hex")
    assert.throws(() => decompress("snappy", fourGigabytes), ProtocolError, "limit for one batch")
    assert.throws(() => decompress("snappy", Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])), ProtocolError)
  })

  it("refuse every truncation that loses bytes", () => {
    for (const codec of real) {
      const bytes = compress(codec, text.subarray(0, 700))
      for (let length = 0; length < bytes.length; length++) {
        let out: Buffer | null = null
        try {
          out = decompress(codec, bytes.subarray(0, length))
        } catch (error) {
          assert.instanceOf(error, ProtocolError)
        }
        // A stream of snappy blocks has no end mark: its header alone is an empty stream.
        if (out !== null) {
          assert.isTrue(out.length === 0 || out.equals(text.subarray(0, 700)), `${codec} cut at ${length}`)
        }
      }
    }
  })

  it("answer random damage with a ProtocolError or with bytes within the limit, and still work afterwards", () => {
    for (const codec of real) {
      const good = compress(codec, text.subarray(0, 2_000))
      fc.assert(
        fc.property(
          fc.array(fc.tuple(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 })), { minLength: 1, maxLength: 6 }),
          (edits) => {
            const bytes = Buffer.from(good)
            for (const [place, xor] of edits) bytes[place] = (bytes[place] as number) ^ xor
            try {
              assert.isAtMost(decompress(codec, bytes, 1_000_000).length, 1_000_000)
            } catch (error) {
              assert.instanceOf(error, ProtocolError)
            }
          }
        ),
        { numRuns: 1_000 }
      )
      assert.isTrue(decompress(codec, good).equals(text.subarray(0, 2_000)))
    }
  })
})
