import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { type AckPart } from "../../src/share/acknowledgement.ts"
import { HeldBook, Hold } from "../../src/share/held.ts"
import * as Ranges from "../../src/wire/ranges.ts"

const LOCK_MS = 10_000
const hold = (
  of: { readonly first?: number; readonly last?: number; readonly atMs?: number; readonly partition?: number } = {}
): Hold =>
  new Hold({
    topic: "t",
    topicId: "id",
    partition: of.partition ?? 0,
    ranges: [{ first: of.first ?? 0, last: of.last ?? 99, deliveryCount: 1 }],
    records: Buffer.alloc(0),
    broker: 1,
    requestedAtMs: of.atMs ?? 0,
    acquiredAtMs: (of.atMs ?? 0) + 400,
    lockTimeoutMs: LOCK_MS,
    generation: 0
  })

const range = fc.tuple(fc.integer({ min: -5, max: 104 }), fc.integer({ min: 0, max: 30 })).map(([first, more]) => ({
  first,
  last: first + more
}))
const operation = fc.record({
  kind: fc.constantFrom("take", "settle", "giveBack", "lose", "forget"),
  range,
  pick: fc.nat()
})

describe("a hold", () => {
  it("knows of every offset whether it is held, under way or gone, after anything that can happen", () => {
    fc.assert(fc.property(fc.array(operation, { maxLength: 40 }), (operations) => {
      const it = hold()
      const held = new Set(Array.from({ length: 100 }, (_, o) => o))
      const underWay: Array<AckPart> = []
      for (const { kind, pick, range: r } of operations) {
        const offsets = Array.from({ length: r.last - r.first + 1 }, (_, i) => r.first + i)
        const part =
          underWay.splice(pick % Math.max(1, underWay.length), kind === "settle" || kind === "giveBack" ? 1 : 0)[0]
        switch (kind) {
          case "take": {
            const { missing, taken } = it.take([{ ...r, type: "accept" }])
            assert.strictEqual(Ranges.size(taken), offsets.filter((o) => held.has(o)).length)
            assert.strictEqual(Ranges.size(taken) + Ranges.size(missing), offsets.length)
            for (const o of offsets) held.delete(o)
            underWay.push(...taken)
            break
          }
          case "settle":
            if (part !== undefined) it.settle(part)
            break
          case "giveBack":
            if (part === undefined) break
            it.giveBack(part)
            for (let o = part.first; o <= part.last; o++) held.add(o)
            break
          case "lose":
            it.lose([r], "why")
            for (const o of offsets) held.delete(o)
            break
          case "forget":
            it.forget([r])
            for (const o of offsets) held.delete(o)
        }
        assert.deepStrictEqual(it.held, Ranges.rangeSet([...held].map((o) => ({ first: o, last: o }))))
        assert.strictEqual(it.taken, Ranges.size(underWay))
      }
      assert.strictEqual(it.isSettled, held.size === 0 && underWay.length === 0)
    }))
  })

  it("the same offset twice in one acknowledgement is taken once", () => {
    const { missing, taken } = hold().take([{ first: 0, last: 9, type: "accept" }, {
      first: 5,
      last: 12,
      type: "release"
    }])
    assert.deepStrictEqual(taken, [{ first: 0, last: 9, type: "accept" }, { first: 10, last: 12, type: "release" }])
    assert.deepStrictEqual(missing, [{ first: 5, last: 9, type: "release" }])
  })
  it("the first reason of a loss is the one that is told", () => {
    const it = hold()
    it.lose([{ first: 0, last: 1 }], "the lock ran out")
    it.loseAll("closed")
    assert.strictEqual(it.lostWhy, "the lock ran out")
  })
})

describe("all that is held", () => {
  it("is due for renewal at half of the lock, counted from the request and not from its answer", () => {
    const book = new HeldBook()
    book.add(hold({ atMs: 1000 }))
    assert.strictEqual(book.nextDueMs(true), 6000)
    assert.strictEqual(book.renewals(5999).length, 0)
    assert.strictEqual(book.renewals(6000).length, 1)
  })
  it("holds that are nearly due are renewed along, young ones are not", () => {
    const book = new HeldBook()
    const [due, nearly, young] = [hold({ atMs: 0 }), hold({ atMs: 1000 }), hold({ atMs: 4000 })]
    for (const h of [due, nearly, young]) book.add(h)
    assert.deepStrictEqual(book.renewals(5000), [due, nearly])
  })
  it("what is acknowledged or under way needs no renewal", () => {
    const book = new HeldBook()
    const it = hold()
    book.add(it)
    it.take([{ first: 0, last: 99, type: "accept" }])
    assert.deepStrictEqual(book.renewals(LOCK_MS), [])
    assert.strictEqual(book.nextDueMs(true), Infinity)
  })
  it("without renewal nothing is due until the lock ends, and then it is lost", () => {
    const book = new HeldBook()
    const it = hold()
    book.add(it)
    assert.strictEqual(book.nextDueMs(false), LOCK_MS)
    assert.deepStrictEqual(book.expire(LOCK_MS - 1), [])
    assert.deepStrictEqual(book.expire(LOCK_MS), [it])
    assert.isTrue(it.lost)
    assert.isTrue(book.isEmpty)
  })
  it("a renewed lock runs from the renewal's request", () => {
    const book = new HeldBook()
    const it = hold()
    book.add(it)
    it.renewed(5000, LOCK_MS)
    assert.deepStrictEqual(book.expire(14_999), [])
    assert.strictEqual(book.nextDueMs(true), 10_000)
  })
  it("a lost partition leaves the others held", () => {
    const book = new HeldBook()
    const [gone, stays] = [hold({ partition: 0 }), hold({ partition: 1 })]
    book.add(gone)
    book.add(stays)
    assert.deepStrictEqual(book.loseAll("moved", { topicId: "id", partition: 0 }), [gone])
    assert.deepStrictEqual([gone.lost, stays.lost, book.holds.size], [true, false, 1])
  })
  it("a hold with an acknowledgement under way is kept until that is answered", () => {
    const book = new HeldBook()
    const it = hold()
    book.add(it)
    const { taken } = it.take([{ first: 0, last: 9, type: "accept" }])
    book.loseAll("session lost")
    assert.isFalse(book.isEmpty)
    for (const part of taken) it.settle(part)
    book.sweep()
    assert.isTrue(book.isEmpty)
  })
  it("what the broker delivers again is lost where it was held before, and only that", () => {
    const book = new HeldBook()
    const [before, elsewhere] = [hold({ partition: 0 }), hold({ partition: 1 })]
    book.add(before)
    book.add(elsewhere)
    const again = hold({ partition: 0, first: 90, last: 112 })
    assert.deepStrictEqual(book.supersede(again).map(({ ranges }) => ranges), [[{ first: 90, last: 99 }]])
    assert.deepStrictEqual([before.held, elsewhere.held, again.held], [
      [{ first: 0, last: 89 }],
      [{ first: 0, last: 99 }],
      [{ first: 90, last: 112 }]
    ])
    assert.deepStrictEqual([before.lost, elsewhere.lost], [true, false])
  })
})
