import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as Ranges from "../../src/wire/ranges.ts"

const range = fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 12 })).map(([first, more]) => ({
  first,
  last: first + more
}))
const ranges = fc.array(range, { maxLength: 12 })
const set = ranges.map((r) => Ranges.rangeSet(r))

/** The same set, in the most obvious way. */
const offsets = (of: ReadonlyArray<Ranges.OffsetRange>): Set<number> => {
  const all = new Set<number>()
  for (const r of of) for (let o = r.first; o <= r.last; o++) all.add(o)
  return all
}
const both = (a: Set<number>, b: Set<number>): Set<number> => new Set([...a, ...b])
const same = (actual: Ranges.RangeSet, expected: Set<number>): void => {
  assert.deepStrictEqual([...offsets(actual)].sort((a, b) => a - b), [...expected].sort((a, b) => a - b))
  assert.strictEqual(Ranges.size(actual), expected.size)
  for (let i = 1; i < actual.length; i++) {
    assert.isAbove(
      (actual[i] as Ranges.OffsetRange).first,
      (actual[i - 1] as Ranges.OffsetRange).last + 1,
      "ascending, disjoint, not adjacent"
    )
  }
}

describe("ranges", () => {
  it("any list of ranges becomes the set of their offsets", () => {
    fc.assert(fc.property(ranges, (r) => same(Ranges.rangeSet(r), offsets(r))))
  })
  it("union, subtract and intersect are those of sets", () => {
    fc.assert(fc.property(set, set, (a, b) => {
      same(Ranges.union(a, b), both(offsets(a), offsets(b)))
      same(Ranges.subtract(a, b), new Set([...offsets(a)].filter((o) => !offsets(b).has(o))))
      same(Ranges.intersect(a, b), new Set([...offsets(a)].filter((o) => offsets(b).has(o))))
    }))
  })
  it("adding one range is the union with it", () => {
    fc.assert(fc.property(set, range, (a, r) => same(Ranges.add(a, r), both(offsets(a), offsets([r])))))
  })
  it("contains, covers and overlaps ask about offsets", () => {
    fc.assert(fc.property(set, range, (a, r) => {
      const all = offsets(a)
      const asked = [...offsets([r])]
      assert.strictEqual(Ranges.contains(a, r.first), all.has(r.first))
      assert.strictEqual(Ranges.covers(a, r), asked.every((o) => all.has(o)))
      assert.strictEqual(Ranges.overlaps(a, r), asked.some((o) => all.has(o)))
    }))
  })
  it("equal sets are equal arrays, however they came to be", () => {
    fc.assert(fc.property(ranges, (r) => {
      const byOne = [...r].reverse().reduce<Ranges.RangeSet>((acc, one) => Ranges.add(acc, one), Ranges.EMPTY)
      assert.deepStrictEqual(byOne, Ranges.rangeSet(r))
    }))
  })
  it("a range that ends before it begins holds nothing", () => {
    assert.deepStrictEqual(Ranges.rangeSet([{ first: 5, last: 4 }]), [])
    assert.deepStrictEqual(Ranges.add(Ranges.EMPTY, { first: 5, last: 4 }), [])
  })
  it("is written for people as single offsets and spans", () => {
    assert.strictEqual(Ranges.format(Ranges.rangeSet([{ first: 7, last: 7 }, { first: 1, last: 3 }])), "1-3, 7")
  })
})
