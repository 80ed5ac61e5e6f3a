import { assert, describe, it } from "@effect/vitest"
import { readBaseline } from "../../bench/micro/baseline.ts"
import { casesOf, GROUPS } from "../../bench/micro/cases.ts"
import { compare, compareAll } from "../../bench/micro/compare.ts"

const problems = (before: number, now: number): number =>
  compare("instructions", { a: before }, { a: now }).problems.length

describe("comparing micro benchmarks with their baseline", () => {
  it("fails from more than a fifth on, and not at a fifth", () => {
    assert.deepStrictEqual([problems(100_000, 120_000), problems(100_000, 120_101)], [0, 1])
  })
  it("says which case, both figures and by how much", () => {
    assert.deepStrictEqual(compare("heapBytes", { "read it": 1000 }, { "read it": 2500 }).problems, [
      "read it: 2,500 bytes of the heap an operation, 1,000 in the baseline (+150.0 %)"
    ])
  })
  it("says what has become better, and does not fail by it", () => {
    const { gains, problems: worse } = compare("bufferBytes", { a: 1_048_576 }, { a: 0 })
    assert.deepStrictEqual(worse, [])
    assert.deepStrictEqual(gains, ["a: 0 bytes outside of the heap an operation, 1,048,576 in the baseline (-100.0 %)"])
  })
  it("takes an object more for nothing, and a copy where nothing was allocated for a regression", () => {
    const bytes = (now: number) => compare("bufferBytes", { a: 0 }, { a: now }).problems.length
    assert.deepStrictEqual([bytes(64), bytes(16_384)], [0, 1])
  })
  it("fails where a case has no baseline, and where a baseline has no case", () => {
    assert.deepStrictEqual(compare("instructions", { old: 1 }, { new: 1 }).problems, [
      "new: has no instructions in the baseline",
      "old: is in the baseline, and there is no such case"
    ])
  })
  it("fails where a figure is none", () => {
    assert.lengthOf(compare("time", { a: 1 }, { a: NaN }).problems, 1)
  })
  it("fails once where the baseline has nothing of a kind", () => {
    assert.deepStrictEqual(compareAll({ heapBytes: { a: 1 } }, { heapBytes: { a: 1 }, time: { a: 1, b: 2 } }), {
      problems: ["the baseline has no time: make it with \"npm run bench:check -- --update\""],
      gains: []
    })
  })
})

describe("micro benchmarks", () => {
  it("each have a name of their own, and a baseline of what they allocate", async () => {
    const names: Array<string> = []
    for (const group of GROUPS) names.push(...(await casesOf(group)).map(({ name }) => name))
    const { figures } = readBaseline()
    for (const unit of ["heapBytes", "bufferBytes"] as const) {
      assert.deepStrictEqual(Object.keys(figures[unit] ?? {}).sort(), [...new Set(names)].sort(), unit)
    }
    assert.strictEqual(new Set(names).size, names.length)
  })
})
