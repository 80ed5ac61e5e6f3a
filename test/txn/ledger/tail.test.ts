import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type DoneEntry, type Slot, slotKey } from "../../../src/txn/ledger/entry.ts"
import { checkClaims, claimsOf, sortClaim } from "../../../src/txn/ledger/rules.ts"
import { LedgerTail, type TailBatch } from "../../../src/txn/ledger/tail.ts"
import { rangeSet, union } from "../../../src/wire/ranges.ts"

const SLOT: Slot = { clusterId: "source", topicId: "orders-id", partition: 0 }
const KEY = slotKey(SLOT)

const done = (first: number, last: number, version: 1 | 2 = 2, transactionalId = "lane"): DoneEntry => ({
  kind: "done",
  slot: SLOT,
  ranges: [{ first, last }],
  transactionalId,
  transactionVersion: version,
  targets: []
})

/** A ledger's log under construction: each call is the next offset. */
class Log {
  readonly tail: LedgerTail
  #end = 0
  constructor(tail = new LedgerTail(0)) {
    this.tail = tail
    tail.aim(0)
  }
  #feed(batch: TailBatch): number {
    this.tail.feed(batch)
    return this.#end++
  }
  entry(producerId: number, epoch: number, entry: DoneEntry): number {
    const at = { baseOffset: this.#end, lastOffset: this.#end }
    return this.#feed({
      kind: "data",
      ...at,
      producerId,
      epoch,
      transactional: true,
      entries: [{ offset: this.#end, size: 50, entry }]
    })
  }
  marker(producerId: number, epoch: number, outcome: "commit" | "abort"): number {
    return this.#feed({
      kind: "marker",
      baseOffset: this.#end,
      lastOffset: this.#end,
      producerId,
      epoch,
      commit: outcome === "commit"
    })
  }
  snapshot(first: number, last: number, decidedBelow = 0): number {
    const entry = { kind: "snapshot" as const, decidedBelow, slots: [{ slot: SLOT, done: [{ first, last }] }] }
    return this.#feed({
      kind: "data",
      baseOffset: this.#end,
      lastOffset: this.#end,
      producerId: -1,
      epoch: -1,
      transactional: false,
      entries: [{ offset: this.#end, size: 50, entry }]
    })
  }
}

const claims = (first: number, last: number) =>
  claimsOf("source", [{ topic: "orders", topicId: "orders-id", partition: 0, first, last }])

