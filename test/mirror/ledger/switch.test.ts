/** The seams of a flow's ledger on whole flows: a flow that changes its guarantee on one ledger: nothing is lost, and nothing of the time without it comes again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { prometheusText } from "../../../src/metrics/text.ts"
import { makeShareConsumer } from "../../../src/share/consumer.ts"
import { ledgerTopicName } from "../../../src/txn/ledger/ledgerTopic.ts"
import { offsetCommit } from "../../../src/wire/messages/offsetCommit.ts"
import { deleteTopics } from "../../../src/wire/messages/deleteTopics.ts"
import { ZERO_UUID } from "../../../src/wire/schema.ts"
import { type FlowWorld, makeFlowWorld } from "../flowWorld.ts"

const TOPIC = "orders"
const COPY = "east.orders"

const record = (from: number, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, n) => `v${from + n}`.padEnd(5, "-"))

/** What is on the target more than once, and what is not there. */
const judged = (world: FlowWorld, count: number) => {
  const got = world.values(COPY)
  const all = record(0, count)
  return {
    lost: all.filter((value) => !got.includes(value)),
    doubled: all.filter((value) => got.filter((one) => one === value).length > 1)
  }
}

const caughtUp = { untilCaughtUp: true }
const EXACT = { "exactly.once.fallback": "fail" }

for (const mode of ["share", "consumer"] as const) {
  describe(`${mode} mode: exactly-once, at-least-once, exactly-once`, () => {
    it.live(
      "records of the time between are not mirrored again, and none is lost",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const world = yield* makeFlowWorld({ "group.protocol": mode, ...EXACT })
          world.east.createTopic(TOPIC, { partitions: 2 })
          const more = (from: number) => {
            world.append(TOPIC, 0, ...record(from, 10))
            world.append(TOPIC, 1, ...record(from + 10, 10))
          }
          more(0)
          yield* world.runAs({}, caughtUp)
          more(20)
          yield* world.runAs({ "delivery.guarantee": "at-least-once" }, caughtUp)
          more(40)
          yield* world.runAs({}, caughtUp)
          assert.deepStrictEqual(judged(world, 60), { lost: [], doubled: [] }, world.lines.join("\n"))
          assert.include(world.lines.join("\n"), `${ledgerTopicName("flow")}, and runs without it now (at-least-once)`)
          assert.match(world.lines.join("\n"), /the ledger is in force again: 20 offsets/)
          // A stop waits for nothing that is not at work.
          assert.notInclude(world.lines.join("\n"), "not finished within")
        })),
      120_000
    )
  })
}

/** A member of the flow's share group that is not ours: takes what is there, accepts these offsets, gives the rest back. */
const acceptOnly = (world: FlowWorld, first: number, last: number) =>
  Effect.scoped(Effect.gen(function*() {
    const cluster = yield* world.east.cluster("stranger")
    const consumer = yield* makeShareConsumer({ cluster, groupId: "flow", topics: [TOPIC], mode: "explicit" })
    let acquired = yield* consumer.poll({ maxWaitMs: 1_000, maxBytes: 1_000_000, maxRecords: 100 })
    while (acquired.length === 0) {
      acquired = yield* consumer.poll({ maxWaitMs: 1_000, maxBytes: 1_000_000, maxRecords: 100 })
    }
    for (const one of acquired) yield* consumer.acknowledge(one, [{ first, last, type: "accept" }])
    yield* consumer.releaseAll
  }))

describe("the first ledger of a flow whose group has come some way", () => {
  it.live("takes over what was done out of turn, record by record", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* makeFlowWorld(EXACT)
      world.east.createTopic(TOPIC)
      world.east.configure("group", "flow", { "share.auto.offset.reset": "earliest" })
      for (const value of record(0, 10)) world.append(TOPIC, 0, value)
      yield* acceptOnly(world, 5, 7)
      yield* world.runAs({}, caughtUp)
      assert.deepStrictEqual(world.values(COPY), [...record(0, 5), ...record(8, 2)], world.lines.join("\n"))
      assert.match(world.lines.join("\n"), /the ledger is new: what group flow had done before counts as mirrored/)
    })), 60_000)
})

