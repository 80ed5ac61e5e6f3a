/**
 * What is due when: one heap for lock expiries, sessions, transaction time-outs, markers and, in a cluster without
 * sockets, messages on their way. Entries due at the same time run in the order they were set, so that a run with the
 * same inputs is the same run.
 *
 * There is no cancelling: an entry checks when it runs whether it still means anything.
 */
export interface Timer {
  readonly atMs: number
  readonly order: number
  readonly run: (nowMs: number) => void
}

const before = (a: Timer, b: Timer): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)

export class Timers {
  readonly #heap: Array<Timer> = []
  #order = 0

  /** Infinity when nothing is set. */
  get nextMs(): number {
    return this.#heap[0]?.atMs ?? Infinity
  }

  set(atMs: number, run: (nowMs: number) => void): void {
    const heap = this.#heap
    let at = heap.push({ atMs, order: this.#order++, run }) - 1
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (!before(heap[at] as Timer, heap[parent] as Timer)) break
      this.#swap(at, parent)
      at = parent
    }
  }

  /** Runs what is due, also what that sets for now. Time never runs backwards for what runs here. */
  runDue(nowMs: number): boolean {
    let ran = false
    for (let next = this.#heap[0]; next !== undefined && next.atMs <= nowMs; next = this.#heap[0]) {
      this.#dropFirst()
      next.run(nowMs)
      ran = true
    }
    return ran
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap
    const kept = heap[a] as Timer
    heap[a] = heap[b] as Timer
    heap[b] = kept
  }

  #dropFirst(): void {
    const heap = this.#heap
    const last = heap.pop() as Timer
    if (heap.length === 0) return
    heap[0] = last
    for (let at = 0;;) {
      let least = at
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && before(heap[child] as Timer, heap[least] as Timer)) least = child
      }
      if (least === at) return
      this.#swap(at, least)
      at = least
    }
  }
}
