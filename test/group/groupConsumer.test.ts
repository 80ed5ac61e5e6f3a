/** The whole consumer on a fake cluster and a fake group, in virtual time. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { GapError } from "../../src/group/errors.ts"
import { type GroupConsumer, type GroupConsumerOptions, makeGroupConsumer } from "../../src/group/groupConsumer.ts"
import { partitionKey, type TopicPartition } from "../../src/group/position.ts"
import type { Fetched } from "../../src/group/shared.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"
import { FakeCluster, type FakeOptions } from "./fakeCluster.ts"
import { FakeMembership } from "./fakeMembership.ts"

interface World {
  readonly cluster: FakeCluster
  readonly group: FakeMembership
  readonly consumer: GroupConsumer
  readonly gaps: Array<GapError>
  /** Everything polled: values in order, per partition. */
  readonly seen: Map<string, Array<string>>
  readonly pieces: Array<Fetched>
}

const at = (partition: number, topic = "t"): TopicPartition => ({ topic, partition })
const valuesOf = (piece: Fetched): ReadonlyArray<string> =>
  piece.batches.flatMap((batch) => decodeRecords(batch).filter(({ offset }) => offset >= piece.first).map(({ value }) => String(value)))

const world = (fake: FakeOptions, options: Partial<GroupConsumerOptions> = {}, prepare: (group: FakeMembership, cluster: FakeCluster) => void = () => {}): Effect.Effect<World, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const cluster = new FakeCluster(fake)
    const group = new FakeMembership()
    const gaps: Array<GapError> = []
    prepare(group, cluster)
    const consumer = yield* makeGroupConsumer({
      cluster: cluster.port,
      settings: { "bootstrap.servers": "fake:1" },
      groupId: "g",
      protocol: "classic",
      onSourceGap: "fail",
      name: "lane",
      onGap: (gap) => void gaps.push(gap),
      membership: group.make,
      ...options
    })
    return { cluster, group, consumer, gaps, seen: new Map(), pieces: [] }
  })

/** Polls what is there into the world. */
const drain = (w: World, maxBytes = 1_000_000) =>
  Effect.gen(function*() {
    const pieces = yield* w.consumer.poll({ maxWaitMs: 0, maxBytes })
    for (const piece of pieces) {
      w.pieces.push(piece)
      const list = w.seen.get(partitionKey(piece)) ?? []
      w.seen.set(partitionKey(piece), list)
      list.push(...valuesOf(piece))
    }
  })

/** Lets virtual time pass, step by step, until the condition holds. */
const passUntil = <E = never>(condition: () => boolean, each: Effect.Effect<void, E> = Effect.void) =>
  Effect.gen(function*() {
    for (let i = 0; i < 2_000; i++) {
      yield* each
      if (condition()) return
      yield* TestClock.adjust("20 millis")
    }
    return yield* Effect.die(new Error("waited in vain"))
  })
const reads = (w: World, key: string, count: number) => passUntil(() => (w.seen.get(key)?.length ?? 0) >= count, drain(w))
const confirmAll = (w: World) => w.consumer.commit(w.pieces.map((p) => ({ topic: p.topic, partition: p.partition, offset: p.next, leaderEpoch: p.leaderEpoch, generation: p.generation })))
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `v${from + i}`)
const viewOf = (w: World, key: string) => Effect.map(w.consumer.partitions, (all) => all.find((p) => partitionKey(p) === key))

