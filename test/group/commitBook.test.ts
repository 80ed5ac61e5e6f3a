import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { CommitBook, type Confirmed } from "../../src/group/commitBook.ts"

const at = { topic: "orders", partition: 3 }
const position = (offset: number, generation: number): Confirmed => ({ ...at, offset, leaderEpoch: 0, generation })

describe("the commit book", () => {
  it("sends the latest of several confirmed positions, once", () => {
    const book = new CommitBook()
    book.open(at, 1, 5)
    for (const offset of [7, 9, 8]) assert.isTrue(book.confirm(position(offset, 1)))
    assert.deepStrictEqual(book.dirty(), [position(9, 1)])
    book.settle(book.dirty())
    assert.deepStrictEqual(book.dirty(), [])
    assert.strictEqual(book.committed(at), 9)
  })

  it("keeps what was confirmed while a commit was on its way", () => {
    const book = new CommitBook()
    book.open(at, 1, -1)
    book.confirm(position(3, 1))
    const sent = book.dirty()
    book.confirm(position(6, 1))
    book.settle(sent)
    assert.strictEqual(book.committed(at), 3)
    assert.deepStrictEqual(book.dirty(), [position(6, 1)])
  })

  it("drops confirmations of an older generation, and outcomes of commits sent under it", () => {
    const book = new CommitBook()
    book.open(at, 1, -1)
    book.confirm(position(9, 1))
    const sent = book.dirty()
    book.open(at, 2, -1)
    assert.isFalse(book.confirm(position(12, 1)))
    book.settle(sent)
    assert.strictEqual(book.committed(at), -1)
    assert.isTrue(book.confirm(position(4, 2)))
    assert.deepStrictEqual(book.dirty(), [position(4, 2)])
  })

  it("sends nothing of a partition that was given up", () => {
    const book = new CommitBook()
    book.open(at, 1, -1)
    book.confirm(position(9, 1))
    book.forget(at)
    assert.deepStrictEqual(book.dirty(), [])
    assert.isFalse(book.confirm(position(10, 1)))
  })

  it("under any interleaving: a commit is never above what its generation confirmed, and never goes back within it", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("confirm" as const), offset: fc.nat(100), age: fc.nat(2) }),
      fc.record({ kind: fc.constant("send" as const) }),
      fc.record({ kind: fc.constantFrom("settle" as const, "lose" as const) }),
      fc.record({ kind: fc.constant("reassign" as const) })
    )
    fc.assert(fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) => {
      const book = new CommitBook()
      let generation = 1
      let highest = -1
      let sent: ReadonlyArray<Confirmed> = []
      let lastSent = -1
      book.open(at, generation, -1)
      for (const one of steps) {
        if (one.kind === "reassign") {
          book.open(at, ++generation, -1)
          highest = lastSent = -1
        } else if (one.kind === "confirm") {
          const accepted = book.confirm(position(one.offset, generation - one.age))
          assert.strictEqual(accepted, one.age === 0)
          if (accepted) highest = Math.max(highest, one.offset)
        } else if (one.kind === "send") {
          sent = book.dirty()
          for (const { offset, generation: of } of sent) {
            assert.strictEqual(of, generation)
            assert.isAtMost(offset, highest)
            assert.isAtLeast(offset, lastSent)
            lastSent = offset
          }
        } else if (one.kind === "settle") book.settle(sent)
        else sent = []
      }
    }))
  })
})
