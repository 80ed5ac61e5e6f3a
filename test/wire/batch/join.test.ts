import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { ProtocolError } from "../../../src/wire/bytes.ts"
import { joinBatches } from "../../../src/wire/batch/join.ts"
import { passThroughVerdict } from "../../../src/wire/batch/passThrough.ts"
import { at, bit, splitBatches } from "../../../src/wire/batch/recordBatch.ts"
import { decodeRecords, encodeBatch } from "../../../src/wire/batch/records.ts"
import { anyCodec, anyRecords, plainBatch, view } from "./generate.ts"

const LIMIT = 16 * 1024 * 1024

describe("small batches joined to one", () => {
  it("have each record of each, in order, with its time, key, value and headers, in each codec", () => {
    fc.assert(
      fc.property(fc.array(anyRecords, { minLength: 1, maxLength: 6 }), anyCodec, (lists, codec) => {
        const batches = lists.map((records) => encodeBatch(records, { codec, transactional: true, producerId: 7 }))
        const [joined, ...more] = splitBatches(joinBatches(batches.map(view), codec, LIMIT))
        assert.lengthOf(more, 0)
        assert.isDefined(joined)
        assert.isTrue(passThroughVerdict(joined).ok)
        const records = lists.flat()
        assert.deepStrictEqual(decodeRecords(joined), records.map((record, offset) => ({ ...record, offset })))
        assert.strictEqual(joined.codec, codec)
        assert.deepStrictEqual([joined.producerId, joined.isTransactional, joined.baseOffset], [-1, false, 0])
        const latest = records.reduce(
          (most, { timestamp }) => timestamp > most ? timestamp : most,
          lists[0]?.[0]?.timestamp ?? 0n
        )
        assert.strictEqual(joined.maxTimestamp, latest)
      }),
      { numRuns: 300, seed: 20_06 }
    )
  })

  it("are refused with a sentence where a byte of them is wrong: nothing damaged gets a checksum that fits", () => {
    const damaged = plainBatch()
    damaged[damaged.length - 1] = (damaged[damaged.length - 1] as number) ^ 1
    assert.throws(() => joinBatches([view(plainBatch()), view(damaged)], "none", LIMIT), ProtocolError, /checksum/)
  })

  it("are refused where they unfold to more than the limit", () => {
    const large = encodeBatch(
      [{ offset: 0, timestamp: 0n, key: null, value: Buffer.alloc(2 * LIMIT), headers: [] }],
      { codec: "lz4" }
    )
    assert.throws(() => joinBatches([view(plainBatch("lz4")), view(large)], "lz4", LIMIT), ProtocolError, /limit/)
  })

  it("lose the mark that says that their base timestamp is a cleaner's time", () => {
    const marked = plainBatch()
    marked.writeUInt16BE(view(marked).attributes | bit.deleteHorizon, at.attributes)
    const sound = encodeBatch(decodeRecords(view(plainBatch())), { codec: "none" })
    assert.isFalse(view(joinBatches([view(sound), view(sound)], "none", LIMIT)).hasDeleteHorizon)
    // Its checksum was not carried over here, so it is not sound.
    assert.throws(() => joinBatches([view(marked)], "none", LIMIT), ProtocolError)
  })
})