describe("leaders", () => {
  for (const nameLeader of [true, false]) {
    it.effect(`a leader that moves ${nameLeader ? "and is named in the answer" : "and has to be looked up"} costs no record and doubles none`, () =>
      Effect.gen(function*() {
        const w = yield* world({ topics: { t: 1 }, brokers: 3 })
        w.cluster.at("t").nameLeader = nameLeader
        w.cluster.append("t", 0, numbers(0, 10))
        yield* w.group.assign(at(0))
        yield* reads(w, "t-0", 10)
        for (let round = 1; round <= 4; round++) {
          w.cluster.move("t", 0, 1 + round % 3)
          w.cluster.append("t", 0, numbers(round * 10, round * 10 + 10))
          yield* reads(w, "t-0", round * 10 + 10)
        }
        assert.deepStrictEqual(w.seen.get("t-0"), numbers(0, 50))
        assert.include(w.cluster.requests.map(({ api }) => api), "OffsetForLeaderEpoch")
        assert.isNull((yield* viewOf(w, "t-0"))?.problem)
      }))
  }

  it.effect("a broker that cannot be reached is tried again, and the others go on meanwhile", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 2 }, brokers: 2 })
      w.cluster.unreachable.add(1)
      w.cluster.append("t", 0, ["a"])
      w.cluster.append("t", 1, ["b"])
      yield* w.group.assign(at(0), at(1))
      yield* reads(w, "t-1", 1)
      assert.isUndefined(w.seen.get("t-0"))
      w.cluster.unreachable.clear()
      yield* reads(w, "t-0", 1)
    }))

  it.effect("a recommended follower is read, and only the leader's word counts for what is out of range", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 1 }, brokers: 2 })
      const partition = w.cluster.at("t")
      partition.follower = 2
      w.cluster.append("t", 0, numbers(0, 5))
      yield* w.group.assign(at(0))
      yield* reads(w, "t-0", 5)
      assert.isTrue(w.cluster.asked.some(({ broker, offset }) => broker === 2 && offset === 0))
      assert.isFalse(w.cluster.asked.some(({ broker, offset }) => broker === 1 && offset > 0))
      partition.codes.push(1)
      w.cluster.changed.notify()
      w.cluster.append("t", 0, numbers(5, 8))
      yield* reads(w, "t-0", 8)
      assert.isNull((yield* viewOf(w, "t-0"))?.problem)
      assert.deepStrictEqual(w.seen.get("t-0"), numbers(0, 8))
    }))

  for (const fetchVersion of [4, 8, 12]) {
    it.effect(`works with brokers whose newest Fetch is version ${fetchVersion}`, () =>
      Effect.gen(function*() {
        const w = yield* world({ topics: { t: 2 }, fetchVersion })
        w.cluster.append("t", 0, numbers(0, 3))
        w.cluster.append("t", 1, ["a"])
        yield* w.group.assign(at(0), at(1))
        yield* reads(w, "t-0", 3)
        yield* reads(w, "t-1", 1)
        assert.isTrue(w.cluster.requests.filter(({ api }) => api === "Fetch").every(({ version }) => version === fetchVersion))
      }))
  }
})

describe("a log that was truncated", () => {
  /** 10 records read, the last 4 of which an unclean leader then has not; 6 others stand there. */
  const truncated = (onSourceGap: "fail" | "continue") =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 2 }, brokers: 2 }, { onSourceGap })
      w.cluster.append("t", 0, numbers(0, 6))
      w.cluster.append("t", 0, numbers(6, 10))
      yield* w.group.assign(at(0), at(1))
      yield* reads(w, "t-0", 10)
      w.cluster.at("t").log.truncate(6)
      w.cluster.at("t").leader = 2
      w.cluster.append("t", 0, ["x6", "x7", "x8", "x9", "x10", "x11"])
      return w
    })

  it.effect("stops the partition with the point of truncation, though the position is within the new log", () =>
    Effect.gen(function*() {
      const w = yield* truncated("fail")
      yield* passUntil(() => w.cluster.requests.some(({ api }) => api === "OffsetForLeaderEpoch"), drain(w))
      w.cluster.append("t", 1, ["other"])
      yield* reads(w, "t-1", 1)
      const view = yield* viewOf(w, "t-0")
      assert.deepInclude(view?.problem, { _tag: "GapError", kind: "truncated", from: 10, to: 6, count: 4 })
      assert.deepStrictEqual(w.seen.get("t-0"), numbers(0, 10))
    }))

  it.effect("continue: goes back to the point of truncation as a new generation, and says so", () =>
    Effect.gen(function*() {
      const w = yield* truncated("continue")
      const before = w.pieces.at(-1)
      yield* reads(w, "t-0", 16)
      assert.deepStrictEqual(w.seen.get("t-0")?.slice(10), ["x6", "x7", "x8", "x9", "x10", "x11"])
      assert.deepInclude(w.gaps[0], { kind: "truncated", from: 10, to: 6 })
      const late = { ...at(0), offset: 10, leaderEpoch: 1, generation: before?.generation ?? -1 }
      assert.strictEqual(yield* w.consumer.commit([late]), 1)
      yield* w.consumer.commit([{ ...late, offset: 8, generation: w.pieces.at(-1)?.generation ?? -1 }])
      assert.strictEqual((yield* w.consumer.flush).kind, "committed")
      assert.strictEqual(w.group.committed.get("t-0")?.offset, 8)
    }))
})

