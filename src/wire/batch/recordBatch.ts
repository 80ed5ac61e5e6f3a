/**
 * Record batches (message format 2) as views on bytes: where each one is, and what its header says.
 *
 * Guarantees: a BatchView lies inside its buffer whole, its offsets and producer id are exact JavaScript numbers,
 * and its getters never throw and copy nothing. Nothing here looks at the records or, but for `crcIsValid`, at the
 * checksum: whoever decodes checks it, and the target checks what passes through as bytes.
 *
 * Gotchas: a view follows its bytes. After a rewrite in place (rewrite.ts) it tells the new header; take the source
 * offsets before.
 *
 * Format: https://kafka.apache.org/documentation/#recordbatch; KIP-98 (producer id), KIP-534 (delete horizon).
 */
import { ProtocolError } from "../bytes.ts"
import { crc32c } from "./crc32c.ts"

/** Where each field of a batch begins, in bytes. */
export const at = {
  baseOffset: 0,
  length: 8,
  partitionLeaderEpoch: 12,
  magic: 16,
  crc: 17,
  /** The checksum covers everything from here on. */
  attributes: 21,
  lastOffsetDelta: 23,
  baseTimestamp: 27,
  maxTimestamp: 35,
  producerId: 43,
  producerEpoch: 51,
  baseSequence: 53,
  recordCount: 57,
  records: 61
} as const

/** Bits of the attributes field. */
export const bit = {
  codec: 0x07,
  logAppendTime: 0x08,
  transactional: 0x10,
  control: 0x20,
  deleteHorizon: 0x40
} as const

/** What the length field does not count: base offset and itself. */
export const lengthOverhead = 12

export type Codec = "none" | "gzip" | "snappy" | "lz4" | "zstd"
/** Index is the codec's number in the attributes. */
export const codecs: ReadonlyArray<Codec> = ["none", "gzip", "snappy", "lz4", "zstd"]

/** Milliseconds since 1970 by the record's producer, or by the broker when it appended the batch. */
export type TimestampType = "create" | "logAppend"

const int64 = (buffer: Buffer, position: number): number =>
  buffer.readInt32BE(position) * 0x1_0000_0000 + buffer.readUInt32BE(position + 4)

export class BatchView {
  readonly buffer: Buffer
  /** Where the batch begins in `buffer`. */
  readonly start: number

  /** Only for what splitBatches has checked, or has been built by encodeBatch. */
  constructor(buffer: Buffer, start: number) {
    this.buffer = buffer
    this.start = start
  }

  get baseOffset(): number {
    return int64(this.buffer, this.start + at.baseOffset)
  }
  /** Offset of the last record as written; compaction may have removed that record, the offset stays. */
  get lastOffset(): number {
    return this.baseOffset + this.lastOffsetDelta
  }
  get lastOffsetDelta(): number {
    return this.buffer.readInt32BE(this.start + at.lastOffsetDelta)
  }
  /** The whole batch, header and all. */
  get sizeInBytes(): number {
    return lengthOverhead + this.buffer.readInt32BE(this.start + at.length)
  }
  /** A slice, not a copy. */
  get bytes(): Buffer {
    return this.buffer.subarray(this.start, this.start + this.sizeInBytes)
  }
  /** The records as they lie there, compressed or not. A slice. */
  get recordBytes(): Buffer {
    return this.buffer.subarray(this.start + at.records, this.start + this.sizeInBytes)
  }
  get partitionLeaderEpoch(): number {
    return this.buffer.readInt32BE(this.start + at.partitionLeaderEpoch)
  }
  get attributes(): number {
    return this.buffer.readUInt16BE(this.start + at.attributes)
  }
  get codec(): Codec {
    return codecs[this.attributes & bit.codec] ?? "none"
  }
  get timestampType(): TimestampType {
    return (this.attributes & bit.logAppendTime) === 0 ? "create" : "logAppend"
  }
  /** Transaction markers and the like: the broker's own, never to be copied. */
  get isControl(): boolean {
    return (this.attributes & bit.control) !== 0
  }
  get isTransactional(): boolean {
    return (this.attributes & bit.transactional) !== 0
  }
  /**
   * The base timestamp is the time after which compaction may drop the batch's tombstones and markers (KIP-534).
   * Record timestamps still count from it.
   */
  get hasDeleteHorizon(): boolean {
    return (this.attributes & bit.deleteHorizon) !== 0
  }
  /** -1: written by a producer that is not idempotent. */
  get producerId(): number {
    return int64(this.buffer, this.start + at.producerId)
  }
  get producerEpoch(): number {
    return this.buffer.readInt16BE(this.start + at.producerEpoch)
  }
  get baseSequence(): number {
    return this.buffer.readInt32BE(this.start + at.baseSequence)
  }
  /** 0 for a batch whose records compaction has removed all. */
  get recordCount(): number {
    return this.buffer.readInt32BE(this.start + at.recordCount)
  }
  /** What the records' timestamps count from, milliseconds; not always the first record's. */
  get baseTimestamp(): bigint {
    return this.buffer.readBigInt64BE(this.start + at.baseTimestamp)
  }
  get maxTimestamp(): bigint {
    return this.buffer.readBigInt64BE(this.start + at.maxTimestamp)
  }
  /** As it stands in the header. */
  get crc(): number {
    return this.buffer.readUInt32BE(this.start + at.crc)
  }
  /** Reads the whole batch. */
  crcIsValid(): boolean {
    return crc32c(this.buffer, this.start + at.attributes, this.start + this.sizeInBytes) === this.crc
  }
}

