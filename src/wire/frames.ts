/**
 * Kafka's frames on a byte stream: a 32-bit size, then so many bytes. An answer's bytes are copied once at most: one
 * that came in a single piece is a view of it, others are put together in a buffer of their own, so that whoever gets
 * an answer may change it in place. A request goes out in the pieces that it is made of.
 */
import type { Socket } from "node:net"
import type { ProtocolError } from "./bytes.ts"
import { FrameGuard } from "./frameGuard.ts"

const SIZE_BYTES = 4
/** Larger answers get their room as they come: an announced size alone reserves no more than this. */
const RESERVED_BYTES = 4 * 1024 * 1024

/** Puts answers together. Made for one connection; spent after a failure. */
export class FrameReader {
  readonly #guard: FrameGuard
  readonly #onFrame: (frame: Buffer) => void
  readonly #head = Buffer.alloc(SIZE_BYTES)
  #headBytes = 0
  /** Of the frame that is coming. */
  #size = 0
  #frame: Buffer | null = null
  #filled = 0

  /** `onFrame` gets what follows the size. It may throw: what came after in the same piece is lost then. */
  constructor(address: string, maxBytes: number, onFrame: (frame: Buffer) => void) {
    this.#guard = new FrameGuard(address, maxBytes)
    this.#onFrame = onFrame
  }

  /** null: all is well; else as FrameGuard.check. */
  push(chunk: Buffer): ProtocolError | "tls" | null {
    const wrong = this.#guard.check(chunk)
    if (wrong !== null) return wrong
    let at = 0
    while (at < chunk.length) at = this.#size === 0 ? this.#takeHead(chunk, at) : this.#takeBody(chunk, at)
    return null
  }

  #takeHead(chunk: Buffer, at: number): number {
    const taken = Math.min(SIZE_BYTES - this.#headBytes, chunk.length - at)
    chunk.copy(this.#head, this.#headBytes, at, at + taken)
    this.#headBytes += taken
    if (this.#headBytes === SIZE_BYTES) {
      this.#headBytes = 0
      this.#size = this.#head.readInt32BE(0)
    }
    return at + taken
  }

  #takeBody(chunk: Buffer, at: number): number {
    const end = Math.min(at + this.#size - this.#filled, chunk.length)
    if (this.#frame === null && end - at === this.#size) {
      this.#done(chunk.subarray(at, end))
      return end
    }
    const frame = this.#room(this.#filled + end - at)
    chunk.copy(frame, this.#filled, at, end)
    this.#filled += end - at
    if (this.#filled === this.#size) this.#done(frame)
    return end
  }

  /** Room for so much of the frame. */
  #room(bytes: number): Buffer {
    const had = this.#frame
    if (had !== null && bytes <= had.length) return had
    const wanted = had === null ? RESERVED_BYTES : Math.max(bytes, 2 * had.length)
    const room = Buffer.allocUnsafeSlow(Math.min(this.#size, Math.max(bytes, wanted)))
    had?.copy(room, 0, 0, this.#filled)
    this.#frame = room
    return room
  }

  #done(frame: Buffer): void {
    this.#size = 0
    this.#frame = null
    this.#filled = 0
    this.#onFrame(frame)
  }
}

/** Below this one piece is cheaper than a list of them. */
const GATHERED_BYTES = 16 * 1024

/** Writes requests (header version 1, or 2 where the request is flexible). */
export class FrameWriter {
  readonly #socket: Socket
  readonly #clientId: Buffer

  constructor(socket: Socket, clientId: string) {
    this.#socket = socket
    this.#clientId = Buffer.from(clientId, "utf8")
  }

  write(
    request: {
      readonly key: number
      readonly version: number
      readonly flexible: boolean
      readonly body: ReadonlyArray<Buffer>
    },
    correlationId: number
  ): void {
    const { body, flexible, key, version } = request
    const bodyBytes = body.reduce((sum, { length }) => sum + length, 0)
    const head = Buffer.allocUnsafe(SIZE_BYTES + 10 + this.#clientId.length + (flexible ? 1 : 0))
    head.writeInt32BE(head.length - SIZE_BYTES + bodyBytes, 0)
    head.writeInt16BE(key, 4)
    head.writeInt16BE(version, 6)
    head.writeInt32BE(correlationId, 8)
    head.writeInt16BE(this.#clientId.length, 12)
    this.#clientId.copy(head, 14)
    // No tagged fields.
    if (flexible) head[head.length - 1] = 0
    if (bodyBytes <= GATHERED_BYTES) {
      this.#socket.write(Buffer.concat([head, ...body], head.length + bodyBytes))
      return
    }
    this.#socket.cork()
    this.#socket.write(head)
    for (const piece of body) this.#socket.write(piece)
    this.#socket.uncork()
  }
}
