/**
 * Zig-zag varints of record bodies: 32 bits for lengths and offsets, 64 bits for timestamp differences
 * (https://kafka.apache.org/documentation/#recordattributes, after Protocol Buffers).
 *
 * Guarantees: a read never leaves [position, end); what is too long for its width, announces more than is there, or
 * ends early is a ProtocolError. 64-bit values are exact.
 */
import { ProtocolError } from "../bytes.ts"

/** Reads record bodies. Byte fields are slices of the buffer. */
export class RecordReader {
  readonly buffer: Buffer
  position: number
  readonly end: number

  constructor(buffer: Buffer, position = 0, end = buffer.length) {
    this.buffer = buffer
    this.position = position
    this.end = end
  }

  get remaining(): number {
    return this.end - this.position
  }

  byte(): number {
    if (this.position >= this.end) throw new ProtocolError({ what: "the records end early" })
    return this.buffer[this.position++] as number
  }

  varint(): number {
    const first = this.byte()
    // One byte is by far the most frequent case: offsets, lengths of short keys, counts.
    if (first < 0x80) return (first >>> 1) ^ -(first & 1)
    let bits = first & 0x7f
    for (let shift = 7; shift < 35; shift += 7) {
      const byte = this.byte()
      bits |= (byte & 0x7f) << shift
      if (byte < 0x80) {
        if (shift === 28 && byte > 0x0f) break
        return (bits >>> 1) ^ -(bits & 1)
      }
    }
    throw new ProtocolError({ what: "a varint in the records is longer than 32 bits" })
  }

  varlong(): bigint {
    // Seven bytes hold 49 bits, which a number carries exactly; what takes more is rare.
    const start = this.position
    let bits = 0
    for (let scale = 1; scale < 2 ** 49; scale *= 128) {
      const byte = this.byte()
      bits += (byte & 0x7f) * scale
      if (byte < 0x80) return BigInt(bits % 2 === 0 ? bits / 2 : -(bits + 1) / 2)
    }
    this.position = start
    return this.#longVarlong()
  }

  #longVarlong(): bigint {
    let bits = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte()
      bits |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) {
        if (shift === 63n && byte > 1) break
        return (bits >> 1n) ^ -(bits & 1n)
      }
    }
    throw new ProtocolError({ what: "a varint in the records is longer than 64 bits" })
  }

  /** A length and that many bytes; null for the length -1. */
  bytesOrNull(field: string): Buffer | null {
    const length = this.varint()
    if (length === -1) return null
    if (length < 0 || length > this.end - this.position) {
      throw new ProtocolError({
        what: `a record's ${field} announces ${length} bytes, ${this.end - this.position} are there`
      })
    }
    this.position += length
    return this.buffer.subarray(this.position - length, this.position)
  }
}

/** How many bytes `value` takes, a 32-bit signed integer. */
export const varintSize = (value: number): number => {
  const bits = ((value << 1) ^ (value >> 31)) >>> 0
  return bits < 0x80 ? 1 : bits < 0x4000 ? 2 : bits < 0x20_0000 ? 3 : bits < 0x1000_0000 ? 4 : 5
}

/** Returns the position behind what it wrote. */
export const writeVarint = (buffer: Buffer, value: number, position: number): number => {
  let bits = ((value << 1) ^ (value >> 31)) >>> 0
  while (bits > 0x7f) {
    buffer[position++] = (bits & 0x7f) | 0x80
    bits >>>= 7
  }
  buffer[position++] = bits
  return position
}

const zigzag = (value: bigint): bigint => BigInt.asUintN(64, (value << 1n) ^ (value >> 63n))

/**
 * A 64-bit signed integer as it is cheapest to write: a number where 32 bits hold it, which is the rule for the
 * differences between timestamps of one batch.
 */
export const narrow = (value: bigint): number | bigint => {
  const small = Number(value)
  return small === (small | 0) ? small : value
}

/** How many bytes `value` takes. Numbers are 32-bit, bigints 64-bit signed integers. */
export const varlongSize = (value: number | bigint): number => {
  if (typeof value === "number") return varintSize(value)
  let size = 1
  for (let bits = zigzag(value); bits > 0x7fn; bits >>= 7n) size++
  return size
}

/** Returns the position behind what it wrote. */
export const writeVarlong = (buffer: Buffer, value: number | bigint, position: number): number => {
  if (typeof value === "number") return writeVarint(buffer, value, position)
  let bits = zigzag(value)
  while (bits > 0x7fn) {
    buffer[position++] = Number(bits & 0x7fn) | 0x80
    bits >>= 7n
  }
  buffer[position++] = Number(bits)
  return position
}
