/** A share consumer through what happens to brokers: leaders that move, brokers that die and come back. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Cluster } from "../../src/wire/cluster.ts"
import { arr, defineApi, int16, int32, narr, nstr, str } from "../../src/wire/schema.ts"
import { createTopic } from "../kit/admin.ts"
import { cluster as kafka } from "../kit/kafka.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"
import { acknowledgeAll, acquire, connect, eventually, LIMITS, member, offsetsOf, prepare } from "./shareMember.ts"

const alterPartitionReassignments = defineApi({
  key: 45,
  name: "AlterPartitionReassignments",
  versions: "0",
  flexible: 0,
  request: {
    timeoutMs: int32("0+"),
    topics: arr("0+", {
      name: str("0+"),
      partitions: arr("0+", { partitionIndex: int32("0+"), replicas: narr("0+", "0+", int32("0+")) })
    })
  },
  response: {
    throttleTimeMs: int32("0+"),
    errorCode: int16("0+"),
    errorMessage: nstr("0+", "0+"),
    responses: arr("0+", {
      name: str("0+"),
      partitions: arr("0+", { partitionIndex: int32("0+"), errorCode: int16("0+"), errorMessage: nstr("0+", "0+") })
    })
  }
})

const moveTo = (cluster: Cluster, topic: string, broker: number) =>
  Effect.gen(function*() {
    const answer = yield* cluster.request({ kind: "controller" }, alterPartitionReassignments, {
      timeoutMs: 30_000,
      topics: [{ name: topic, partitions: [{ partitionIndex: 0, replicas: [broker] }] }]
    })
    assert.deepStrictEqual([answer.errorCode, answer.responses[0]?.partitions[0]?.errorCode], [0, 0])
  })
const leaderOf = (cluster: Cluster, topic: string) =>
  Effect.map(cluster.topics([topic]), (found) => found.get(topic)?.partitions[0]?.leader ?? -1)

describe("a share consumer and its brokers", () => {
  it.live("a leader that moves takes what was held along: told as such, and delivered again by the new one", () =>
    Effect.scoped(Effect.gen(function*() {
      const brokers = yield* kafka({ name: "share-move", brokers: 2 })
      const topic = unique("moving")
      const groupId = unique("moving-group")
      yield* Effect.promise(() => createTopic(brokers, topic, { replicas: 1 }))
      yield* Effect.promise(() => load(brokers, makeRecords({ topic, count: 100 })))
      const cluster = yield* connect(brokers.bootstrap)
      yield* prepare(cluster, groupId)
      const consumer = yield* member(cluster, groupId, [topic])
      const [first] = yield* acquire(consumer, 100)
      const before = yield* leaderOf(cluster, topic)
      yield* moveTo(cluster, topic, before === 1 ? 2 : 1)
      const after = yield* Effect.promise(() =>
        until(async () => {
          const leader = await Effect.runPromise(leaderOf(cluster, topic))
          // Brokers are 1 and 2.
          return leader > 0 && leader !== before && leader
        }, { what: "the leader to move" })
      )
      const results = yield* consumer.acknowledge(first!, [{ first: 0, last: 49, type: "accept" }])
      assert.notInclude(results.map((r) => r.outcome), "done")
      yield* eventually(() => first!.lost, "the hold to be told as lost")
      const again = yield* acquire(consumer, 100)
      assert.strictEqual(offsetsOf(again).length, 100)
      assert.isTrue(again.every((a) => a.broker === after))
      assert.isTrue((yield* acknowledgeAll(consumer, again, "accept")).every((r) => r.outcome === "done"))
      assert.deepStrictEqual(yield* consumer.poll(LIMITS), [])
    })))

  it.live("sessions open again when the broker is back, and every record is accepted in the end", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* kafka({ name: "share-restart" })
      const topic = unique("restarted")
      const groupId = unique("restarted-group")
      yield* Effect.promise(() => createTopic(broker, topic))
      yield* Effect.promise(() => load(broker, makeRecords({ topic, count: 60 })))
      const cluster = yield* connect(broker.bootstrap)
      yield* prepare(cluster, groupId)
      const consumer = yield* member(cluster, groupId, [topic], { closeTimeoutMs: 5000 })
      const [first] = yield* acquire(consumer, 60)
      const accepted = new Set<number>()
      const note = (
        results: ReadonlyArray<{ readonly first: number; readonly last: number; readonly outcome: string }>
      ) => {
        for (const r of results) if (r.outcome === "done") { for (let o = r.first; o <= r.last; o++) accepted.add(o) }
      }
      note(yield* consumer.acknowledge(first!, [{ first: 0, last: 19, type: "accept" }]))
      yield* Effect.promise(() => broker.kill("SIGKILL"))
      const down = yield* consumer.acknowledge(first!, [{ first: 20, last: 29, type: "accept" }])
      assert.include(["unknown", "lost"], down[0]?.outcome)
      assert.isTrue(first!.lost)
      yield* Effect.promise(() => broker.restart())
      yield* Effect.promise(() => load(broker, makeRecords({ topic, count: 40, from: 60 })))
      for (let round = 0; round < 400 && accepted.size < 100; round++) {
        const got = yield* consumer.poll(LIMITS)
        // What was accepted before the broker died stays accepted.
        assert.isFalse(offsetsOf(got).some((o) => Number(o.slice(2)) < 20))
        note(yield* acknowledgeAll(consumer, got, "accept"))
      }
      assert.strictEqual(accepted.size, 100)
    })))

  it.live("a consumer closes within its time while the broker is frozen", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* kafka({ name: "share-frozen" })
      const topic = unique("frozen")
      const groupId = unique("frozen-group")
      yield* Effect.promise(() => createTopic(broker, topic))
      yield* Effect.promise(() => load(broker, makeRecords({ topic, count: 30 })))
      const cluster = yield* connect(broker.bootstrap)
      yield* prepare(cluster, groupId, 60_000)
      yield* Effect.scoped(Effect.gen(function*() {
        const consumer = yield* member(cluster, groupId, [topic], { closeTimeoutMs: 2000 })
        yield* acquire(consumer, 30)
        yield* Effect.promise(() => broker.kill("SIGSTOP"))
      })).pipe(Effect.timeout("30 seconds"))
      yield* Effect.promise(() => broker.kill("SIGCONT"))
      // Its connections are closed: the broker, awake again, gives the records to the next member before any lock ends.
      const next = yield* member(cluster, groupId, [topic])
      const got = yield* acquire(next, 30).pipe(Effect.timeout("55 seconds"))
      assert.strictEqual(offsetsOf(got).length, 30)
    })))
})
