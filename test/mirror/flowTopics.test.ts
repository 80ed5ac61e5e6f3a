/** Topics that come and go while a flow runs, between two clusters of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { metadata } from "../../src/wire/messages/metadata.ts"
import { shareGroupHeartbeat } from "../../src/wire/messages/shareGroupHeartbeat.ts"
import { makeFlowWorld } from "./flowWorld.ts"

/** An answer that lists no topic; the brokers stay those that are known. */
const NO_TOPICS = {
  throttleTimeMs: 0,
  brokers: [],
  clusterId: "east-cluster-0000000000",
  controllerId: 1,
  topics: [],
  clusterAuthorizedOperations: -2147483648,
  errorCode: 0
}

describe("the topics of a flow", () => {
  it.live("records of a topic that a refresh does not find any more go where the others went", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* makeFlowWorld()
      const { append, east, until, values, west } = world
      east.createTopic("orders")
      append("orders", 0, "a")
      yield* world.run
      yield* until("the first record", () => values("east.orders").length === 1)
      // A broker that does not know all topics yet; the group's member keeps its partitions meanwhile.
      let asked = 0
      east.faults(({ apiKey, request }) => {
        if (apiKey === shareGroupHeartbeat.key) return { kind: "loseRequest", then: "close" }
        if (apiKey !== metadata.key || (request as { topics: unknown }).topics !== null) return null
        asked++
        return { kind: "answer", response: NO_TOPICS }
      })
      yield* until("two refreshes", () => asked >= 2)
      append("orders", 0, "b")
      yield* until("the second record", () => values("east.orders").length === 2 || west.state.topics.has("orders"))
      assert.isFalse(west.state.topics.has("orders"))
      assert.deepStrictEqual(values("east.orders"), ["a", "b"])
    })))
})
