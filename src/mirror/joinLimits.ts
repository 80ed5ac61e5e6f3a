/**
 * How large joined batches may be, by source topic, wherever transforms send its records: a target topic with a low
 * max.message.bytes refuses what each of them alone would pass. What was refused once is not tried again; to ask for the
 * setting would need one more right.
 */
import { JOIN_BYTES } from "./groups.ts"

export class JoinLimits {
  readonly #limits = new Map<string, number>()

  /** Bytes. */
  of(sourceTopic: string): number {
    return this.#limits.get(sourceTopic) ?? JOIN_BYTES
  }

  /** The target has refused a batch of this size for its size. */
  refused(sourceTopic: string, bytes: number): void {
    this.#limits.set(sourceTopic, Math.min(this.of(sourceTopic), bytes >> 1))
  }
}
