/** Topics that come and go while a flow runs, between two clusters of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { FaultHook } from "../../src/embedded/faults.ts"
import { createTopics } from "../../src/wire/messages/createTopics.ts"
import { deleteTopics } from "../../src/wire/messages/deleteTopics.ts"
import { metadata } from "../../src/wire/messages/metadata.ts"
import { shareGroupHeartbeat } from "../../src/wire/messages/shareGroupHeartbeat.ts"
import { ZERO_UUID } from "../../src/wire/schema.ts"
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

const POLICY_VIOLATION = 44

/** Refuses to create a topic, for as long as it is said so. */
const refusing = (name: string, still: () => boolean): FaultHook => ({ apiKey, request }) => {
  if (apiKey !== createTopics.key) return null
  const { topics } = request as { readonly topics: ReadonlyArray<{ readonly name: string }> }
  if (!topics.some((topic) => topic.name === name) || !still()) return null
  const answer = {
    topicId: ZERO_UUID,
    errorCode: POLICY_VIOLATION,
    errorMessage: "no topics on Mondays",
    topicConfigErrorCode: 0,
    numPartitions: -1,
    replicationFactor: -1,
    configs: []
  }
  return {
    kind: "answer",
    response: { throttleTimeMs: 0, topics: topics.map((topic) => ({ ...answer, name: topic.name })) }
  }
}

const LONG = { timeout: 90_000 }

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

  it.live(
    "a run until caught up waits for topics that the target does not take yet",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { append, east, runAs, lines, values, west } = yield* makeFlowWorld()
        east.createTopic("orders")
        append("orders", 0, "a")
        let refused = 0
        west.faults(refusing("east.orders", () => refused++ < 2))
        yield* runAs({}, { untilCaughtUp: true })
        assert.isAbove(refused, 2)
        assert.deepStrictEqual(values("east.orders"), ["a"])
        assert.deepStrictEqual(lines.filter((line) => line.startsWith("failed")), [])
      })),
    LONG
  )

  it.live(
    "a target topic that was made anew while nobody ran is said to be another; not so where the source's is another, too",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { append, east, lines, runAs, values, west } = yield* makeFlowWorld()
        const [onEast, onWest] = [yield* east.cluster("test"), yield* west.cluster("test")]
        const gone = (cluster: typeof onWest, name: string) =>
          cluster.request({ kind: "controller" }, deleteTopics, {
            topics: [{ name, topicId: ZERO_UUID }],
            topicNames: [name],
            timeoutMs: 5_000
          })
        for (const topic of ["orders", "both"]) {
          east.createTopic(topic)
          append(topic, 0, "a")
        }
        yield* runAs({}, { untilCaughtUp: true })
        const said = () => lines.filter((line) => line.includes("was deleted there and made again"))
        assert.deepStrictEqual(said(), [])
        yield* gone(onWest, "east.orders")
        yield* gone(onWest, "east.both")
        yield* gone(onEast, "both")
        east.createTopic("both")
        append("both", 0, "c")
        append("orders", 0, "b")
        yield* runAs({}, { untilCaughtUp: true })
        assert.deepStrictEqual([values("east.orders"), values("east.both")], [["b"], ["c"]])
        assert.lengthOf(said(), 1)
        assert.include(said()[0], "topic east.orders of the target")
      })),
    LONG
  )
})
