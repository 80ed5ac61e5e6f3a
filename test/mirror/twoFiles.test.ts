/**
 * Two clusters that mirror to each other by flows of two files, so that neither process knows of the other one's: where
 * a record stands still, and where it goes round (docs/limits.md, 17). Names, marks and transforms alone: no broker.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ResolvedConfig, ResolvedFlow } from "../../src/config/types.ts"
import { namingOf } from "../../src/mirror/flowSetup.ts"
import { needsProvenance, withProvenance } from "../../src/mirror/provenance.ts"
import { buildChain } from "../../src/mirror/transforms/build.ts"
import { makeChain, type TransformChain } from "../../src/mirror/transforms/chain.ts"
import type { MirrorRecord, TransformOutcome } from "../../src/mirror/transforms/transform.ts"
import { load, type Plain } from "../kit/configFile.ts"

/** More than any record has to go that stands still in the end. */
const ROUNDS = 10

interface Side {
  readonly config: ResolvedConfig
  readonly flow: ResolvedFlow
  readonly chain: TransformChain | null
  readonly sourceId: string
  readonly targetId: string
}

/** The first flow of a file runs. `aliases`: the names that the file has for the clusters east and west. */
const sideOf = (flows: ReadonlyArray<Plain>, aliases: readonly [string, string] = ["east", "west"]) =>
  Effect.gen(function*() {
    const clusters = Object.fromEntries(
      aliases.map((alias, n) => [alias, { "bootstrap.servers": `127.0.0.1:${19_092 + n}` }])
    )
    const { config, lines } = yield* load({ clusters, flows })
    assert.deepStrictEqual(lines, [])
    const resolved = config as ResolvedConfig
    const flow = resolved.flows[0] as ResolvedFlow
    const idOf = (alias: string): string => alias === aliases[0] ? "id-east" : "id-west"
    const side: Side = {
      config: resolved,
      flow,
      chain: yield* buildChain(flow.transforms),
      sourceId: idOf(flow.source),
      targetId: idOf(flow.target)
    }
    return side
  })

/** What a flow writes of a record; null: nothing. */
const sent = ({ chain, config, flow, ...ends }: Side, record: MirrorRecord): MirrorRecord | null => {
  const verdict = namingOf(config, flow, ends).verdict(record.topic)
  if (!verdict.mirrored) return null
  const there = { ...record, topic: verdict.target }
  const plain = chain ?? makeChain([])
  const marks = needsProvenance(config, flow, ends, record.topic)
  const outcome = (marks ? withProvenance(plain, ends, () => undefined) : plain).apply(there) as TransformOutcome
  return outcome.kind === "keep" ? outcome.record : null
}

/** Whether a record that begins in this topic on east is still under way after many rounds. */
const goesRound = (there: Side, back: Side, topic = "a"): boolean => {
  let record: MirrorRecord | null = {
    topic,
    partition: 0,
    offset: 0,
    timestamp: 0n,
    key: null,
    value: null,
    headers: []
  }
  for (let n = 0; n < ROUNDS && record !== null; n++) {
    const there_ = sent(there, record)
    record = there_ === null ? null : sent(back, there_)
  }
  return record !== null
}

const east = (more: Plain = {}): Plain => ({ source: "east", target: "west", "group.id": "g-east", ...more })
const west = (more: Plain = {}): Plain => ({ source: "west", target: "east", "group.id": "g-west", ...more })
const IDENTITY = { "replication.policy": "identity" }
const [aToB, bToA] = [{ "topic.mapping": { a: "b" } }, { "topic.mapping": { b: "a" } }]
const routed = (from: string, to: string): Plain => ({
  transforms: "rename",
  "transforms.rename.type": "RegexRouter",
  "transforms.rename.regex": from,
  "transforms.rename.replacement": to
})
const pair = (there: ReadonlyArray<Plain>, back: ReadonlyArray<Plain>) =>
  Effect.map(Effect.all([sideOf(there), sideOf(back)]), ([one, other]) => goesRound(one, other))

describe("flows of two files that mirror to each other stand still", () => {
  it.effect("with prefixes, where both files call the clusters the same", () =>
    Effect.gen(function*() {
      assert.isFalse(yield* pair([east()], [west()]))
    }))

  it.effect("with replication.policy identity in both, whatever topic.mapping and transforms make of the names", () =>
    Effect.gen(function*() {
      assert.isFalse(yield* pair([east(IDENTITY)], [west(IDENTITY)]))
      assert.isFalse(yield* pair([east({ ...IDENTITY, ...aToB })], [west({ ...IDENTITY, ...bToA })]))
      assert.isFalse(
        yield* pair([east({ ...IDENTITY, ...routed("a", "b") })], [west({ ...IDENTITY, ...routed("b", "a") })])
      )
    }))

  it.effect("with names that are mapped to each other, where each file has the other's flow switched off", () =>
    Effect.gen(function*() {
      const [there, back] = [east(aToB), west(bToA)]
      assert.isFalse(yield* pair([there, { ...back, enabled: false }], [back, { ...there, enabled: false }]))
    }))
})

describe("their records go round", () => {
  it.effect("with names that are mapped to each other under the default policy, also where only one file knows", () =>
    Effect.gen(function*() {
      const [there, back] = [east(aToB), west(bToA)]
      assert.isTrue(yield* pair([there], [back]))
      assert.isTrue(yield* pair([there, { ...back, enabled: false }], [back]))
      assert.isTrue(yield* pair([there], [back, { ...there, enabled: false }]))
    }))

  it.effect("with transforms that undo each other's names under the default policy", () =>
    Effect.gen(function*() {
      assert.isTrue(yield* pair([east(routed("east\\.(.*)", "$1"))], [west(routed("west\\.(.*)", "$1"))]))
    }))

  it.effect("with names kept one way and prefixes the other, under names that grow", () =>
    Effect.gen(function*() {
      assert.isTrue(yield* pair([east()], [west(IDENTITY)]))
      assert.isTrue(yield* pair([east(IDENTITY)], [west()]))
    }))

  it.effect("with prefixes, where the files call the clusters differently", () =>
    Effect.gen(function*() {
      const back = { ...west(), source: "paris", target: "london" }
      assert.isTrue(goesRound(yield* sideOf([east()]), yield* sideOf([back], ["london", "paris"])))
    }))
})