describe("where reading starts", () => {
  const committed = (group: FakeMembership, offset: number, metadata: string, partition = 0) =>
    group.committed.set(`t-${partition}`, { ...at(partition), offset, leaderEpoch: -1, metadata })

  it.effect("after the committed offset", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 1 } }, {}, (group) => committed(group, 3, ""))
      w.cluster.append("t", 0, numbers(0, 5))
      yield* w.group.assign(at(0))
      yield* reads(w, "t-0", 2)
      assert.deepStrictEqual(w.seen.get("t-0"), ["v3", "v4"])
      assert.strictEqual(w.pieces[0]?.first, 3)
    }))

  it.effect("a topic made anew while nobody ran is noticed, though the committed offset fits it", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 1 } }, {}, (group) => committed(group, 3, `topic.id=${Buffer.alloc(16, 99).toString("base64url")}`))
      w.cluster.append("t", 0, numbers(0, 5))
      yield* w.group.assign(at(0))
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude((yield* viewOf(w, "t-0"))?.problem, { _tag: "GapError", kind: "recreated", from: 3, to: 0 })
    }))

  it.effect("latest: a partition that was added while nobody ran is read from its beginning", () =>
    Effect.gen(function*() {
      const latest = { settings: { "bootstrap.servers": "fake:1", "auto.offset.reset": "latest" } }
      const first = yield* Effect.scoped(Effect.gen(function*() {
        const w = yield* world({ topics: { t: 1 } }, latest)
        w.cluster.append("t", 0, numbers(0, 5))
        yield* w.consumer.subscribe(["t"])
        yield* w.group.assign(at(0))
        yield* TestClock.adjust("5 seconds")
        return w.group
      }))
      assert.strictEqual(first.committed.get("t-0")?.offset, 5)
      const w = yield* world({ topics: { t: 2 } }, latest, (group, cluster) => {
        for (const [key, position] of first.committed) group.committed.set(key, { ...position, metadata: position.metadata.replace(/topic.id=\S+ /, "") })
        cluster.append("t", 0, numbers(0, 5))
        cluster.append("t", 1, ["new"])
      })
      yield* w.consumer.subscribe(["t"])
      yield* w.group.assign(at(1))
      yield* reads(w, "t-1", 1)
      assert.deepStrictEqual(w.seen.get("t-1"), ["new"])
    }))
})

describe("bounds and fairness", () => {
  it.effect("what is fetched and not polled is bounded, and one request a broker is in flight", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 4 } }, { maxBufferedBytes: 2_000, settings: { "bootstrap.servers": "fake:1", "max.partition.fetch.bytes": 500 } })
      for (let p = 0; p < 4; p++) for (let i = 0; i < 100; i++) w.cluster.append("t", p, ["x".repeat(100)])
      yield* w.group.assign(at(0), at(1), at(2), at(3))
      yield* TestClock.adjust("30 seconds")
      const pieces = yield* w.consumer.poll({ maxWaitMs: 0, maxBytes: 10_000_000 })
      const bytes = pieces.reduce((sum, piece) => sum + piece.bytes, 0)
      assert.isAtLeast(bytes, 500)
      assert.isAtMost(bytes, 2 * 2_000)
      assert.strictEqual(w.cluster.mostInFlight, 1)
    }))

  it.effect("a partition that always has more does not starve the others", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 3 } }, { maxBufferedBytes: 4_000, settings: { "bootstrap.servers": "fake:1", "fetch.max.bytes": 600, "max.partition.fetch.bytes": 600 } })
      for (let i = 0; i < 200; i++) w.cluster.append("t", 0, ["x".repeat(400)])
      for (let p = 1; p < 3; p++) w.cluster.append("t", p, ["y".repeat(5_000)])
      yield* w.group.assign(at(0), at(1), at(2))
      yield* passUntil(() => w.seen.has("t-1") && w.seen.has("t-2"), drain(w))
      assert.isBelow(w.seen.get("t-0")?.length ?? 0, 200)
    }))

  it.effect("poll gives no more than asked, but at least one piece", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 1 } }, { settings: { "bootstrap.servers": "fake:1", "max.partition.fetch.bytes": 1 } })
      for (let i = 0; i < 5; i++) w.cluster.append("t", 0, [`v${i}`])
      yield* w.group.assign(at(0))
      yield* TestClock.adjust("10 seconds")
      const sizes: Array<number> = []
      for (let i = 0; i < 5; i++) sizes.push((yield* w.consumer.poll({ maxWaitMs: 0, maxBytes: 1 })).length)
      assert.deepStrictEqual(sizes, [1, 1, 1, 1, 1])
    }))

  it.effect("a paused partition gives nothing, also of what was fetched; resumed it goes on where it was, once", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 2 } })
      w.cluster.append("t", 0, numbers(0, 3))
      yield* w.group.assign(at(0), at(1))
      yield* TestClock.adjust("2 seconds")
      yield* w.consumer.pause([at(0)])
      w.cluster.append("t", 0, numbers(3, 6))
      w.cluster.append("t", 1, ["other"])
      yield* reads(w, "t-1", 1)
      assert.isUndefined(w.seen.get("t-0"))
      yield* w.consumer.resume([at(0)])
      yield* reads(w, "t-0", 6)
      assert.deepStrictEqual(w.seen.get("t-0"), numbers(0, 6))
    }))
})

