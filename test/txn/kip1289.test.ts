import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { kip1289, placesOf } from "../../src/txn/kip1289.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { UnsupportedError } from "../../src/wire/errors.ts"

/** A cluster of which only what `support` asks is there. */
const cluster = (
  of: { readonly id: string; readonly shareVersion?: number; readonly keys?: ReadonlyArray<number> }
): Cluster => ({
  clusterId: Effect.succeed(of.id),
  features: Effect.succeed(new Map([["share.version", of.shareVersion ?? 0]])),
  negotiate: (_: unknown, api: { readonly key: number; readonly name: string }) =>
    of.keys?.includes(api.key) === true
      ? Effect.succeed(0)
      : Effect.fail(new UnsupportedError({ api: api.name, what: "not offered" })),
  retrying: <A>(effect: A) => effect
} as unknown as Cluster)

const support = (source: Cluster, target: Cluster, groupProtocol: "share" | "consumer" = "share") =>
  kip1289({ source, target, groupProtocol, transactionalId: (lane) => lane }).support

const reason = (asked: ReturnType<typeof support>) =>
  Effect.map(asked, (answer) => answer.supported ? "supported" : answer.reason)

describe("whether KIP-1289 can bind", () => {
  const able = { id: "one", shareVersion: 3, keys: [95] }

  it.effect("it can in one cluster that has the feature and either draft's API", () =>
    Effect.gen(function*() {
      for (const keys of [[93], [95], [93, 95]]) {
        const one = cluster({ ...able, keys })
        assert.strictEqual(yield* reason(support(one, one)), "supported")
      }
    }))

  it.effect("it cannot between two clusters, whatever they have, and says so", () =>
    Effect.gen(function*() {
      assert.match(
        yield* reason(support(cluster(able), cluster({ ...able, id: "two" }))),
        /source \(one\) and target \(two\) are two clusters, and a Kafka transaction lives in one/
      )
    }))

  it.effect("an API key without the feature is some other API", () =>
    Effect.gen(function*() {
      const one = cluster({ ...able, shareVersion: 2, keys: [93, 95] })
      assert.match(yield* reason(support(one, one)), /share.version is 2; acknowledgements in transactions need 3/)
    }))

  it.effect("the feature without the API does not do", () =>
    Effect.gen(function*() {
      const one = cluster({ ...able, keys: [] })
      assert.match(yield* reason(support(one, one)), /do not offer TxnShareAcknowledge/)
    }))

  it.effect("it has nothing to bind in consumer mode", () =>
    Effect.gen(function*() {
      const one = cluster(able)
      assert.match(yield* reason(support(one, one, "consumer")), /this flow reads through a consumer group/)
    }))
})

it("what is staged goes by share partition, in the order of offsets", () => {
  const range = (partition: number, first: number, last: number, type: "accept" | "reject" | "gap") => ({
    topic: "t",
    topicId: "id",
    partition,
    first,
    last,
    type
  })
  const places = placesOf([
    range(1, 5, 9, "accept"),
    range(0, 0, 3, "accept"),
    range(1, 3, 4, "gap"),
    range(1, 10, 10, "reject")
  ])
  assert.deepStrictEqual(
    places.map(({ partition, ranges }) => [partition, ranges.map((r) => `${r.first}-${r.last} ${r.type}`)]),
    [
      [1, ["3-4 gap", "5-9 accept", "10-10 reject"]],
      [0, ["0-3 accept"]]
    ]
  )
})
