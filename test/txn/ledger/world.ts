/**
 * A small world for the ledger's rules: a target with transactions (markers written later than the answer to EndTxn,
 * fencing, late requests), one ledger partition, and a share group whose locks end at any time. Lanes are
 * generators that stop at every point where something else may happen; who goes on next, and what goes wrong, is drawn
 * from a seed. The tail and the decisions are the real ones (src/txn/ledger/tail.ts, rules.ts).
 *
 * Invariants, looked at after each step: no record has two committed outputs; nothing is acknowledged without one.
 */
import { type DoneEntry, type Slot, slotKey } from "../../../src/txn/ledger/entry.ts"
import { type Mutations, NO_MUTATIONS } from "../../../src/txn/ledger/mutations.ts"
import { type Claim } from "../../../src/txn/ledger/rules.ts"
import { type Facts, LedgerTail, type TailBatch } from "../../../src/txn/ledger/tail.ts"
import { rangeSet } from "../../../src/wire/ranges.ts"

export const SLOT: Slot = { clusterId: "source", topicId: "t", partition: 0 }
export const KEY = slotKey(SLOT)

export class Violation extends Error {}

export const random = (seed: number) => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  return { next, below: (n: number): number => Math.floor(next() * n), occurs: (p: number): boolean => next() < p }
}
export type Random = ReturnType<typeof random>

/** A fiber gives control away; it goes on when the condition holds. */
export type Fiber = Generator<() => boolean, void, void>
export const always = (): boolean => true

interface Coordinator {
  readonly producerId: number
  epoch: number
  /** The open transaction. */
  open: { readonly outputs: Array<number>; inLedger: boolean } | null
  /** The marker that is not in the ledger yet. */
  marker: { readonly epoch: number; readonly commit: boolean } | null
}

export type Answer<A> = { readonly kind: "ok"; readonly value: A } | { readonly kind: "fenced" } | {
  readonly kind: "again"
} | { readonly kind: "noAnswer" }
const ok = <A>(value: A): Answer<A> => ({ kind: "ok", value })

export interface WorldOptions {
  readonly seed: number
  readonly records: number
  readonly version: 1 | 2
  readonly mutations?: Mutations
}

export class World {
  readonly random: Random
  readonly version: 1 | 2
  readonly mutations: Mutations
  readonly history: Array<string> = []
  /** The ledger's log from `logStart` on; the index is the offset. */
  readonly log: Array<TailBatch> = []
  logStart = 0
  /** Committed outputs of each record. */
  readonly committed: Array<number>
  readonly acknowledged: Array<boolean>
  /** Who holds a record: a token, 0 nobody. */
  readonly locks: Array<number>
  faults = true
  #token = 0
  readonly #coordinators = new Map<string, Coordinator>()
  readonly #oldMarkers: Array<{ readonly producerId: number; readonly epoch: number; readonly commit: boolean }> = []
  /** Requests that went without an answer and may still arrive. */
  readonly #late: Array<() => void> = []

  constructor(options: WorldOptions) {
    this.random = random(options.seed)
    this.version = options.version
    this.mutations = options.mutations ?? NO_MUTATIONS
    this.committed = Array.from({ length: options.records }, () => 0)
    this.acknowledged = Array.from({ length: options.records }, () => false)
    this.locks = Array.from({ length: options.records }, () => 0)
  }

  note(text: string): void {
    this.history.push(text)
  }

  // The source.

  acquire(): { readonly token: number; readonly records: ReadonlyArray<number> } {
    const free = this.locks.flatMap((holder, r) => holder === 0 && this.acknowledged[r] !== true ? [r] : [])
    const from = this.random.below(Math.max(1, free.length))
    const records = free.slice(from, from + 1 + this.random.below(3))
    const token = ++this.#token
    for (const r of records) this.locks[r] = token
    return { token, records }
  }
  release(token: number): void {
    this.locks.forEach((holder, r) => {
      if (holder === token) this.locks[r] = 0
    })
  }
  accept(token: number, records: ReadonlyArray<number>): void {
    for (const r of records) {
      if (this.locks[r] !== token) continue
      this.locks[r] = 0
      this.acknowledged[r] = true
      if (this.committed[r] === 0) throw new Violation(`record ${r} is acknowledged and has no committed output`)
    }
  }
  expireLock(): void {
    const held = this.locks.filter((holder) => holder !== 0)
    const token = held[this.random.below(held.length)]
    if (token !== undefined) this.release(token)
  }
  get finished(): boolean {
    return this.acknowledged.every(Boolean)
  }

  // The target.

  coordinator(id: string): Coordinator {
    const known = this.#coordinators.get(id)
    if (known !== undefined) return known
    const made: Coordinator = { producerId: 100 + this.#coordinators.size, epoch: 0, open: null, marker: null }
    this.#coordinators.set(id, made)
    return made
  }

  #decide(c: Coordinator, commit: boolean, epoch: number): void {
    for (const r of c.open?.outputs ?? []) {
      if (!commit) continue
      this.committed[r] = (this.committed[r] ?? 0) + 1
      if ((this.committed[r] ?? 0) > 1) throw new Violation(`record ${r} has two committed outputs`)
    }
    if (c.open?.inLedger === true) c.marker = { epoch, commit }
    c.open = null
    c.epoch = epoch
  }

  /** InitProducerId, also to fence: aborts what is open and succeeds only when its markers are in the logs. */
  init(id: string): Answer<{ readonly producerId: number; readonly epoch: number }> {
    const c = this.coordinator(id)
    if (c.open !== null) this.#decide(c, false, c.epoch + 1)
    if (c.marker !== null) return { kind: "again" }
    c.epoch++
    return ok({ producerId: c.producerId, epoch: c.epoch })
  }

