/** What a broker refuses in a batch that a producer sends, before any state is looked at (Kafka's LogValidator). */
import { at, BatchView, bit, codecs } from "../../wire/batch/recordBatch.ts"
import { code } from "./codes.ts"

/** The one batch of a produce request, or the code and the words it is refused with. */
export type Checked =
  | { readonly ok: true; readonly batch: BatchView }
  | { readonly ok: false; readonly code: number; readonly message: string }

const no = (errorCode: number, message: string): Checked => ({ ok: false, code: errorCode, message })

const checkHeader = (batch: BatchView): Checked => {
  if (!batch.crcIsValid()) return no(code.CORRUPT_MESSAGE, "Record is corrupt: its checksum does not fit")
  if (batch.isControl) return no(code.INVALID_RECORD, "Clients are not allowed to write control records")
  if (batch.baseOffset !== 0) return no(code.INVALID_RECORD, "The batch's base offset must be 0")
  if (batch.recordCount !== batch.lastOffsetDelta + 1) {
    return no(code.INVALID_RECORD, "Record count and last offset differ")
  }
  if ((batch.attributes & bit.logAppendTime) !== 0) {
    return no(code.INVALID_TIMESTAMP, "Producers may not set the append time")
  }
  if (codecs[batch.attributes & bit.codec] === undefined) return no(code.CORRUPT_MESSAGE, "Unknown compression")
  if (batch.producerId >= 0 && batch.baseSequence < 0) return no(code.INVALID_RECORD, "A producer id needs a sequence")
  if (batch.isTransactional && batch.producerId < 0) return no(code.INVALID_RECORD, "A transaction needs a producer id")
  return { ok: true, batch }
}

export const checkBatch = (records: Buffer | null, maxBytes: number): Checked => {
  if (records === null || records.length < at.records) return no(code.INVALID_RECORD, "There is no record batch")
  const batch = new BatchView(records, 0)
  if (records[at.magic] !== 2) return no(code.INVALID_RECORD, "Only message format 2 is taken")
  if (batch.sizeInBytes < records.length) return no(code.INVALID_RECORD, "One record batch a partition is allowed")
  if (batch.sizeInBytes > records.length) return no(code.CORRUPT_MESSAGE, "The record batch is cut")
  if (records.length > maxBytes) {
    return no(code.MESSAGE_TOO_LARGE, `The batch has ${records.length} bytes, ${maxBytes} are allowed`)
  }
  return checkHeader(batch)
}