const refuseMagic = (magic: number, position: number): never => {
  throw new ProtocolError({
    what: magic === 0 || magic === 1
      ? `the topic holds messages in format ${magic}, from before Kafka 0.11 or from a topic kept at such a ` +
        "message.format.version; only format 2 is mirrored. Let retention remove them, or copy the topic once with " +
        "Kafka's Java client, which reads the old and writes the new format, and mirror the copy"
      : `the bytes at ${position} are not a record batch: message format ${magic} is unknown, 2 is expected`
  })
}

const refuse = (view: BatchView, what: string): never => {
  throw new ProtocolError({ what: `the record batch at offset ${view.baseOffset} is corrupt: ${what}` })
}

/** Header fields that every later step relies on. Cheap: no record is touched. */
const checkHeader = (view: BatchView): void => {
  const { baseOffset, lastOffsetDelta, producerId, recordCount } = view
  if (baseOffset < 0 || lastOffsetDelta < 0 || !Number.isSafeInteger(baseOffset + lastOffsetDelta)) {
    refuse(view, `its offsets end ${lastOffsetDelta} after its base`)
  }
  if (recordCount < 0 || recordCount > lastOffsetDelta + 1) {
    refuse(view, `it announces ${recordCount} records in ${lastOffsetDelta + 1} offsets`)
  }
  if (codecs[view.attributes & bit.codec] === undefined) {
    refuse(
      view,
      `it is compressed with codec ${view.attributes & bit.codec}; known are ${
        codecs.map((name, id) => `${id} (${name})`).join(", ")
      }`
    )
  }
  if (!Number.isSafeInteger(producerId)) refuse(view, `its producer id ${producerId} is beyond what brokers give out`)
}

/**
 * The batches of one partition's records field, in order, as views on it.
 *
 * A broker may cut the last batch where its answer's limit ends: what is incomplete at the end is left out, so the
 * list can be empty though bytes are there (ask again from the same offset with a higher limit).
 *
 * Throws ProtocolError for the formats before Kafka 0.11, for unknown ones, and for a header that contradicts itself.
 */
export const splitBatches = (records: Buffer): ReadonlyArray<BatchView> => {
  const views: Array<BatchView> = []
  let position = 0
  while (records.length - position > at.magic) {
    const magic = records.readInt8(position + at.magic)
    if (magic !== 2) refuseMagic(magic, position)
    const size = lengthOverhead + records.readInt32BE(position + at.length)
    if (size < at.records) {
      throw new ProtocolError({
        what: `the record batch at byte ${position} announces ${size} bytes; a header alone has ${at.records}`
      })
    }
    if (size > records.length - position) break
    const view = new BatchView(records, position)
    checkHeader(view)
    views.push(view)
    position += size
  }
  return views
}
