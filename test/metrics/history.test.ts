/** What the plots are drawn from: 15 minutes, rates from sums, and holes where nothing is known. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { History, keepHistory, MAX_POINTS, type Reading } from "../../src/metrics/history.ts"

const reading = (flow: string, records: number, lag: number | null = 0): Reading => ({
  flow,
  records,
  bytes: records * 10,
  lag
})

describe("the history of a service", () => {
  it("gives rates between two readings, and the lag as it was", () => {
    const history = new History()
    history.add(0, [reading("a", 100, 7)])
    assert.deepStrictEqual(history.document().times, [])
    history.add(5_000, [reading("a", 150, 9)])
    history.add(15_000, [reading("a", 150, null)])
    assert.deepStrictEqual(history.document(), {
      stepSeconds: 5,
      times: [5_000, 15_000],
      flows: [{ name: "a", recordsPerSecond: [10, 0], bytesPerSecond: [100, 0], lag: [9, null] }]
    })
  })

  it("has a hole where a flow had no reading, and a flow that comes later begins with holes", () => {
    const history = new History()
    history.add(0, [reading("a", 0)])
    history.add(5_000, [reading("a", 5), reading("b", 900)])
    history.add(10_000, [reading("b", 905)])
    const { flows } = history.document()
    assert.deepStrictEqual(flows.map(({ name, recordsPerSecond }) => [name, recordsPerSecond]), [
      ["a", [1, null]],
      ["b", [null, 1]]
    ])
  })

  it("takes a clock that was set back and sums that begin anew for no negative rate", () => {
    const history = new History()
    history.add(10_000, [reading("a", 100)])
    history.add(5_000, [reading("a", 200)])
    history.add(10_000, [reading("a", 50)])
    const { flows, times } = history.document()
    assert.deepStrictEqual([times, flows[0]?.recordsPerSecond], [[10_000], [0]])
  })

  it.effect("is 15 minutes long and no longer, a point every 5 seconds", () =>
    Effect.gen(function*() {
      const history = new History()
      let records = 0
      const keeping = yield* Effect.forkChild(keepHistory(history, () => [reading("a", records += 50)]))
      yield* TestClock.adjust("20 minutes")
      const { flows, times } = history.document()
      assert.lengthOf(times, MAX_POINTS)
      assert.strictEqual((times[MAX_POINTS - 1] ?? 0) - (times[0] ?? 0), 895_000)
      assert.strictEqual(times[MAX_POINTS - 1], 1_200_000)
      assert.deepStrictEqual(new Set(flows[0]?.recordsPerSecond), new Set([10]))
      yield* Fiber.interrupt(keeping)
    }))
})
