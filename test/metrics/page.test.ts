/** The page's plain parts: scales, and numbers in words. What a browser shows is tested by npm run test:page. */
import { assert, describe, it } from "@effect/vitest"
import { areaPath, linePath, runs, summary, ticks } from "../../src/metrics/page/scale.js"
import { brief, bytes, count, latency, many, rate, span } from "../../src/metrics/page/words.js"

describe("a plot's scale", () => {
  it("has 3 to 6 round lines from 0 to the highest value or just above, whole numbers apart", () => {
    for (const max of [0.4, 1, 3, 4.9, 17, 37_112, 99_999, 100_000, 1e9]) {
      const found = ticks(max)
      const [low = Number.NaN, second = Number.NaN] = found
      assert.strictEqual(low, 0)
      assert.isAtLeast(found.at(-1) ?? 0, max)
      assert.isAtMost((found.at(-1) ?? 0) - second, max)
      assert.isAtMost(found.length, 6, `${max}`)
      assert.isAtLeast(second, 1)
    }
    assert.deepStrictEqual(ticks(37_112), [0, 10_000, 20_000, 30_000, 40_000])
    assert.deepStrictEqual(ticks(0), [0, 1])
  })

  it("breaks the curve where nothing is known, and closes each area on the floor", () => {
    const [a, b, c] = [{ x: 0, y: 5 }, { x: 10, y: 6 }, { x: 30, y: 7 }]
    assert.deepStrictEqual(runs([null, a, b, null, null, c]), [[a, b], [c]])
    assert.deepStrictEqual(runs([null, null]), [])
    assert.strictEqual(linePath([a, b]), "M0.0 5.0L10.0 6.0")
    assert.strictEqual(areaPath([a, b], 20), "M0.0 5.0L10.0 6.0L10.0 20.0L0.0 20.0Z")
    assert.strictEqual(areaPath([], 20), "")
  })

  it("is told in words, also when nothing is known or the newest is not", () => {
    assert.strictEqual(summary([1, 3, null, 8], count), "now 8, lowest 1, highest 8, mean 4")
    assert.strictEqual(summary([1, null], count), "now unknown, lowest 1, highest 1, mean 1")
    assert.strictEqual(summary([null], count), "nothing known yet")
  })
})

describe("numbers for people", () => {
  it("keep a slow rate apart from none", () => {
    assert.deepStrictEqual([rate(0), rate(0.25), rate(9.4), rate(12.4), rate(37_112.3)], [
      "0",
      "0.25",
      "9.4",
      "12",
      "37,112"
    ])
  })
  it("say what is unknown", () => {
    assert.deepStrictEqual([count(null), brief(null), bytes(null), latency(null)], Array(4).fill("unknown"))
  })
  it("have the unit that fits", () => {
    assert.deepStrictEqual([bytes(0), bytes(999), bytes(999_600), bytes(1_500), bytes(4.2e13)], [
      "0 B",
      "999 B",
      "1.0 MB",
      "1.5 kB",
      "42 TB"
    ])
    assert.deepStrictEqual([latency(0), latency(0.02), latency(1.31), latency(902)], [
      "1 ms",
      "20 ms",
      "1.3 s",
      "15 min"
    ])
    assert.deepStrictEqual([span(-1), span(59), span(60), span(4_000), span(200_000)], [
      "0 s",
      "59 s",
      "1 min",
      "1 h 6 min",
      "2 d 7 h"
    ])
    assert.deepStrictEqual([many(1, "flow"), many(0, "flow"), many(1_200, "partition")], [
      "1 flow",
      "0 flows",
      "1,200 partitions"
    ])
  })
})
