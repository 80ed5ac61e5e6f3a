/**
 * The four codecs of record batches, each bounded: what comes out never exceeds the given limit, however the
 * bytes that came in were made, and bytes that are not what the codec says are a ProtocolError.
 *
 * - gzip, zstd: Node's zlib, which stops at the limit by itself.
 * - snappy: Kafka's Java side writes the framing of xerial's snappy-java, librdkafka raw blocks. Both are read here;
 *   written is xerial's framing, whose blocks of 32 KiB let a reader go without holding the whole batch twice.
 * - lz4: the frame format with independent blocks, the only one Java reads.
 *
 * Why not the codecs inside @platformatic/kafka: its WebAssembly module stays broken for the whole process after one
 * corrupt input, and has no limit.
 */
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from "node:zlib"
import lz4 from "lz4-napi"
import { compressSync as snappyCompress, uncompressSync as snappyUncompress } from "snappy"
import { ProtocolError } from "../bytes.ts"
import type { Codec } from "./recordBatch.ts"

/**
 * How large the records of one batch may be when decompressed, in bytes: 128 MiB. Brokers bound a batch by its
 * compressed size (1 MiB by default), so a small batch can unfold to gigabytes; producers bound one record by its
 * uncompressed size (max.request.size, 1 MiB by default). 128 MiB is far above what the second makes and far below
 * what would end the process.
 */
export const defaultDecompressionLimit = 128 * 1024 * 1024

const tooLarge = (codec: Codec, limit: number): ProtocolError =>
  new ProtocolError({
    what: `the records decompress (${codec}) to more than ${limit} bytes, which is the limit for one batch`
  })

const corrupt = (codec: Codec, why: string): ProtocolError =>
  new ProtocolError({ what: `the records are not what ${codec} writes: ${why}` })

const reason = (error: unknown): string => error instanceof Error ? error.message : String(error)

const attempt = (codec: Codec, limit: number, decompress: () => Buffer): Buffer => {
  try {
    return decompress()
  } catch (error) {
    if (error instanceof ProtocolError) throw error
    const code = error instanceof Error && "code" in error ? error.code : undefined
    throw code === "ERR_BUFFER_TOO_LARGE" ? tooLarge(codec, limit) : corrupt(codec, reason(error))
  }
}

/** snappy-java's stream: 8 bytes of magic, version, lowest compatible version, then blocks with a length before each. */
const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const xerialHeader = Buffer.concat([xerialMagic, Buffer.from([0, 0, 0, 1, 0, 0, 0, 1])])
/** snappy-java's own block size; a reader must hold one block. */
const xerialBlock = 32 * 1024

/** The uncompressed size that a raw snappy block announces in front, before anything is allocated for it. */
const snappyAnnounced = (block: Buffer): number => {
  let size = 0
  for (let i = 0; i < 5; i++) {
    const byte = block[i]
    if (byte === undefined) break
    size += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return size
  }
  throw corrupt("snappy", "a block has no length")
}

const snappyBlock = (block: Buffer, limit: number, room: number): Buffer => {
  if (snappyAnnounced(block) > room) throw tooLarge("snappy", limit)
  const out = snappyUncompress(block, { asBuffer: true })
  return typeof out === "string" ? Buffer.from(out, "latin1") : out
}

const snappyDecompress = (bytes: Buffer, limit: number): Buffer => {
  if (!bytes.subarray(0, xerialMagic.length).equals(xerialMagic)) return snappyBlock(bytes, limit, limit)
  if (bytes.length < xerialHeader.length) throw corrupt("snappy", "the stream header ends early")
  const blocks: Array<Buffer> = []
  let size = 0
  let position = xerialHeader.length
  while (position < bytes.length) {
    const length = bytes.length - position < 4 ? -1 : bytes.readInt32BE(position)
    if (length < 0 || length > bytes.length - position - 4) throw corrupt("snappy", "a block ends early")
    position += 4
    const block = snappyBlock(bytes.subarray(position, position + length), limit, limit - size)
    blocks.push(block)
    size += block.length
    position += length
  }
  return blocks.length === 1 ? blocks[0] as Buffer : Buffer.concat(blocks, size)
}

const snappyStream = (bytes: Buffer): Buffer => {
  const pieces: Array<Buffer> = [xerialHeader]
  for (let position = 0; position < bytes.length; position += xerialBlock) {
    const block = snappyCompress(bytes.subarray(position, position + xerialBlock))
    const length = Buffer.allocUnsafe(4)
    length.writeInt32BE(block.length)
    pieces.push(length, block)
  }
  return Buffer.concat(pieces)
}

/**
 * The most that an LZ4 frame can unfold to, from its block lengths alone: no block exceeds the frame's block size,
 * and no compressed byte stands for more than 255. Exact to one block for frames of full blocks.
 */
const lz4Bound = (bytes: Buffer): number => {
  if (bytes.length < 7 || bytes.readUInt32LE(0) !== 0x184d2204) throw corrupt("lz4", "it does not begin as a frame")
  const flags = bytes[4] as number
  const blockSize = 1 << (8 + 2 * (((bytes[5] as number) >> 4) & 7))
  const blockTail = (flags & 0x10) === 0 ? 0 : 4
  let position = 7 + ((flags & 0x08) === 0 ? 0 : 8) + ((flags & 0x01) === 0 ? 0 : 4)
  let bound = 0
  while (position + 4 <= bytes.length) {
    const word = bytes.readUInt32LE(position)
    if (word === 0) break
    const length = word & 0x7fff_ffff
    bound += Math.min(blockSize, word >= 0x8000_0000 ? length : length * 255)
    position += 4 + length + blockTail
  }
  return bound
}

const lz4Decompress = (bytes: Buffer, limit: number): Buffer => {
  if (lz4Bound(bytes) > limit) throw tooLarge("lz4", limit)
  return lz4.decompressFrameSync(bytes)
}

/** At most `limit` bytes; throws ProtocolError. With "none" the bytes themselves. */
export const decompress = (codec: Codec, bytes: Buffer, limit = defaultDecompressionLimit): Buffer => {
  switch (codec) {
    case "none":
      return bytes
    case "gzip":
      return attempt(codec, limit, () => gunzipSync(bytes, { maxOutputLength: limit }))
    case "snappy":
      return attempt(codec, limit, () => snappyDecompress(bytes, limit))
    case "lz4":
      return attempt(codec, limit, () => lz4Decompress(bytes, limit))
    case "zstd":
      return attempt(codec, limit, () => zstdDecompressSync(bytes, { maxOutputLength: limit }))
  }
}

/** Levels are the codecs' defaults, which are also Kafka's. */
export const compress = (codec: Codec, bytes: Buffer): Buffer => {
  switch (codec) {
    case "none":
      return bytes
    case "gzip":
      return gzipSync(bytes)
    case "snappy":
      return snappyStream(bytes)
    case "lz4":
      return lz4.compressFrameSync(bytes)
    case "zstd":
      return zstdCompressSync(bytes)
  }
}
