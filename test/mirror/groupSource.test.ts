import { assert, describe, it } from "@effect/vitest"
import type { Fetched } from "../../src/group/shared.ts"
import { Flights } from "../../src/mirror/sources/groupSource.ts"

const piece = (first: number, next: number): Fetched => ({
  topic: "t",
  topicId: "",
  partition: 0,
  generation: 1,
  first,
  next,
  leaderEpoch: 0,
  batches: [],
  bytes: 0,
  abortedRecords: 0,
  highWatermark: 100,
  lastStableOffset: 100,
  logStartOffset: 0,
  gap: null
})

describe("the pieces of a partition that are in flight", () => {
  it("a gap that was gone over is committed at once when nothing is before it", () => {
    const flights = new Flights()
    assert.deepStrictEqual(flights.settle(flights.add(piece(60, 60)), []), { offset: 60, leaderEpoch: 0 })
  })

  it("and never before what was read before it is settled", () => {
    const flights = new Flights()
    const before = flights.add(piece(0, 10))
    assert.isNull(flights.settle(flights.add(piece(60, 60)), []))
    assert.deepStrictEqual(flights.settle(before, [{ first: 0, last: 4, type: "accept" }]), {
      offset: 5,
      leaderEpoch: 0
    })
    assert.deepStrictEqual(flights.settle(before, [{ first: 5, last: 9, type: "accept" }]), {
      offset: 60,
      leaderEpoch: 0
    })
  })
})
