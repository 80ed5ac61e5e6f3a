/** Which topics come back to a flow by the other flows of its file. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ResolvedConfig, ResolvedFlow } from "../../src/config/types.ts"
import { makeReturning } from "../../src/mirror/returning.ts"
import { load, type Plain } from "../kit/configFile.ts"

const clusters = Object.fromEntries(["east", "west", "north"].map((name, n) => [name, {
  "bootstrap.servers": `127.0.0.1:${19_092 + n}`
}]))
const flow = (source: string, target: string, more: Plain = {}): Plain => ({
  source,
  target,
  "group.id": `${source}-${target}`,
  ...more
})

/** Of each flow of a file: whether the topic comes back to it. */
const come = (topics: ReadonlyArray<string>, ...flows: ReadonlyArray<Plain>) =>
  Effect.map(load({ clusters, flows }), ({ config, lines }) => {
    assert.deepStrictEqual(lines, [])
    const { flows: resolved } = config as ResolvedConfig
    return topics.map((topic, n) => makeReturning(config as ResolvedConfig, resolved[n] as ResolvedFlow)(topic))
  })

describe("a topic comes back", () => {
  it.effect("where two mappings lead to each other, and not where the way back has another name", () =>
    Effect.gen(function*() {
      const there = flow("east", "west", { topics: ["a"], "topic.mapping": { a: "b" } })
      const back = (to: string) => flow("west", "east", { topics: ["b"], "topic.mapping": { b: to } })
      assert.deepStrictEqual(yield* come(["a", "b"], there, back("a")), [true, true])
      assert.deepStrictEqual(yield* come(["a", "b"], there, back("c")), [false, false])
      assert.deepStrictEqual(yield* come(["a", "b"], there, { ...back("a"), enabled: false }), [true, true])
    }))

  it.effect("round a ring of three, and through mappings that pass it on from one name to the next", () =>
    Effect.gen(function*() {
      const ring = [["east", "west", "a", "b"], ["west", "north", "b", "c"], ["north", "east", "c", "a"]] as const
      const flows = ring.map(([from, to, one, other]) =>
        flow(from, to, { topics: [one], "topic.mapping": { [one]: other } })
      )
      assert.deepStrictEqual(yield* come(["a", "b", "c"], ...flows), [true, true, true])
      assert.deepStrictEqual(yield* come(["a", "b"], ...flows.slice(0, 2)), [false, false])
    }))

  it.effect("where one way keeps names and the other adds to them, which would never end", () =>
    Effect.gen(function*() {
      const kept = flow("west", "east", { "replication.policy": "identity" })
      assert.deepStrictEqual(yield* come(["t"], flow("east", "west"), kept), [true])
    }))

  it.effect("by no prefixes: their names tell where they are from", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* come(["t", "t"], flow("east", "west"), flow("west", "east")), [false, false])
    }))
})
