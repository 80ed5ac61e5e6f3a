import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { editDistance, nearest } from "../../src/config/nearest.ts"

/** The definition, by recursion: what the table must agree with. */
const byDefinition = (a: string, b: string): number => {
  if (a === "" || b === "") return a.length + b.length
  const [x, y] = [a.slice(1), b.slice(1)]
  const best = Math.min(byDefinition(x, b) + 1, byDefinition(a, y) + 1, byDefinition(x, y) + (a[0] === b[0] ? 0 : 1))
  return a.length > 1 && b.length > 1 && a[0] === b[1] && a[1] === b[0]
    ? Math.min(best, byDefinition(a.slice(2), b.slice(2)) + 1)
    : best
}

describe("the nearest name", () => {
  it("is at the distance that the definition gives", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 5 })
    fc.assert(fc.property(word, word, (a, b) => assert.strictEqual(editDistance(a, b), byDefinition(a, b))))
  })

  it("takes a swap of neighbours for one mistake, and no notice of case, _ and -", () => {
    assert.strictEqual(editDistance("topics", "tpoics"), 1)
    assert.strictEqual(nearest("Tasks_Max", ["tasks.max", "topics"]), "tasks.max")
  })

  it("is none rather than a wild guess", () => {
    assert.isNull(nearest("zzz", ["topics", "source"]))
    assert.isNull(nearest("x", []))
  })

  it("is found for a name that lacks a part", () => {
    assert.strictEqual(
      nearest("deadletterqueue.topic", ["errors.deadletterqueue.topic.name", "topics"]),
      "errors.deadletterqueue.topic.name"
    )
  })
})
