/**
 * Records out of a batch and into one: the slow path, for batches that must be cut, filtered, transformed or mended.
 *
 * Guarantees: what is decoded and encoded again has the same keys, values, headers (order, duplicates, names that
 * are not UTF-8, null apart from empty) and the timestamps that readers of the source see. The checksum is verified
 * before anything is decoded: re-encoding damaged records would give them a checksum that fits. Bytes that are not
 * records are a ProtocolError, and cost no more memory than the limit.
 *
 * Gotchas: keys, values and headers are slices; they keep the bytes of the whole batch (decompressed, if it was
 * compressed) alive, and are only good as long as those are not overwritten. With LogAppendTime every record's
 * timestamp is the batch's, as every reader sees it; the producers' times below it are gone from then on.
 */
import { ProtocolError } from "../bytes.ts"
import { compress, decompress, defaultDecompressionLimit } from "./compression.ts"
import { crc32c } from "./crc32c.ts"
import { at, type BatchView, bit, type Codec, codecs, lengthOverhead, type TimestampType } from "./recordBatch.ts"
import { narrow, RecordReader, varintSize, varlongSize, writeVarint, writeVarlong } from "./varint.ts"

export interface RecordHeader {
  /** Bytes, not text: Kafka's clients write UTF-8, but nothing makes them. */
  readonly key: Buffer
  readonly value: Buffer | null
}

export interface Rec {
  readonly offset: number
  /** Milliseconds since 1970; -1 when its producer gave none. */
  readonly timestamp: bigint
  readonly key: Buffer | null
  /** null is a tombstone on a compacted topic. */
  readonly value: Buffer | null
  readonly headers: ReadonlyArray<RecordHeader>
}

const none: ReadonlyArray<RecordHeader> = []

/** Length, attributes, two differences, key, value, header count: a byte each at least. */
const smallestRecord = 7

const decodeHeaders = (reader: RecordReader): ReadonlyArray<RecordHeader> => {
  const count = reader.varint()
  if (count === 0) return none
  if (count < 0 || count > reader.remaining / 2) {
    throw new ProtocolError({ what: `a record announces ${count} headers` })
  }
  const headers: Array<RecordHeader> = []
  for (let i = 0; i < count; i++) {
    const key = reader.bytesOrNull("header name")
    if (key === null) throw new ProtocolError({ what: "a record's header has no name" })
    headers.push({ key, value: reader.bytesOrNull("header value") })
  }
  return headers
}

/** Throws ProtocolError where so few bytes cannot hold as many records as the batch announces. */
export const checkCount = ({ recordCount }: BatchView, bytes: Buffer): void => {
  if (recordCount > bytes.length / smallestRecord) {
    throw new ProtocolError({ what: `${recordCount} records are announced in ${bytes.length} bytes` })
  }
}

const decodeAll = (batch: BatchView, bytes: Buffer): Array<Rec> => {
  const { baseOffset, baseTimestamp, lastOffsetDelta, recordCount } = batch
  const appendTime = batch.timestampType === "logAppend" ? batch.maxTimestamp : null
  checkCount(batch, bytes)
  const reader = new RecordReader(bytes)
  const records: Array<Rec> = []
  for (let i = 0; i < recordCount; i++) {
    const length = reader.varint()
    if (length < 0 || length > reader.remaining) {
      throw new ProtocolError({ what: `a record announces ${length} bytes, ${reader.remaining} are there` })
    }
    const end = reader.position + length
    reader.byte() // record attributes: none are defined
    const timestampDelta = reader.varlong()
    const offsetDelta = reader.varint()
    if (offsetDelta < 0 || offsetDelta > lastOffsetDelta) {
      throw new ProtocolError({
        what: `a record's offset lies ${offsetDelta} after the base, beyond the batch's last (${lastOffsetDelta})`
      })
    }
    const key = reader.bytesOrNull("key")
    const value = reader.bytesOrNull("value")
    const headers = decodeHeaders(reader)
    if (reader.position !== end) throw new ProtocolError({ what: "a record is longer or shorter than it announces" })
    const timestamp = appendTime ?? BigInt.asIntN(64, baseTimestamp + timestampDelta)
    records.push({ offset: baseOffset + offsetDelta, timestamp, key, value, headers })
  }
  if (reader.remaining > 0) throw new ProtocolError({ what: `${reader.remaining} bytes follow the last record` })
  return records
}