describe("problems", () => {
  it.effect("bytes that are no record batches stop their partition only", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 2 } })
      w.cluster.at("t").garbage = Buffer.alloc(100, 7)
      w.cluster.append("t", 0, ["a"])
      w.cluster.append("t", 1, ["b"])
      yield* w.group.assign(at(0), at(1))
      yield* reads(w, "t-1", 1)
      assert.deepInclude((yield* viewOf(w, "t-0"))?.problem, { _tag: "SourceRecordError", topic: "t", partition: 0, offset: 0 })
    }))

  it.effect("a missing right ends poll with the topic's name, and nothing is given out after it", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 2 } })
      w.cluster.at("t").codes.push(29)
      w.cluster.append("t", 1, ["b"])
      yield* w.group.assign(at(0), at(1))
      yield* TestClock.adjust("2 seconds")
      const error = yield* Effect.flip(w.consumer.poll({ maxWaitMs: 1_000, maxBytes: 1_000 }))
      assert.match(error.message, /t-0: TOPIC_AUTHORIZATION_FAILED/)
    }))

  it.effect("an error of the member that does not pass ends poll", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 1 } })
      yield* w.group.handlers?.failed(w.group.error("poll", 82)) ?? Effect.void
      const error = yield* Effect.flip(w.consumer.poll({ maxWaitMs: 1_000, maxBytes: 1_000 }))
      assert.strictEqual(error._tag, "MembershipError")
    }))
})

