/**
 * Cursors over flat Buffers for Kafka's primitive types (protocol guide, "Protocol Primitive Types").
 *
 * Guarantees: a read never leaves the buffer and never allocates more than what the buffer holds, however
 * absurd the lengths in it are; the failure is a ProtocolError. Byte fields are slices, not copies.
 *
 * int64 is a JavaScript number here: offsets, producer ids and timestamps of the control plane stay far below
 * 2^53. A value beyond is refused, never rounded. (Record timestamps, which users choose freely, are not read
 * through these cursors on the pass-through path; where brokers tell one, it is rounded.)
 */
import { Schema } from "effect"

/** Bytes that are not what Kafka's protocol says they are, or a value that the protocol cannot carry. */
export class ProtocolError extends Schema.TaggedError<ProtocolError>()("ProtocolError", {
  what: Schema.String,
  /** A request that cannot be written: a mistake of ours, of which no broker knows. */
  own: Schema.optional(Schema.Boolean)
}) {
  override get message(): string {
    return this.what
  }
}

const tooShort = (wanted: number, left: number): ProtocolError =>
  new ProtocolError({ what: `the message ends early: ${wanted} more bytes are announced, ${left} are there` })

/** Reads one message from a Buffer. Throws ProtocolError; the callers in this folder turn it into a typed failure. */
export class ByteReader {
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

  #take(length: number): number {
    const at = this.position
    if (length < 0 || length > this.end - at) throw tooShort(length, this.end - at)
    this.position = at + length
    return at
  }

  int8(): number {
    return this.buffer.readInt8(this.#take(1))
  }
  bool(): boolean {
    return this.buffer[this.#take(1)] !== 0
  }
  int16(): number {
    return this.buffer.readInt16BE(this.#take(2))
  }
  uint16(): number {
    return this.buffer.readUInt16BE(this.#take(2))
  }
  int32(): number {
    return this.buffer.readInt32BE(this.#take(4))
  }
  uint32(): number {
    return this.buffer.readUInt32BE(this.#take(4))
  }
  /** The nearest number, where it is beyond 2^53. */
  rounded64(): number {
    return Number(this.buffer.readBigInt64BE(this.#take(8)))
  }
  int64(): number {
    const at = this.#take(8)
    const value = this.buffer.readInt32BE(at) * 0x1_0000_0000 + this.buffer.readUInt32BE(at + 4)
    if (!Number.isSafeInteger(value)) {
      throw new ProtocolError({
        what: `a 64-bit value of ${this.buffer.readBigInt64BE(at)} is beyond what an offset can be`
      })
    }
    return value
  }
  float64(): number {
    return this.buffer.readDoubleBE(this.#take(8))
  }
  /** 16 bytes as Kafka prints ids: base64url without padding, 22 characters. */
  uuid(): string {
    const at = this.#take(16)
    return this.buffer.toString("base64url", at, at + 16)
  }
  uvarint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.buffer[this.#take(1)] as number
      value += (byte & 0x7f) * 2 ** shift
      if ((byte & 0x80) === 0) {
        if (value > 0xffff_ffff) break
        return value
      }
    }
    throw new ProtocolError({ what: "a varint is longer than 32 bits" })
  }
  slice(length: number): Buffer {
    const at = this.#take(length)
    return this.buffer.subarray(at, at + length)
  }
  skip(length: number): void {
    this.#take(length)
  }
  /** A reader of the next bytes alone; this one goes on behind them. */
  window(length: number): ByteReader {
    const at = this.#take(length)
    return new ByteReader(this.buffer, at, at + length)
  }
  text(length: number): string {
    const at = this.#take(length)
    return this.buffer.toString("utf8", at, at + length)
  }
  /** Tagged fields nobody here knows are skipped, as KIP-482 wants. */
  skipTaggedFields(): void {
    const count = this.uvarint()
    for (let i = 0; i < count; i++) {
      this.uvarint()
      this.skip(this.uvarint())
    }
  }
}

const uvarintSize = (value: number): number => {
  let size = 1
  while (value > 0x7f) {
    value = Math.floor(value / 128)
    size++
  }
  return size
}

/**
 * Writes one message. Large byte fields (records) are kept as they are between the pieces written here, so a
 * produce request is a list of Buffers and its record bytes are not copied on the way.
 */
export class ByteWriter {
  #buffer = Buffer.allocUnsafe(512)
  #start = 0
  #position = 0
  readonly #done: Array<Buffer> = []
  #doneLength = 0

  get length(): number {
    return this.#doneLength + this.#position - this.#start
  }

  #room(size: number): number {
    const at = this.#position
    if (at + size > this.#buffer.length) {
      const used = this.#buffer.subarray(this.#start, at)
      const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, used.length + size))
      used.copy(grown)
      this.#buffer = grown
      this.#start = 0
      this.#position = used.length + size
      return used.length
    }
    this.#position = at + size
    return at
  }

  int8(value: number): void {
    const at = this.#room(1)
    this.#buffer.writeInt8(value, at)
  }
  bool(value: boolean): void {
    const at = this.#room(1)
    this.#buffer[at] = value ? 1 : 0
  }
  int16(value: number): void {
    const at = this.#room(2)
    this.#buffer.writeInt16BE(value, at)
  }
  uint16(value: number): void {
    const at = this.#room(2)
    this.#buffer.writeUInt16BE(value, at)
  }
  int32(value: number): void {
    const at = this.#room(4)
    this.#buffer.writeInt32BE(value, at)
  }
  uint32(value: number): void {
    const at = this.#room(4)
    this.#buffer.writeUInt32BE(value, at)
  }
  int64(value: number): void {
    if (!Number.isSafeInteger(value)) {
      throw new ProtocolError({ what: `${value} is not a 64-bit value that can be sent exactly` })
    }
    const at = this.#room(8)
    const high = Math.floor(value / 0x1_0000_0000)
    this.#buffer.writeInt32BE(high, at)
    this.#buffer.writeUInt32BE(value - high * 0x1_0000_0000, at + 4)
  }
  float64(value: number): void {
    const at = this.#room(8)
    this.#buffer.writeDoubleBE(value, at)
  }
  uuid(value: string): void {
    const at = this.#room(16)
    if (value.length !== 22 || this.#buffer.write(value, at, 16, "base64url") !== 16) {
      throw new ProtocolError({ what: `"${value}" is not an id of 22 base64url characters` })
    }
  }
  uvarint(value: number): void {
    let at = this.#room(uvarintSize(value))
    while (value > 0x7f) {
      this.#buffer[at++] = (value % 128) | 0x80
      value = Math.floor(value / 128)
    }
    this.#buffer[at] = value
  }
  /** Short bytes: copied. */
  raw(bytes: Buffer): void {
    const at = this.#room(bytes.length)
    bytes.copy(this.#buffer, at)
  }
  /** Record bytes: taken as they are; the caller must not change them until the request is written. */
  chunk(bytes: Buffer): void {
    if (bytes.length < 1024) return this.raw(bytes)
    this.#flush()
    this.#done.push(bytes)
    this.#doneLength += bytes.length
  }
  #flush(): void {
    if (this.#position === this.#start) return
    this.#done.push(this.#buffer.subarray(this.#start, this.#position))
    this.#doneLength += this.#position - this.#start
    this.#start = this.#position
  }
  /** All pieces, in order. The writer is spent afterwards. */
  chunks(): ReadonlyArray<Buffer> {
    this.#flush()
    return this.#done
  }
}
