/**
 * Looks for what the share group gave up (holes.ts), fetches it, and gives it to a lane as deliveries like any other,
 * but that nothing is acknowledged for them. The binding sees to it that each is mirrored once, whoever finds it, and
 * however often: also after a restart, as the hole stays one until it is done.
 */
import { Deferred, Effect, Queue, type Scope } from "effect"
import type { BindingStopped } from "../../txn/binding.ts"
import type { Known } from "../../txn/ledger/positions.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { Signal } from "../../txn/ledger/signal.ts"
import { format, rangeSet, type RangeSet, size } from "../../wire/ranges.ts"
import type { CopyUnit } from "../copyUnit.ts"
import type { Delivery, Settled, Settlement, Source } from "../delivery.ts"
import type { LaneEvents } from "../laneEvents.ts"
import { fetchHole, type HoleAt, RepairToken } from "./fetchHole.ts"
import { holesOf } from "./holes.ts"

/** A partition of the source as the share group and the log have it now. */
export interface Standing extends HoleAt {
  /** What the group has decided, or less. */
  readonly decided: RangeSet
  readonly logStart: number
}

export interface RepairOptions {
  readonly cluster: Cluster
  /** Names the connections. */
  readonly purpose: string
  readonly readCommitted: boolean
  readonly fromEarliest: boolean
  readonly maxBytes: number
  readonly intervalMs: number
  /** Asked at each look. */
  readonly standings: Effect.Effect<ReadonlyArray<Standing>, WireError | BindingStopped>
  /** null: nothing may be concluded now, as records are dealt with without the ledger too. */
  readonly known: (at: HoleAt) => Effect.Effect<Known | null, BindingStopped>
  readonly onRepaired: (records: number) => void
  readonly log: (level: "info" | "warn", message: string) => void
}

export interface Repairs {
  /** Deliveries that wait for a lane; does not wait itself. */
  readonly take: Effect.Effect<ReadonlyArray<Delivery>>
  /** What became of one; the offsets of a partition are looked at again once all of it is settled. */
  readonly settle: (delivery: Delivery, settlements: ReadonlyArray<Settlement>) => Settled
  /** Tells what is committed; other deliveries than repairs do not matter. */
  readonly mirrored: (delivery: Delivery, unit: CopyUnit) => void
  /** Looks now; done after a look at every partition, begun after this was asked for, that found nothing to repair. */
  readonly clean: Effect.Effect<void>
  /** Looks until it is interrupted, or the ledger stops. */
  readonly run: Effect.Effect<never, BindingStopped>
}

const isRepair = (delivery: Delivery): boolean => delivery.token instanceof RepairToken
const keyOf = ({ partition, topicId }: HoleAt): string => `${topicId}-${partition}`
const offsets = (ranges: ReadonlyArray<{ readonly first: number; readonly last: number }>): number =>
  ranges.reduce((sum, r) => sum + r.last - r.first + 1, 0)

/** Milliseconds; also between two looks while there is something to repair. */
const FIRST_WAIT_MS = 500
/** Partitions that are looked at together: one without a leader is waited for as long as default.api.timeout.ms. */
const AT_ONCE = 8

class Repairing implements Repairs {
  readonly #options: RepairOptions
  readonly #ready: Queue.Queue<Delivery>
  /** Offsets that are with a lane; a partition is looked at again when it has none. */
  readonly #under = new Map<string, number>()
  /** Losses that were told. */
  readonly #told = new Map<string, string>()
  /** Somebody waits for a look that finds nothing. */
  readonly #wanted = new Signal()
  #waiting: Array<Deferred.Deferred<void>> = []

  constructor(options: RepairOptions, ready: Queue.Queue<Delivery>) {
    this.#options = options
    this.#ready = ready
  }

