/** The target's partitions as a producer knows them between calls: sequences, back-off, and why one stands still. */
import type { Item } from "./produceRequest.ts"
import type { ProducerSettings } from "./producerSettings.ts"
import { PartitionSequences } from "./sequences.ts"

/** Milliseconds. */
const SOON_MS = 5

export class Partition {
  readonly topic: string
  readonly partition: number
  readonly key: string
  readonly sequences: PartitionSequences<Item>
  /** Failures in a row. */
  attempts = 0
  /** Monotonic time in milliseconds before which nothing is sent: a wall clock that is set back must not hold it up. */
  notBefore = 0
  lastReason = "no answer yet"
  /** Since when a target that answers says that the partition takes nothing; null: it takes, or nobody answers. */
  refusedSince: number | null = null
  /** Set by the producer while the partition stands still. */
  stalledSince: number | null = null

  constructor(topic: string, partition: number, key: string, mayRestart: boolean) {
    this.topic = topic
    this.partition = partition
    this.key = key
    this.sequences = new PartitionSequences({ mayRestart })
  }

  /**
   * Back-off: retry.backoff.ms, doubling with each failure in a row, at most retry.backoff.max.ms. `soon`: what is waited
   * for takes milliseconds most often; from a few of them up to retry.backoff.ms.
   */
  pause(now: number, settings: ProducerSettings, jitter: number, soon = false): void {
    this.attempts++
    const [first, most] = soon
      ? [SOON_MS, settings.retryBackoffMs]
      : [settings.retryBackoffMs, settings.retryBackoffMaxMs]
    const wait = Math.min(most, first * 2 ** Math.min(this.attempts - 1, 20))
    this.notBefore = Math.max(this.notBefore, now + Math.round(wait * jitter))
  }

  /** Whether the others of a call should not wait for it any longer. */
  isLeftOut(now: number, settings: ProducerSettings): boolean {
    return this.refusedSince !== null && now - this.refusedSince >= settings.partitionPatienceMs &&
      this.sequences.slots.every((slot) => slot.state !== "inFlight" && !slot.maybeWritten)
  }

  /** Nothing waits for it any more; whether it takes something nobody knows. True when it stood still. */
  givenUp(): boolean {
    const stalled = this.stalledSince !== null
    this.stalledSince = null
    return stalled
  }

  /** After a success. True when it stood still before. */
  recovered(): boolean {
    const stalled = this.stalledSince !== null
    this.attempts = 0
    this.notBefore = 0
    this.stalledSince = null
    this.refusedSince = null
    return stalled
  }
}

export class Partitions {
  readonly #known = new Map<string, Partition>()
  readonly #mayRestart: boolean

  constructor(options: { readonly mayRestart: boolean }) {
    this.#mayRestart = options.mayRestart
  }

  of(topic: string, partition: number): Partition {
    const key = `${topic}/${partition}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const made = new Partition(topic, partition, key, this.#mayRestart)
    this.#known.set(key, made)
    return made
  }

  all(): Iterable<Partition> {
    return this.#known.values()
  }
}
