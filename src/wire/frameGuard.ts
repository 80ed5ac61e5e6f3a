/**
 * Follows the frames of a byte stream (a 32-bit size, then so many bytes) without keeping any of them, and says at
 * once when a size cannot be one: negative, smaller than a header, larger than anything we would ask for, or the
 * first bytes of another protocol.
 */
import { ProtocolError } from "./bytes.ts"

const HEADER_BYTES = 4

/** What the four bytes say when they are the start of another protocol's answer. */
const otherProtocol = (size: Buffer): string => {
  const word = size.toString("latin1")
  if (word.startsWith("HTTP")) return "it speaks HTTP"
  if (word.startsWith("SSH-")) return "it speaks SSH"
  return "is it a Kafka broker?"
}

export class FrameGuard {
  readonly #address: string
  readonly #maxBytes: number
  readonly #size = Buffer.alloc(HEADER_BYTES)
  #sizeBytes = 0
  #left = 0
  #first = true

  constructor(address: string, maxBytes: number) {
    this.#address = address
    this.#maxBytes = maxBytes
  }

  /** null: all is well; "tls": the first bytes are a TLS record. After a failure the guard is spent. */
  check(chunk: Buffer): ProtocolError | "tls" | null {
    let at = 0
    while (at < chunk.length) {
      if (this.#left > 0) {
        const skipped = Math.min(this.#left, chunk.length - at)
        this.#left -= skipped
        at += skipped
        continue
      }
      this.#size[this.#sizeBytes++] = chunk[at++] as number
      if (this.#sizeBytes < HEADER_BYTES) continue
      this.#sizeBytes = 0
      const first = this.#first
      this.#first = false
      this.#left = this.#size.readInt32BE(0)
      if (this.#left >= HEADER_BYTES && this.#left <= this.#maxBytes) continue
      if (first && isTlsRecord(this.#size)) return "tls"
      return new ProtocolError({
        what:
          `${this.#address} announces an answer of ${this.#left} bytes (allowed: ${HEADER_BYTES} to ${this.#maxBytes}, receive.message.max.bytes); ${
            otherProtocol(this.#size)
          }`
      })
    }
    return null
  }
}

/** Alert or handshake, TLS 1.0 to 1.3; as a size it would be above 350 MB. */
const isTlsRecord = (size: Buffer): boolean =>
  (size[0] === 0x15 || size[0] === 0x16) && size[1] === 0x03 && (size[2] as number) <= 0x04