describe("a tail", () => {
  it("takes a COMMIT marker, and nothing before it, for the end of a transaction", () => {
    const log = new Log()
    log.entry(7, 3, done(0, 9))
    assert.deepStrictEqual(log.tail.done(KEY), [])
    assert.lengthOf(log.tail.open, 1)
    log.marker(7, 4, "commit")
    assert.deepStrictEqual(log.tail.done(KEY), [{ first: 0, last: 9 }])
    assert.lengthOf(log.tail.open, 0)
  })

  it("forgets what an ABORT marker ends", () => {
    const log = new Log()
    log.entry(7, 3, done(0, 9))
    log.marker(7, 4, "abort")
    assert.deepStrictEqual([log.tail.done(KEY), log.tail.open], [[], []])
  })

  it("under version 2 is not misled by a late duplicate of the marker before", () => {
    const log = new Log()
    log.entry(7, 3, done(0, 9))
    log.marker(7, 4, "commit")
    log.entry(7, 4, done(10, 19))
    log.marker(7, 4, "commit")
    assert.deepStrictEqual(log.tail.done(KEY), [{ first: 0, last: 9 }])
    assert.lengthOf(log.tail.open, 1)
    log.marker(7, 5, "abort")
    assert.lengthOf(log.tail.open, 0)
  })

  it("under version 1 takes the marker of the same epoch, and one that a fencing has bumped", () => {
    const log = new Log()
    log.entry(7, 3, done(0, 9, 1))
    log.marker(7, 3, "commit")
    log.entry(7, 3, done(10, 19, 1))
    log.marker(7, 4, "abort")
    assert.deepStrictEqual([log.tail.done(KEY), log.tail.open], [[{ first: 0, last: 9 }], []])
  })

  it("is not misled by markers of other producers or older epochs", () => {
    const log = new Log()
    log.entry(7, 3, done(0, 9, 1))
    log.marker(8, 9, "commit")
    log.marker(7, 2, "commit")
    assert.lengthOf(log.tail.open, 1)
  })

  it("merges snapshots, and lets none undo what it knows", () => {
    const log = new Log()
    log.entry(7, 3, done(0, 9))
    log.marker(7, 4, "commit")
    log.snapshot(20, 29)
    assert.deepStrictEqual(log.tail.done(KEY), [{ first: 0, last: 9 }, { first: 20, last: 29 }])
  })

  it("is ready once it has read to the end that was seen after it was opened, not before", () => {
    const log = new Log()
    log.tail.aim(2)
    log.entry(7, 3, done(0, 9))
    assert.isFalse(log.tail.ready)
    log.marker(7, 4, "commit")
    assert.isTrue(log.tail.ready)
  })

  it("knows that everything below its first undecided entry is decided, and no more", () => {
    const log = new Log()
    log.entry(7, 3, done(0, 9))
    const open = log.entry(8, 0, done(10, 19))
    log.marker(7, 4, "commit")
    assert.strictEqual(log.tail.decidedBelow, open)
    log.marker(8, 1, "abort")
    assert.strictEqual(log.tail.decidedBelow, log.tail.next)
  })

  it("leaves out the records of a batch that lie before the log's start", () => {
    const tail = new LedgerTail(5)
    const entries = [4, 5].map((offset) => ({ offset, size: 1, entry: done(offset * 10, offset * 10) }))
    tail.feed({ kind: "data", baseOffset: 4, lastOffset: 5, producerId: 7, epoch: 0, transactional: true, entries })
    assert.deepStrictEqual(tail.open.map(({ offset }) => offset), [5])
  })

  it("refuses entries outside of transactions and snapshots inside of them", () => {
    const entry = { kind: "data" as const, baseOffset: 0, lastOffset: 0, producerId: 7, epoch: 0 }
    assert.throws(
      () =>
        new LedgerTail(0).feed({
          ...entry,
          transactional: false,
          entries: [{ offset: 0, size: 1, entry: done(0, 0) }]
        }),
      /not part of a transaction/
    )
    const snapshot = { kind: "snapshot" as const, decidedBelow: 0, slots: [] }
    assert.throws(
      () =>
        new LedgerTail(0).feed({ ...entry, transactional: true, entries: [{ offset: 0, size: 1, entry: snapshot }] }),
      /part of a transaction/
    )
  })

  it("comes to the same from any prefix's snapshot and the rest, as from everything", () => {
    const step = fc.record({
      producer: fc.nat(2),
      first: fc.nat(30),
      length: fc.nat(4),
      outcome: fc.constantFrom("commit" as const, "abort" as const, "open" as const)
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), fc.double({ min: 0, max: 1, noNaN: true }), (steps, share) => {
        const whole = new Log()
        const batches: Array<TailBatch> = []
        const epochs = [0, 0, 0]
        const open = new Set<number>()
        const push = (batch: TailBatch): void => {
          batches.push(batch)
          whole.tail.feed(batch)
        }
        for (const { first, length, outcome, producer } of steps) {
          if (!open.has(producer)) {
            const at = { baseOffset: batches.length, lastOffset: batches.length }
            push({
              kind: "data",
              ...at,
              producerId: producer,
              epoch: epochs[producer] as number,
              transactional: true,
              entries: [{ offset: batches.length, size: 9, entry: done(first, first + length) }]
            })
            open.add(producer)
          }
          if (outcome === "open") continue
          epochs[producer] = (epochs[producer] as number) + 1
          push({
            kind: "marker",
            baseOffset: batches.length,
            lastOffset: batches.length,
            producerId: producer,
            epoch: epochs[producer] as number,
            commit: outcome === "commit"
          })
          open.delete(producer)
        }
        const until = Math.floor(share * batches.length)
        const before = new LedgerTail(0)
        for (const batch of batches.slice(0, until)) before.feed(batch)
        const { decidedBelow, slots } = before.facts
        const rebuilt = new LedgerTail(decidedBelow)
        for (const batch of batches.slice(decidedBelow)) rebuilt.feed(batch)
        const snapshot = { kind: "snapshot" as const, decidedBelow, slots }
        rebuilt.feed({
          kind: "data",
          baseOffset: batches.length,
          lastOffset: batches.length,
          producerId: -1,
          epoch: -1,
          transactional: false,
          entries: [{ offset: batches.length, size: 9, entry: snapshot }]
        })
        assert.deepStrictEqual(rebuilt.done(KEY), whole.tail.done(KEY))
        assert.deepStrictEqual(rebuilt.open.map(({ offset }) => offset), whole.tail.open.map(({ offset }) => offset))
      })
    )
  })
})

