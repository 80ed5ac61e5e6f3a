/** Consumer mode: whatever holds a record up, those behind it in its partition are not on the target before it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Transform } from "../../src/mirror/transforms/transform.ts"
import type { SourceRange } from "../../src/txn/binding.ts"
import { delivery, rec, storedBatch } from "./batches.ts"
import { makeWorld, type World } from "./fakes.ts"
import { runWorld } from "./runWorld.ts"

const run = (world: World) => Effect.map(runWorld(world, 10), () => world.target.map(({ value }) => value?.toString()))

const firstTwo = () => delivery([[0, 1]], [storedBatch([rec(0), rec(1)])])
const nextTwo = () => delivery([[2, 3]], [storedBatch([rec(2), rec(3)])])

describe("in consumer mode", () => {
  it.effect("what one poll gave of a partition waits for a record that a transform wants to see again", () =>
    Effect.gen(function*() {
      let tries = 0
      const transform: Transform = {
        name: "shy",
        apply: (record) => {
          if (record.offset === 1 && tries++ < 2) throw Object.assign(new Error("not yet"), { retriable: true })
          return record
        }
      }
      const world = makeWorld({ mode: "consumer", deliveries: [[firstTwo(), nextTwo()]], transforms: [transform] })
      assert.deepStrictEqual(yield* run(world), ["v0", "v1", "v2", "v3"])
    }))

  it.effect("what is before a record in somebody else's open transaction is written before it", () =>
    Effect.gen(function*() {
      let looks = 0
      const from2 = (range: SourceRange): SourceRange => ({ ...range, first: Math.max(2, range.first) })
      const world = makeWorld({
        mode: "consumer",
        deliveries: [[delivery([[0, 3]], [storedBatch([rec(0), rec(1)]), storedBatch([rec(2), rec(3)])])]],
        triage: (ranges) =>
          Effect.sync(() => {
            if (looks++ > 5) return { done: [], wait: [], ours: ranges }
            return {
              done: [],
              wait: ranges.filter(({ last }) => last >= 2).map(from2),
              ours: ranges.filter(({ first }) => first < 2).map((range) => ({
                ...range,
                last: Math.min(1, range.last)
              }))
            }
          })
      })
      assert.deepStrictEqual(yield* run(world), ["v0", "v1", "v2", "v3"])
    }))
})
