/**
 * How large joined batches may be, by target topic: a topic with a low max.message.bytes refuses what each of its records
 * alone would pass. What was refused once is not tried again; to ask for the setting would need one more right.
 */
import { JOIN_BYTES } from "./groups.ts"

export class JoinLimits {
  readonly #limits = new Map<string, number>()

  /** Bytes. */
  of(topic: string): number {
    return this.#limits.get(topic) ?? JOIN_BYTES
  }

  /** The target has refused a batch of this size for its size. */
  refused(topic: string, bytes: number): void {
    this.#limits.set(topic, Math.min(this.of(topic), bytes >> 1))
  }
}
