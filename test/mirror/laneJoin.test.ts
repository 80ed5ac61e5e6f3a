import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { delivery, rec, storedBatch } from "./batches.ts"
import { makeWorld } from "./fakes.ts"
import { runWorld } from "./runWorld.ts"

describe("what the target refuses for its size", () => {
  it.effect("small batches joined to one that is too large for the topic: later ones are not made so large again", () =>
    Effect.gen(function*() {
      const value = (offset: number) => `v${offset}`.padEnd(300)
      const six = (from: number) =>
        delivery([[from, from + 5]], Array.from({ length: 6 }, (_, n) => storedBatch([rec(from + n, value(from + n))])))
      const sizes: Array<number> = []
      const refuses = (values: ReadonlyArray<string>) => {
        sizes.push(values.length)
        return values.length > 3 ? "records" : null
      }
      const world = makeWorld({ deliveries: [[six(0)], [six(10)]], refuses })
      yield* runWorld(world)
      assert.deepStrictEqual(
        world.target.map((r) => r.value?.toString()),
        [0, 10].flatMap((from) => Array.from({ length: 6 }, (_, n) => value(from + n)))
      )
      // Refused, again by itself, in halves; from then on at most half of what was refused.
      assert.deepStrictEqual(sizes, [6, 6, 3, 3, 2, 2, 2])
    }))
})
