/** Records that go round, with the header alone: no broker. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ResolvedConfig } from "../../src/config/types.ts"
import { cameThrough, needsProvenance, PROVENANCE_HEADER, withProvenance } from "../../src/mirror/provenance.ts"
import { makeChain } from "../../src/mirror/transforms/chain.ts"
import type { MirrorRecord, TransformOutcome } from "../../src/mirror/transforms/transform.ts"
import { flowOf, loadFlow } from "../kit/configFile.ts"

const record = (headers: MirrorRecord["headers"] = []): MirrorRecord => ({
  topic: "t",
  partition: 0,
  offset: 0,
  timestamp: 0n,
  key: null,
  value: Buffer.from("v"),
  headers
})
const header = (key: string, value: string | null) => ({
  key: Buffer.from(key),
  value: value === null ? null : Buffer.from(value)
})

/** The record as it is on the other side; null: it was not sent. */
const hop = (from: string, to: string, given: MirrorRecord, loops: Array<string> = []): MirrorRecord | null => {
  const outcome = withProvenance(null, { sourceId: from, targetId: to }, () => void loops.push(`${from}>${to}`))
    .apply(given) as TransformOutcome
  return outcome.kind === "keep" ? outcome.record : null
}

describe("a record", () => {
  it("is not sent back to where it came from, which is counted", () => {
    const loops: Array<string> = []
    const there = hop("A", "B", record(), loops) as MirrorRecord
    assert.deepStrictEqual(cameThrough(there.headers), ["A"])
    assert.isNull(hop("B", "A", there, loops))
    assert.deepStrictEqual(loops, ["B>A"])
  })

  it("goes round a ring once, each way it comes by, and stops before its origin", () => {
    const atB = hop("A", "B", record()) as MirrorRecord
    const atC = hop("B", "C", atB) as MirrorRecord
    assert.deepStrictEqual(cameThrough(atC.headers), ["A", "B"])
    assert.isNull(hop("C", "A", atC))
    assert.isNull(hop("C", "B", atC))
    assert.isNotNull(hop("C", "D", atC))
  })

  it("keeps its other headers as they are, in their order, and has one of ours at the end", () => {
    const given = record([header("x", "1"), header(PROVENANCE_HEADER, "A"), header("x", null)])
    const there = hop("B", "C", given) as MirrorRecord
    assert.deepStrictEqual(there.headers, [header("x", "1"), header("x", null), header(PROVENANCE_HEADER, "A,B")])
  })

  it("is marked behind the transforms, so that none of them can take the mark off", () => {
    const strip = makeChain([{ name: "strip", apply: (one) => ({ ...one, headers: [] }) }])
    const slow = makeChain([{ name: "slow", apply: (one) => Promise.resolve({ ...one, headers: [] }) }])
    const ends = { sourceId: "B", targetId: "C" }
    const outcome = withProvenance(strip, ends, () => undefined).apply(record()) as TransformOutcome
    assert.deepStrictEqual(outcome.kind === "keep" ? cameThrough(outcome.record.headers) : null, ["B"])
    return Promise.resolve(withProvenance(slow, ends, () => undefined).apply(record())).then((late) => {
      assert.deepStrictEqual(late.kind === "keep" ? cameThrough(late.record.headers) : null, ["B"])
    })
  })
})

describe("the header is there", () => {
  const ends = { sourceId: "A", targetId: "B" }
  const needs = (flow: Record<string, unknown>, topic = "t", one = ends) =>
    Effect.map(
      loadFlow(flow),
      (loaded) => needsProvenance(loaded.config as ResolvedConfig, flowOf(loaded), one, topic)
    )

  it.effect("where names are kept, and only there: batches of other topics are not decoded", () =>
    Effect.gen(function*() {
      assert.isFalse(yield* needs({}))
      assert.isTrue(yield* needs({ "replication.policy": "identity" }))
      const mapped = { "topic.mapping": { t: "t", u: "copy" } }
      assert.isTrue(yield* needs(mapped))
      assert.isFalse(yield* needs(mapped, "u"))
    }))

  it.effect("unless it is switched off, or both ends are one cluster", () =>
    Effect.gen(function*() {
      assert.isFalse(yield* needs({ "replication.policy": "identity", "provenance.header.enabled": false }))
      assert.isFalse(
        yield* needs({ "replication.policy": "identity" }, "t", { sourceId: "A", targetId: "A" })
      )
    }))
})