for (const mode of ["share", "consumer"] as const) {
  describe(`${mode} mode: a ledger topic that was deleted while nothing ran`, () => {
    it.live("is told from a first start, and a setting begins a new one", () =>
      Effect.scoped(Effect.gen(function*() {
        const world = yield* makeFlowWorld({ "group.protocol": mode, ...EXACT })
        world.east.createTopic(TOPIC)
        world.append(TOPIC, 0, ...record(0, 10))
        yield* world.runAs({}, caughtUp)
        const ledger = ledgerTopicName("flow")
        const west = yield* world.west.cluster("operator")
        yield* west.request({ kind: "controller" }, deleteTopics, {
          topics: [{ name: ledger, topicId: ZERO_UUID }],
          topicNames: [],
          timeoutMs: 1_000
        })
        world.append(TOPIC, 0, ...record(10, 10))
        yield* world.runAs({}, caughtUp)
        assert.match(
          world.lines.join("\n"),
          /failed: .*is new, but this flow has run with one before.*Set on.ledger.lost: adopt/
        )
        assert.lengthOf(world.values(COPY), 10)
        yield* world.runAs({ "on.ledger.lost": "adopt" }, caughtUp)
        assert.deepStrictEqual(judged(world, 20), { lost: [], doubled: [] }, world.lines.join("\n"))
      })), 60_000)
  })
}

/** An operator's `kafka-consumer-groups --reset-offsets`. */
const moveGroup = (world: FlowWorld, offset: number) =>
  Effect.scoped(Effect.gen(function*() {
    const cluster = yield* world.east.cluster("operator")
    const partition = { partitionIndex: 0, committedOffset: offset, committedMetadata: "" }
    yield* cluster.request({ kind: "group", key: "flow" }, offsetCommit, {
      groupId: "flow",
      memberId: "",
      topics: [{ name: TOPIC, partitions: [partition] }]
    }, { maxVersion: 9 })
  }))

/** A flow that has ended takes its series with it. */
class KeptMetrics extends Map {
  override delete(): boolean {
    return false
  }
}

describe("consumer mode: the ledger says where a partition begins", () => {
  it.live(
    "a group that was moved ahead loses nothing, one that was moved back doubles nothing",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const world = yield* makeFlowWorld({ "group.protocol": "consumer", ...EXACT })
        world.east.createTopic(TOPIC)
        world.append(TOPIC, 0, ...record(0, 10))
        yield* world.runAs({}, caughtUp)
        world.append(TOPIC, 0, ...record(10, 10))
        yield* moveGroup(world, 20)
        yield* world.runAs({}, caughtUp)
        yield* moveGroup(world, 0)
        yield* world.runAs({}, caughtUp)
        assert.deepStrictEqual(world.values(COPY), record(0, 20).toSorted(), world.lines.join("\n"))
        assert.match(world.lines.join("\n"), /the group's position is 20, the ledger knows all below 10 to be mirrored/)
      })),
    60_000
  )

  it.live("a gap that stops the flow is in the metric", () =>
    Effect.scoped(Effect.gen(function*() {
      const registry = new KeptMetrics()
      const world = yield* makeFlowWorld({ "group.protocol": "consumer", ...EXACT })
      world.east.createTopic(TOPIC)
      world.append(TOPIC, 0, ...record(0, 10))
      yield* world.runAs({}, caughtUp)
      world.append(TOPIC, 0, ...record(10, 10))
      world.east.deleteRecords(TOPIC, 0, 14)
      yield* Effect.provideService(world.runAs({}, caughtUp), Metric.MetricRegistry, registry)
      const text = yield* Effect.provideService(prometheusText, Metric.MetricRegistry, registry)
      assert.match(world.lines.join("\n"), /failed: .*offsets 10 to 13/)
      assert.match(text, /^onceover_source_gap_records_total\{.*\} 4$/m)
    })), 60_000)
})
