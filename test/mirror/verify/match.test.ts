import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { type Candidate, matchRecords, type Parts } from "../../../src/mirror/verify/match.ts"

const one = (offset: number, parts: Partial<Parts> = {}, optional = false): Candidate => {
  const all = { key: `k${offset}`, value: `v${offset}`, headers: "", timestamp: BigInt(offset), ...parts }
  return { offset, parts: all, optional, hash: `${all.key}/${all.value}/${all.headers}/${all.timestamp}` }
}
const like = (of: Candidate, offset: number, parts: Partial<Parts> = {}): Candidate => {
  const { optional: _, ...changed } = one(0, { ...of.parts, ...parts })
  return { ...changed, offset, optional: false }
}
const offsets = (list: ReadonlyArray<Candidate>): ReadonlyArray<number> => list.map(({ offset }) => offset)

describe("records in question", () => {
  it("are lost, doubled, foreign or altered", () => {
    const source = [one(1), one(2), one(3), one(4)]
    const [a, b, c] = source as [Candidate, Candidate, Candidate, Candidate]
    const found = matchRecords(source, [like(a, 10), like(a, 12), like(b, 11, { value: "x" }), like(c, 13), one(99)])
    assert.deepStrictEqual(offsets(found.lost), [4])
    assert.deepStrictEqual(offsets(found.doubled), [12])
    assert.deepStrictEqual(offsets(found.foreign), [99])
    assert.deepStrictEqual(found.altered.map(({ source: s, target: t, what }) => [s.offset, t.offset, what]), [
      [2, 11, ["value"]]
    ])
  })

  it("with nothing or only a missing key in common are not one altered record", () => {
    const found = matchRecords([one(1, { key: null })], [one(2, { key: null })])
    assert.deepStrictEqual([found.lost.length, found.foreign.length, found.altered.length], [1, 1, 0])
  })

  it("that are optional are not lost, and not foreign where they are there", () => {
    const late = one(5, {}, true)
    assert.deepStrictEqual(matchRecords([late], []).lost, [])
    assert.deepStrictEqual(matchRecords([late], [like(late, 7)]).foreign, [])
    assert.deepStrictEqual(offsets(matchRecords([late], [like(late, 7), like(late, 8)]).doubled), [8])
  })

  it("of the same content: as many are lost or doubled as the sides differ by, the later ones", () => {
    const copies = (count: number, from: number) => Array.from({ length: count }, (_, i) => like(one(1), from + i))
    assert.deepStrictEqual(offsets(matchRecords(copies(5, 0), copies(3, 100)).lost), [3, 4])
    assert.deepStrictEqual(offsets(matchRecords(copies(2, 0), copies(5, 100)).doubled), [102, 103, 104])
  })

  it("are all accounted for, whatever the sides hold", () => {
    const side = fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3 })), { maxLength: 20 })
    const build = (list: ReadonlyArray<readonly [number, number]>) =>
      list.map(([key, value], offset) =>
        one(offset, { key: key === 0 ? null : `k${key}`, value: `v${value}`, timestamp: 0n })
      )
    fc.assert(fc.property(side, side, (ours, theirs) => {
      const [source, target] = [build(ours), build(theirs)]
      const { altered, doubled, foreign, lost } = matchRecords(source, target)
      const matched = source.length - lost.length - altered.length
      assert.strictEqual(target.length - doubled.length - foreign.length - altered.length, matched)
      assert.isAtLeast(matched, 0)
      for (const { source: s, target: t, what } of altered) {
        assert.isAbove(what.length, 0)
        assert.notStrictEqual(s.hash, t.hash)
      }
    }))
  })
})
