/**
 * What a member holds of one broker's share partitions: every range it was given and has neither acknowledged nor
 * lost, and until when the lock on it lasts. Pure: time comes in as milliseconds, monotonic but for `acquiredAtMs`: a
 * wall clock that is set forth would give up every lock, one that is set back would renew none.
 *
 * Invariants
 * 1. An offset is in at most one of: held, in an acknowledgement under way (`taken`), settled.
 * 2. `lockEndsAtMs` is early rather than late: it counts from when the request was sent, the broker counts from
 *    when it handled it.
 * 3. A hold belongs to one generation of one session; when that is gone, all of it is lost.
 */
import * as Ranges from "../wire/ranges.ts"
import type { OffsetRange, RangeSet } from "../wire/ranges.ts"
import type { AckPart, AckType } from "./acknowledgement.ts"

export interface AcquiredRange extends OffsetRange {
  /** 1 for the first delivery. */
  readonly deliveryCount: number
}

/** Part of one fetch answer: record batches of one partition and which of their offsets are ours. */
export interface Acquired {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  /** Ascending, disjoint. Offsets without a record (compacted, control records) are in here too. */
  readonly ranges: ReadonlyArray<AcquiredRange>
  /** Record batches as the broker has them: they may hold offsets that are not ours, and end in a cut batch. */
  readonly records: Buffer
  /** Lets go of the bytes; what is held of the locks stays. */
  readonly dropRecords: () => void
  readonly broker: number
  /** When the answer was here, by the wall clock of this process: for ages, never for the lock. */
  readonly acquiredAtMs: number
  readonly lockTimeoutMs: number
  /** Of the broker's session it was acquired in: grows when the session is lost. */
  readonly generation: number
  /** Whether any of it was lost (session, leader or lock gone): it will be delivered again, to whoever. */
  readonly lost: boolean
  /** Why, in words; null while nothing is lost. */
  readonly lostWhy: string | null
  /** What is ours still: neither acknowledged, nor lost, nor in an acknowledgement under way. */
  readonly held: RangeSet
}

const NOTHING = Buffer.alloc(0)

export class Hold implements Acquired {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  readonly ranges: ReadonlyArray<AcquiredRange>
  records: Buffer
  readonly broker: number
  readonly acquiredAtMs: number
  readonly lockTimeoutMs: number
  readonly generation: number
  held: RangeSet
  /** In an acknowledgement under way. */
  taken = 0
  lostWhy: string | null = null
  lockedAtMs: number
  lockEndsAtMs: number
  /** False after the broker refused to renew: the lock then runs out. */
  renewable = true

  constructor(of: {
    readonly topic: string
    readonly topicId: string
    readonly partition: number
    readonly ranges: ReadonlyArray<AcquiredRange>
    readonly records: Buffer
    readonly broker: number
    readonly requestedAtMs: number
    readonly acquiredAtMs: number
    readonly lockTimeoutMs: number
    readonly generation: number
  }) {
    this.topic = of.topic
    this.topicId = of.topicId
    this.partition = of.partition
    this.ranges = of.ranges
    this.records = of.records
    this.broker = of.broker
    this.acquiredAtMs = of.acquiredAtMs
    this.lockTimeoutMs = of.lockTimeoutMs
    this.generation = of.generation
    this.held = Ranges.rangeSet(of.ranges)
    this.lockedAtMs = of.requestedAtMs
    this.lockEndsAtMs = of.requestedAtMs + of.lockTimeoutMs
  }

  readonly dropRecords = (): void => {
    this.records = NOTHING
  }
  get lost(): boolean {
    return this.lostWhy !== null
  }
  get isSettled(): boolean {
    return this.held.length === 0 && this.taken === 0
  }
  /** When to renew: at half of the lock, so that one lost request and its retry still fit. */
  get renewAtMs(): number {
    return this.lockedAtMs + (this.lockEndsAtMs - this.lockedAtMs) / 2
  }