/**
 * The records of a batch, with offsets and timestamps as a reader of the topic sees them.
 *
 * Throws ProtocolError when the checksum does not fit or the bytes are not records.
 *
 * @param limit the most bytes that the records may take decompressed
 */
export const decodeRecords = (batch: BatchView, limit = defaultDecompressionLimit): Array<Rec> => {
  const { baseOffset, codec } = batch
  const refuse = (what: string): never => {
    throw new ProtocolError({ what: `the record batch at offset ${baseOffset} is corrupt: ${what}` })
  }
  if (!batch.crcIsValid()) return refuse(`its checksum is ${batch.crc.toString(16)}, its bytes say otherwise`)
  // A header without records (left by compaction) has no compressed stream behind it either.
  if (batch.recordCount === 0) return []
  try {
    return decodeAll(batch, decompress(codec, batch.recordBytes, limit))
  } catch (error) {
    if (error instanceof ProtocolError) return refuse(error.what)
    throw error
  }
}

export interface BatchOptions {
  readonly codec: Codec
  /** Default "create". "logAppend" is for brokers: readers then see the latest of the records' timestamps on all. */
  readonly timestampType?: TimestampType
  /**
   * "renumber" (default): offsets 0, 1, 2, ... as a producer must send them. "keep": the records' own, ascending, with
   * the gaps that compaction leaves.
   */
  readonly offsets?: "renumber" | "keep"
  /** Default -1, as are the next three. */
  readonly partitionLeaderEpoch?: number
  readonly producerId?: number
  readonly producerEpoch?: number
  readonly baseSequence?: number
  readonly transactional?: boolean
}

const fieldSize = (bytes: Buffer | null): number => bytes === null ? 1 : varintSize(bytes.length) + bytes.length

const writeField = (out: Buffer, bytes: Buffer | null, position: number): number => {
  if (bytes === null) return writeVarint(out, -1, position)
  const from = writeVarint(out, bytes.length, position)
  bytes.copy(out, from)
  return from + bytes.length
}

/** Without the length in front. */
const bodySize = (record: Rec, timestampDelta: number | bigint, offsetDelta: number): number => {
  let size = 1 + varlongSize(timestampDelta) + varintSize(offsetDelta) + fieldSize(record.key) +
    fieldSize(record.value) +
    varintSize(record.headers.length)
  for (const header of record.headers) size += fieldSize(header.key) + fieldSize(header.value)
  return size
}

const writeBody = (
  out: Buffer,
  record: Rec,
  timestampDelta: number | bigint,
  offsetDelta: number,
  position: number
): number => {
  let to = position
  out[to++] = 0
  to = writeVarlong(out, timestampDelta, to)
  to = writeVarint(out, offsetDelta, to)
  to = writeField(out, record.key, to)
  to = writeField(out, record.value, to)
  to = writeVarint(out, record.headers.length, to)
  for (const header of record.headers) to = writeField(out, header.value, writeField(out, header.key, to))
  return to
}

interface Times {
  readonly baseTimestamp: bigint
  readonly maxTimestamp: bigint
}

interface Body extends Times {
  readonly bytes: Buffer
}

