import { assert, describe, it } from "@effect/vitest"
import { at, codecs, splitBatches } from "../../../src/wire/batch/recordBatch.ts"
import { crc32c } from "../../../src/wire/batch/crc32c.ts"
import { ProtocolError } from "../../../src/wire/bytes.ts"
import { plainBatch } from "./generate.ts"

const refusal = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    assert.instanceOf(error, ProtocolError)
    return error.message
  }
  return assert.fail("nothing was refused")
}

/** The same batch with other header bytes and a checksum that fits. */
const changed = (change: (bytes: Buffer) => void): Buffer => {
  const bytes = plainBatch()
  change(bytes)
  bytes.writeUInt32BE(crc32c(bytes, at.attributes), at.crc)
  return bytes
}

describe("splitBatches", () => {
  it("finds every batch, in order, where it lies", () => {
    const parts = codecs.map((codec, i) => plainBatch(codec, i + 1))
    const views = splitBatches(Buffer.concat(parts))
    assert.deepStrictEqual(views.map((view) => view.codec), [...codecs])
    assert.deepStrictEqual(views.map((view) => view.recordCount), [1, 2, 3, 4, 5])
    views.forEach((view, i) => assert.isTrue(view.bytes.equals(parts[i] as Buffer)))
    assert.isTrue(views.every((view) => view.crcIsValid()))
  })

  it("leaves out a last batch that the broker cut, wherever it cut", () => {
    const whole = plainBatch("gzip", 4)
    const two = Buffer.concat([whole, whole])
    for (let length = 0; length < two.length; length++) {
      assert.lengthOf(splitBatches(two.subarray(0, length)), length >= whole.length ? 1 : 0)
    }
  })

  it("refuses the formats before Kafka 0.11 and says what to do", () => {
    for (const magic of [0, 1]) {
      const bytes = plainBatch()
      bytes[at.magic] = magic
      const said = refusal(() => splitBatches(bytes))
      assert.include(said, `messages in format ${magic}`)
      assert.include(said, "copy the topic once with Kafka's Java client")
    }
  })

  it("refuses unknown formats, unknown codecs, and headers that contradict themselves", () => {
    const cases: ReadonlyArray<readonly [string, (bytes: Buffer) => void]> = [
      ["message format 3 is unknown", (bytes) => bytes[at.magic] = 3],
      ["message format -1 is unknown", (bytes) => bytes[at.magic] = 0xff],
      ["announces 12 bytes; a header alone has 61", (bytes) => bytes.writeInt32BE(0, at.length)],
      ["announces -1 bytes", (bytes) => bytes.writeInt32BE(-13, at.length)],
      ["its offsets end -1 after its base", (bytes) => bytes.writeInt32BE(-1, at.lastOffsetDelta)],
      ["it announces -1 records", (bytes) => bytes.writeInt32BE(-1, at.recordCount)],
      ["it announces 4 records in 3 offsets", (bytes) => bytes.writeInt32BE(4, at.recordCount)],
      ["codec 5", (bytes) => bytes[at.attributes + 1] = 5],
      ["producer id", (bytes) => bytes.writeBigInt64BE(2n ** 60n, at.producerId)],
      ["its offsets end", (bytes) => bytes.writeBigInt64BE(-5n, at.baseOffset)],
      ["its offsets end", (bytes) => bytes.writeBigInt64BE(2n ** 53n - 2n, at.baseOffset)]
    ]
    for (const [words, change] of cases) assert.include(refusal(() => splitBatches(changed(change))), words)
  })

  it("takes a length beyond the end for a cut batch, however absurd", () => {
    assert.deepStrictEqual(splitBatches(changed((bytes) => bytes.writeInt32BE(0x7fff_ffff, at.length))), [])
  })
})

describe("BatchView", () => {
  it("keeps 64-bit timestamps exact and tells a checksum that does not fit", () => {
    const [view] = splitBatches(changed((bytes) => bytes.writeBigInt64BE(2n ** 62n + 1n, at.maxTimestamp)))
    assert.strictEqual(view?.maxTimestamp, 2n ** 62n + 1n)
    assert.isTrue(view?.crcIsValid())
    const damaged = plainBatch()
    damaged[70] = (damaged[70] as number) ^ 1
    assert.isFalse(splitBatches(damaged)[0]?.crcIsValid())
  })
})
