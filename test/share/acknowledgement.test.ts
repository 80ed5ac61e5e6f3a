import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { ackBatches, ackTypeCode, type AckBatch, type WireAckType } from "../../src/share/acknowledgement.ts"

const type = fc.constantFrom<WireAckType>("gap", "accept", "release", "reject", "renew")
/** Disjoint ranges in any order, made of steps: how many offsets to skip, how many to take. */
const ranges = fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 1, max: 40 }), type), {
  maxLength: 20
})
  .map((steps) => {
    let next = 0
    return steps.map(([skip, take, t]) => {
      const first = next + skip
      next = first + take
      return { first, last: next - 1, type: t }
    })
  })
  .chain((list) => fc.shuffledSubarray(list, { minLength: list.length }))

const spelled = (batches: ReadonlyArray<AckBatch>): ReadonlyArray<readonly [number, number]> =>
  batches.flatMap((b) =>
    Array.from(
      { length: b.lastOffset - b.firstOffset + 1 },
      (_, i) => [b.firstOffset + i, b.acknowledgeTypes[b.acknowledgeTypes.length === 1 ? 0 : i] as number] as const
    )
  )
const bytes = (batches: ReadonlyArray<AckBatch>): number =>
  batches.reduce((sum, b) => sum + 18 + b.acknowledgeTypes.length, 0)

describe("acknowledgement batches", () => {
  it("say of each offset what was said of it, and of no other", () => {
    fc.assert(fc.property(ranges, (list) => {
      const expected = [...list].sort((a, b) => a.first - b.first)
        .flatMap((r) =>
          Array.from({ length: r.last - r.first + 1 }, (_, i) => [r.first + i, ackTypeCode(r.type)] as const)
        )
      assert.deepStrictEqual(spelled(ackBatches(list)), expected)
    }))
  })
  it("are what a broker takes: ascending, disjoint, one type or one for each offset", () => {
    fc.assert(fc.property(ranges, (list) => {
      let next = 0
      for (const b of ackBatches(list)) {
        assert.isAtLeast(b.firstOffset, next)
        assert.isAtLeast(b.lastOffset, b.firstOffset)
        assert.include([1, b.lastOffset - b.firstOffset + 1], b.acknowledgeTypes.length)
        next = b.lastOffset + 1
      }
    }))
  })
  it("never take more bytes than a batch for each range", () => {
    fc.assert(fc.property(ranges, (list) => {
      assert.isAtMost(bytes(ackBatches(list)), list.length * 19)
    }))
  })
  it("neighbours of one type become one range, however they come", () => {
    assert.deepStrictEqual(
      ackBatches([{ first: 10, last: 19, type: "accept" }, { first: 0, last: 9, type: "accept" }, {
        first: 21,
        last: 21,
        type: "accept"
      }]),
      [{ firstOffset: 0, lastOffset: 19, acknowledgeTypes: [1] }, {
        firstOffset: 21,
        lastOffset: 21,
        acknowledgeTypes: [1]
      }]
    )
  })
  it("alternating single offsets become one list of types", () => {
    assert.deepStrictEqual(
      ackBatches([{ first: 0, last: 0, type: "accept" }, { first: 1, last: 1, type: "gap" }, {
        first: 2,
        last: 2,
        type: "reject"
      }]),
      [{ firstOffset: 0, lastOffset: 2, acknowledgeTypes: [1, 0, 3] }]
    )
  })
})
