import { assert, describe, it } from "@effect/vitest"
import { startPosition } from "../../../src/txn/ledger/positions.ts"
import { Patience } from "../../../src/txn/ledger/fencing.ts"

describe("where the new owner of a partition begins", () => {
  const done = [{ first: 10, last: 19 }, { first: 25, last: 29 }]
  const place = (committed: number | null, more: { readonly logStart?: number; readonly away?: boolean } = {}) =>
    startPosition({ done, committed, logStart: 0, away: false, ...more })

  it("is the first offset that is not done, wherever the group's position is", () => {
    assert.deepStrictEqual([12, 20, 25, 1_000].map((committed) => place(committed)), [20, 20, 20, 20])
    assert.strictEqual(place(null), 20)
  })

  it("is the group's word where the ledger knows nothing, and where the group was moved back to before it", () => {
    assert.isNull(startPosition({ done: [], committed: 7, logStart: 0, away: false }))
    assert.strictEqual(place(4), 4)
  })

  it("is behind what the source has dropped, as far as the group has gone over it", () => {
    assert.strictEqual(place(1_000, { logStart: 22 }), 22)
    assert.strictEqual(place(1_000, { logStart: 26 }), 30)
    assert.strictEqual(place(12, { logStart: 26 }), 20)
  })

  it("follows the group while records are dealt with without the ledger too", () => {
    assert.strictEqual(place(1_000, { away: true }), 1_000)
    assert.strictEqual(place(26, { away: true }), 30)
  })
})

describe("patience", () => {
  const entry = (offset: number, transactionalId: string) => ({
    offset,
    producerId: 1,
    epoch: 0,
    key: "k",
    done: {
      kind: "done" as const,
      slot: { clusterId: "c", topicId: "t", partition: 0 },
      ranges: [],
      transactionalId,
      transactionVersion: 2 as const,
      targets: []
    }
  })

  it("begins with the first wait, is over after its time, and doubles for the id that was fenced", () => {
    const patience = new Patience(100)
    assert.deepStrictEqual(patience.judge(0, [entry(5, "a")], 1_000), { over: [], leftMs: 100 })
    assert.deepStrictEqual(patience.judge(0, [entry(5, "a")], 1_060), { over: [], leftMs: 40 })
    assert.deepStrictEqual(patience.judge(0, [entry(5, "a")], 1_100).over, ["a"])
    patience.fenced("a")
    assert.deepStrictEqual([patience.of("a"), patience.of("b")], [200, 100])
    assert.deepStrictEqual(patience.judge(0, [entry(9, "a"), entry(10, "b")], 2_000), { over: [], leftMs: 100 })
  })

  it("forgets the clocks of what is decided, and of nothing else", () => {
    const patience = new Patience(100)
    patience.judge(0, [entry(5, "a"), entry(6, "b")], 0)
    patience.judge(1, [entry(5, "c")], 0)
    patience.forget(0, [entry(6, "b")])
    assert.deepStrictEqual(patience.judge(0, [entry(5, "a")], 100).over, [])
    assert.deepStrictEqual(patience.judge(0, [entry(6, "b")], 100).over, ["b"])
    assert.deepStrictEqual(patience.judge(1, [entry(5, "c")], 100).over, ["c"])
  })
})
