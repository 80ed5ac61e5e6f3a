/** The share consumer against a real broker: who gets a record when, and whether the broker's word is told as it is. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { shareGroupHeartbeat } from "../../src/wire/messages/shareGroupHeartbeat.ts"
import { shareStartOffsets } from "../../src/share/startOffsets.ts"
import { alterGroup, createTopic, growTopic } from "../kit/admin.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { acknowledgeAll, acquire, connect, eventually, LIMITS, member, offsetsOf, prepare } from "./shareMember.ts"

const { source } = sharedClusters()

/** A topic with records, a prepared group, and a client. */
const given = (records: number, options: { readonly partitions?: number; readonly lockMs?: number } = {}) =>
  Effect.gen(function*() {
    const topic = unique("share")
    const groupId = unique("share-group")
    const partitions = options.partitions ?? 1
    const fill = (count: number) => Effect.promise(() => load(source, makeRecords({ topic, count, partitions })))
    yield* Effect.promise(() => createTopic(source, topic, { partitions }))
    const cluster = yield* connect(source.bootstrap)
    yield* prepare(cluster, groupId, options.lockMs)
    if (records > 0) yield* fill(records)
    return { cluster, groupId, topic, fill }
  })

const everyOffset = (count: number, partitions: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, n) => `${n % partitions}:${Math.floor(n / partitions)}`).sort()

