/** Middles and spreads of the benchmark. */
import { assert, describe, it } from "vitest"
import { digits, histogram, median, percentile, slope, spread } from "../../bench/stats.ts"

describe("statistics of the benchmark", () => {
  it("the median does not depend on the order, and of an even number lies between the two in the middle", () => {
    assert.strictEqual(median([9, 1, 5]), 5)
    assert.strictEqual(median([10, 9, 1, 2]), 5.5)
    assert.strictEqual(median([10, 9, 100]), 10)
    assert.isNaN(median([]))
  })

  it("a figure that was never measured has no spread, not one of zeros", () => {
    assert.isNull(spread([]))
    assert.deepStrictEqual(spread([3, 1, 2]), { median: 2, min: 1, max: 3, count: 3 })
  })

  it("the 99th percentile of a hundred is the 99th, of few the largest", () => {
    const hundred = Array.from({ length: 100 }, (_, n) => n + 1)
    assert.strictEqual(percentile(hundred, 0.99), 99)
    assert.strictEqual(percentile(hundred, 0.5), 50)
    assert.strictEqual(percentile(hundred, 1), 100)
    assert.strictEqual(percentile([1, 2, 700], 0.99), 700)
    assert.isNaN(percentile([], 0.5))
  })

  it("a histogram counts everything once, bounds below and what lies above the last one in a bin of its own", () => {
    const bins = histogram([0, 1, 1.01, 2, 3], [1, 2])
    assert.deepStrictEqual(bins, [{ upTo: 1, count: 2 }, { upTo: 2, count: 2 }, { upTo: Infinity, count: 1 }])
  })

  it("growth is the slope of the best line, not the difference of the ends", () => {
    assert.closeTo(slope([[0, 1], [1, 3], [2, 5]]), 2, 1e-9)
    assert.closeTo(slope([[0, 100], [1, 130], [2, 100], [3, 130], [4, 100]]), 0, 1e-9)
    assert.strictEqual(slope([[5, 5]]), 0)
  })

  it("digits are those that count", () => {
    assert.strictEqual(digits(0.012_345), 0.0123)
    assert.strictEqual(digits(12_345), 12_300)
  })
})
