/**
 * The sequence numbers of one partition: which batch may be sent next, under which producer epoch and sequence,
 * and what each answer does to the ones behind it. Pure: no clock, no network, no Effect.
 *
 * Invariants
 * 1. The sequences of the slots that carry one are contiguous in slot order, and the next new one follows them.
 * 2. A slot that carries a sequence keeps it, with the same producer id and epoch, until it is settled or until
 *    everything is numbered anew: sent again it is either a duplicate for the broker or the very next batch.
 * 3. Everything is numbered anew only when nothing is in flight, and under a higher epoch (or another producer
 *    id), so that whatever of the old numbers still travels is refused once the first new batch is in the log.
 * 4. A batch that was given up leaves a hole. What stands before the hole is settled under its old numbers first,
 *    for it may be in the log; only then comes the new numbering. Where the broker has refused every batch from the
 *    hole on, its numbers are simply used again: nothing can come late, so no new epoch is needed (in a transaction
 *    there is none to be had).
 * 5. While a slot is to be sent again, only the first slot is sent (as Kafka's Java client does): retries are not
 *    pipelined, so a broker that lost our state cannot take a later batch before an earlier one.
 * 6. From the first unsettled batch on, at most five are numbered, settled ones between them included: the broker
 *    remembers five, and an older one that it has already would be "out of order" for it, not a duplicate.
 * 7. Until the broker has confirmed one batch of this producer id and epoch, one batch is in flight: a broker
 *    without state for a producer takes any first sequence (ProducerAppendInfo.checkSequence), so a second batch
 *    that overtakes a lost first one would be taken and the first be out of order for ever.
 *
 * A sequence counts offsets (lastOffsetDelta + 1 a batch) and wraps from 2^31 - 1 to 0.
 */

/** Kafka's limits: a broker remembers the last five batches of a producer in a partition, to recognise duplicates. */
export const MAX_IN_FLIGHT_PER_PARTITION = 5
export const MAX_PRODUCER_EPOCH = 0x7fff
const MAX_SEQUENCE = 0x7fff_ffff

export interface Identity {
  readonly producerId: number
  /** 0 to 32767. */
  readonly epoch: number
}

/** The sequence that follows `count` records from `sequence`; wraps as Kafka's DefaultRecordBatch does. */
export const addSequence = (sequence: number, count: number): number =>
  sequence > MAX_SEQUENCE - count ? count - (MAX_SEQUENCE - sequence) - 1 : sequence + count

/** One batch of a partition that has not been settled. Changed only by PartitionSequences. */
export interface Slot<T> {
  readonly item: T
  /** Offsets the batch spans: at least 1. */
  readonly count: number
  state: "waiting" | "inFlight" | "retry"
  /** -1: none yet. */
  sequence: number
  /** Counts the batches of the partition as they are numbered. */
  ordinal: number
  /** When it was last sent, no batch stood before it: an answer "out of order" cannot come from a race. */
  sentFirst: boolean
  /** The request in flight is not the first with this sequence. */
  resent: boolean
  /** Some request with it may have been carried out without our having read the answer. */
  maybeWritten: boolean
}

/** What the partition wants now. */
export type Step<T> =
  | { readonly kind: "send"; readonly slot: Slot<T>; readonly identity: Identity; readonly sequence: number }
  /** Something is in flight, or nothing is queued. */
  | { readonly kind: "wait" }
  /** A producer id is needed first (none yet, or its epochs are used up). */
  | { readonly kind: "identity" }
  /** The numbers have a hole and this producer may not number anew (a transaction): it must be aborted. */
  | { readonly kind: "broken" }

export class PartitionSequences<T> {
  readonly #slots: Array<Slot<T>> = []
  readonly #mayRestart: boolean
  #identity: Identity | null = null
  #next = 0
  #sentBatches = 0
  #confirmed = false
  /** How many slots stand before the first missing sequence; null while there is no hole. */
  #hole: number | null = null
  /** The first missing sequence, while nothing from it on can be in the log or on its way; null: that is not known. */
  #free: number | null = null

  constructor(options: { readonly mayRestart: boolean }) {
    this.#mayRestart = options.mayRestart
  }

  get identity(): Identity | null {
    return this.#identity
  }
  get slots(): ReadonlyArray<Slot<T>> {
    return this.#slots
  }
  get inFlight(): number {
    let count = 0
    for (const slot of this.#slots) if (slot.state === "inFlight") count++
    return count
  }
  /** A number is missing: what follows goes under another epoch or producer id. */
  get hasHole(): boolean {
    return this.#hole !== null && !this.#canCloseUp
  }
  /** Everything from the hole on was answered, and refused: its numbers are free again under the same epoch. */
  get #canCloseUp(): boolean {
    return !this.#mayRestart && this.#hole === 0 && this.#free !== null &&
      this.#slots.every((slot) => slot.sequence === -1 || (slot.state !== "inFlight" && !slot.maybeWritten))
  }

  /**
   * Takes another identity. Sequences start at 0. Only while nothing is in flight.
   *
   * `zeroFirst`: the broker takes nothing but 0 as the first sequence (transactions of version 2), so rule 7 is not
   * needed.
   */
  assign(identity: Identity, options: { readonly zeroFirst?: boolean } = {}): void {
    if (this.inFlight > 0) throw new Error("an identity was changed under batches in flight")
    this.#identity = identity
    this.#renumber()
    this.#confirmed = options.zeroFirst ?? false
  }

