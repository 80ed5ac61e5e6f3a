import { assert, describe, it } from "@effect/vitest"
import { parsePattern } from "../../src/config/pattern.ts"

describe("a pattern in Java's dialect", () => {
  const same = [
    "orders",
    "payments.*",
    "a\\.b",
    "(a|b)-\\d{1,3}",
    "[a-z&]+",
    "foo\\-bar",
    "^x$",
    "\\\\Q",
    "a(?!b).*",
    "(?<n>x)\\k<n>"
  ]
  for (const pattern of same) {
    it(`${pattern} means the same here and is taken as it is`, () => {
      assert.deepStrictEqual(parsePattern(pattern), { ok: true, source: pattern })
    })
  }

  const foreign = [
    "\\p{Alpha}+",
    "\\P{L}",
    "\\Qa.b\\E",
    "\\Aorders\\z",
    "orders\\Z",
    "[a-z&&[^b]]",
    "\\h+",
    "a*+",
    "(?>a)",
    "(?x) a",
    "(",
    "[",
    "a{2,1}",
    ""
  ]
  for (const pattern of foreign) {
    it(`${JSON.stringify(pattern)} would fail or mean something else here and is refused in words`, () => {
      const parsed = parsePattern(pattern)
      assert.isFalse(parsed.ok)
      assert.match(parsed.ok ? "" : parsed.why, /^(is|uses) \S.*\S$/)
    })
  }

  it("a star as a shell has it is told how it is written", () => {
    const parsed = parsePattern("*")
    assert.match(parsed.ok ? "" : parsed.why, /Nothing to repeat; \.\* is meant/)
  })
})
