/**
 * What a worker has read of one partition of the ledger topic, in read_uncommitted with control records visible:
 * which source offsets are done, and which entries are undecided. Pure; the rules (R1, R2, R11) are those of
 * docs/ledger.md.
 *
 * Invariants
 * 1. R1: an entry is decided by a marker and by nothing else: by one of the same producer id, at a higher offset,
 *    with a higher epoch under transactions of version 2 (each EndTxn, fencing and time-out bumps the epoch, and the
 *    marker carries the bumped one), with the same or a higher one under version 1. So a late duplicate of an older
 *    marker decides nothing newer (under version 1 it cannot be told apart; KIP-890).
 * 2. Done sets only grow; a snapshot is merged into them.
 * 3. Everything below `next` has been seen.
 */
import { ProtocolError } from "../../wire/bytes.ts"
import { GrowingRanges } from "../../wire/growingRanges.ts"
import { EMPTY, overlaps, type RangeSet } from "../../wire/ranges.ts"
import { type DoneEntry, type LedgerEntry, type NoteEntry, type Slot, slotKey } from "./entry.ts"
import { type Mutations, NO_MUTATIONS } from "./mutations.ts"

interface Spanned {
  readonly baseOffset: number
  readonly lastOffset: number
}

/** A batch of the ledger's log, as read. */
export type TailBatch =
  | Spanned & {
    readonly kind: "data"
    readonly producerId: number
    readonly epoch: number
    readonly transactional: boolean
    readonly entries: ReadonlyArray<{ readonly offset: number; readonly size: number; readonly entry: LedgerEntry }>
  }
  | Spanned & { readonly kind: "marker"; readonly producerId: number; readonly epoch: number; readonly commit: boolean }
  /** Nothing of ours in it (another control record). */
  | Spanned & { readonly kind: "other" }

/** An entry without a marker yet. */
export interface OpenEntry {
  readonly offset: number
  readonly producerId: number
  readonly epoch: number
  readonly key: string
  readonly done: DoneEntry
}

export interface SlotDone {
  readonly slot: Slot
  readonly done: RangeSet
}

/** While records are dealt with without the ledger, too (R13). */
export interface Away {
  /** Offset of the note that began it; what it says was decided counts. */
  readonly first: number
  /** Offset of the newest such note. */
  readonly last: number
  readonly binding: string
  /** What was decided for the group when it began. */
  readonly slots: ReadonlyArray<SlotDone>
  /** Members of the source's group that work by the ledger all the same. */
  readonly members: ReadonlySet<string>
}

/** What a snapshot is made of: taken in one moment. */
export interface Facts {
  readonly decidedBelow: number
  readonly slots: ReadonlyArray<SlotDone>
}

export class LedgerTail {
  readonly #mutations: Mutations
  readonly #done = new Map<string, { readonly slot: Slot; readonly done: GrowingRanges }>()
  /** Ascending by offset. */
  #open: Array<OpenEntry> = []
  #next: number
  #readyAt = Infinity
  #lastStable = 0
  #away: Away | null = null
  #lastProducer = -1
  /** The newest transaction of each producer that a marker has decided. */
  readonly #decided = new Map<number, { readonly epoch: number; readonly commit: boolean }>()
  #sinceSnapshot = { entries: 0, bytes: 0 }

  /** Whether nothing of the log was deleted before it was read: an entry that is not here never was. */
  readonly whole: boolean

  /** `start`: the first offset to be read. */
  constructor(start: number, mutations: Mutations = NO_MUTATIONS) {
    this.whole = start === 0
    this.#next = start
    this.#mutations = mutations
  }

