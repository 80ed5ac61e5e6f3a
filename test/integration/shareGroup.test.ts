/** What is looked at and brought in order before a share group is joined: its settings, and that it is one. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { assertGroupType, findGroup } from "../../src/group/groupType.ts"
import { prepareGroup } from "../../src/share/groupSettings.ts"
import { consumerGroupHeartbeat } from "../../src/wire/messages/consumerGroupHeartbeat.ts"
import { createTopic, groupConfigs } from "../kit/admin.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { connect, member } from "./shareMember.ts"

const { source } = sharedClusters()
const settingsOf = (groupId: string) => Effect.promise(() => groupConfigs(source, groupId))

describe("a share group's settings", () => {
  it.live("are brought to what loses nothing, each change is told, and the second time there is none", () =>
    Effect.scoped(Effect.gen(function*() {
      const cluster = yield* connect(source.bootstrap)
      const groupId = unique("settings")
      const { changes, warnings } = yield* prepareGroup({ cluster, groupId })
      assert.deepStrictEqual(changes, [
        { key: "share.auto.offset.reset", from: "latest", to: "earliest" },
        { key: "share.isolation.level", from: "read_uncommitted", to: "read_committed" },
        { key: "share.delivery.count.limit", from: "5", to: "10" },
        { key: "share.partition.max.record.locks", from: "2000", to: "4000" }
      ])
      assert.deepStrictEqual(warnings, [])
      const now = yield* settingsOf(groupId)
      for (const { key, to } of changes) assert.strictEqual(now.get(key), to)
      const again = yield* prepareGroup({ cluster, groupId })
      assert.deepStrictEqual([again.changes, again.warnings], [[], []])
    })))

  it.live("what the user pinned wins, also over the highest value, and keys of other things are left alone", () =>
    Effect.scoped(Effect.gen(function*() {
      const cluster = yield* connect(source.bootstrap)
      const groupId = unique("pinned")
      const overrides = {
        "share.delivery.count.limit": "3",
        "share.record.lock.duration.ms": "20000",
        "share.acknowledgement.mode": "explicit"
      }
      const { warnings } = yield* prepareGroup({ cluster, groupId, autoOffsetReset: "latest", overrides })
      assert.deepStrictEqual(warnings, [])
      const now = yield* settingsOf(groupId)
      assert.deepStrictEqual(
        ["share.delivery.count.limit", "share.record.lock.duration.ms", "share.auto.offset.reset"].map((k) =>
          now.get(k)
        ),
        ["3", "20000", "latest"]
      )
    })))

  it.live("a value that the brokers refuse is a warning with their reason and the danger, and the others are set", () =>
    Effect.scoped(Effect.gen(function*() {
      const cluster = yield* connect(source.bootstrap)
      const groupId = unique("refused")
      const { changes, warnings } = yield* prepareGroup({
        cluster,
        groupId,
        overrides: { "share.delivery.count.limit": "99" }
      })
      assert.deepStrictEqual(warnings.map((w) => [w.key, w.wanted, w.current]), [[
        "share.delivery.count.limit",
        "99",
        "5"
      ]])
      assert.match(warnings[0]?.why ?? "", /range 2 to 10/)
      assert.match(warnings[0]?.danger ?? "", /give up a record/)
      assert.strictEqual(changes.length, 3)
    })))

  it.live("a check tells the same changes and makes none", () =>
    Effect.scoped(Effect.gen(function*() {
      const cluster = yield* connect(source.bootstrap)
      const groupId = unique("checked")
      const { changes } = yield* prepareGroup({ cluster, groupId, mode: "validate" })
      assert.strictEqual(changes.length, 4)
      assert.strictEqual((yield* settingsOf(groupId)).get("share.auto.offset.reset"), "latest")
    })))
})

describe("a group id", () => {
  it.live("of a group of another kind is refused before anything is joined, in both directions", () =>
    Effect.scoped(Effect.gen(function*() {
      const cluster = yield* connect(source.bootstrap)
      const topic = unique("kinds")
      yield* Effect.promise(() => createTopic(source, topic))
      const taken = unique("kind-consumer")
      yield* assertGroupType(cluster, taken, "share")
      const joined = yield* cluster.retrying(Effect.gen(function*() {
        const answer = yield* cluster.request({ kind: "group", key: taken }, consumerGroupHeartbeat, {
          groupId: taken,
          memberId: unique("m"),
          memberEpoch: 0,
          rebalanceTimeoutMs: 60_000,
          subscribedTopicNames: [topic],
          topicPartitions: []
        })
        return answer.errorCode
      }))
      assert.strictEqual(joined, 0)
      const error = yield* Effect.flip(assertGroupType(cluster, taken, "share"))
      assert.strictEqual(error._tag, "GroupCollisionError")
      assert.match(
        error.message,
        /a consumer group of this name exists.*a share group is wanted: choose another group\.id/
      )
      yield* assertGroupType(cluster, taken, "consumer")

      const shared = unique("kind-share")
      yield* member(cluster, shared, [topic])
      assert.strictEqual((yield* findGroup(cluster, shared))?.type, "share")
      yield* assertGroupType(cluster, shared, "share")
      assert.strictEqual((yield* Effect.flip(assertGroupType(cluster, shared, "consumer")))._tag, "GroupCollisionError")
    })))

  it.live("that is taken is refused by the join as well, with the broker's words", () =>
    Effect.scoped(Effect.gen(function*() {
      const cluster = yield* connect(source.bootstrap)
      const topic = unique("kinds")
      const taken = unique("kind-late")
      yield* Effect.promise(() => createTopic(source, topic))
      yield* cluster.request({ kind: "group", key: taken }, consumerGroupHeartbeat, {
        groupId: taken,
        memberId: unique("m"),
        memberEpoch: 0,
        rebalanceTimeoutMs: 60_000,
        subscribedTopicNames: [topic],
        topicPartitions: []
      })
      const error = yield* Effect.flip(Effect.scoped(member(cluster, taken, [topic])))
      assert.match(error.message, /is not a share group/)
    })))
})
