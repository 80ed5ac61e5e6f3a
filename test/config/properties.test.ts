import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { looksLikeProperties, readProperties } from "../../src/config/properties.ts"

/** What java.util.Properties.load (JDK 21) makes of each text; null: it throws. Printed by Java itself. */
const JAVA: ReadonlyArray<readonly [text: string, entries: Readonly<Record<string, string>> | null]> = [
  ["a=1\nb = 2\nc:3\nd : 4\ne 5\nf\t6\n", { "a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6" }],
  ["# c\n! d\n  # e\na=#b\nb=c!d\n", { "a": "#b", "b": "c!d" }],
  ["sasl.jaas.config=x required username=\"u\" password=\"p#1;2!\";\n", {
    "sasl.jaas.config": "x required username=\"u\" password=\"p#1;2!\";"
  }],
  ["a=1\\\n   2\\\n\t3\nb=4\n", { "a": "123", "b": "4" }],
  ["a=1\\\\\nb=2\n", { "a": "1\\", "b": "2" }],
  ["a=1\\\\\\\nb=2\n", { "a": "1\\b=2" }],
  ["a\\ b=c\\=d\na\\:b=x\na\\=b=y\n", { "a b": "c=d", "a:b": "x", "a=b": "y" }],
  ["t=\\t\\n\\r\\f\\q\\\\\nu=\\u0041\\u00e9\n", { "t": "\t\n\r\fq\\", "u": "Aé" }],
  ["a=1\na=2\n", { "a": "2" }],
  ["empty=\nnone\n=v\n: w\n", { "": "w", "empty": "", "none": "" }],
  ["a= trailing  \n", { "a": "trailing  " }],
  ["a\r\nb=1\rc=2", { "a": "", "b": "1", "c": "2" }],
  ["a=1\\", { "a": "1" }],
  ["a=1\\\n", { "a": "1" }],
  ["a=1\\\n\nb=2\n", { "a": "1", "b": "2" }],
  ["a = \\ x\n", { "a": " x" }],
  ["a==b\nc:=d\ne = = f\n", { "a": "=b", "c": "=d", "e": "= f" }],
  ["a=1\\\n# not a comment\nb=2\n", { "a": "1# not a comment", "b": "2" }],
  ["\n\n   \n a=1\n\fb=2\n", { "a": "1", "b": "2" }],
  ["k\\u0065y=v\n", { "key": "v" }],
  ["a\\\n b=c\n", { "ab": "c" }],
  ["a\\\n=c\n", { "a": "c" }],
  ["a=\\u12\n", null],
  ["   =x\n", { "": "x" }],
  ["a   \\\n  b\n", { "a": "b" }]
]

/** As Properties.store writes a key or a value. */
const escaped = (text: string): string =>
  [...text].map((c) => {
    if ("\\=:#! ".includes(c)) return `\\${c}`
    const code = c.charCodeAt(0)
    return code < 0x20 || code > 0x7e
      ? c.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")
      : c
  }).join("")

describe("a properties file", () => {
  it("is read as Java reads it", () => {
    for (const [text, entries] of JAVA) {
      const read = readProperties(text)
      if (entries === null) assert.isAbove(read.malformed.length, 0, JSON.stringify(text))
      else assert.deepStrictEqual(Object.fromEntries(read.entries), entries, JSON.stringify(text))
    }
  })

  it("gives back whatever keys and values were stored", () => {
    const text = fc.string({
      unit: fc.oneof(
        fc.constantFrom("\\", "=", ":", " ", "#", "!", "\n", "\t", "\f", "\r", "é", "😀"),
        fc.string({ minLength: 1, maxLength: 1, unit: "binary-ascii" })
      )
    })
    fc.assert(
      fc.property(
        fc.dictionary(text, text),
        fc.constantFrom("=", ":", " = ", "\t:  "),
        fc.constantFrom("\n", "\r\n", "\r"),
        (entries, sign, end) => {
          const file = Object.entries(entries).map(([key, value]) => `${escaped(key)}${sign}${escaped(value)}`).join(
            end
          )
          assert.deepStrictEqual(Object.fromEntries(readProperties(file).entries), { ...entries })
        }
      )
    )
  })

  it("remembers the line of each key, of the last where there are two", () => {
    const { lines } = readProperties("# c\na=1\\\n  2\nb=3\na=4\n")
    assert.deepStrictEqual(Object.fromEntries(lines), { a: 5, b: 4 })
  })

  it("is told from YAML by its extension, or else by its first line", () => {
    assert.isTrue(looksLikeProperties("mm2.properties", "clusters: x"))
    assert.isTrue(looksLikeProperties("mm2", "# comment\n\nclusters = A, B\nA->B.enabled = true\n"))
    assert.isTrue(looksLikeProperties("mm2.conf", "A->B.enabled=true"))
    assert.isFalse(looksLikeProperties("mirror.yaml", "a = b"))
    assert.isFalse(looksLikeProperties("mirror", "# comment\nclusters: { a: { x: \"y=z\" } }"))
    assert.isFalse(looksLikeProperties("mirror.conf", "{ \"clusters\": {} }"))
  })
})