  /** The next offset to read. */
  get next(): number {
    return this.#next
  }
  /** R2: read to the end that the log had after this tail was opened. */
  get ready(): boolean {
    return this.#next >= this.#readyAt
  }
  get open(): ReadonlyArray<OpenEntry> {
    return this.#open
  }
  /** R13; null: all is dealt with by the ledger. In the first partition of the ledger only. */
  get away(): Away | null {
    return this.#away
  }
  /** What became of a producer's newest transaction with an entry here, by its epoch; null: none is known. */
  fateOf(producerId: number, epoch: number): "committed" | "aborted" | "open" | null {
    if (this.#open.some((entry) => entry.producerId === producerId && entry.epoch === epoch)) return "open"
    const decided = this.#decided.get(producerId)
    if (decided?.epoch !== epoch) return null
    return decided.commit ? "committed" : "aborted"
  }
  /** The partition's last stable offset, as last seen. */
  get lastStable(): number {
    return this.#lastStable
  }
  /** The producer of the newest entry; -1 before the first. */
  get lastProducer(): number {
    return this.#lastProducer
  }
  /** Entries, and their bytes, that came after the newest snapshot. */
  get sinceSnapshot(): { readonly entries: number; readonly bytes: number } {
    return this.#sinceSnapshot
  }
  /** Everything below is decided (R11 b). */
  get decidedBelow(): number {
    if (this.#mutations.pruneUndecided === true) return this.#next
    // R13: what is said of the time away is in no snapshot.
    return Math.min(this.#next, this.#open[0]?.offset ?? Infinity, this.#away?.first ?? Infinity)
  }
  /** Whether anything is done at all. */
  get knowsSome(): boolean {
    return this.#done.size > 0
  }
  /** Linear in all that is done, and nothing of it changes later. */
  get facts(): Facts {
    const slots = [...this.#done.values()].map(({ done, slot }) => ({ slot, done: done.all }))
    return { decidedBelow: this.decidedBelow, slots }
  }

  /** R2: ready once everything below `end` has been read. */
  aim(end: number): void {
    this.#readyAt = end
  }
  sawLastStable(offset: number): void {
    this.#lastStable = Math.max(this.#lastStable, offset)
  }

  /** All that is done of a slot. Linear in it: what is asked often asks doneOf or doneEnd. */
  done(key: string): RangeSet {
    return this.#done.get(key)?.done.all ?? EMPTY
  }
  /** What of these offsets of a slot is done. */
  doneOf(key: string, ranges: RangeSet): RangeSet {
    return this.#done.get(key)?.done.within(ranges) ?? EMPTY
  }
  /** The highest offset of a slot that is done; -1: none is. */
  doneEnd(key: string): number {
    return this.#done.get(key)?.done.end ?? -1
  }
  /** Undecided entries of a slot. */
  openOf(key: string): ReadonlyArray<OpenEntry> {
    return this.#open.filter((entry) => entry.key === key)
  }
  /** Undecided entries that hold any of these offsets of a slot. */
  openOver(key: string, ranges: RangeSet): ReadonlyArray<OpenEntry> {
    return this.#open.filter((entry) => entry.key === key && ranges.some((range) => overlaps(entry.done.ranges, range)))
  }

  /**
   * The next batch of the log. Throws ProtocolError when it holds what only somebody else can have written there:
   * nothing may be concluded from such a ledger.
   */
  feed(batch: TailBatch): void {
    if (batch.lastOffset < this.#next) return
    if (batch.kind === "data") this.#read(batch)
    else if (batch.kind === "marker") this.#close(batch.producerId, batch.epoch, batch.commit)
    this.#next = batch.lastOffset + 1
  }

  #read(batch: TailBatch & { readonly kind: "data" }): void {
    for (const { entry, offset, size } of batch.entries) {
      // The log may start inside a batch; what lies before its start is decided, and is in a snapshot.
      if (offset < this.#next) continue
      const misplaced = entry.kind === "done" ? !batch.transactional : batch.transactional
      if (misplaced) {
        throw new ProtocolError({
          what: `the ledger record at offset ${offset} (${entry.kind}) is ${
            batch.transactional ? "" : "not "
          }part of a transaction: onceover does not write such records`
        })
      }
      if (entry.kind === "snapshot") {
        this.#merge(entry.slots)
        this.#sinceSnapshot = { entries: 0, bytes: 0 }
        continue
      }
      if (entry.kind !== "done") {
        this.#note(offset, entry)
        continue
      }
      const { entries, bytes } = this.#sinceSnapshot
      this.#sinceSnapshot = { entries: entries + 1, bytes: bytes + size }
      this.#lastProducer = batch.producerId
      this.#open.push({
        offset,
        producerId: batch.producerId,
        epoch: batch.epoch,
        key: slotKey(entry.slot),
        done: entry
      })
    }
  }

  /** R13. The first note of a time away counts for what was decided; a return that did not know of the newest is none. */
  #note(offset: number, entry: NoteEntry): void {
    const away = this.#away
    if (entry.kind === "away") {
      this.#away = away === null
        ? {
          first: offset,
          last: offset,
          binding: entry.binding,
          slots: entry.slots,
          members: new Set()
        }
        : { ...away, last: offset, binding: entry.binding }
    } else if (away !== null && entry.kind === "member") {
      this.#away = { ...away, members: new Set([...away.members, entry.id]) }
    } else if (away !== null && entry.kind === "back" && entry.after === away.last) this.#away = null
  }

  #merge(slots: ReadonlyArray<SlotDone>): void {
    if (this.#mutations.snapshotReplaces === true) this.#done.clear()
    for (const { done, slot } of slots) this.#add(slotKey(slot), slot, done)
  }

  #add(key: string, slot: Slot, ranges: RangeSet): void {
    let known = this.#done.get(key)
    if (known === undefined) this.#done.set(key, known = { slot, done: new GrowingRanges() })
    known.done.addAll(ranges)
  }

  #close(producerId: number, epoch: number, commit: boolean): void {
    const closed = this.#open.filter((entry) => entry.producerId === producerId && this.#decides(epoch, entry))
    if (closed.length === 0) return
    this.#open = this.#open.filter((entry) => !closed.includes(entry))
    this.#decided.set(producerId, { epoch: closed.at(-1)?.epoch ?? -1, commit })
    if (commit) { for (const { done, key } of closed) this.#add(key, done.slot, done.ranges) }
  }

  #decides(epoch: number, entry: OpenEntry): boolean {
    if (this.#mutations.closeByProducer === true) return true
    if (this.#mutations.closeByEquality === true) return entry.epoch === epoch
    return entry.done.transactionVersion === 2 ? entry.epoch < epoch : entry.epoch <= epoch
  }
}
