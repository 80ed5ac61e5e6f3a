/** One look at the topics of two clusters of this process: created, grown, created again, with their settings. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { type Embedded, makeEmbedded } from "../../../src/embedded/embedded.ts"
import { makeControlLog } from "../../../src/mirror/control/controlLog.ts"
import { settingRules } from "../../../src/mirror/control/settings.ts"
import { creationSettings, topicPass, type TopicPassParts } from "../../../src/mirror/control/topicPass.ts"
import type { MirroredTopic } from "../../../src/mirror/control/topics.ts"
import { makeNaming } from "../../../src/mirror/naming.ts"
import type { Cluster } from "../../../src/wire/cluster.ts"
import { createTopics } from "../../../src/wire/messages/createTopics.ts"
import { deleteTopics } from "../../../src/wire/messages/deleteTopics.ts"
import { ZERO_UUID } from "../../../src/wire/schema.ts"
import { flowOf, loadFlow } from "../../kit/configFile.ts"

interface Bench {
  readonly east: Embedded
  readonly west: Embedded
  readonly source: Cluster
  readonly refusals: Array<string>
  /** A look by a process of the flow with this policy; each has its own memory. */
  readonly look: (
    policy?: "restart" | "pause" | "new-topic",
    leads?: boolean
  ) => Effect.Effect<Effect.Success<ReturnType<typeof topicPass>>, unknown, Scope.Scope>
  readonly make: (name: string, configs?: Readonly<Record<string, string>>) => Effect.Effect<void, unknown>
  readonly remake: (name: string) => Effect.Effect<void, unknown>
}

const remove = (cluster: Cluster, name: string) =>
  cluster.request({ kind: "any" }, deleteTopics, { topics: [{ name, topicId: ZERO_UUID }], timeoutMs: 1_000 })

const bench = Effect.gen(function*() {
  const east = yield* makeEmbedded({ clusterId: "east-000000000000000000", seed: 1 })
  const west = yield* makeEmbedded({ clusterId: "west-000000000000000000", seed: 2 })
  const [source, target] = [yield* east.cluster("source"), yield* west.cluster("target")]
  const refusals: Array<string> = []
  const naming = makeNaming({
    sourceAlias: "east",
    targetAlias: "west",
    aliases: new Set(["east", "west"]),
    policy: "default",
    separator: ".",
    mapping: new Map(),
    include: [".*"],
    exclude: []
  })
  const make: Bench["make"] = (name, configs = {}) =>
    source.request({ kind: "any" }, createTopics, {
      topics: [{
        name,
        numPartitions: 2,
        replicationFactor: 1,
        assignments: [],
        configs: Object.entries(configs).map(([key, value]) => ({ name: key, value }))
      }],
      timeoutMs: 1_000
    })
  const look: Bench["look"] = (policy = "restart", leads = true) =>
    Effect.gen(function*() {
      const { control } = flowOf(yield* loadFlow({ "on.topic.recreated": policy }))
      let places: ReadonlyArray<MirroredTopic> = []
      const parts: TopicPassParts = {
        source,
        target,
        targetAdmin: target,
        naming,
        replicationFactor: 1,
        control,
        notes: yield* makeControlLog({ target, flow: "f", log: () => undefined }),
        leads: () => leads,
        creation: creationSettings(
          source,
          settingRules(control),
          (name) => places.find((topic) => topic.target === name)?.source,
          (topic, setting) => void refusals.push(`${topic} ${setting}`)
        ),
        onPlaces: (topics) => {
          places = topics
        }
      }
      return yield* topicPass(parts)
    })
  return {
    east,
    west,
    source,
    refusals,
    look,
    make,
    remake: (name: string) => Effect.andThen(remove(source, name), make(name))
  } satisfies Bench
})

const setting = (cluster: Embedded, topic: string, name: string) =>
  cluster.state.settings.get(`topic:${topic}`)?.get(name)
const places = (found: { readonly topics: ReadonlyArray<MirroredTopic> }) =>
  found.topics.map((topic) => `${topic.source}>${topic.target}`)

