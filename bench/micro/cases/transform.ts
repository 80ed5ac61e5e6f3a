/** The decode path, which a transform takes: records out of a batch, and into one again. */
import { type BatchView, type Codec, splitBatches } from "../../../src/wire/batch/recordBatch.ts"
import { decodeRecords, encodeBatch } from "../../../src/wire/batch/records.ts"
import { batchOf, type MicroCase, recordsOf } from "../microCase.ts"

const RECORDS = 100

const decode = (codec: Codec): MicroCase => ({
  name: `decode ${RECORDS} records of 100 B, ${codec}`,
  warmUp: 120,
  operations: 25,
  prepare: () => {
    const view = splitBatches(batchOf(RECORDS, 100, codec))[0] as BatchView
    return () => decodeRecords(view)
  }
})

const encode = (codec: Codec): MicroCase => ({
  name: `encode ${RECORDS} records of 100 B, ${codec}`,
  warmUp: 120,
  operations: 25,
  prepare: () => {
    const records = recordsOf(RECORDS, 100)
    return () => encodeBatch(records, { codec })
  }
})

export const cases: ReadonlyArray<MicroCase> = [decode("none"), decode("lz4"), encode("none"), encode("lz4")]
