/**
 * The decisions that make the ledger: what of acquired offsets is ours to mirror (R3), and whether a transaction may
 * ask for its commit (R5). Pure, on a tail; who waits and who fences is the binding's.
 */
import { intersect, type RangeSet, rangeSet, subtract, union } from "../../wire/ranges.ts"
import type { SourceRange } from "../binding.ts"
import { type Slot, slotKey } from "./entry.ts"
import { type Mutations, NO_MUTATIONS } from "./mutations.ts"
import type { LedgerTail, OpenEntry } from "./tail.ts"

/** What one transaction holds of one slot. */
export interface Claim {
  readonly slot: Slot
  readonly key: string
  /** The topic's name, for people. */
  readonly topic: string
  readonly ranges: RangeSet
}

const ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"

/** Source ranges by slot. Where the source has no topic ids (before Kafka 2.8) the name stands for it. */
export const claimsOf = (clusterId: string, ranges: ReadonlyArray<SourceRange>): ReadonlyArray<Claim> => {
  const slots = new Map<string, { readonly slot: Slot; readonly topic: string; readonly list: Array<SourceRange> }>()
  for (const range of ranges) {
    const topicId = range.topicId === ZERO_UUID || range.topicId === "" ? range.topic : range.topicId
    const slot = { clusterId, topicId, partition: range.partition }
    const known = slots.get(slotKey(slot))
    if (known === undefined) slots.set(slotKey(slot), { slot, topic: range.topic, list: [range] })
    else known.list.push(range)
  }
  return [...slots].map(([key, { list, slot, topic }]) => ({ slot, key, topic, ranges: rangeSet(list) }))
}

export interface Sorted {
  /** Committed: acknowledge without output. */
  readonly done: RangeSet
  /** In an undecided transaction. */
  readonly wait: RangeSet
  readonly ours: RangeSet
  /** The entries that hold `wait`. */
  readonly obstacles: ReadonlyArray<OpenEntry>
}

/** R3. An own entry that is undecided waits as any other: it is written, and its marker will come. */
export const sortClaim = (tail: LedgerTail, claim: Claim): Sorted => {
  const done = tail.doneOf(claim.key, claim.ranges)
  const rest = subtract(claim.ranges, done)
  const obstacles = tail.openOver(claim.key, rest)
  const held = obstacles.reduce<RangeSet>((all, entry) => union(all, entry.done.ranges), [])
  const wait = intersect(rest, held)
  return { done, wait, ours: subtract(rest, wait), obstacles }
}

/** A producer as the log knows it: an entry of the same id under another epoch is another transaction's. */
export interface Producing {
  readonly producerId: number
  readonly epoch: number
}

export type Verdict =
  | { readonly kind: "commit" }
  /** Somebody else has mirrored some of it. */
  | { readonly kind: "abort"; readonly claim: Claim; readonly committed: RangeSet }
  /** Earlier entries that overlap are undecided: their markers come first. */
  | { readonly kind: "wait"; readonly entries: ReadonlyArray<OpenEntry> }

const isOwn = (entry: OpenEntry, own: Producing, mutations: Mutations): boolean =>
  (entry.producerId === own.producerId && entry.epoch === own.epoch) ||
  mutations.siblingIsOwn?.(entry.producerId) === true

/**
 * R5, for a transaction whose entry was written at offset `x`. The tail must have read everything below x.
 *
 * Waiting follows the order of the log, so it cannot deadlock; entries above x are no concern of ours: their owners
 * see ours and wait for us. Going by producer id and epoch, not by worker: a sibling lane's entry counts.
 */
export const checkClaims = (
  tail: LedgerTail,
  x: number,
  own: Producing,
  claims: ReadonlyArray<Claim>,
  mutations: Mutations = NO_MUTATIONS
): Verdict => {
  if (mutations.skipCheck === true) return { kind: "commit" }
  const undecided: Array<OpenEntry> = []
  for (const claim of claims) {
    const committed = tail.doneOf(claim.key, claim.ranges)
    if (committed.length > 0) return { kind: "abort", claim, committed }
    for (const entry of tail.openOver(claim.key, claim.ranges)) {
      if (!isOwn(entry, own, mutations) && (entry.offset < x || mutations.waitForLater === true)) undecided.push(entry)
    }
  }
  const [first] = undecided
  if (first === undefined || mutations.undecidedIsAbsent === true) return { kind: "commit" }
  if (mutations.abortOnUndecided === true) {
    return {
      kind: "abort",
      claim: claims.find((c) => c.key === first.key) as Claim,
      committed: first.done.ranges
    }
  }
  return { kind: "wait", entries: undecided }
}
