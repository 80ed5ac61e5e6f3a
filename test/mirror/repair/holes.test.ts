import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { holesOf } from "../../../src/mirror/repair/holes.ts"
import { contains, rangeSet } from "../../../src/wire/ranges.ts"

const view = { decided: [{ first: 0, last: 99 }], logStart: 0, done: [], undecided: [], fromEarliest: true }

describe("what a share group gave up", () => {
  it("is what lies below its start and is not done", () => {
    const { gone, missing } = holesOf({ ...view, done: [{ first: 0, last: 39 }, { first: 45, last: 120 }] })
    assert.deepStrictEqual([missing, gone], [[{ first: 40, last: 44 }], []])
  })

  it("is nothing while the group has not begun", () => {
    assert.deepStrictEqual(holesOf({ ...view, decided: [] }), { missing: [], gone: [] })
  })

  it("is not what an open transaction holds", () => {
    assert.deepStrictEqual(
      holesOf({ ...view, done: [{ first: 10, last: 99 }], undecided: [[{ first: 0, last: 9 }]] }).missing,
      []
    )
  })

  it("is lost, and told apart, where the source has dropped it", () => {
    const { gone, missing } = holesOf({
      ...view,
      logStart: 50,
      done: [{ first: 0, last: 39 }, { first: 45, last: 59 }]
    })
    assert.deepStrictEqual([missing, gone], [[{ first: 60, last: 99 }], [{ first: 40, last: 44 }]])
  })

  it("does not reach before the first done offset of a group that began at the end", () => {
    assert.deepStrictEqual(holesOf({ ...view, fromEarliest: false, done: [{ first: 70, last: 79 }] }).missing, [{
      first: 80,
      last: 99
    }])
    assert.deepStrictEqual(holesOf({ ...view, fromEarliest: false }).missing, [])
  })

  it("is also what the group gave up beyond what it still holds", () => {
    const decided = [{ first: 0, last: 9 }, { first: 20, last: 29 }]
    assert.deepStrictEqual(holesOf({ ...view, decided, done: [{ first: 0, last: 24 }] }).missing, [{
      first: 25,
      last: 29
    }])
  })

  it("agrees, offset by offset, with the rule", () => {
    const ranges = fc.array(fc.record({ first: fc.nat(60), size: fc.nat(8) }), { maxLength: 5 }).map((list) =>
      rangeSet(list.map(({ first, size }) => ({ first, last: first + size })))
    )
    fc.assert(
      fc.property(
        ranges,
        fc.nat(70),
        ranges,
        ranges,
        fc.boolean(),
        (decided, logStart, done, open, fromEarliest) => {
          const { gone, missing } = holesOf({ decided, logStart, done, undecided: [open], fromEarliest })
          const first = done[0]?.first ?? Infinity
          for (let offset = 0; offset < 80; offset++) {
            const owed = contains(decided, offset) && !contains(done, offset) && !contains(open, offset)
            assert.strictEqual(
              contains(missing, offset),
              owed && offset >= logStart && (fromEarliest || offset >= first),
              `missing ${offset}`
            )
            assert.strictEqual(contains(gone, offset), owed && offset < logStart && offset >= first, `gone ${offset}`)
          }
        }
      )
    )
  })
})
