/**
 * One partition of a broker as idempotent producers see it: the checks of Kafka's ProducerAppendInfo and the five
 * remembered batches of ProducerStateEntry. Also where it is generous: a producer it does not know may begin with any
 * sequence.
 */
export interface Appended<T> {
  readonly item: T
  readonly producerId: number
  readonly epoch: number
  readonly sequence: number
  readonly count: number
  readonly baseOffset: number
}

interface ProducerState<T> {
  epoch: number
  /** The last five, oldest first. */
  batches: Array<Appended<T>>
}

const MAX = 0x7fff_ffff
const lastSequence = (
  first: number,
  count: number
): number => (first > MAX - (count - 1) ? count - 1 - (MAX - first) - 1 : first + count - 1)

export class PartitionLog<T> {
  readonly log: Array<Appended<T>> = []
  #producers = new Map<number, ProducerState<T>>()
  #end = 0

  append(
    item: T,
    producerId: number,
    epoch: number,
    sequence: number,
    count: number
  ): { readonly code: number; readonly baseOffset: number } {
    const state = this.#producers.get(producerId)
    if (state !== undefined) {
      if (epoch < state.epoch) return { code: 47, baseOffset: -1 }
      if (epoch === state.epoch) {
        const same = state.batches.find((b) => b.sequence === sequence && b.count === count)
        if (same !== undefined) return { code: 0, baseOffset: same.baseOffset }
        const last = state.batches.at(-1)
        if (last !== undefined) {
          const end = lastSequence(last.sequence, last.count)
          if (sequence !== (end === MAX ? 0 : end + 1)) return { code: 45, baseOffset: -1 }
        }
      } else if (sequence !== 0) return { code: 45, baseOffset: -1 }
    }
    const appended = { item, producerId, epoch, sequence, count, baseOffset: this.#end }
    this.#end += count
    this.log.push(appended)
    const before = state !== undefined && state.epoch === epoch ? state.batches : []
    this.#producers.set(producerId, { epoch, batches: [...before, appended].slice(-5) })
    return { code: 0, baseOffset: appended.baseOffset }
  }

  /** An unclean election: the newest batches are gone, and the producers' state with them. */
  truncate(batches: number): void {
    this.log.splice(Math.max(0, this.log.length - batches))
    this.#end = this.log.reduce((end, b) => Math.max(end, b.baseOffset + b.count), 0)
    this.#producers = new Map()
    for (const b of this.log) {
      const state = this.#producers.get(b.producerId)
      const before = state !== undefined && state.epoch === b.epoch ? state.batches : []
      this.#producers.set(b.producerId, { epoch: b.epoch, batches: [...before, b].slice(-5) })
    }
  }
}
