import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { GrowingRanges } from "../../src/wire/growingRanges.ts"
import * as Ranges from "../../src/wire/ranges.ts"

const range = fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 12 })).map(([first, more]) => ({
  first,
  last: first + more
}))
/** Enough of them for several chunks, in any order, some of which join what lies in several. */
const many = fc.array(
  fc.tuple(
    fc.integer({ min: 0, max: 6000 }),
    fc.oneof({ weight: 30, arbitrary: fc.constant(0) }, {
      weight: 1,
      arbitrary: fc.integer({ min: 0, max: 4000 })
    })
  ).map(([n, more]) => ({ first: 3 * n, last: 3 * n + more })),
  { minLength: 1500, maxLength: 4000 }
)

const grown = (ranges: Ranges.RangeSet): GrowingRanges => {
  const set = new GrowingRanges()
  set.addAll(ranges)
  return set
}

describe("a growing set", () => {
  it("holds what was added, in whatever order, as a set of ranges does", () => {
    fc.assert(fc.property(fc.array(range, { maxLength: 30 }), (ranges) => {
      const expected = Ranges.rangeSet(ranges)
      const set = grown(ranges)
      assert.deepStrictEqual(set.all, expected)
      assert.strictEqual(set.count, expected.length)
      assert.strictEqual(set.end, expected.at(-1)?.last ?? -1)
    }))
  })
  it("holds what was added when that is thousands of ranges, and says what of others it holds", () => {
    fc.assert(
      fc.property(many, fc.array(range, { maxLength: 5 }), fc.integer({ min: 0, max: 15_000 }), (ranges, few, from) => {
        const expected = Ranges.rangeSet(ranges)
        const set = grown(ranges)
        assert.deepStrictEqual(set.all, expected)
        const asked = Ranges.rangeSet(
          few.map(({ first, last }) => ({ first: from + 30 * first, last: from + 30 * last }))
        )
        assert.deepStrictEqual(set.within(asked), Ranges.intersect(asked, expected))
      }),
      { numRuns: 60 }
    )
  })
  it("is one range again when its holes are filled one after the other", () => {
    const set = new GrowingRanges()
    for (let n = 0; n < 5000; n++) set.add(2 * n, 2 * n)
    assert.strictEqual(set.count, 5000)
    for (let n = 4998; n >= 0; n--) set.add(2 * n + 1, 2 * n + 1)
    assert.deepStrictEqual(set.all, [{ first: 0, last: 9998 }])
  })
  it("has nothing, and says so, before anything was added", () => {
    const set = new GrowingRanges()
    set.add(5, 4)
    assert.deepStrictEqual([set.all, set.within([{ first: 0, last: 9 }]), set.end], [[], [], -1])
  })
})
