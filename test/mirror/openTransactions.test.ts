/** Transactions that stay open on the source, told from looks at the ends of its partitions. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Ends } from "../../src/mirror/control/ends.ts"
import { tellOpenTransactions } from "../../src/mirror/openTransactions.ts"
import { FlowState } from "../../src/mirror/state.ts"

const at = (stable: number, high: number): Ends => ({
  stable: new Map([["t-0", stable], ["t-1", 5]]),
  high: new Map([["t-0", high], ["t-1", 5]]),
  epochs: new Map()
})

const told = () => {
  const state = new FlowState({ name: "f", source: "e", target: "w", mode: "share", lanes: 1, wanted: "", nowMs: 0 })
  const [said, counts]: [Array<string>, Array<number>] = [[], []]
  const look = tellOpenTransactions(state, (_level, sentence) => void said.push(sentence), (_task, n) => counts.push(n))
  return {
    state,
    said,
    counts,
    look: (ends: Ends, after: string) => Effect.andThen(TestClock.adjust(after as never), look(ends))
  }
}

describe("a transaction of the source that stays open", () => {
  it.effect("is said once, after a minute, and is over when the last stable offset moves", () =>
    Effect.gen(function*() {
      const { counts, look, said, state } = told()
      yield* look(at(10, 12), "0 seconds")
      yield* look(at(10, 40), "59 seconds")
      assert.deepStrictEqual(said, [])
      yield* look(at(10, 50), "1 second")
      yield* look(at(10, 60), "5 seconds")
      assert.lengthOf(said, 1)
      assert.match(said[0] ?? "", /^t-0: .* begins at offset 10 .*; 40 offsets wait/)
      assert.strictEqual(state.tasks.get("transactions")?.state, "problem")
      yield* look(at(60, 60), "5 seconds")
      assert.strictEqual(state.tasks.get("transactions")?.state, "ok")
      assert.deepStrictEqual(counts, [1, 1, 0])
    }))

  it.effect("is none where transactions follow each other", () =>
    Effect.gen(function*() {
      const { look, said, state } = told()
      for (let n = 0; n < 20; n++) yield* look(at(10 * n, 10 * n + 5), "30 seconds")
      assert.deepStrictEqual(said, [])
      assert.isFalse(state.tasks.has("transactions"))
    }))
})
