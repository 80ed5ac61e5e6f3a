import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readTree } from "../../src/config/tree.ts"
import { flowOf, loadText } from "../kit/configFile.ts"

const TAIL = "flows: [{ source: east, target: west }]\n"

describe("a file that is not YAML", () => {
  const broken: ReadonlyArray<readonly [what: string, text: string, line: number, column: number]> = [
    ["an open bracket", "clusters: { a: 1\nflows: []\n", 2, 1],
    ["a key that stands twice", "clusters: {}\nflows: []\nclusters: {}\n", 3, 1],
    ["a key that stands twice in a flow map", "clusters: { a: 1, a: 2 }\n", 1, 19],
    ["an alias of nothing", "clusters: *nowhere\n", 1, 11],
    ["a tag nobody knows", "clusters: !secret x\n", 1, 11],
    ["two documents", "clusters: {}\n---\nflows: []\n", 2, 1],
    ["a tab as indentation", "clusters:\n\ta: 1\n", 2, 1]
  ]
  for (const [what, text, line, column] of broken) {
    it(`(${what}) gets one sentence with line and column`, () => {
      const { problems } = readTree(text)
      assert.isAbove(problems.length, 0)
      assert.strictEqual(problems[0]?.line, line)
      assert.match(
        problems[0]?.what ?? "",
        new RegExp(`^is not valid YAML at line ${line}, column ${column}: [^\\n]+$`)
      )
    })
  }

  it.effect("is reported for its syntax alone", () =>
    Effect.gen(function*() {
      const { problems } = yield* loadText("clusters: {\n")
      assert.isTrue(problems.every((p) => p.what.startsWith("is not valid YAML")))
    }))

  it.effect("or is empty, or a list, is told what a configuration is", () =>
    Effect.gen(function*() {
      for (const text of ["", "# nothing\n", "[1, 2]", "hello", "12"]) {
        const { lines } = yield* loadText(text)
        assert.lengthOf(lines, 1, text)
        assert.match(lines[0] ?? "", /allowed: a map of clusters, flows/)
      }
    }))
})

describe("YAML's own means", () => {
  it.effect("anchors, aliases and merge keys work, and what a map says itself wins", () =>
    Effect.gen(function*() {
      const { config } = yield* loadText(`clusters:
  east: &base { bootstrap.servers: "a:1", request.timeout.ms: 5000, sasl.password: &secret 0123 }
  west: { <<: *base, bootstrap.servers: "b:1" }
  north: { <<: [{ client.id: first }, { client.id: second }], bootstrap.servers: "c:1", sasl.password: *secret }
${TAIL}`)
      assert.deepStrictEqual(config?.clusters.get("west")?.settings, {
        "bootstrap.servers": "b:1",
        "request.timeout.ms": "5000",
        "sasl.password": "0123"
      })
      assert.deepStrictEqual(config?.clusters.get("north")?.settings, {
        "client.id": "first",
        "bootstrap.servers": "c:1",
        "sasl.password": "0123"
      })
    }))

  it.effect("aliases that contain themselves, or multiply without end, are refused and not followed", () =>
    Effect.gen(function*() {
      const levels = Array.from(
        { length: 12 },
        (_, i) => `k${i}: &a${i} [${Array.from({ length: 9 }, () => i === 0 ? "x" : `*a${i - 1}`).join(", ")}]`
      )
      for (
        const text of [
          "clusters: &a { x: *a }\n",
          `${levels.join("\n")}\n`,
          `clusters: ${"[".repeat(80)}${"]".repeat(80)}\n`
        ]
      ) {
        const { lines } = yield* loadText(text)
        assert.include(lines[0] ?? "", "is too large or too deeply nested")
      }
    }))

  it.effect("a key named __proto__ is a key like any other", () =>
    Effect.gen(function*() {
      const { lines } = yield* loadText(
        `clusters: { east: { bootstrap.servers: "a:1" }, west: { bootstrap.servers: "b:1" } }\n__proto__: { log: { level: debug } }\n${TAIL}`
      )
      assert.deepStrictEqual(lines, ["__proto__ is not a setting"])
    }))

  it.effect("integers above 2^53 are not rounded into validity", () =>
    Effect.gen(function*() {
      const { lines } = yield* loadText(
        `clusters: { east: { bootstrap.servers: "a:1" }, west: { bootstrap.servers: "b:1" } }\nflows: [{ source: east, target: west, max.in.flight.bytes: 9007199254740993 }]\n`
      )
      assert.lengthOf(lines, 1)
      assert.include(lines[0], "9007199254740993")
    }))

  it.effect("a byte order mark in front and Windows line ends do not matter", () =>
    Effect.gen(function*() {
      const loaded = yield* loadText(
        `\uFEFFclusters:\r\n  east: { bootstrap.servers: "a:1" }\r\n  west: { bootstrap.servers: "b:1" }\r\n${TAIL}`
      )
      assert.strictEqual(flowOf(loaded).source, "east")
    }))
})