describe("a look at the topics", () => {
  it.live("creates with partitions and settings of the source, without what the target does not take, which is named", () =>
    Effect.scoped(Effect.gen(function*() {
      const { look, make, refusals, west } = yield* bench
      yield* make("t", { "cleanup.policy": "compact", "retention.ms": "1000", "max.message.bytes": "5000" })
      // A target that does not know one of them.
      west.faults(({ apiKey, request }) => {
        if (apiKey !== createTopics.key) return null
        const asked = (request as {
          readonly topics: ReadonlyArray<{ readonly configs: ReadonlyArray<{ readonly name: string }> }>
        }).topics[0]
        return asked?.configs.some(({ name }) => name === "retention.ms") === true
          ? {
            kind: "answer",
            response: { topics: [{ name: "east.t", errorCode: 40, errorMessage: "Unknown topic config name" }] }
          }
          : null
      })
      assert.deepStrictEqual(places(yield* look()), ["t>east.t"])
      assert.strictEqual(west.state.topics.get("east.t")?.partitions.length, 2)
      assert.strictEqual(setting(west, "east.t", "cleanup.policy"), "compact")
      assert.strictEqual(setting(west, "east.t", "max.message.bytes"), "5000")
      assert.isUndefined(setting(west, "east.t", "retention.ms"))
      assert.deepStrictEqual(refusals, ["east.t retention.ms"])
    })))

  it.live("notices a topic that was created again while nobody looked, once, and never mixes it up", () =>
    Effect.scoped(Effect.gen(function*() {
      const { look, make, remake, source } = yield* bench
      yield* make("t")
      const first = yield* look()
      assert.deepStrictEqual(first.recreated, [])
      yield* remake("t")
      const second = yield* look()
      assert.match(second.recreated[0]?.reason ?? "", /topic t was deleted and created again/)
      assert.deepStrictEqual(places(second), ["t>east.t"])
      assert.notStrictEqual(second.topics[0]?.sourceId, first.topics[0]?.sourceId)
      assert.deepStrictEqual((yield* look()).recreated, [])
      // Deleted for good, and somebody looks meanwhile: it is still known when it comes back.
      yield* remove(source, "t")
      assert.deepStrictEqual(places(yield* look()), [])
      yield* make("t")
      assert.lengthOf((yield* look()).recreated, 1)
    })))

  it.live("with pause nothing of it is mirrored, until the policy changes", () =>
    Effect.scoped(Effect.gen(function*() {
      const { look, make, remake } = yield* bench
      yield* make("t")
      yield* make("u")
      yield* look("pause")
      yield* remake("t")
      for (let n = 0; n < 2; n++) {
        const found = yield* look("pause")
        assert.deepStrictEqual(places(found), ["u>east.u"])
        assert.deepStrictEqual(found.paused.map(({ topic }) => topic), ["t"])
      }
      const after = yield* look("restart")
      assert.deepStrictEqual(places(after).toSorted(), ["t>east.t", "u>east.u"])
      assert.deepStrictEqual((yield* look("pause")).paused, [])
    })))

  it.live("with new-topic it has a target topic of its own, chosen by the process that leads", () =>
    Effect.scoped(Effect.gen(function*() {
      const { look, make, remake, west } = yield* bench
      yield* make("t")
      yield* look("new-topic")
      yield* remake("t")
      const waiting = yield* look("new-topic", false)
      assert.deepStrictEqual(places(waiting), [])
      assert.match(waiting.problems[0]?.reason ?? "", /is to name its new place/)
      assert.deepStrictEqual(places(yield* look("new-topic", true)), ["t>east.t.2"])
      assert.deepStrictEqual(places(yield* look("new-topic", false)), ["t>east.t.2"])
      assert.isTrue(west.state.topics.has("east.t.2"))
    })))

  it.live("a topic whose name looks remote is local, unless the target has the original", () =>
    Effect.scoped(Effect.gen(function*() {
      const { look, make, west } = yield* bench
      yield* make("west.local")
      yield* make("west.orders")
      west.createTopic("orders")
      const found = yield* look()
      assert.deepStrictEqual(places(found), ["west.local>east.west.local"])
      assert.deepStrictEqual(found.leftOut.map(({ topic }) => topic), ["west.orders"])
      // Deleted there since: what came from there does not go back.
      yield* remove(yield* west.cluster("somebody"), "orders")
      assert.deepStrictEqual(places(yield* look()), ["west.local>east.west.local"])
    })))
})
