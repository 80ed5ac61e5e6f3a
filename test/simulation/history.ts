/** What happened, for people: one line an event, with virtual time. */
import type { Loop } from "./loop.ts"
import { START_MS } from "./loop.ts"

const KEPT_LINES = 20_000

export class History {
  readonly #loop: Loop
  readonly #lines: Array<string> = []
  /** For seeing it as it happens. */
  onLine: ((line: string) => void) | null = null

  constructor(loop: Loop) {
    this.#loop = loop
  }

  add(who: string, what: string): void {
    const line = `${((this.#loop.nowMs - START_MS) / 1_000).toFixed(3).padStart(9)}  ${who.padEnd(8)} ${what}`
    if (this.#lines.length >= KEPT_LINES) this.#lines.shift()
    this.#lines.push(line)
    this.onLine?.(line)
  }

  /** The end of it. */
  last(lines: number): ReadonlyArray<string> {
    return lines === 0 ? [] : this.#lines.slice(-lines)
  }

  get length(): number {
    return this.#lines.length
  }
}
