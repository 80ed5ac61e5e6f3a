/**
 * Several small batches as one. A broker takes one batch of a partition in a request, so what producers have sent record
 * by record would go on record by record: a request each. Records are not taken apart: a record's key, value and headers
 * are copied as they lie there, only its length and its two differences are written anew.
 *
 * Guarantees: the records, their order and their timestamps stay; the codec stays. A batch whose checksum does not fit is
 * not joined: in a new batch its damaged records would get a checksum that fits.
 */
import { ProtocolError } from "../bytes.ts"
import { compress, decompress } from "./compression.ts"
import { at, type BatchView, type Codec } from "./recordBatch.ts"
import { checkCount, writeHeader } from "./records.ts"
import { narrow, RecordReader, varintSize, varlongSize, writeVarint, writeVarlong } from "./varint.ts"

/** What a record can grow by: its length (5 bytes at most), the differences of its time (10) and of its offset (5). */
const GROWTH = 5 + 10 + 5

/** The bytes of a batch's records, its checksum seen to. */
const recordsOf = (view: BatchView, limit: number): Buffer => {
  if (!view.crcIsValid()) {
    throw new ProtocolError({ what: `the record batch at offset ${view.baseOffset} is corrupt: its checksum is wrong` })
  }
  const bytes = decompress(view.codec, view.recordBytes, limit)
  checkCount(view, bytes)
  return bytes
}

/** Where the next record of a joined batch goes. */
interface Place {
  readonly out: Buffer
  position: number
  offset: number
}

/** Copies one record. `shift` is what the time of its batch lies behind that of the joined one. */
const copyRecord = (reader: RecordReader, index: number, shift: bigint, place: Place): void => {
  const length = reader.varint()
  if (length < 0 || length > reader.remaining) {
    throw new ProtocolError({ what: `a record announces ${length} bytes, ${reader.remaining} are there` })
  }
  const end = reader.position + length
  const attributes = reader.byte()
  const timestampDelta = narrow(BigInt.asIntN(64, reader.varlong() + shift))
  const offsetDelta = reader.varint()
  if (offsetDelta !== index || reader.position > end) {
    throw new ProtocolError({ what: `the record ${index} of a batch says that it is number ${offsetDelta}` })
  }
  const { out } = place
  const rest = end - reader.position
  let to = writeVarint(out, 1 + varlongSize(timestampDelta) + varintSize(place.offset) + rest, place.position)
  out[to++] = attributes
  to = writeVarlong(out, timestampDelta, to)
  to = writeVarint(out, place.offset, to)
  reader.buffer.copy(out, to, reader.position, end)
  place.position = to + rest
  place.offset++
  reader.position = end
}

/**
 * One batch, as bytes, with the records of these, which pass through as they are (`passThroughVerdict`) and have the same
 * codec. Base offset 0; everything about the producer unset: ready for `rewriteForProduce`.
 *
 * Throws ProtocolError, and changes nothing, where the bytes are not records or unfold to more than `limit` bytes.
 */
export const joinBatches = (views: ReadonlyArray<BatchView>, codec: Codec, limit: number): Buffer => {
  let left = limit
  const pieces = views.map((view) => {
    const bytes = recordsOf(view, left)
    left -= bytes.length
    return bytes
  })
  const count = views.reduce((sum, view) => sum + view.recordCount, 0)
  const head = codec === "none" ? at.records : 0
  const out = Buffer.allocUnsafe(head + limit - left + count * GROWTH)
  const place: Place = { out, position: head, offset: 0 }
  const baseTimestamp = views[0]?.baseTimestamp ?? -1n
  let maxTimestamp = baseTimestamp
  views.forEach((view, n) => {
    const reader = new RecordReader(pieces[n] as Buffer)
    const shift = view.baseTimestamp - baseTimestamp
    for (let index = 0; index < view.recordCount; index++) copyRecord(reader, index, shift, place)
    if (reader.remaining > 0) throw new ProtocolError({ what: `${reader.remaining} bytes follow the last record` })
    if (view.maxTimestamp > maxTimestamp) maxTimestamp = view.maxTimestamp
  })
  const batch = codec === "none"
    ? out.subarray(0, place.position)
    : Buffer.concat([Buffer.alloc(at.records), compress(codec, out.subarray(0, place.position))])
  writeHeader(batch, { codec }, { baseTimestamp, maxTimestamp }, { base: 0, last: count - 1, count })
  return batch
}
