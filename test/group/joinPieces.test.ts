import { assert, describe, it } from "@effect/vitest"
import { joinPieces } from "../../src/group/joinPieces.ts"
import type { Fetched } from "../../src/group/shared.ts"
import { GapError } from "../../src/group/errors.ts"
import { splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { rec, storedBatch } from "../mirror/batches.ts"

const piece = (generation: number, first: number, next: number, more: Partial<Fetched> = {}): Fetched => ({
  topic: "orders",
  topicId: "AAAAAAAAAAAAAAAAAAAAAQ",
  partition: generation,
  generation,
  first,
  next,
  leaderEpoch: 1,
  batches: splitBatches(storedBatch([rec(first)])),
  bytes: 10,
  abortedRecords: 1,
  highWatermark: next,
  lastStableOffset: next,
  logStartOffset: 0,
  gap: null,
  ...more
})

const shown = (pieces: ReadonlyArray<Fetched>) =>
  pieces.map((p) => [p.generation, p.first, p.next, p.batches.map(({ baseOffset }) => baseOffset)])

describe("pieces of several answers", () => {
  it("of one partition become one where they follow each other, with all that they hold; those of others stay", () => {
    const joined = joinPieces([piece(1, 0, 2), piece(2, 7, 8), piece(1, 2, 5, { leaderEpoch: 4 }), piece(1, 5, 6)])
    assert.deepStrictEqual(shown(joined), [[1, 0, 6, [0, 2, 5]], [2, 7, 8, [7]]])
    const [one] = joined
    assert.deepStrictEqual([one?.bytes, one?.abortedRecords, one?.highWatermark], [30, 3, 6])
  })

  it("stay apart over a gap, a hole, and another generation of the partition", () => {
    const gap = new GapError({ kind: "expired", topic: "orders", partition: 1, from: 2, to: 5, count: 3 })
    const pieces = [
      piece(1, 0, 2),
      piece(1, 5, 5, { gap, batches: [] }),
      piece(1, 5, 6),
      piece(1, 8, 9),
      piece(3, 9, 10)
    ]
    assert.deepStrictEqual(joinPieces(pieces), pieces)
  })
})
