import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { judgeEpoch, judgeOutOfRange } from "../../src/group/gap.ts"

const at = { topic: "orders", partition: 3 }

describe("a position that the source refuses", () => {
  it("below the log's start: the records between are stated, and reading would go on at the start", () => {
    const gap = judgeOutOfRange(at, 10, { start: 60, end: 100 })
    assert.deepInclude(gap, { kind: "expired", from: 10, to: 60, count: 50, topic: "orders", partition: 3 })
    assert.match(
      gap?.message ?? "",
      /offsets 10 to 59 \(at most 50 records\) are gone from the source.*on\.source\.gap/s
    )
  })
  it("above the log's end: another sentence, and never taken for an expired range", () => {
    const gap = judgeOutOfRange(at, 120, { start: 60, end: 100 })
    assert.deepInclude(gap, { kind: "beyond", from: 120, to: 60 })
    assert.match(gap?.message ?? "", /above the end of the source's log/)
  })
  it("inside the log, at its start and at its end: no gap", () => {
    fc.assert(fc.property(fc.nat(1_000), fc.nat(1_000), fc.nat(1_000), (start, length, into) => {
      assert.isNull(judgeOutOfRange(at, start + Math.min(into, length), { start, end: start + length }))
    }))
  })
})

describe("a position after a change of leaders", () => {
  it("that the log was cut below is stated with the point of the cut", () => {
    const gap = judgeEpoch(at, 50, { leaderEpoch: 3, endOffset: 40 })
    assert.deepInclude(gap, { kind: "truncated", from: 50, to: 40, count: 10 })
  })
  it("that the old epoch reaches, or of an epoch nobody knows any more, stands", () => {
    assert.isNull(judgeEpoch(at, 50, { leaderEpoch: 3, endOffset: 50 }))
    assert.isNull(judgeEpoch(at, 50, { leaderEpoch: 3, endOffset: 70 }))
    assert.isNull(judgeEpoch(at, 50, { leaderEpoch: -1, endOffset: -1 }))
  })
})
