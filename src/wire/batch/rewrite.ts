/**
 * Turning a batch that was read into one that can be produced, in place, in a few dozen bytes of its header.
 *
 * Guarantees: base offset, leader epoch, producer id, epoch, sequence and the transactional bit become what the
 * caller says; the delete horizon bit and bits without a meaning are cleared; every other byte stays. The checksum
 * is carried over from the old one by arithmetic, without reading the records: a batch damaged before or in our
 * memory keeps a checksum that does not fit, and the target refuses it.
 *
 * Why the delete horizon bit goes: it declares the base timestamp to be the time after which a cleaner may drop
 * tombstones (KIP-534). On the target that would be the source's time, and tombstones could vanish before anyone
 * has read them. Record timestamps count from the base timestamp with or without the bit, so they stay right.
 */
import { ProtocolError } from "../bytes.ts"
import { carryCrc32c } from "./crc32c.ts"
import { passThroughVerdict } from "./passThrough.ts"
import { at, type BatchView, bit } from "./recordBatch.ts"

export interface ProduceHeader {
  /** 0 is what a broker demands of a producer; the default. */
  readonly baseOffset?: number
  /** -1, unknown: the broker sets its own; the default. */
  readonly leaderEpoch?: number
  /** -1 for a producer without idempotence; then epoch and sequence are -1 too. */
  readonly producerId: number
  /** -1 to 32767. */
  readonly producerEpoch: number
  /** Sequence of the first record, 0 to 2^31 - 1, or -1. */
  readonly baseSequence: number
  readonly transactional: boolean
}

const writeInt64 = (buffer: Buffer, value: number, position: number): void => {
  const high = Math.floor(value / 0x1_0000_0000)
  buffer.writeInt32BE(high, position)
  buffer.writeUInt32BE(value - high * 0x1_0000_0000, position + 4)
}

/** The bytes from the attributes to before the record count: all that a rewrite touches under the checksum. */
const rewritten = at.recordCount - at.attributes
/** Reused between calls: this runs to its end before anything else can. */
const difference = Buffer.alloc(rewritten)

/**
 * Rewrites the header in place. Costs about a microsecond, whatever the batch's size.
 *
 * Throws ProtocolError, and changes nothing, for a batch whose verdict is not ok: sending it could only fail, or
 * change what readers see.
 */
export const rewriteForProduce = (batch: BatchView, header: ProduceHeader): void => {
  const verdict = passThroughVerdict(batch)
  if (!verdict.ok) {
    throw new ProtocolError({
      what: `the record batch at offset ${batch.baseOffset} cannot be produced as it is: ${verdict.reason}`
    })
  }
  const { buffer, start } = batch
  const from = start + at.attributes
  buffer.copy(difference, 0, from, from + rewritten)

  const codec = batch.attributes & bit.codec
  buffer.writeInt16BE(header.transactional ? codec | bit.transactional : codec, from)
  writeInt64(buffer, header.producerId, start + at.producerId)
  buffer.writeInt16BE(header.producerEpoch, start + at.producerEpoch)
  buffer.writeInt32BE(header.baseSequence, start + at.baseSequence)

  for (let i = 0; i < rewritten; i++) difference[i] = (difference[i] as number) ^ (buffer[from + i] as number)
  const behind = batch.sizeInBytes - at.recordCount
  buffer.writeUInt32BE(carryCrc32c(batch.crc, difference, behind), start + at.crc)

  writeInt64(buffer, header.baseOffset ?? 0, start + at.baseOffset)
  buffer.writeInt32BE(header.leaderEpoch ?? -1, start + at.partitionLeaderEpoch)
}