const encodeBodies = (records: ReadonlyArray<Rec>, deltaOf: (record: Rec, index: number) => number): Body => {
  const baseTimestamp = records[0]?.timestamp ?? -1n
  let maxTimestamp = baseTimestamp
  let total = 0
  const sizes: Array<number> = []
  const timestampDeltas: Array<number | bigint> = []
  records.forEach((record, index) => {
    if (record.timestamp > maxTimestamp) maxTimestamp = record.timestamp
    const timestampDelta = narrow(BigInt.asIntN(64, record.timestamp - baseTimestamp))
    const size = bodySize(record, timestampDelta, deltaOf(record, index))
    timestampDeltas.push(timestampDelta)
    sizes.push(size)
    total += varintSize(size) + size
  })
  if (total > 0x7fff_ffff - at.records) {
    throw new ProtocolError({ what: `${total} bytes of records do not fit into one batch` })
  }
  const bytes = Buffer.allocUnsafe(total)
  let position = 0
  records.forEach((record, index) => {
    position = writeVarint(bytes, sizes[index] as number, position)
    position = writeBody(bytes, record, timestampDeltas[index] as number | bigint, deltaOf(record, index), position)
  })
  return { bytes, baseTimestamp, maxTimestamp }
}

/** The header of a batch whose records are in their place already, and its checksum. */
export const writeHeader = (
  out: Buffer,
  options: BatchOptions,
  body: Times,
  offsets: { base: number; last: number; count: number }
): void => {
  out.writeBigInt64BE(BigInt(offsets.base), at.baseOffset)
  out.writeInt32BE(out.length - lengthOverhead, at.length)
  out.writeInt32BE(options.partitionLeaderEpoch ?? -1, at.partitionLeaderEpoch)
  out[at.magic] = 2
  const attributes = codecs.indexOf(options.codec) | (options.timestampType === "logAppend" ? bit.logAppendTime : 0) |
    (options.transactional === true ? bit.transactional : 0)
  out.writeInt16BE(attributes, at.attributes)
  out.writeInt32BE(offsets.last - offsets.base, at.lastOffsetDelta)
  out.writeBigInt64BE(body.baseTimestamp, at.baseTimestamp)
  out.writeBigInt64BE(body.maxTimestamp, at.maxTimestamp)
  out.writeBigInt64BE(BigInt(options.producerId ?? -1), at.producerId)
  out.writeInt16BE(options.producerEpoch ?? -1, at.producerEpoch)
  out.writeInt32BE(options.baseSequence ?? -1, at.baseSequence)
  out.writeInt32BE(offsets.count, at.recordCount)
  out.writeUInt32BE(crc32c(out, at.attributes), at.crc)
}

/**
 * One batch with these records, in this order, ready for `rewriteForProduce` (which a producer's sequence needs).
 *
 * Throws ProtocolError when there are none (brokers refuse such batches), when offsets to keep do not ascend, or when
 * the result would pass 2 GiB. Whether a broker takes the size (max.message.bytes) is the broker's word.
 */
export const encodeBatch = (records: ReadonlyArray<Rec>, options: BatchOptions): Buffer => {
  const keep = options.offsets === "keep"
  const base = keep ? records[0]?.offset ?? 0 : 0
  const last = keep ? records.at(-1)?.offset ?? 0 : records.length - 1
  if (records.length === 0) throw new ProtocolError({ what: "a record batch needs at least one record" })
  if (keep && records.some((record, index) => index > 0 && record.offset <= (records[index - 1] as Rec).offset)) {
    throw new ProtocolError({
      what: `the offsets of a record batch must ascend; they do not between ${base} and ${last}`
    })
  }
  if (last - base > 0x7fff_ffff) {
    throw new ProtocolError({ what: `offsets ${base} to ${last} do not fit into one record batch` })
  }
  const body = encodeBodies(records, keep ? (record) => record.offset - base : (_, index) => index)
  const compressed = compress(options.codec, body.bytes)
  const out = Buffer.allocUnsafe(at.records + compressed.length)
  compressed.copy(out, at.records)
  writeHeader(out, options, body, { base, last, count: records.length })
  return out
}
