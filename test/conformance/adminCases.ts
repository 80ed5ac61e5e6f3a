/** Topics, settings and groups, as an admin client sees them. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { createPartitions } from "../../src/wire/messages/createPartitions.ts"
import { deleteGroups } from "../../src/wire/messages/deleteGroups.ts"
import { deleteTopics } from "../../src/wire/messages/deleteTopics.ts"
import { describeCluster } from "../../src/wire/messages/describeCluster.ts"
import { describeConfigs } from "../../src/wire/messages/describeConfigs.ts"
import { describeGroups } from "../../src/wire/messages/describeGroups.ts"
import { heartbeat as classicHeartbeat } from "../../src/wire/messages/heartbeat.ts"
import { joinGroup } from "../../src/wire/messages/joinGroup.ts"
import { listGroups } from "../../src/wire/messages/listGroups.ts"
import { offsetCommit } from "../../src/wire/messages/offsetCommit.ts"
import { offsetFetch } from "../../src/wire/messages/offsetFetch.ts"
import { syncGroup } from "../../src/wire/messages/syncGroup.ts"
import { type Bench, type Case, claim, eventually, nameOf } from "./bench.ts"
import { heartbeat } from "./shareBench.ts"

const is = (actual: unknown, expected: unknown) => assert.deepStrictEqual(actual, expected)

const TOPIC = 2
const GROUP = 32

const settingOf = (b: Bench, resourceType: number, resourceName: string, key: string) =>
  Effect.map(
    b.cluster.request({ kind: "any" }, describeConfigs, {
      resources: [{ resourceType, resourceName, configurationKeys: [key] }]
    }),
    (a) => {
      const found = a.results[0]!
      return found.errorCode === 0
        ? [found.configs[0]?.value, found.configs[0]?.configSource === 5]
        : nameOf(found.errorCode)
    }
  )
/** The broker that is asked may learn of a change later than the one that took it. */
const settles = (b: Bench, type: number, name: string, key: string, value: string) =>
  eventually(settingOf(b, type, name, key), (found) => Array.isArray(found) && found[0] === value)