  /** Moves what of the parts is held into an acknowledgement. What is not held comes back as `missing`. */
  take(
    parts: ReadonlyArray<AckPart>
  ): { readonly taken: ReadonlyArray<AckPart>; readonly missing: ReadonlyArray<AckPart> } {
    const taken: Array<AckPart> = []
    const missing: Array<AckPart> = []
    for (const part of parts) {
      const mine = Ranges.intersect(this.held, [part])
      for (const range of mine) taken.push(typed(range, part.type))
      for (const range of Ranges.subtract([part], mine)) missing.push(typed(range, part.type))
      this.held = Ranges.subtract(this.held, mine)
      this.taken += Ranges.size(mine)
    }
    return { taken, missing }
  }
  /** An acknowledgement's range is decided, or given up. */
  settle(range: OffsetRange): void {
    this.taken -= range.last - range.first + 1
  }
  /** An acknowledgement's range was refused, the lock holds: it is ours as before. */
  giveBack(range: OffsetRange): void {
    this.settle(range)
    this.held = Ranges.add(this.held, range)
  }
  /** No longer ours, without an acknowledgement (decided by a transaction). */
  forget(ranges: RangeSet): void {
    this.held = Ranges.subtract(this.held, ranges)
  }
  lose(ranges: RangeSet, why: string): RangeSet {
    const gone = Ranges.intersect(this.held, ranges)
    this.held = Ranges.subtract(this.held, ranges)
    this.lostWhy ??= why
    return gone
  }
  loseAll(why: string): RangeSet {
    return this.lose(this.held, why)
  }
  renewed(requestedAtMs: number, lockTimeoutMs: number): void {
    this.lockedAtMs = requestedAtMs
    this.lockEndsAtMs = requestedAtMs + lockTimeoutMs
  }
}

const typed = (range: OffsetRange, type: AckType): AckPart => ({ first: range.first, last: range.last, type })

/** All holds of one session. */
export class HeldBook {
  readonly #holds = new Set<Hold>()

  get holds(): ReadonlySet<Hold> {
    return this.#holds
  }
  get isEmpty(): boolean {
    return this.#holds.size === 0
  }
  add(hold: Hold): void {
    this.#holds.add(hold)
  }
  /** Lets go of holds of which nothing is left. */
  sweep(): void {
    for (const hold of this.#holds) if (hold.isSettled) this.#holds.delete(hold)
  }

  /**
   * The holds whose locks to renew now: when one is due, so are those that would be within an eighth of the lock,
   * so that many small holds cost few requests.
   */
  renewals(nowMs: number): ReadonlyArray<Hold> {
    if (![...this.#holds].some((h) => canRenew(h) && h.renewAtMs <= nowMs)) return []
    return [...this.#holds].filter((h) => canRenew(h) && h.renewAtMs - h.lockTimeoutMs / 8 <= nowMs)
  }
  /** The next moment something is to be done about a lock; Infinity when nothing is held. */
  nextDueMs(renewing: boolean): number {
    let due = Infinity
    for (const hold of this.#holds) {
      if (hold.held.length === 0) continue
      due = Math.min(due, renewing && hold.renewable ? hold.renewAtMs : hold.lockEndsAtMs)
    }
    return due
  }
  /** Gives up what was not renewed in time. */
  expire(nowMs: number): ReadonlyArray<Hold> {
    const expired: Array<Hold> = []
    for (const hold of this.#holds) {
      if (hold.held.length === 0 || hold.lockEndsAtMs > nowMs) continue
      hold.loseAll(`the acquisition lock of ${hold.lockTimeoutMs} ms ran out`)
      expired.push(hold)
    }
    this.sweep()
    return expired
  }
  /** The broker has given these out again: whatever lock we believed to have on them is gone. */
  supersede(by: Hold): ReadonlyArray<{ readonly hold: Hold; readonly ranges: RangeSet }> {
    const lost: Array<{ readonly hold: Hold; readonly ranges: RangeSet }> = []
    for (const hold of this.#holds) {
      if (hold.topicId !== by.topicId || hold.partition !== by.partition) continue
      const ranges = Ranges.intersect(hold.held, by.held)
      if (ranges.length === 0) continue
      hold.lose(ranges, "the broker has delivered them again: it no longer knew of our lock")
      lost.push({ hold, ranges })
    }
    this.sweep()
    return lost
  }
  /** All is lost (`only`: of one partition). */
  loseAll(why: string, only?: { readonly topicId: string; readonly partition: number }): ReadonlyArray<Hold> {
    const lost: Array<Hold> = []
    for (const hold of this.#holds) {
      if (only !== undefined && (hold.topicId !== only.topicId || hold.partition !== only.partition)) continue
      if (hold.held.length > 0) lost.push(hold)
      hold.loseAll(why)
    }
    this.sweep()
    return lost
  }
}

const canRenew = (hold: Hold): boolean => hold.renewable && hold.held.length > 0
