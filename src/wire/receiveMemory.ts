/**
 * Memory for large answers, used again when nobody needs the answer any more. Left to the garbage collector, answers that
 * live for a transaction grow old, and a mirror at full speed keeps three times what it works on.
 *
 * Guarantees: what is given back is taken away from whoever still holds a view on it: the view is empty from then on.
 * Nobody ever sees the bytes of another answer in it. What is never given back is the collector's. Gotcha: only some reads
 * of an emptied view throw; `toString` gives "" and `copy` nothing, so what outlives its answer has to be copied.
 *
 * Gotcha: a socket that is still to send a view would send other bytes. Requests are copied before they are sent
 * (frames.ts), so none does.
 */

/** Smaller answers come and go with the young generation. */
const SMALLEST_BYTES = 64 * 1024
/** What waits to be used again, at most; and the largest piece of it. */
const KEPT_BYTES = 16 * 1024 * 1024
const LARGEST_BYTES = 16 * 1024 * 1024
const KEPT_PIECES = 64
/** A piece is a multiple of this: what one answer leaves fits the next. */
const STEP_BYTES = 256 * 1024

export class ReceiveMemory {
  readonly #free: Array<ArrayBuffer> = []
  readonly #given = new WeakSet<ArrayBufferLike>()
  #keptBytes = 0

  /** Room for so many bytes; not zeroed. `smallest`: below it the memory is the collector's. */
  take(bytes: number, smallest = SMALLEST_BYTES): Buffer {
    if (bytes === 0 || bytes < smallest || bytes > LARGEST_BYTES) return Buffer.allocUnsafeSlow(bytes)
    const step = bytes < STEP_BYTES ? 1 : STEP_BYTES
    const memory = this.#kept(bytes) ?? Buffer.allocUnsafeSlow(Math.ceil(bytes / step) * step).buffer
    this.#given.add(memory)
    return Buffer.from(memory, 0, bytes)
  }

  /** The smallest piece that has room for so many bytes, and not for four times as many. */
  #kept(bytes: number): ArrayBuffer | null {
    let best = -1
    for (let n = 0; n < this.#free.length; n++) {
      const size = this.#free[n]?.byteLength ?? 0
      if (size < bytes || size > 4 * bytes) continue
      if (best < 0 || size < (this.#free[best]?.byteLength ?? 0)) best = n
    }
    const [found] = best < 0 ? [] : this.#free.splice(best, 1)
    this.#keptBytes -= found?.byteLength ?? 0
    return found ?? null
  }

  /** Whether this is memory of ours, to be given back. */
  owns(memory: ArrayBufferLike): memory is ArrayBuffer {
    return this.#given.has(memory)
  }

  /** Takes it from all who hold a view on it. Only what it owns, and once. */
  giveBack(memory: ArrayBufferLike): void {
    if (!this.owns(memory)) return
    this.#given.delete(memory)
    const again = memory.transfer()
    if (this.#free.length >= KEPT_PIECES || this.#keptBytes + again.byteLength > KEPT_BYTES) {
      again.transfer(0)
      return
    }
    this.#keptBytes += again.byteLength
    this.#free.push(again)
  }
}

/** Of this process. */
export const receiveMemory = new ReceiveMemory()

/** An answer's memory, held by several; the last one that lets go gives it back. */
export class Lease {
  readonly #memory: ReceiveMemory
  readonly #buffer: ArrayBufferLike
  #holders = 0

  constructor(memory: ReceiveMemory, buffer: ArrayBufferLike) {
    this.#memory = memory
    this.#buffer = buffer
  }

  hold(): void {
    this.#holders++
  }

  letGo(): void {
    this.#holders--
    if (this.#holders === 0) this.#memory.giveBack(this.#buffer)
  }
}