  get take(): Effect.Effect<ReadonlyArray<Delivery>> {
    return Queue.clear(this.#ready)
  }

  get clean(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const found = Deferred.makeUnsafe<void>()
      this.#waiting.push(found)
      this.#wanted.notify()
      return Deferred.await(found)
    })
  }

  readonly settle = (delivery: Delivery, settlements: ReadonlyArray<Settlement>): Settled => {
    const key = keyOf(delivery)
    const count = offsets(settlements)
    const left = (this.#under.get(key) ?? 0) - count
    if (left > 0) this.#under.set(key, left)
    else this.#under.delete(key)
    return { confirmed: count, refused: 0, reason: null }
  }

  readonly mirrored = (delivery: Delivery, unit: CopyUnit): void => {
    if (!isRepair(delivery) || unit.records === 0) return
    this.#options.onRepaired(unit.records)
    this.#options.log(
      "warn",
      `${delivery.topic}-${delivery.partition}: ${unit.records} records that the share group gave up are mirrored now: ${
        format(rangeSet(unit.accept))
      }`
    )
  }

  /** One partition: at most one delivery of it is under way. Gives whether nothing is missing there. */
  #look(standing: Standing): Effect.Effect<boolean, WireError | BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const { fromEarliest, known, log } = this.#options
      const { decided, logStart, ...at } = standing
      if (this.#under.has(keyOf(at))) return false
      const knows = decided.length === 0 ? null : yield* known(at)
      if (knows === null) return true
      const { missing, gone } = holesOf({ decided, logStart, fromEarliest, ...knows })
      const words = format(gone)
      if (words !== "" && this.#told.get(keyOf(at)) !== words) {
        this.#told.set(keyOf(at), words)
        log(
          "warn",
          `${at.topic}-${at.partition}: the share group gave up ${
            size(gone)
          } offsets that the source has dropped since, and what they held is lost: ${words}`
        )
      }
      const delivery = yield* this.#fetch(at, missing)
      if (delivery !== null) {
        this.#under.set(keyOf(at), offsets(delivery.ranges))
        yield* Queue.offer(this.#ready, delivery)
        return false
      }
      // What another lane's open transaction holds may yet be given back. Nothing can be read of the rest: no records.
      const all = holesOf({ decided, logStart, fromEarliest, done: knows.done, undecided: [] }).missing
      return size(all) === size(missing)
    })
  }

  /** The first holes that can be read, as many as one fetch reaches. Null: nothing of them can be read now. */
  #fetch(at: HoleAt, missing: RangeSet): Effect.Effect<Delivery | null, WireError> {
    return Effect.gen({ self: this }, function*() {
      for (const n of missing.keys()) {
        const delivery = yield* fetchHole(this.#options, at, missing.slice(n))
        if (delivery !== null) return delivery
      }
      return null
    })
  }

  /** A partition that cannot be read now (no leader, deleted meanwhile) keeps no other from its repair. */
  #lookOrTell(standing: Standing): Effect.Effect<boolean, BindingStopped> {
    return Effect.catch(this.#look(standing), (error) => {
      if (error._tag === "BindingStopped") return Effect.fail(error)
      const { partition, topic } = standing
      this.#options.log(
        "info",
        `${topic}-${partition}: what the share group gave up cannot be looked for now: ${error.message}`
      )
      return Effect.succeed(false)
    })
  }

  get #lookAtAll(): Effect.Effect<void, WireError | BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const waiting = this.#waiting
      const all = yield* this.#options.standings
      const clean = yield* Effect.forEach(all, (one) => this.#lookOrTell(one), { concurrency: AT_ONCE })
      if (clean.includes(false)) return
      this.#waiting = this.#waiting.filter((one) => !waiting.includes(one))
      for (const one of waiting) Deferred.doneUnsafe(one, Effect.void)
    })
  }

  get run(): Effect.Effect<never, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const { intervalMs, log } = this.#options
      // Often in the beginning: the first looks may come before the group tells anything.
      for (let waitMs = FIRST_WAIT_MS;; waitMs = Math.min(2 * waitMs, intervalMs)) {
        const wanted = this.#wanted.next
        const looked = yield* Effect.result(this.#lookAtAll)
        if (looked._tag === "Failure") {
          if (looked.failure._tag === "BindingStopped") return yield* looked.failure
          log("info", `records that the share group gave up cannot be looked for now: ${looked.failure.message}`)
        }
        if (this.#under.size > 0 || this.#waiting.length > 0) waitMs = FIRST_WAIT_MS
        yield* Effect.timeoutOption(wanted, waitMs)
      }
    })
  }
}

export const makeRepairs = (options: RepairOptions): Effect.Effect<Repairs, never, Scope.Scope> =>
  Effect.gen(function*() {
    const ready = yield* Queue.unbounded<Delivery>()
    yield* Effect.addFinalizer(() => options.cluster.release(options.purpose))
    return new Repairing(options, ready)
  })

/** A lane's events, of which repairs hear too. */
export const withRepairEvents = (events: LaneEvents, repairs: Repairs): LaneEvents => ({
  ...events,
  mirrored: (delivery, unit, nowMs) => {
    events.mirrored(delivery, unit, nowMs)
    repairs.mirrored(delivery, unit)
  }
})

/** The source with repairs among its deliveries. */
export const withRepairs = <E>(source: Source<E>, repairs: Repairs): Source<E> => ({
  ...source,
  poll: Effect.flatMap(repairs.take, (found) => found.length > 0 ? Effect.succeed(found) : source.poll),
  settle: (delivery, settlements) =>
    isRepair(delivery)
      ? Effect.sync(() => repairs.settle(delivery, settlements))
      : source.settle(delivery, settlements),
  owns: (delivery) => isRepair(delivery) || source.owns(delivery)
})
