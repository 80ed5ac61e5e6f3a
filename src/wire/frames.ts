/**
 * Kafka's frames on a byte stream: a 32-bit size, then so many bytes. An answer's bytes are copied once at most: one
 * that came in a single piece is a view of it, others are put together in a buffer of their own, so that whoever gets
 * an answer may change it in place. A request is copied once, into memory that is used again when it is sent: what it
 * was made of may be given back before the socket has let go of it (receiveMemory.ts).
 */
import type { Socket } from "node:net"
import type { ProtocolError } from "./bytes.ts"
import { FrameGuard } from "./frameGuard.ts"
import { receiveMemory } from "./receiveMemory.ts"

const SIZE_BYTES = 4
/** Larger answers get their room as they come: an announced size alone reserves no more than this. */
const RESERVED_BYTES = 8 * 1024 * 1024

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
    const room = receiveMemory.take(Math.min(this.#size, Math.max(bytes, wanted)))
    if (had !== null) {
      had.copy(room, 0, 0, this.#filled)
      receiveMemory.giveBack(had.buffer)
    }
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

/** Larger requests are written into memory that is used again. */
const LARGE_BYTES = 16 * 1024
/** How much of it a connection keeps, at most. */
const KEPT_BYTES = 2 * 1024 * 1024

/** Writes requests (header version 1, or 2 where the request is flexible). */
export class FrameWriter {
  readonly #socket: Socket
  readonly #clientId: Buffer
  /** Memory of requests that are sent. */
  readonly #spare: Array<Buffer> = []
  #spareBytes = 0

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
    const bytes = head.length + bodyBytes
    if (bytes <= LARGE_BYTES) {
      this.#socket.write(Buffer.concat([head, ...body], bytes))
      return
    }
    const room = this.#take(bytes)
    head.copy(room)
    let to = head.length
    for (const piece of body) to += piece.copy(room, to)
    this.#socket.write(room.subarray(0, bytes), (error) => {
      // After a failure the system may still be at it.
      if (error || this.#spareBytes + room.length > KEPT_BYTES) return
      this.#spare.push(room)
      this.#spareBytes += room.length
    })
  }

  /** Room for so many bytes at least. */
  #take(bytes: number): Buffer {
    const at = this.#spare.findIndex(({ length }) => length >= bytes)
    const [spare] = at < 0 ? [] : this.#spare.splice(at, 1)
    this.#spareBytes -= spare?.length ?? 0
    return spare ?? Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(bytes)))
  }
}