describe("sorting what was acquired (R3)", () => {
  it("gives each offset to exactly one of done, wait and ours", () => {
    const log = new Log()
    log.entry(7, 3, done(5, 9))
    log.marker(7, 4, "commit")
    log.entry(8, 0, done(8, 12))
    log.entry(9, 0, done(30, 40))
    const [claim] = claims(0, 20)
    assert.isDefined(claim)
    const sorted = sortClaim(log.tail, claim)
    assert.deepStrictEqual(sorted.done, [{ first: 5, last: 9 }])
    assert.deepStrictEqual(sorted.wait, [{ first: 10, last: 12 }])
    assert.deepStrictEqual(sorted.ours, [{ first: 0, last: 4 }, { first: 13, last: 20 }])
    assert.deepStrictEqual(sorted.obstacles.map(({ producerId }) => producerId), [8])
  })

  it("knows a topic that was created anew for another", () => {
    const log = new Log()
    log.snapshot(0, 99)
    const [claim] = claimsOf("source", [{ topic: "orders", topicId: "another-id", partition: 0, first: 0, last: 9 }])
    assert.isDefined(claim)
    assert.deepStrictEqual(sortClaim(log.tail, claim).ours, [{ first: 0, last: 9 }])
  })

  it("goes by the topic's name where the source has no topic ids", () => {
    const [zero] = claimsOf("source", [{
      topic: "orders",
      topicId: "AAAAAAAAAAAAAAAAAAAAAA",
      partition: 0,
      first: 0,
      last: 9
    }])
    assert.strictEqual(zero?.slot.topicId, "orders")
  })
})

describe("the check before a commit (R5)", () => {
  const own = { producerId: 1, epoch: 5 }

  it("lets a transaction commit that nothing earlier overlaps", () => {
    const log = new Log()
    log.entry(2, 0, done(10, 19))
    const x = log.entry(own.producerId, own.epoch, done(0, 9))
    assert.deepStrictEqual(checkClaims(log.tail, x, own, claims(0, 9)), { kind: "commit" })
  })

  it("aborts it when an earlier one that overlaps is committed", () => {
    const log = new Log()
    log.entry(2, 0, done(9, 12))
    const x = log.entry(own.producerId, own.epoch, done(0, 9))
    log.marker(2, 1, "commit")
    const verdict = checkClaims(log.tail, x, own, claims(0, 9))
    assert.strictEqual(verdict.kind, "abort")
    assert.deepStrictEqual(verdict.kind === "abort" ? verdict.committed : null, [{ first: 9, last: 9 }])
  })

  it("has it wait for earlier undecided ones, of siblings too, and of its own older epoch; never for later ones", () => {
    const log = new Log()
    const sibling = log.entry(2, 0, done(9, 12))
    const older = log.entry(own.producerId, own.epoch - 1, done(0, 0))
    const x = log.entry(own.producerId, own.epoch, done(0, 9))
    log.entry(3, 0, done(0, 9))
    const verdict = checkClaims(log.tail, x, own, claims(0, 9))
    assert.deepStrictEqual(verdict.kind === "wait" ? verdict.entries.map(({ offset }) => offset) : verdict, [
      sibling,
      older
    ])
  })

  it("of any log agrees with the log read by hand", () => {
    const event = fc.record({
      producer: fc.integer({ min: 2, max: 4 }),
      first: fc.nat(12),
      length: fc.nat(3),
      outcome: fc.constantFrom("commit" as const, "abort" as const, null)
    })
    fc.assert(fc.property(fc.array(event, { maxLength: 12 }), fc.nat(12), (events, first) => {
      const log = new Log()
      let committed = rangeSet([])
      const undecided: Array<{ readonly first: number; readonly last: number }> = []
      const busy = new Set<number>()
      for (const { first: from, length, outcome, producer } of events) {
        if (busy.has(producer)) continue
        log.entry(producer, log.tail.next, done(from, from + length))
        const range = { first: from, last: from + length }
        if (outcome === null) {
          busy.add(producer)
          undecided.push(range)
        } else {
          log.marker(producer, log.tail.next + 1, outcome)
          if (outcome === "commit") committed = union(committed, rangeSet([range]))
        }
      }
      const x = log.entry(own.producerId, own.epoch, done(first, first + 2))
      const hits = (range: { readonly first: number; readonly last: number }): boolean =>
        range.first <= first + 2 && range.last >= first
      const expected = committed.some(hits) ? "abort" : undecided.some(hits) ? "wait" : "commit"
      assert.strictEqual(checkClaims(log.tail, x, own, claims(first, first + 2)).kind, expected)
    }))
  })
})