describe("rebalances and commits", () => {
  const start = (options: Partial<GroupConsumerOptions> = {}) =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 2, u: 1 } }, options)
      w.cluster.append("t", 0, numbers(0, 4))
      w.cluster.append("t", 1, numbers(0, 4))
      w.cluster.append("u", 0, numbers(0, 4))
      yield* w.group.assign(at(0), at(1), at(0, "u"))
      yield* reads(w, "t-0", 4)
      yield* reads(w, "t-1", 4)
      yield* reads(w, "u-0", 4)
      return w
    })

  it.effect("on revocation the hook runs, then what it confirmed is committed, then the partition is given up", () =>
    Effect.gen(function*() {
      let w: World
      const onRevoke = (partitions: ReadonlyArray<TopicPartition>) =>
        Effect.gen(function*() {
          w.group.events.push(`hook ${partitions.map(partitionKey).join(",")}`)
          yield* w.consumer.commit(w.pieces.filter((p) => p.partition === 0 && p.topic === "t").map((p) => ({ topic: p.topic, partition: p.partition, offset: p.next, leaderEpoch: p.leaderEpoch, generation: p.generation })))
        })
      w = yield* start({ onRevoke })
      yield* w.group.revoke(at(0))
      assert.deepStrictEqual(w.group.events, ["hook t-0", "commit t-0=4", "given up t-0"])
      assert.strictEqual(yield* confirmAll(w), 1)
      w.cluster.append("t", 0, ["v4"])
      w.cluster.append("t", 1, ["v4"])
      yield* reads(w, "t-1", 5)
      assert.strictEqual(w.seen.get("t-0")?.length, 4)
    }))

  it.effect("a hook that does not end is dropped within a bound, and the partition is given up all the same", () =>
    Effect.gen(function*() {
      const w = yield* start({ onRevoke: () => Effect.never })
      const fiber = yield* Effect.forkChild(w.group.revoke(at(0)))
      yield* TestClock.adjust("60 seconds")
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(Effect.suspend(() => fiber.pollUnsafe() ?? Exit.fail("still there")))))
      assert.isUndefined(yield* viewOf(w, "t-0"))
    }))

  it.effect("lost partitions are dropped without a commit", () =>
    Effect.gen(function*() {
      const w = yield* start({ commitIntervalMs: 3_600_000 })
      yield* confirmAll(w)
      yield* w.group.lose(at(0), at(1), at(0, "u"))
      yield* w.consumer.flush
      assert.deepStrictEqual(w.group.events, [])
    }))

  it.effect("confirmed positions are committed in the background, the latest of each partition", () =>
    Effect.gen(function*() {
      const w = yield* start({ commitIntervalMs: 1_000 })
      yield* confirmAll(w)
      yield* TestClock.adjust("1 seconds")
      assert.deepStrictEqual(w.group.events, ["commit t-0=4 t-1=4 u-0=4"])
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(w.group.events.length, 1)
    }))

  it.effect("a commit that a rebalance overtook is no failure: poll goes on", () =>
    Effect.gen(function*() {
      const w = yield* start({ commitIntervalMs: 3_600_000 })
      yield* confirmAll(w)
      w.group.commitCodes.push(22)
      assert.strictEqual((yield* w.consumer.flush).kind, "rebalanced")
      assert.deepStrictEqual(yield* w.consumer.poll({ maxWaitMs: 0, maxBytes: 1_000 }), [])
    }))

  it.effect("one topic that cannot be committed does not hold up the others", () =>
    Effect.gen(function*() {
      const w = yield* start({ commitIntervalMs: 3_600_000 })
      yield* confirmAll(w)
      const refuseU = (positions: ReadonlyArray<TopicPartition>) => positions.some(({ topic }) => topic === "u") ? 3 : 0
      w.group.commitCodes.push(refuseU, refuseU, refuseU)
      assert.strictEqual((yield* w.consumer.flush).kind, "later")
      assert.deepStrictEqual([...w.group.committed.keys()], ["t-0", "t-1"])
      assert.strictEqual((yield* w.consumer.flush).kind, "committed")
      assert.deepStrictEqual(w.group.events.at(-1), "commit u-0=4")
    }))

  it.effect("one commit is in flight; what is confirmed meanwhile goes with the next", () =>
    Effect.gen(function*() {
      const w = yield* start({ commitIntervalMs: 3_600_000 })
      const gate = yield* Deferred.make<void>()
      w.group.gate = Deferred.await(gate)
      yield* confirmAll(w)
      const first = yield* Effect.forkChild(w.consumer.flush, { startImmediately: true })
      w.cluster.append("t", 0, ["v4"])
      yield* reads(w, "t-0", 5)
      yield* confirmAll(w)
      const second = yield* Effect.forkChild(w.consumer.flush, { startImmediately: true })
      assert.deepStrictEqual(w.group.events, [])
      yield* Deferred.succeed(gate, undefined)
      yield* passUntil(() => first.pollUnsafe() !== undefined && second.pollUnsafe() !== undefined)
      assert.deepStrictEqual(w.group.events, ["commit t-0=4 t-1=4 u-0=4", "commit t-0=5"])
    }))

  it.effect("closing commits what is confirmed, and then leaves the group", () =>
    Effect.gen(function*() {
      const events = yield* Effect.scoped(Effect.gen(function*() {
        const w = yield* start({ commitIntervalMs: 3_600_000 })
        yield* confirmAll(w)
        return w.group.events
      }))
      assert.deepStrictEqual(events, ["commit t-0=4 t-1=4 u-0=4", "left"])
    }))

  it.effect("confirming what was never given out is a defect", () =>
    Effect.gen(function*() {
      const w = yield* start()
      const exit = yield* Effect.exit(w.consumer.commit([{ ...at(0), offset: 5, leaderEpoch: 0, generation: w.pieces.find((p) => p.topic === "t" && p.partition === 0)?.generation ?? -1 }]))
      assert.isTrue(Exit.hasDies(exit))
    }))
})
