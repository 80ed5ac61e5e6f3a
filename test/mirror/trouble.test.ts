import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { makeFlowMetrics } from "../../src/metrics/flowMetrics.ts"
import { makeTrouble } from "../../src/mirror/report.ts"
import { FlowState } from "../../src/mirror/state.ts"
import { visibleState } from "../../src/mirror/statusDocument.ts"

const bench = Effect.gen(function*() {
  const state = new FlowState({
    name: "f",
    source: "east",
    target: "west",
    mode: "share",
    lanes: 2,
    wanted: "exactly-once",
    nowMs: 0
  })
  state.become("running", null, 0)
  const said: Array<string> = []
  const metrics = yield* makeFlowMetrics("f", "share")
  const trouble = makeTrouble(state, metrics, (topic) => `east.${topic}`, (_, words) => void said.push(words))
  return { state, said, trouble }
}).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))

describe("a partition that the source does not give", () => {
  it.effect("is said once, whichever lanes meet it, and seen in the flow's state until it is over", () =>
    Effect.gen(function*() {
      const { said, state, trouble } = yield* bench
      trouble("orders", 0, "no right")
      trouble("orders", 0, "no right")
      assert.deepStrictEqual(said, ["orders-0 cannot be read from the source: no right"])
      assert.deepStrictEqual(visibleState(state), {
        state: "blocked",
        reason: "orders-0: cannot be read from the source: no right"
      })
      trouble("orders", 0, null)
      trouble("orders", 0, null)
      assert.strictEqual(visibleState(state).state, "running")
      assert.deepStrictEqual(said.slice(1), ["orders-0 is read again"])
    }))

  it.effect("its end does not hide what the target has against the partition", () =>
    Effect.gen(function*() {
      const { state, trouble } = yield* bench
      trouble("orders", 0, "no right")
      Object.assign(state.partition("orders", 0, "east.orders"), { state: "blocked", reason: "too large" })
      trouble("orders", 0, null)
      assert.match(visibleState(state).reason ?? "", /too large/)
    }))

  it.effect("a new run of the flow finds out anew what stands still", () =>
    Effect.gen(function*() {
      const { state, trouble } = yield* bench
      trouble("orders", 0, "no right")
      state.stall("target", "takes nothing")
      state.begin()
      assert.deepStrictEqual(visibleState(state), { state: "running", reason: null })
    }))
})
