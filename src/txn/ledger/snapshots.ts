/**
 * R11: keeps the ledger short. A snapshot says what was done when everything below an offset d was decided; then the
 * log may begin at d. Runs beside the lanes and never holds them up.
 *
 * DeleteRecords up to d only when
 * (a) the snapshot is acknowledged (acks=all),
 * (b) nothing below d was undecided when its facts were taken, and
 * (c) the last stable offset has passed it: a lane that rebuilds its tail reads everything below its own entry; were
 *     that entry below the snapshot, it would miss what only the snapshot still knows.
 *
 * Who writes: the worker whose entry is the newest when a snapshot is due; two at once do no harm, they are merged.
 */
import { Effect } from "effect"
import type { BindingStopped } from "../binding.ts"
import type { Producer } from "../producer.ts"
import { entryRanges, ledgerBatches } from "./batches.ts"
import type { SnapshotEntry } from "./entry.ts"
import { type Mutations, NO_MUTATIONS } from "./mutations.ts"
import type { LedgerReader } from "./reader.ts"
import type { Facts, LedgerTail, SlotDone } from "./tail.ts"

export interface SnapshotLimits {
  /** A snapshot is due after so many entries, or bytes of entries, since the newest one. */
  readonly entries: number
  readonly bytes: number
}
/** What a start has to read at most, beside the snapshot: a tenth of a second of work. */
export const SNAPSHOT_LIMITS: SnapshotLimits = { entries: 2_000, bytes: 4 * 1024 * 1024 }

export interface SnapshotOptions {
  readonly topic: string
  readonly reader: LedgerReader
  /** Idempotent, acks=all, without transactions. */
  readonly producer: Producer
  /** Whether this worker's lanes have the producer id. */
  readonly isOwn: (producerId: number) => boolean
  readonly limits: SnapshotLimits
  readonly log: (level: "info" | "warn" | "debug", message: string) => void
  readonly mutations?: Mutations
}

/** Slots of about this many ranges in all share a record. */
const RANGES_PER_RECORD = 50_000

/** The facts as entries that fit into records. */
export const snapshotEntries = (facts: Facts): ReadonlyArray<SnapshotEntry> => {
  const entries: Array<SnapshotEntry> = []
  let slots: Array<SlotDone> = []
  let ranges = 0
  const flush = (): void => {
    if (slots.length > 0) entries.push({ kind: "snapshot", decidedBelow: facts.decidedBelow, slots })
    slots = []
    ranges = 0
  }
  for (const { done, slot } of facts.slots) {
    for (const part of entryRanges(done)) {
      if (ranges + part.length > RANGES_PER_RECORD) flush()
      slots.push({ slot, done: part })
      ranges += part.length + 1
    }
  }
  flush()
  return entries
}

/** So that a ledger with many slots does not write more snapshot than entries. */
const SNAPSHOT_SHARE = 2

/** The time until a refused write or cut is tried again, milliseconds. */
const RETRY_MS = 60_000

class Snapshots {
  readonly #options: SnapshotOptions
  readonly #mutations: Mutations
  #lastBytes = 0

  constructor(options: SnapshotOptions) {
    this.#options = options
    this.#mutations = options.mutations ?? NO_MUTATIONS
  }

  #isDue(tail: LedgerTail): boolean {
    const { isOwn, limits } = this.#options
    const { bytes, entries } = tail.sinceSnapshot
    if (!tail.ready || !isOwn(tail.lastProducer) || !tail.knowsSome) return false
    return (entries >= limits.entries || bytes >= limits.bytes) && bytes >= SNAPSHOT_SHARE * this.#lastBytes
  }

  /** The highest offset it was written at; null when the target did not take it. */
  #write(facts: Facts): Effect.Effect<number | null> {
    return Effect.gen({ self: this }, function*() {
      const { log, producer, reader, topic } = this.#options
      const batches = ledgerBatches(snapshotEntries(facts))
      this.#lastBytes = batches.reduce((sum, batch) => sum + batch.bytes.length, 0)
      const produced = yield* Effect.result(
        producer.produce(batches.map(({ bytes }) => ({ topic, partition: reader.partition, bytes })))
      )
      const problem = produced._tag === "Failure"
        ? produced.failure.message
        : produced.success.map((o) => o.ok ? null : o.error.message).find((m) => m !== null)
      if (problem !== undefined || produced._tag === "Failure") {
        log("warn", `a snapshot of the ledger ${topic}-${reader.partition} could not be written: ${problem}`)
        return null
      }
      // A batch whose offset the broker does not tell (-1) is somewhere below the end.
      const offsets = produced.success.map((outcome, n) =>
        outcome.ok && outcome.baseOffset >= 0 ? outcome.baseOffset + (batches[n]?.entries.length ?? 1) - 1 : Infinity
      )
      const last = Math.max(...offsets)
      if (last < Infinity) return last
      return (yield* Effect.catch(Effect.map(reader.log.end, (end) => end - 1), () => Effect.succeed(null)))
    })
  }

  #cut(decidedBelow: number): Effect.Effect<boolean> {
    const { log, reader, topic } = this.#options
    const name = `${topic}-${reader.partition}`
    return reader.log.deleteBelow(decidedBelow).pipe(
      Effect.as(true),
      Effect.tap(() => Effect.sync(() => log("debug", `the ledger ${name} begins at offset ${decidedBelow} now`))),
      Effect.catch((error) =>
        Effect.sync(() => {
          log(
            "warn",
            `the ledger ${name} could not be cut at offset ${decidedBelow}; it grows until that is possible: ${error.message}`
          )
          return false
        })
      )
    )
  }

  /** One snapshot and the cut that it allows. */
  get #round(): Effect.Effect<boolean, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const { reader } = this.#options
      const facts = reader.tail().facts
      if (this.#mutations.pruneWithoutSnapshot === true) return yield* this.#cut(facts.decidedBelow)
      const at = yield* this.#write(facts)
      if (at === null) return false
      if (this.#mutations.pruneEarly !== true) yield* reader.until((tail) => tail.next > at && tail.lastStable > at)
      return yield* this.#cut(facts.decidedBelow)
    })
  }

  /** A mistake of ours: nothing was cut. Nobody waits for this fiber, so it is said here. */
  #broke(defect: unknown): false {
    const { log, reader, topic } = this.#options
    const what = defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)
    log("warn", `the ledger ${topic}-${reader.partition} is not kept short; it grows until that is possible: ${what}`)
    return false
  }

  get run(): Effect.Effect<never, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      while (true) {
        yield* this.#options.reader.until((tail) => this.#isDue(tail))
        const cut = yield* Effect.catchDefect(this.#round, (defect) => Effect.sync(() => this.#broke(defect)))
        if (!cut) yield* Effect.sleep(RETRY_MS)
      }
    })
  }
}

/** Runs until the reader fails or it is interrupted. */
export const runSnapshots = (options: SnapshotOptions): Effect.Effect<never, BindingStopped> =>
  new Snapshots(options).run
