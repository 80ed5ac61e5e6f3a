/** Chance from a seed: the same sequence in every run. One for each purpose, so that one does not disturb another. */
import type { Random } from "effect"

export class Dice {
  #state: number

  constructor(seed: number, purpose: string) {
    let state = (seed ^ 0x9e3779b9) >>> 0
    for (const char of purpose) state = (Math.imul(state ^ char.charCodeAt(0), 0x01000193) + 0x7f4a7c15) >>> 0
    this.#state = state
  }

  /** 0 up to 1 (mulberry32). */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }
  /** Both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }
  pick<A>(from: ReadonlyArray<A>): A {
    return from[Math.floor(this.next() * from.length)] as A
  }
  /** A time to the next of events that come this far apart on average. */
  wait(meanMs: number): number {
    return -Math.log(1 - this.next()) * meanMs
  }

  get service(): typeof Random.Random.Service {
    return {
      nextDoubleUnsafe: this.next,
      nextIntUnsafe: () => this.int(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    }
  }
}
