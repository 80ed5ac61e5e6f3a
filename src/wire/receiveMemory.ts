/**
 * Memory for large answers, used again when nobody needs the answer any more. Left to the garbage collector, answers that
 * live for a transaction grow old, and a mirror at full speed keeps three times what it works on.
 *
 * Guarantees: what is given back is taken away from whoever still holds a view on it: the view is empty from then on, and
 * reading it throws. Nobody ever sees the bytes of another answer in it. What is never given back is the collector's.
 *
 * Gotcha: a socket that is still to send a view would send other bytes. Requests are copied before they are sent
 * (frames.ts), so none does.
 */

/** Smaller answers come and go with the young generation. */
const SMALLEST_BYTES = 64 * 1024
/** What waits to be used again, at most; and the largest piece of it. */
const KEPT_BYTES = 16 * 1024 * 1024
const LARGEST_BYTES = 8 * 1024 * 1024

export class ReceiveMemory {
  /** By size. */
  readonly #free = new Map<number, Array<ArrayBuffer>>()
  readonly #given = new WeakSet<ArrayBufferLike>()
  #keptBytes = 0

  /** Room for so many bytes; not zeroed. `smallest`: below it the memory is the collector's. */
  take(bytes: number, smallest = SMALLEST_BYTES): Buffer {
    if (bytes === 0 || bytes < smallest || bytes > LARGEST_BYTES) return Buffer.allocUnsafeSlow(bytes)
    // Powers of two: what one answer leaves fits the next.
    const size = 2 ** Math.ceil(Math.log2(bytes))
    const kept = this.#free.get(size)?.pop()
    if (kept !== undefined) this.#keptBytes -= size
    const memory = kept ?? Buffer.allocUnsafeSlow(size).buffer
    this.#given.add(memory)
    return Buffer.from(memory, 0, bytes)
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
    if (this.#keptBytes + again.byteLength > KEPT_BYTES) {
      again.transfer(0)
      return
    }
    this.#keptBytes += again.byteLength
    const free = this.#free.get(again.byteLength)
    if (free === undefined) this.#free.set(again.byteLength, [again])
    else free.push(again)
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
