/** "Something changed, look again": take `next`, look at the state, then wait; so a change in between is not missed. */
import { Deferred, Effect } from "effect"

export class Signal {
  #current = Deferred.makeUnsafe<void>()

  notify(): void {
    const fired = this.#current
    this.#current = Deferred.makeUnsafe<void>()
    Deferred.doneUnsafe(fired, Effect.void)
  }

  /** Waits for the next `notify` after this was read. */
  get next(): Effect.Effect<void> {
    return Deferred.await(this.#current)
  }
}
