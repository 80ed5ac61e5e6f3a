import { assert, describe, it } from "@effect/vitest"
import { gapSentence, GapWatch, type Look } from "../../src/mirror/gaps.ts"

const look = (over: Partial<Look> = {}): Look => ({
  topic: "orders",
  partition: 0,
  groupStart: 100,
  left: 400,
  logStart: 0,
  highWatermark: 500,
  acknowledged: [],
  ...over
})

describe("what the source drops before a share group has done with it", () => {
  it("nothing is said while the log begins at or below the group's position, nor of a group that has not begun", () => {
    const watch = new GapWatch()
    assert.isNull(watch.look(look()))
    assert.isNull(watch.look(look({ logStart: 100 })))
    assert.isNull(watch.look(look({ groupStart: null, left: null, logStart: 300 })))
  })

  it("at the start, what is left tells the records: 400 left of which 200 are still there", () => {
    const gap = new GapWatch().look(look({ logStart: 300 }))
    assert.deepStrictEqual(gap, { topic: "orders", partition: 0, from: 100, to: 300, atLeast: 200, atMost: 200 })
  })

  it("a start offset that only lags behind (all is done) is no gap", () => {
    assert.isNull(new GapWatch().look(look({ left: 0, logStart: 300 })))
  })

  it("where done records above hide some below, the count has two bounds", () => {
    const gap = new GapWatch().look(look({ left: 250, logStart: 300 }))
    assert.deepInclude(gap, { atLeast: 50, atMost: 200 })
  })

  it("brokers that do not tell what is left: perhaps, never certainly", () => {
    assert.deepInclude(new GapWatch().look(look({ left: null, logStart: 300 })), { atLeast: 0, atMost: 200 })
  })

  it("while it runs, what this process has not acknowledged is the gap, also when the group has moved on by itself", () => {
    const watch = new GapWatch()
    watch.stand("orders", 0, 100)
    const gap = watch.look(look({
      groupStart: 300,
      left: 200,
      logStart: 300,
      acknowledged: [{ first: 100, last: 149 }, { first: 200, last: 399 }]
    }))
    assert.deepInclude(gap, { from: 100, to: 300, atLeast: 50, atMost: 50 })
  })

  it("a log that retention eats behind a group that keeps up is none", () => {
    const watch = new GapWatch()
    watch.stand("orders", 0, 100)
    assert.isNull(watch.look(look({ groupStart: 450, logStart: 300, acknowledged: [{ first: 90, last: 449 }] })))
  })

  it("is told once, and again when it grows", () => {
    const watch = new GapWatch()
    assert.isNotNull(watch.look(look({ logStart: 300 })))
    watch.stand("orders", 0, 300)
    assert.isNull(watch.look(look({ logStart: 300 })))
    assert.deepInclude(watch.look(look({ groupStart: 350, logStart: 350 })), { from: 300, to: 350 })
  })

  it("reads as one sentence with topic, partition, offsets and count", () => {
    const gap = { topic: "orders", partition: 3, from: 10, to: 20, atLeast: 10, atMost: 10 }
    assert.strictEqual(
      gapSentence(gap),
      "orders-3: the source no longer has offsets 10 to 19, with 10 records that had not been mirrored"
    )
    assert.match(gapSentence({ ...gap, atLeast: 0 }), /at least 0 and at most 10 records/)
  })
})
