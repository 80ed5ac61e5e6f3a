/** KIP-1302's cases for where the kind of group is said: three levels, the last wins, every level is checked. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { flowOf, loadFlow } from "../kit/configFile.ts"

const WORKER = "consumer.group.protocol"
const FLOW = "group.protocol"
const OVERRIDE = "consumer.override.group.protocol"

const said = (worker: string | null, flow: string | null, override: string | null) =>
  loadFlow(
    { ...(flow === null ? {} : { [FLOW]: flow }), ...(override === null ? {} : { [OVERRIDE]: override }) },
    worker === null ? {} : { [WORKER]: worker }
  )

describe("group.protocol", () => {
  const values = [null, "share", "consumer"]
  for (const worker of values) {
    for (const flow of values) {
      for (const override of values) {
        const wanted = override ?? flow ?? worker ?? "share"
        const level = override !== null ? OVERRIDE : flow !== null ? FLOW : worker !== null ? WORKER : "the default"
        it.effect(`worker ${worker}, flow ${flow}, override ${override}: ${wanted}, said by ${level}`, () =>
          Effect.gen(function*() {
            const { groupProtocol, consumerOverrides } = flowOf(yield* said(worker, flow, override))
            assert.strictEqual(groupProtocol.value, wanted)
            assert.isTrue(
              groupProtocol.origin === level || groupProtocol.origin.includes(`${level} (`),
              groupProtocol.origin
            )
            assert.notProperty(consumerOverrides, "group.protocol")
          }))
      }
    }
  }

  it.effect("is read in any case, as Kafka does", () =>
    Effect.gen(function*() {
      assert.strictEqual(flowOf(yield* said(null, "CONSUMER", null)).groupProtocol.value, "consumer")
    }))

  it.effect("wrong on one level is an error that names the level, also where another one wins", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* said("shared", "share", "share")).lines, [
        `${WORKER} is "shared" (the worker's ${WORKER}); allowed: share, consumer; did you mean "share"?`
      ])
      assert.deepStrictEqual((yield* said(null, "consumers", "share")).lines, [
        `flows[0].${FLOW} is "consumers" (the flow's ${FLOW}); allowed: share, consumer; did you mean "consumer"?`
      ])
      assert.deepStrictEqual((yield* said(null, null, "")).lines, [
        `flows[0].${OVERRIDE} is "" (the flow's ${OVERRIDE}); allowed: share, consumer`
      ])
    }))

  it.effect("classic, which is Kafka's word for a membership, is told where that is said", () =>
    Effect.gen(function*() {
      const { lines } = yield* said(null, null, "classic")
      assert.lengthOf(lines, 1)
      assert.include(lines[0], "group.protocol: consumer and group.membership: classic")
    }))

  it.effect("wrong at the worker is said once, however many flows there are", () =>
    Effect.gen(function*() {
      const flows = [{ source: "east", target: "west" }, { source: "west", target: "east" }]
      assert.lengthOf((yield* loadFlow({}, { flows, [WORKER]: 3 })).lines, 1)
    }))
})
