/**
 * Which positions are confirmed, on their way to the coordinator, or committed. Pure bookkeeping: no Effect, no clock.
 *
 * Invariants, per partition:
 * 1. what is given out for a commit was confirmed before, by somebody who holds the partition's current generation;
 * 2. within a generation the committed position never goes back, and of several confirmed ones the latest is sent;
 * 3. after `forget` nothing of the partition is sent, whatever is still confirmed by those who held it.
 */
import { partitionKey, type Position, type TopicPartition } from "./position.ts"

/** A position with the assignment it was read under. */
export interface Confirmed extends Position {
  readonly generation: number
}

interface Entry {
  readonly generation: number
  confirmed: Confirmed | null
  committed: number
}

export class CommitBook {
  readonly #entries = new Map<string, Entry>()

  /** Starts a generation of a partition; older ones are over. `committed` is -1 when the group has no offset. */
  open(at: TopicPartition, generation: number, committed: number): void {
    this.#entries.set(partitionKey(at), { generation, confirmed: null, committed })
  }

  forget(at: TopicPartition): void {
    this.#entries.delete(partitionKey(at))
  }

  /** false: the generation is over, the position was dropped (its records come again to the new owner). */
  confirm(position: Confirmed): boolean {
    const entry = this.#entries.get(partitionKey(position))
    if (entry === undefined || entry.generation !== position.generation) return false
    if (entry.confirmed === null || position.offset > entry.confirmed.offset) entry.confirmed = position
    return true
  }

  /** -1: nothing is committed, or the partition is not ours. */
  committed(at: TopicPartition): number {
    return this.#entries.get(partitionKey(at))?.committed ?? -1
  }

  /** Confirmed and not yet committed, at most one position a partition. They stay until `settle`. */
  dirty(): ReadonlyArray<Confirmed> {
    const out: Array<Confirmed> = []
    for (const { committed, confirmed } of this.#entries.values()) {
      if (confirmed !== null && confirmed.offset !== committed) out.push(confirmed)
    }
    return out
  }

  /** The coordinator has these. Those of a generation that is over are left alone. */
  settle(positions: ReadonlyArray<Confirmed>): void {
    for (const position of positions) {
      const entry = this.#entries.get(partitionKey(position))
      if (entry?.generation === position.generation) entry.committed = position.offset
    }
  }
}
