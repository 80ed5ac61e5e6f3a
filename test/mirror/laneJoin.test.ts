import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { MirrorRecord } from "../../src/mirror/transforms/transform.ts"
import { delivery, rec, storedBatch } from "./batches.ts"
import { makeWorld } from "./fakes.ts"
import { runWorld } from "./runWorld.ts"

const value = (offset: number) => `v${offset}`.padEnd(300)
/** Six batches of one record. */
const six = (from: number) =>
  delivery([[from, from + 5]], Array.from({ length: 6 }, (_, n) => storedBatch([rec(from + n, value(from + n))])))

/** A target that takes no batch of more than three records; `sizes`: of all that it was given. */
const refusing = (sizes: Array<number>) => (values: ReadonlyArray<string>) => {
  sizes.push(values.length)
  return values.length > 3 ? "records" : null
}

describe("what the target refuses for its size", () => {
  it.effect("small batches joined to one that is too large for the topic: later ones are not made so large again", () =>
    Effect.gen(function*() {
      const sizes: Array<number> = []
      const world = makeWorld({ deliveries: [[six(0)], [six(10)]], refuses: refusing(sizes) })
      yield* runWorld(world)
      assert.deepStrictEqual(
        world.target.map((r) => r.value?.toString()),
        [0, 10].flatMap((from) => Array.from({ length: 6 }, (_, n) => value(from + n)))
      )
      // Refused, again by itself, in halves; from then on at most half of what was refused.
      assert.deepStrictEqual(sizes, [6, 6, 3, 3, 2, 2, 2])
    }))

  it.effect("the same where a transform has named the topic", () =>
    Effect.gen(function*() {
      const sizes: Array<number> = []
      const transforms = [{ name: "route", apply: (record: MirrorRecord) => ({ ...record, topic: "elsewhere" }) }]
      const world = makeWorld({ deliveries: [[six(0)], [six(10)]], refuses: refusing(sizes), transforms })
      yield* runWorld(world)
      assert.deepStrictEqual(sizes, [6, 6, 3, 3, 2, 2, 2])
    }))
})