const topics: ReadonlyArray<Case> = [
  claim("a topic is created once", (b) =>
    Effect.gen(function*() {
      const name = b.unique("conf")
      is([yield* b.createTopic(name, 3), yield* b.createTopic(name, 3)], ["NONE", "TOPIC_ALREADY_EXISTS"])
      is((yield* eventually(b.cluster.topics([name]), (t) => t.has(name))).get(name)!.partitions.length, 3)
    })),
  claim("a topic's name, size, copies and settings are checked", (b) =>
    Effect.gen(function*() {
      is(yield* b.createTopic("no blanks"), "INVALID_TOPIC_EXCEPTION")
      is(yield* b.createTopic(".."), "INVALID_TOPIC_EXCEPTION")
      is(yield* b.createTopic(b.unique("conf"), 0), "INVALID_PARTITIONS")
      is(yield* b.createTopic(b.unique("conf"), 1, {}, 9), "INVALID_REPLICATION_FACTOR")
      is(yield* b.createTopic(b.unique("conf"), 1, { "no.such.setting": "1" }), "INVALID_CONFIG")
      is(yield* b.createTopic(b.unique("conf"), 1, { "cleanup.policy": "burn" }), "INVALID_CONFIG")
    })),
  claim("a topic grows, and does not shrink", (b) =>
    Effect.gen(function*() {
      const name = yield* b.topic(2)
      const grow = (count: number) =>
        Effect.map(
          b.cluster.request({ kind: "controller" }, createPartitions, {
            topics: [{ name, count, assignments: null }],
            timeoutMs: 5000,
            validateOnly: false
          }),
          (a) => nameOf(a.results[0]!.errorCode)
        )
      is([yield* grow(1), yield* grow(2), yield* grow(4)], ["INVALID_PARTITIONS", "INVALID_PARTITIONS", "NONE"])
      is(
        (yield* eventually(b.cluster.topics([name]), (t) => t.get(name)?.partitions.length === 4)).get(name)!.partitions
          .length,
        4
      )
    })),
  claim("a topic that is made anew has another id and begins at 0", (b) =>
    Effect.gen(function*() {
      const name = yield* b.topic()
      yield* b.send(name, ["a"])
      const before = yield* b.idOf(name)
      const drop = Effect.map(
        b.cluster.request({ kind: "controller" }, deleteTopics, (version) =>
          version >= 6
            ? { topics: [{ name, topicId: "AAAAAAAAAAAAAAAAAAAAAA" }], timeoutMs: 5000 }
            : { topicNames: [name], timeoutMs: 5000 }),
        (a) => nameOf(a.responses[0]!.errorCode)
      )
      is([yield* drop, yield* drop], ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"])
      yield* eventually(b.createTopic(name), (code) => code === "NONE")
      const after = yield* eventually(b.idOf(name), (id) => id !== "" && id !== before)
      assert.notStrictEqual(after, before)
      is(yield* eventually(b.send(name, ["b"]), (code) => code.startsWith("NONE")), "NONE@0")
    })),
  claim(
    "a topic that does not exist is not in the metadata",
    (b) => Effect.map(b.cluster.topics([b.unique("none")]), (found) => is(found.size, 0))
  ),
  claim("a topic's setting is set, seen and taken back", (b) =>
    Effect.gen(function*() {
      const name = yield* b.topic()
      is(yield* settingOf(b, TOPIC, name, "max.message.bytes"), ["1048588", true])
      is(yield* b.configure(TOPIC, name, { "max.message.bytes": "1234567" }), "NONE")
      is(yield* settles(b, TOPIC, name, "max.message.bytes", "1234567"), ["1234567", false])
      is(yield* b.configure(TOPIC, name, { "max.message.bytes": null }), "NONE")
      is(yield* settles(b, TOPIC, name, "max.message.bytes", "1048588"), ["1048588", true])
      is(yield* b.configure(TOPIC, name, { "max.message.bytes": "soon" }), "INVALID_CONFIG")
      is(yield* b.configure(TOPIC, name, { "no.such": "1" }), "INVALID_CONFIG")
    })),
  claim(
    "settings of a topic that does not exist are not there",
    (b) =>
      Effect.map(
        settingOf(b, TOPIC, b.unique("none"), "max.message.bytes"),
        (found) => is(found, "UNKNOWN_TOPIC_OR_PARTITION")
      )
  ),
  claim("share settings of a group have Kafka's defaults and limits", (b) =>
    Effect.gen(function*() {
      const group = b.unique("share")
      is(yield* b.configure(GROUP, group, { "share.delivery.count.limit": "11" }), "INVALID_CONFIG")
      is(yield* b.configure(GROUP, group, { "share.delivery.count.limit": "1" }), "INVALID_CONFIG")
      is(yield* b.configure(GROUP, group, { "share.partition.max.record.locks": "5000" }), "INVALID_CONFIG")
      is(yield* b.configure(GROUP, group, { "share.isolation.level": "read_all" }), "INVALID_CONFIG")
      is(yield* b.configure(GROUP, group, { "share.auto.offset.reset": "middle" }), "INVALID_CONFIG")
      is(yield* b.configure(GROUP, group, { "share.delivery.count.limit": "10" }), "NONE")
      is((yield* settles(b, GROUP, group, "share.delivery.count.limit", "10"))[0], "10")
      for (
        const [key, value] of [["share.auto.offset.reset", "latest"], ["share.isolation.level", "read_uncommitted"], [
          "share.record.lock.duration.ms",
          "30000"
        ], ["share.partition.max.record.locks", "2000"]] as const
      ) {
        is((yield* settingOf(b, GROUP, group, key))[0], value)
      }
    })),
  claim("the cluster says its id, the same everywhere", (b) =>
    Effect.gen(function*() {
      const answer = yield* b.cluster.request({ kind: "any" }, describeCluster, {
        includeClusterAuthorizedOperations: false
      })
      is([answer.clusterId, answer.brokers.length], [yield* b.cluster.clusterId, (yield* b.cluster.brokers).length])
    })),
  claim("share groups and transactions of version 2 are finalized features", (b) =>
    Effect.gen(function*() {
      const features = yield* b.cluster.features
      is([features.get("share.version"), features.get("transaction.version")], [2, 2])
    }))
]

const atGroup = (groupId: string) => ({ kind: "group", key: groupId }) as const
const COMING = new Set([14, 15, 16])

const commit = (
  b: Bench,
  groupId: string,
  topic: string,
  offset: number,
  member: { readonly id: string; readonly generation: number } = { id: "", generation: -1 },
  partition = 0
) =>
  Effect.gen(function*() {
    const topicId = yield* b.idOf(topic)
    const partitions = [{ partitionIndex: partition, committedOffset: offset, committedMetadata: "note" }]
    const request = {
      groupId,
      generationIdOrMemberEpoch: member.generation,
      memberId: member.id,
      topics: [{ name: topic, topicId, partitions }]
    }
    const answer = yield* eventually(b.cluster.request(atGroup(groupId), offsetCommit, request), (a) =>
      !COMING.has(a.topics[0]!.partitions[0]!.errorCode))
    return nameOf(answer.topics[0]!.partitions[0]!.errorCode)
  })
const committed = (b: Bench, groupId: string, topic: string) =>
  Effect.gen(function*() {
    const topicId = yield* b.idOf(topic)
    const groups = [{ groupId, topics: [{ name: topic, topicId, partitionIndexes: [0] }] }]
    const answer = yield* eventually(
      b.cluster.request(atGroup(groupId), offsetFetch, { groups }, { minVersion: 8 }),
      (a) => !COMING.has(a.groups[0]!.errorCode)
    )
    const found = answer.groups[0]!.topics[0]!.partitions[0]!
    return [found.committedOffset, found.metadata, nameOf(found.errorCode)]
  })

const PROTOCOL = { name: "range", metadata: Buffer.from([0, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]) }
const join = (b: Bench, groupId: string, memberId: string, protocols: ReadonlyArray<typeof PROTOCOL> = [PROTOCOL]) =>
  eventually(
    b.cluster.request(atGroup(groupId), joinGroup, {
      groupId,
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 10_000,
      memberId,
      protocolType: "consumer",
      protocols
    }, { purpose: memberId }),
    (a) => !COMING.has(a.errorCode)
  )
/** Joins alone and has its own assignment: the group is stable. */
const alone = (b: Bench, groupId: string) =>
  Effect.gen(function*() {
    const { memberId } = yield* join(b, groupId, "")
    const joined = yield* join(b, groupId, memberId)
    const request = {
      groupId,
      generationId: joined.generationId,
      memberId,
      protocolType: "consumer",
      protocolName: "range",
      assignments: [{ memberId, assignment: Buffer.from("mine") }]
    }
    const synced = yield* b.cluster.request(atGroup(groupId), syncGroup, request)
    return { id: memberId, generation: joined.generationId, joined, synced }
  })
const beat = (b: Bench, groupId: string, memberId: string, generationId: number) =>
  Effect.map(
    b.cluster.request(atGroup(groupId), classicHeartbeat, { groupId, generationId, memberId }),
    (a) => nameOf(a.errorCode)
  )

const groups: ReadonlyArray<Case> = [
  claim("a position that was never committed is -1", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      is((yield* committed(b, b.unique("group"), topic))[0], -1)
    })),
  claim("anybody may commit for a group without members", (b) =>
    Effect.gen(function*() {
      const [topic, group] = [yield* b.topic(), b.unique("group")]
      is([yield* commit(b, group, topic, 42), yield* committed(b, group, topic)], ["NONE", [42, "note", "NONE"]])
    })),
  claim("a commit for a partition that does not exist is refused", (b) =>
    Effect.gen(function*() {
      is(yield* commit(b, b.unique("group"), yield* b.topic(), 1, undefined, 7), "UNKNOWN_TOPIC_OR_PARTITION")
    })),
  claim("a member joins with the id it is given", (b) =>
    Effect.gen(function*() {
      const group = b.unique("group")
      const first = yield* join(b, group, "")
      is([nameOf(first.errorCode), first.memberId !== ""], ["MEMBER_ID_REQUIRED", true])
      const second = yield* join(b, group, first.memberId)
      is([
        nameOf(second.errorCode),
        second.generationId,
        second.leader === first.memberId,
        second.protocolName,
        second.members.length
      ], ["NONE", 1, true, "range", 1])
    })),
  claim("the leader's assignment is what a member gets", (b) =>
    Effect.gen(function*() {
      const group = b.unique("group")
      const member = yield* alone(b, group)
      is([nameOf(member.synced.errorCode), member.synced.assignment.toString()], ["NONE", "mine"])
      is(yield* beat(b, group, member.id, member.generation), "NONE")
    })),
  claim("a wrong generation and a member that is not known are told so", (b) =>
    Effect.gen(function*() {
      const [topic, group] = [yield* b.topic(), b.unique("group")]
      const member = yield* alone(b, group)
      is(yield* beat(b, group, member.id, 7), "ILLEGAL_GENERATION")
      is(yield* beat(b, group, "stranger", member.generation), "UNKNOWN_MEMBER_ID")
      is(yield* commit(b, group, topic, 1, { id: member.id, generation: 7 }), "ILLEGAL_GENERATION")
      is(yield* commit(b, group, topic, 1, { id: "stranger", generation: member.generation }), "UNKNOWN_MEMBER_ID")
      is(yield* commit(b, group, topic, 1), "UNKNOWN_MEMBER_ID")
      is(yield* commit(b, group, topic, 1, member), "NONE")
    })),
  claim("a second member makes the first join again", (b) =>
    Effect.gen(function*() {
      const group = b.unique("group")
      const first = yield* alone(b, group)
      const { memberId } = yield* join(b, group, "")
      const [second, again] = yield* Effect.all([
        join(b, group, memberId),
        Effect.andThen(
          eventually(beat(b, group, first.id, first.generation), (code) => code === "REBALANCE_IN_PROGRESS"),
          join(b, group, first.id)
        )
      ], { concurrency: 2 })
      is([second.generationId, again.generationId, again.members.length, second.members.length], [2, 2, 2, 0])
      is([second.leader, again.leader], [first.id, first.id])
    })),
  claim("a member of another protocol is refused", (b) =>
    Effect.gen(function*() {
      const group = b.unique("group")
      yield* alone(b, group)
      const { memberId } = yield* join(b, group, "", [{ ...PROTOCOL, name: "other" }])
      is(
        nameOf((yield* join(b, group, memberId, [{ ...PROTOCOL, name: "other" }])).errorCode),
        "INCONSISTENT_GROUP_PROTOCOL"
      )
    })),
  claim("groups are listed with their type, and described by their kind only", (b) =>
    Effect.gen(function*() {
      const [topic, classic, share] = [yield* b.topic(), b.unique("group"), b.unique("share")]
      yield* alone(b, classic)
      yield* heartbeat(b, share, b.unique("m"), 0, [topic])
      const listed = yield* b.cluster.request(atGroup(classic), listGroups, {})
      is([classic, share].map((id) => listed.groups.find((g) => g.groupId === id)?.groupType.toLowerCase()), [
        "classic",
        "share"
      ])
      const describe = (id: string) =>
        Effect.map(
          b.cluster.request(atGroup(id), describeGroups, { groups: [id] }),
          (a) => [nameOf(a.groups[0]!.errorCode), a.groups[0]!.groupState]
        )
      is(yield* describe(classic), ["NONE", "Stable"])
      is(yield* describe(share), ["GROUP_ID_NOT_FOUND", "Dead"])
      is(yield* describe(b.unique("none")), ["GROUP_ID_NOT_FOUND", "Dead"])
    })),
  claim("an id that is a classic group cannot be a share group", (b) =>
    Effect.gen(function*() {
      const [topic, group] = [yield* b.topic(), b.unique("group")]
      yield* alone(b, group)
      is(nameOf((yield* heartbeat(b, group, b.unique("m"), 0, [topic])).errorCode), "GROUP_ID_NOT_FOUND")
    })),
  claim("a group with members cannot be deleted, one that does not exist is not found", (b) =>
    Effect.gen(function*() {
      const group = b.unique("group")
      yield* alone(b, group)
      const drop = (id: string) =>
        Effect.map(b.cluster.request(atGroup(id), deleteGroups, { groupsNames: [id] }), (a) =>
          nameOf(a.results[0]!.errorCode))
      is([yield* drop(group), yield* drop(b.unique("none"))], ["NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"])
    }))
]

export const adminCases: ReadonlyArray<Case> = [...topics, ...groups]
