/**
 * Every setting there is, from the tables the reading uses: a new setting is covered without a line here.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { flowSettings } from "../../src/config/flowSettings.ts"
import type { SettingInfo } from "../../src/config/setting.ts"
import { httpSettings, logSettings, topSettings } from "../../src/config/topSettings.ts"
import { flowOf, load, loadFlow, minimal } from "../kit/configFile.ts"

interface Place {
  readonly path: string
  readonly info: SettingInfo
  readonly withValue: (value: unknown) => unknown
}

const places: ReadonlyArray<Place> = [
  ...Object.entries(flowSettings).map(([key, { info }]): Place => ({
    path: `flows[0].${key}`,
    info,
    withValue: (value) => minimal({}, { [key]: value })
  })),
  ...Object.entries(topSettings).map(([key, { info }]): Place => ({
    path: key,
    info,
    withValue: (value) => minimal({ [key]: value })
  })),
  ...Object.entries(httpSettings).map(([key, { info }]): Place => ({
    path: `http.${key}`,
    info,
    withValue: (value) => minimal({ http: { [key]: value } })
  })),
  ...Object.entries(logSettings).map(([key, { info }]): Place => ({
    path: `log.${key}`,
    info,
    withValue: (value) => minimal({ log: { [key]: value } })
  }))
]

const WRONG: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  "whole number": ["many", 1.5, true, -2, 1e300, "", "0x10", [1], "9007199254740993"],
  boolean: ["yes", 1, "", [true]],
  word: ["nonsense", 3, true, ["x"]],
  text: ["", 7, true, ["x"]],
  "list of patterns": [7, true, [7], [["x"]], ["("], [""], ["[z-a]"], ["\\p{L}+"]],
  "list of words": [7, true, [7], ["nonsense"], []],
  map: [7, "x", ["x"], { "": "x" }, { a: 7 }, { a: "b/c" }],
  "map of patterns": [7, "x", ["x"], { "(": ["x"] }, { a: 7 }, { a: ["("] }],
  address: [7, true, "", "8080", "host", "host:", "host:70000", ":8080", "a b:1"]
}

describe("every setting", () => {
  it.effect("of each type that has wrong values here", () =>
    Effect.sync(() => {
      assert.deepStrictEqual(
        [...new Set(places.map((p) => p.info.type))].filter((type) => WRONG[type] === undefined),
        []
      )
    }))

  for (const place of places) {
    const values = [null, ...(place.info.type === "map" ? [] : [{ a: 1 }]), ...WRONG[place.info.type] ?? []]
    it.effect(`${place.path} refuses what it does not take, and says what it takes`, () =>
      Effect.gen(function*() {
        for (const value of values) {
          const { config, problems } = yield* load(place.withValue(value))
          const shown = JSON.stringify(value)
          assert.isNull(config, `${shown} was taken`)
          const [first, ...others] = problems.filter((p) =>
            p.path === place.path || p.path.startsWith(`${place.path}[`) || p.path.startsWith(`${place.path}.`)
          )
          assert.isDefined(first, `${shown}: no problem at ${place.path}`)
          assert.isTrue(others.length === 0, `${shown}: several problems for one value`)
          assert.strictEqual(first?.allowed, place.info.allowed, shown)
          assert.isAbove(first?.line ?? 0, 0, `${shown}: no line`)
        }
      }))

    it.effect(`${place.path} is documented: what it does, what it takes, its default`, () =>
      Effect.sync(() => {
        assert.match(place.info.text, /^[A-Z`].*[.)]$/s)
        assert.isAbove(place.info.allowed.length, 0)
        assert.isTrue(
          place.info.required || place.info.fallback !== null || place.path.endsWith("deadletterqueue.topic.name")
        )
      }))
  }

  for (const place of places.filter((p) => p.info.words.length > 0 && p.info.type === "word")) {
    it.effect(`${place.path} takes its words in any case and offers the nearest for a misspelt one`, () =>
      Effect.gen(function*() {
        for (const word of place.info.words) {
          const { lines } = yield* load(place.withValue(word.toUpperCase()))
          assert.deepStrictEqual(
            lines.filter((line) =>
              line.startsWith(`${place.path} is`) && line.includes("allowed: " + place.info.allowed)
            ),
            [],
            word
          )
          const misspelt = `${word.slice(0, -1)}q`
          const { problems } = yield* load(place.withValue(misspelt))
          assert.include(problems.map((p) => p.nearest), word, misspelt)
        }
      }))
  }
})

describe("values as text", () => {
  it.effect("numbers and booleans in quotes are what they say", () =>
    Effect.gen(function*() {
      const flow = flowOf(yield* loadFlow({ "tasks.max": "4", enabled: "FALSE", "replication.factor": " -1 " }))
      assert.strictEqual(flow.tasksMax, 4)
      assert.isFalse(flow.enabled)
      assert.strictEqual(flow.replicationFactor, -1)
    }))
})