describe("a share consumer", () => {
  it.live("gets every record that was there before the group, as whole batches, once", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(400, { partitions: 2 })
      const consumer = yield* member(cluster, groupId, [topic])
      const got = yield* acquire(consumer, 400)
      assert.deepStrictEqual([...offsetsOf(got)].sort(), everyOffset(400, 2))
      assert.isTrue(got.every((a) => a.ranges.every((r) => r.deliveryCount === 1)))
      assert.strictEqual(
        got.reduce((sum, a) => sum + splitBatches(a.records).reduce((n, b) => n + b.recordCount, 0), 0),
        400
      )
      const results = yield* acknowledgeAll(consumer, got, "accept")
      assert.isTrue(results.every((r) => r.outcome === "done"))
      const starts = yield* shareStartOffsets(cluster, groupId, new Map([[topic, [0, 1]]]))
      assert.deepStrictEqual(starts.map((s) => [s.partition, s.lag]).sort(), [[0, 0], [1, 0]])
    })))

  it.live("shares one partition with another member, and no record is with both", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic, fill } = yield* given(0)
      const [one, two] = [yield* member(cluster, groupId, [topic]), yield* member(cluster, groupId, [topic])]
      const hasPartition = (consumer: typeof one) => () => consumer.assignment().get(topic)?.length === 1
      yield* eventually(hasPartition(one), "the first member's assignment")
      yield* eventually(hasPartition(two), "the second member's assignment")
      const seen: Array<string> = []
      const by = { one: 0, two: 0 }
      for (let round = 0; round < 60 && (by.one === 0 || by.two === 0); round++) {
        yield* fill(50)
        const [a, b] = yield* Effect.all([one.poll(LIMITS), two.poll(LIMITS)], { concurrency: 2 })
        by.one += a.length
        by.two += b.length
        seen.push(...offsetsOf(a), ...offsetsOf(b))
      }
      assert.isAbove(by.one, 0, "the first member got records")
      assert.isAbove(by.two, 0, "the second member got records")
      assert.strictEqual(new Set(seen).size, seen.length)
    })))

  it.live("a partition that rests is not fetched, the other is; what is held of it is renewed and can be acknowledged", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, fill, groupId, topic } = yield* given(40, { partitions: 2, lockMs: 2_000 })
      const consumer = yield* member(cluster, groupId, [topic])
      const got = yield* acquire(consumer, 40)
      yield* consumer.rest(topic, 0, true)
      yield* acknowledgeAll(consumer, got.filter((a) => a.partition === 1), "accept")
      yield* fill(40)
      const more = yield* acquire(consumer, 20)
      const renewals = () => consumer.events.filter(({ kind }) => kind === "renewed").length
      while (renewals() < 4) assert.deepStrictEqual(yield* consumer.poll(LIMITS), [])
      assert.isTrue(more.every(({ partition }) => partition === 1))
      yield* consumer.rest(topic, 0, false)
      const last = yield* acquire(consumer, 20)
      assert.isTrue(last.every(({ partition }) => partition === 0))
      const results = yield* acknowledgeAll(
        consumer,
        [...got.filter((a) => a.partition === 0), ...more, ...last],
        "accept"
      )
      assert.isTrue(results.every((r) => r.outcome === "done"))
    })))

  it.live("a released record comes again with its count, an accepted or rejected one never", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(30)
      const consumer = yield* member(cluster, groupId, [topic])
      const [first] = yield* acquire(consumer, 30)
      const results = yield* consumer.acknowledge(first!, [
        { first: 0, last: 9, type: "accept" },
        { first: 10, last: 19, type: "reject" },
        { first: 20, last: 24, type: "release" },
        { first: 25, last: 29, type: "gap" }
      ])
      assert.deepStrictEqual(results.map((r) => r.outcome), ["done", "done", "done", "done"])
      const again = yield* acquire(consumer, 5)
      assert.deepStrictEqual(again.map((a) => a.ranges), [[{ first: 20, last: 24, deliveryCount: 2 }]])
      yield* acknowledgeAll(consumer, again, "accept")
      assert.deepStrictEqual(yield* consumer.poll(LIMITS), [])
      assert.deepStrictEqual((yield* shareStartOffsets(cluster, groupId)).map((s) => s.lag), [0])
    })))

  it.live("an acknowledgement is answered while a fetch waits, and rides on a fetch when one goes anyway", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(20)
      const consumer = yield* member(cluster, groupId, [topic])
      const [first] = yield* acquire(consumer, 20)
      const part = (from: number) => consumer.acknowledge(first!, [{ first: from, last: from + 4, type: "accept" }])
      assert.deepStrictEqual((yield* part(0)).map((r) => r.outcome), ["done"], "alone")
      const [polled, during] = yield* Effect.all([consumer.poll(LIMITS), Effect.andThen(Effect.yieldNow, part(5))], {
        concurrency: 2
      })
      assert.deepStrictEqual([polled, during.map((r) => r.outcome)], [[], ["done"]], "while a poll is on its way")
      const [riding] = yield* Effect.all([part(10), consumer.poll(LIMITS)], { concurrency: 2 })
      assert.deepStrictEqual(riding.map((r) => r.outcome), ["done"], "with the fetch")
      assert.deepStrictEqual(first!.held, [{ first: 15, last: 19 }])
    })))

  it.live("what is acknowledged twice or was never acquired is told as lost, and nothing is sent", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(10)
      const consumer = yield* member(cluster, groupId, [topic])
      const [first] = yield* acquire(consumer, 10)
      yield* consumer.acknowledge(first!, [{ first: 0, last: 4, type: "accept" }])
      const results = yield* consumer.acknowledge(first!, [{ first: 3, last: 12, type: "accept" }])
      assert.deepStrictEqual(results.map((r) => [r.first, r.last, r.outcome]), [[3, 4, "lost"], [5, 9, "done"], [
        10,
        12,
        "lost"
      ]])
    })))

  it.live("in implicit mode a poll accepts what the poll before it delivered", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(25)
      const consumer = yield* member(cluster, groupId, [topic], { mode: "implicit" })
      yield* acquire(consumer, 25)
      yield* consumer.poll(LIMITS)
      yield* eventually(() => consumer.events.some((e) => e.kind === "acknowledged"), "the acknowledgement's outcome")
      const told = consumer.events.flatMap((e) => (e.kind === "acknowledged" ? e.results : []))
      assert.deepStrictEqual(told.map((r) => [r.first, r.last, r.type, r.outcome]), [[0, 24, "accept", "done"]])
      assert.deepStrictEqual((yield* shareStartOffsets(cluster, groupId)).map((s) => s.lag), [0])
    })))

  it.live("keeps what it holds beyond many locks while nobody polls, without spending a delivery", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(40, { lockMs: 1000 })
      const consumer = yield* member(cluster, groupId, [topic])
      const other = yield* member(cluster, groupId, [topic])
      const got = yield* acquire(consumer, 40)
      const renewals = () => consumer.events.filter((e) => e.kind === "renewed").length
      // Fourteen renewals at half of a lock are seven locks, more than the deliveries that a group spends by default.
      yield* eventually(() => renewals() >= 14, "fourteen renewals")
      assert.deepStrictEqual(yield* other.poll(LIMITS), [])
      const results = yield* acknowledgeAll(consumer, got, "accept")
      assert.isTrue(results.every((r) => r.outcome === "done"))
      assert.isFalse(got.some((a) => a.lost))
    })))

  it.live("tells that a lock ran out where renewing is switched off, and the record comes again", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(10, { lockMs: 1000 })
      yield* Effect.promise(() => alterGroup(source, groupId, { "share.renew.acknowledge.enable": "false" }))
      const consumer = yield* member(cluster, groupId, [topic])
      const [first] = yield* acquire(consumer, 10)
      yield* eventually(() => consumer.events.some((e) => e.kind === "lost"), "the lock to run out")
      assert.isTrue(consumer.events.some((e) => e.kind === "renewalUnavailable"))
      assert.isTrue(first!.lost)
      const results = yield* consumer.acknowledge(first!, [{ first: 0, last: 9, type: "accept" }])
      assert.deepStrictEqual(results.map((r) => r.outcome), ["lost"])
      const again = yield* acquire(consumer, 10)
      assert.isTrue(again.every((a) => a.ranges.every((r) => r.deliveryCount >= 2)))
    })))

  it.live("surfaces the broker's refusal of one range and applies the ranges beside it", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(60)
      const consumer = yield* member(cluster, groupId, [topic], { fetchMaxWaitMs: 100 })
      const [first] = yield* acquire(consumer, 60)
      // Decided by the broker while the consumer still believes to hold them. Offset 0 stays open: below the first
      // open offset the broker lets everything pass.
      const believed = first!.held
      yield* consumer.acknowledge(first!, [{ first: 20, last: 24, type: "accept" }])
      Object.assign(first!, { held: believed })
      const results = yield* Effect.all(
        [10, 20, 30, 40, 50].map((from) =>
          consumer.acknowledge(first!, [{ first: from, last: from + 9, type: "accept" }])
        ),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(results.flat().map((r) => [r.first, r.outcome, r.error?.code ?? 0]), [
        [10, "done", 0],
        [20, "refused", 121],
        [30, "done", 0],
        [40, "done", 0],
        [50, "done", 0]
      ])
    })))

  it.live("joins again under its old id when the group forgot it, and what it holds stays its own", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic, fill } = yield* given(10)
      const consumer = yield* member(cluster, groupId, [topic])
      const got = yield* acquire(consumer, 10)
      yield* cluster.request({ kind: "group", key: groupId }, shareGroupHeartbeat, {
        groupId,
        memberId: consumer.memberId,
        memberEpoch: -1
      })
      yield* eventually(() => consumer.events.some((e) => e.kind === "joined" && e.again), "the second join")
      assert.isTrue(consumer.events.some((e) => e.kind === "fenced"))
      assert.isAbove(consumer.memberEpoch(), 0)
      const results = yield* acknowledgeAll(consumer, got, "accept")
      assert.deepStrictEqual(results.map((r) => r.outcome), ["done"])
      yield* fill(7)
      yield* acquire(consumer, 7)
    })))

  it.live("closing gives all it holds back at once, and leaves the group", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(50, { lockMs: 60_000 })
      const other = yield* member(cluster, groupId, [topic])
      yield* Effect.scoped(Effect.gen(function*() {
        const consumer = yield* member(cluster, groupId, [topic])
        yield* acquire(consumer, 50)
      }))
      // The wait is bounded below the lock: it is the release that lets the records come.
      const got = yield* acquire(other, 50).pipe(Effect.timeout("50 seconds"))
      assert.strictEqual(offsetsOf(got).length, 50)
      assert.isTrue(got.every((a) => a.ranges.every((r) => r.deliveryCount === 2)))
    })))

  it.live("an interruption in the middle of a poll gives back what is held", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(20, { lockMs: 60_000 })
      const other = yield* member(cluster, groupId, [topic])
      const holding = yield* Deferred.make<void>()
      const fiber = yield* Effect.scoped(Effect.gen(function*() {
        const consumer = yield* member(cluster, groupId, [topic])
        yield* acquire(consumer, 20)
        yield* Deferred.succeed(holding, undefined)
        while (true) yield* consumer.poll({ ...LIMITS, maxWaitMs: 10_000 })
      })).pipe(Effect.forkChild)
      yield* Deferred.await(holding)
      yield* Fiber.interrupt(fiber)
      const got = yield* acquire(other, 20).pipe(Effect.timeout("50 seconds"))
      assert.strictEqual(new Set(offsetsOf(got)).size, 20)
    })))

  it.live("fetches from a topic that is subscribed later, and from partitions that are added", () =>
    Effect.scoped(Effect.gen(function*() {
      const { cluster, groupId, topic } = yield* given(5)
      const later = unique("share-later")
      const consumer = yield* member(cluster, groupId, [topic])
      yield* acquire(consumer, 5)
      yield* Effect.promise(() => createTopic(source, later))
      yield* consumer.subscribe([topic, later])
      yield* Effect.promise(() => load(source, makeRecords({ topic: later, count: 8 })))
      const got = yield* acquire(consumer, 8)
      assert.isTrue(got.every((a) => a.topic === later))
      yield* Effect.promise(() => growTopic(source, later, 2))
      yield* Effect.promise(() =>
        load(source, makeRecords({ topic: later, count: 6, partitions: 2 }).filter((r) => r.partition === 1))
      )
      const added = yield* acquire(consumer, 3)
      assert.isTrue(added.every((a) => a.partition === 1))
    })))
})
