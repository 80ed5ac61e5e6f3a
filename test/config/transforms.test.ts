import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PREDICATE_TYPES, TRANSFORM_TYPES } from "../../src/config/transforms.ts"
import { builtinTypes } from "../../src/mirror/transforms/builtin.ts"
import { predicateTypes } from "../../src/mirror/transforms/predicates.ts"
import { flowOf, loadFlow, type Plain } from "../kit/configFile.ts"

const INSERT = { "transforms.a.type": "InsertHeader", "transforms.a.header": "h", "transforms.a.value.literal": "v" }

describe("transforms", () => {
  it.effect("come in the order of the list, with their parameters as text and their predicates", () =>
    Effect.gen(function*() {
      const flow = flowOf(
        yield* loadFlow({
          transforms: "b, a",
          "transforms.a.type": "org.apache.kafka.connect.transforms.InsertHeader",
          "transforms.a.header": "h",
          "transforms.a.value.literal": 7,
          "transforms.a.predicate": "p",
          "transforms.a.negate": "true",
          "transforms.b.type": "DropHeaders",
          "transforms.b.headers": ["x", "y"],
          predicates: ["p"],
          "predicates.p.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
          "predicates.p.pattern": "(?i)orders"
        })
      )
      assert.deepStrictEqual(flow.transforms, [
        { name: "b", type: "DropHeaders", params: new Map([["headers", "x,y"]]), predicate: null, negate: false },
        {
          name: "a",
          type: "InsertHeader",
          params: new Map([["header", "h"], ["value.literal", "7"]]),
          predicate: { name: "p", type: "TopicNameMatches", params: new Map([["pattern", "(?i:orders)"]]) },
          negate: true
        }
      ])
    }))

  it.effect("of a module get an absolute path", () =>
    Effect.gen(function*() {
      const flow = flowOf(
        yield* loadFlow({ transforms: ["m"], "transforms.m.type": "module", "transforms.m.path": "./mine.js" })
      )
      assert.match(flow.transforms[0]?.params.get("path") ?? "", /^\/.*\/mine\.js$/)
    }))

  it("known here are those that the pipeline can make", () => {
    assert.sameMembers(Object.keys(TRANSFORM_TYPES), [...builtinTypes, "module"])
    assert.sameMembers(Object.keys(PREDICATE_TYPES), [...predicateTypes])
  })

  const wrong: ReadonlyArray<readonly [what: string, flow: Plain, line: string]> = [
    [
      "without a type",
      { transforms: ["a"] },
      "flows[0].transforms.a.type is missing; allowed: InsertHeader, DropHeaders, RenameHeader, RegexRouter, Filter, module"
    ],
    [
      "of a Java class that does not exist here",
      { transforms: ["a"], "transforms.a.type": "com.example.Mask" },
      "flows[0].transforms.a.type is \"com.example.Mask\"; Java classes cannot run here; allowed: InsertHeader, DropHeaders, RenameHeader, RegexRouter, Filter, module"
    ],
    [
      "with a missing parameter",
      { transforms: ["a"], "transforms.a.type": "InsertHeader", "transforms.a.header": "h" },
      "flows[0].transforms.a.value.literal is missing; allowed: the header's value"
    ],
    [
      "with an empty parameter",
      { transforms: ["a"], ...INSERT, "transforms.a.header": "" },
      "flows[0].transforms.a.header is \"\"; allowed: a header key"
    ],
    [
      "with a map as parameter",
      { transforms: ["a"], ...INSERT, "transforms.a.header": { x: 1 } },
      "flows[0].transforms.a.header is a map; allowed: a header key"
    ],
    [
      "with a broken pattern",
      {
        transforms: ["a"],
        "transforms.a.type": "RegexRouter",
        "transforms.a.regex": "(",
        "transforms.a.replacement": "x"
      },
      "flows[0].transforms.a.regex \"(\" is not a regular expression (Unterminated group); allowed: a regular expression"
    ],
    [
      "that the list does not name",
      { transforms: ["a"], ...INSERT, "transforms.b.type": "Filter" },
      "flows[0].transforms.b.type belongs to nothing that transforms names; allowed: a; did you mean \"a\"?"
    ],
    ["without a list", INSERT, "flows[0].transforms.a.type belongs to nothing that transforms names"],
    ["named twice", { transforms: ["a", "a"], ...INSERT }, "flows[0].transforms names \"a\" twice"],
    [
      "as nested maps",
      { transforms: { a: { type: "Filter" } } },
      "flows[0].transforms is a map; write a list of names and each parameter as one dotted key: transforms.NAME.type"
    ],
    [
      "as a number",
      { transforms: 3 },
      "flows[0].transforms is 3; allowed: a list of names; each has its transforms.NAME.type"
    ],
    ["with a predicate that does not exist", {
      transforms: ["a"],
      ...INSERT,
      "transforms.a.predicate": "tomb",
      predicates: ["tombs"],
      "predicates.tombs.type": "RecordIsTombstone"
    }, "flows[0].transforms.a.predicate is \"tomb\"; allowed: tombs; did you mean \"tombs\"?"],
    [
      "with negate and no predicate",
      { transforms: ["a"], ...INSERT, "transforms.a.negate": true },
      "flows[0].transforms.a.negate has no predicate to negate"
    ],
    ["with a negate that is no boolean", {
      transforms: ["a"],
      ...INSERT,
      "transforms.a.predicate": "p",
      "transforms.a.negate": "maybe",
      predicates: "p",
      "predicates.p.type": "RecordIsTombstone"
    }, "flows[0].transforms.a.negate is \"maybe\"; allowed: true, false"],
    [
      "Filter without a predicate, which would drop everything",
      { transforms: ["a"], "transforms.a.type": "Filter" },
      "flows[0].transforms.a.predicate is missing: a Filter without one drops every record"
    ],
    [
      "RenameHeader with half a pair",
      { transforms: ["a"], "transforms.a.type": "RenameHeader", "transforms.a.from": "x" },
      "flows[0].transforms.a.renames is missing; allowed: old:new pairs, separated by commas (or the parameters from and to)"
    ]
  ]
  for (const [what, flow, line] of wrong) {
    it.effect(`${what} are refused`, () =>
      Effect.gen(function*() {
        const { lines } = yield* loadFlow(flow)
        assert.include(lines, line)
      }))
  }
})
