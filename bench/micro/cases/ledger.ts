/** The ledger's interval sets where they are at their worst: a million ranges of one slot that do not touch. */
import { ledgerBatches, readBatch } from "../../../src/txn/ledger/batches.ts"
import type { DoneEntry, Slot } from "../../../src/txn/ledger/entry.ts"
import { claimsOf, sortClaim } from "../../../src/txn/ledger/rules.ts"
import { snapshotEntries } from "../../../src/txn/ledger/snapshots.ts"
import { LedgerTail } from "../../../src/txn/ledger/tail.ts"
import { type BatchView, splitBatches } from "../../../src/wire/batch/recordBatch.ts"
import { add, type OffsetRange, overlaps, type RangeSet } from "../../../src/wire/ranges.ts"
import type { MicroCase } from "../microCase.ts"

const MILLION = 1_000_000
/** Each range holds two offsets, and three lie between it and the next. */
const STEP = 5
const slot: Slot = { clusterId: "source", topicId: "q2pvR0GnTWqVwkWkwPbN1Q", partition: 0 }

const millionRanges = (): RangeSet => {
  const ranges: Array<OffsetRange> = []
  for (let n = 0; n < MILLION; n++) ranges.push({ first: n * STEP, last: n * STEP + 1 })
  return ranges
}

/** Made when first needed, and the same for all: it is never changed. */
let made: RangeSet | null = null
const million = (): RangeSet => made ??= millionRanges()

/** Spread over the whole of it. */
const somewhere = (n: number): number => (n * 7_919 + 13) % MILLION

const done = (first: number, last: number): DoneEntry => ({
  kind: "done",
  slot,
  ranges: [{ first, last }],
  transactionalId: "onceover-lane-0",
  transactionVersion: 2,
  targets: []
})

/** A tail that has read the million from snapshots, as after a start. */
const restored = (): LedgerTail => {
  const tail = new LedgerTail(0)
  tail.aim(0)
  snapshotEntries({ decidedBelow: 0, slots: [{ slot, done: million() }] }).forEach((entry, n) =>
    tail.feed({
      kind: "data",
      baseOffset: n,
      lastOffset: n,
      producerId: -1,
      epoch: -1,
      transactional: false,
      entries: [{ offset: n, size: 1, entry }]
    })
  )
  return tail
}

/** Shared by the cases that need one: what they add to it is little beside what is there. */
let tail: LedgerTail | null = null
const tailOfMillion = (): LedgerTail => tail ??= restored()

/** A transaction's entry and its marker. */
const commit = (tail: LedgerTail, epoch: number, entry: DoneEntry): void => {
  const offset = tail.next
  const at = { baseOffset: offset, lastOffset: offset }
  const entries = [{ offset, size: 50, entry }]
  tail.feed({ kind: "data", ...at, producerId: 9, epoch, transactional: true, entries })
  tail.feed({
    kind: "marker",
    baseOffset: offset + 1,
    lastOffset: offset + 1,
    producerId: 9,
    epoch: epoch + 1,
    commit: true
  })
}

const committed = (where: string, entryOf: (n: number) => DoneEntry): MicroCase => ({
  name: `ledger: commit ${where} of a million ranges`,
  warmUp: 2000,
  operations: 500,
  prepare: () => {
    const shared = tailOfMillion()
    return (n) => commit(shared, n, entryOf(n))
  }
})

const triage: MicroCase = {
  name: "ledger: triage against a million ranges",
  warmUp: 2000,
  operations: 500,
  prepare: () => {
    const shared = tailOfMillion()
    return (n) => {
      const first = somewhere(n) * STEP
      const range = { topic: "orders", topicId: slot.topicId, partition: 0, first, last: first + 99 }
      return claimsOf(slot.clusterId, [range]).map((claim) => sortClaim(shared, claim))
    }
  }
}

const ask: MicroCase = {
  name: "ranges: ask a million",
  warmUp: 4000,
  operations: 1000,
  prepare: () => {
    const set = million()
    return (n) => overlaps(set, { first: somewhere(n) * STEP + 3, last: somewhere(n) * STEP + 4 })
  }
}

/** Each addition is to the same set. */
const append: MicroCase = {
  name: "ranges: add behind a million",
  warmUp: 4,
  operations: 2,
  prepare: () => {
    const set = million()
    return (n) => add(set, { first: MILLION * STEP + n, last: MILLION * STEP + n })
  }
}

const facts = () => ({ decidedBelow: 10, slots: [{ slot, done: million() }] })

const serialise: MicroCase = {
  name: "ledger: write a snapshot of a million ranges",
  warmUp: 1,
  operations: 1,
  prepare: () => () => ledgerBatches(snapshotEntries(facts()))
}

/** Reading it into a tail, as a worker does when it starts. */
const restore: MicroCase = {
  name: "ledger: read a snapshot of a million ranges",
  warmUp: 1,
  operations: 1,
  prepare: () => {
    const views = ledgerBatches(snapshotEntries(facts())).map(({ bytes }) => splitBatches(bytes)[0] as BatchView)
    return () => {
      const tail = new LedgerTail(0)
      tail.aim(0)
      let next = 0
      for (const view of views) {
        const batch = readBatch(view)
        if (batch.kind !== "data") continue
        const entries = batch.entries.map((entry, n) => ({ ...entry, offset: next + n }))
        tail.feed({ ...batch, baseOffset: next, lastOffset: next + entries.length - 1, entries })
        next += entries.length
      }
      return tail
    }
  }
}

export const cases: ReadonlyArray<MicroCase> = [
  committed("in the middle", (n) => done(somewhere(n) * STEP + 3, somewhere(n) * STEP + 3)),
  committed("at the end", (n) => done((MILLION + n) * STEP, (MILLION + n) * STEP + 1)),
  triage,
  ask,
  append,
  serialise,
  restore
]