  enqueue(item: T, count: number): Slot<T> {
    const slot: Slot<T> = {
      item,
      count,
      state: "waiting",
      sequence: -1,
      ordinal: -1,
      sentFirst: false,
      resent: false,
      maybeWritten: false
    }
    this.#slots.push(slot)
    return slot
  }

  /** The next thing to do. "send" must be followed by `sent` before it is asked again. */
  step(): Step<T> {
    const first = this.#slots[0]
    if (first === undefined) return { kind: "wait" }
    if (this.#identity === null) return { kind: "identity" }
    const inFlight = this.inFlight
    if (this.#hole === 0) {
      if (inFlight > 0) return { kind: "wait" }
      if (this.#canCloseUp) this.#closeUp()
      else if (!this.#mayRestart) return { kind: "broken" }
      else if (this.#identity.epoch >= MAX_PRODUCER_EPOCH) return { kind: "identity" }
      else {
        this.#identity = { producerId: this.#identity.producerId, epoch: this.#identity.epoch + 1 }
        this.#renumber()
      }
    }
    const slot = this.#candidate(first, inFlight)
    if (slot === null) return { kind: "wait" }
    return { kind: "send", slot, identity: this.#identity, sequence: slot.sequence === -1 ? this.#next : slot.sequence }
  }

  #candidate(first: Slot<T>, inFlight: number): Slot<T> | null {
    // Before a hole the old numbers are still good: those batches may be in the log already and must not get new ones.
    const retrying = this.#slots.some((slot) => slot.state === "retry" || (slot.state === "inFlight" && slot.resent))
    if (this.#hole !== null || retrying) return first.state === "retry" ? first : null
    if (inFlight > 0 && (!this.#confirmed || this.#sentBatches - first.ordinal >= MAX_IN_FLIGHT_PER_PARTITION)) {
      return null
    }
    return this.#slots.find((slot) => slot.state === "waiting") ?? null
  }

  sent(slot: Slot<T>): void {
    slot.resent = slot.sequence !== -1
    if (slot.sequence === -1) {
      slot.ordinal = this.#sentBatches++
      slot.sequence = this.#next
      this.#next = addSequence(this.#next, slot.count)
    }
    slot.state = "inFlight"
    slot.sentFirst = slot === this.#slots[0]
  }

  /** The broker has it, by this request or by an earlier one. */
  written(slot: Slot<T>): void {
    // Behind a missing number: the broker has gone on without it.
    if (this.#hole !== null && this.#slots.indexOf(slot) >= this.#hole) this.#free = null
    this.#remove(slot)
    this.#confirmed = true
  }

  /** Send the same bytes with the same sequence again. */
  retry(slot: Slot<T>, options: { readonly maybeWritten: boolean }): void {
    slot.state = "retry"
    slot.maybeWritten ||= options.maybeWritten
  }

  /**
   * The broker expected another sequence. Behind an unsettled batch that is a consequence of it: wait for it. As
   * the first, the broker has lost our state (an unclean election, a deleted topic): number anew.
   */
  outOfOrder(slot: Slot<T>): void {
    slot.state = "retry"
    if (!slot.sentFirst) return
    this.#hole = 0
    this.#free = null
  }

  /** The broker knows a higher epoch of this producer id, or no longer knows the id: take another id. */
  identityLost(slot: Slot<T>): void {
    slot.state = "retry"
    this.#hole = 0
    this.#free = null
    if (this.#identity !== null) this.#identity = { producerId: this.#identity.producerId, epoch: MAX_PRODUCER_EPOCH }
  }

  /**
   * Gives a batch up: refused by the broker, interrupted, timed out, or held back. The numbers behind it close up
   * without a new epoch when it was the last that had one and surely is not in the log.
   */
  drop(slot: Slot<T>): void {
    const maybeWritten = slot.maybeWritten || slot.state === "inFlight"
    const at = this.#remove(slot)
    if (slot.sequence === -1) return
    const last = this.#slots[at] === undefined || this.#slots[at].sequence === -1
    if (last && !maybeWritten) this.#next = slot.sequence
    else {
      if (maybeWritten) this.#free = null
      else if (this.#hole === null || (this.#free !== null && at < this.#hole)) this.#free = slot.sequence
      this.#hole = Math.min(this.#hole ?? at, at)
    }
  }

  /** As `drop`, where the broker's answer says that this batch is not in its log (it never is in flight then). */
  refused(slot: Slot<T>): void {
    slot.state = "retry"
    this.drop(slot)
  }

  #remove(slot: Slot<T>): number {
    const at = this.#slots.indexOf(slot)
    if (at < 0) throw new Error("a batch was settled twice")
    this.#slots.splice(at, 1)
    if (this.#hole !== null && at < this.#hole) this.#hole--
    return at
  }

  #closeUp(): void {
    this.#next = this.#free ?? 0
    this.#hole = null
    this.#free = null
    for (const slot of this.#slots) {
      slot.state = "waiting"
      slot.sequence = -1
    }
  }

  #renumber(): void {
    this.#next = 0
    this.#confirmed = false
    this.#hole = null
    this.#free = null
    for (const slot of this.#slots) {
      slot.state = "waiting"
      slot.sequence = -1
    }
  }
}