  #writable(id: string, epoch: number): Coordinator | "fenced" | "again" {
    const c = this.coordinator(id)
    if (epoch !== c.epoch) return "fenced"
    if (c.marker !== null) return "again"
    c.open ??= { outputs: [], inLedger: false }
    return c
  }

  produce(id: string, epoch: number, records: ReadonlyArray<number>): Answer<null> {
    const c = this.#writable(id, epoch)
    if (typeof c === "string") return { kind: c }
    c.open?.outputs.push(...records)
    return ok(null)
  }

  /** Writes an entry; gives its offset. */
  done(id: string, epoch: number, records: ReadonlyArray<number>): Answer<number> {
    const c = this.#writable(id, epoch)
    if (typeof c === "string") return { kind: c }
    if (c.open !== null) c.open.inLedger = true
    const offset = this.log.length
    const entry: DoneEntry = {
      kind: "done",
      slot: SLOT,
      ranges: rangesOf(records),
      transactionalId: id,
      transactionVersion: this.version,
      targets: []
    }
    this.log.push({
      kind: "data",
      baseOffset: offset,
      lastOffset: offset,
      producerId: c.producerId,
      epoch,
      transactional: true,
      entries: [{ offset, size: 40, entry }]
    })
    return ok(offset)
  }

  /** EndTxn. Version 2 answers with the next epoch. */
  end(id: string, epoch: number, commit: boolean): Answer<number> {
    const c = this.coordinator(id)
    if (epoch !== c.epoch || c.open === null) return { kind: "fenced" }
    this.#decide(c, commit, this.version === 2 ? epoch + 1 : epoch)
    return ok(c.epoch)
  }

  /** A request through a network that loses it, its answer, or delivers it later. */
  ask<A>(carryOut: () => Answer<A>): Answer<A> {
    if (this.faults && this.random.occurs(0.12)) {
      const kind = this.random.below(3)
      if (kind === 1) carryOut()
      if (kind === 2) this.#late.push(carryOut)
      return { kind: "noAnswer" }
    }
    return carryOut()
  }

  /** Some marker gets into the ledger; or a late duplicate of an old one that a broker would take. */
  writeMarker(duplicates: boolean): void {
    const waiting = [...this.#coordinators.values()].filter((c) => c.marker !== null)
    const c = waiting[this.random.below(waiting.length)]
    if (c?.marker !== null && c !== undefined && !(duplicates && this.random.occurs(0.2))) {
      this.#marker({ producerId: c.producerId, ...c.marker })
      this.#oldMarkers.push({ producerId: c.producerId, ...c.marker })
      c.marker = null
    } else if (duplicates && this.version === 2) {
      const old = this.#oldMarkers[this.random.below(this.#oldMarkers.length)]
      const newest = old === undefined
        ? -1
        : Math.max(
          -1,
          ...this.log.flatMap((b) => b.kind === "data" && b.producerId === old.producerId ? [b.epoch] : [])
        )
      if (old !== undefined && old.epoch >= newest) this.#marker(old)
    }
  }
  #marker(
    { commit, epoch, producerId }: { readonly producerId: number; readonly epoch: number; readonly commit: boolean }
  ): void {
    const offset = this.log.length
    this.log.push({ kind: "marker", baseOffset: offset, lastOffset: offset, producerId, epoch, commit })
  }

  lateRequest(): void {
    this.#late.splice(this.random.below(this.#late.length), 1)[0]?.()
  }
  /** A transaction's time is over. */
  timeOut(): void {
    const open = [...this.#coordinators.values()].filter((c) => c.open !== null)
    const c = open[this.random.below(open.length)]
    if (c !== undefined) this.#decide(c, false, c.epoch + 1)
  }

  /** The first offset that a transaction without a marker holds. */
  get lastStable(): number {
    const busy = [...this.#coordinators.values()].filter((c) => c.open?.inLedger === true || c.marker !== null)
    const firsts = busy.map((c) => this.log.findLastIndex((b) => b.kind === "data" && b.producerId === c.producerId))
    return Math.min(this.log.length, ...firsts)
  }
  snapshot({ decidedBelow, slots }: Facts): number {
    const offset = this.log.length
    const entry = { kind: "snapshot" as const, decidedBelow, slots }
    this.log.push({
      kind: "data",
      baseOffset: offset,
      lastOffset: offset,
      producerId: -1,
      epoch: -1,
      transactional: false,
      entries: [{ offset, size: 40, entry }]
    })
    return offset
  }
  deleteBelow(offset: number): void {
    this.logStart = Math.max(this.logStart, Math.min(offset, this.log.length))
  }
}

export const rangesOf = (records: ReadonlyArray<number>) => rangeSet(records.map((r) => ({ first: r, last: r })))
export const claimOf = (records: ReadonlyArray<number>): Claim => ({
  slot: SLOT,
  key: KEY,
  topic: "t",
  ranges: rangesOf(records)
})

/** A worker's tail, and what has become of it. */
export class Worker {
  readonly world: World
  tail: LedgerTail
  generation = 0

  constructor(world: World) {
    this.world = world
    this.tail = this.#fresh()
  }
  #fresh(): LedgerTail {
    const { world } = this
    const tail = new LedgerTail(
      world.mutations.startAtEnd === true ? world.log.length : world.logStart,
      world.mutations
    )
    tail.aim(world.log.length)
    return tail
  }
  /** A crash, or an offset that is gone. */
  reset(): void {
    this.tail = this.#fresh()
    this.generation++
  }
  read(): void {
    const { log, logStart } = this.world
    if (this.tail.next < logStart) return this.reset()
    const batch = log[this.tail.next]
    if (batch !== undefined) this.tail.feed(batch)
    this.tail.sawLastStable(this.world.lastStable)
  }
}
