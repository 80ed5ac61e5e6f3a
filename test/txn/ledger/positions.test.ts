import { assert, describe, it } from "@effect/vitest"
import { startPosition } from "../../../src/txn/ledger/positions.ts"
import { Patience } from "../../../src/txn/ledger/fencing.ts"

describe("where the new owner of a partition begins", () => {
  const done = [{ first: 10, last: 19 }, { first: 25, last: 29 }]

  it("is the end of what is done from the group's position on", () => {
    assert.strictEqual(startPosition(done, 12, 0), 20)
    assert.strictEqual(startPosition(done, 20, 0), 20)
    assert.strictEqual(startPosition(done, 25, 0), 30)
    assert.strictEqual(startPosition([], 7, 0), 7)
  })

  it("without a position is before all that was to be mirrored, wherever a new group would begin", () => {
    assert.strictEqual(startPosition(done, null, 0), 0)
    assert.strictEqual(startPosition(done, null, 1_000), 20)
    assert.strictEqual(startPosition([], null, 1_000), 1_000)
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
