/** What the whole consumer reads, from a fake cluster, in virtual time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { HOUR_MS, withJumpingClock } from "../kit/jumpingClock.ts"
import type { FakeMembership } from "./fakeMembership.ts"
import { at, numbers, passUntil, drain, reads, viewOf, world } from "./world.ts"

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

  it.effect("a wall clock that is set back an hour holds up no partition that waits for its broker", () =>
    withJumpingClock((jump) =>
      Effect.gen(function*() {
        const w = yield* world({ topics: { t: 1 } })
        w.cluster.unreachable.add(1)
        w.cluster.append("t", 0, ["a"])
        yield* w.group.assign(at(0))
        yield* TestClock.adjust("1 minute")
        jump(-HOUR_MS)
        w.cluster.unreachable.clear()
        yield* reads(w, "t-0", 1)
      })
    ))

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

  it.effect("a partition whose follower is not to be read any more goes on with its leader, though nothing else comes", () =>
    Effect.gen(function*() {
      const settings = { "bootstrap.servers": "fake:1", "metadata.max.age.ms": 1_100 }
      const w = yield* world({ topics: { t: 2 }, brokers: 3 }, { settings })
      // Broker 2 is asked at other moments than broker 3, which answers for the partition that broker 1 leads.
      w.cluster.at("t", 0).follower = 3
      yield* w.group.assign(at(0), at(1))
      yield* TestClock.adjust("200 millis")
      w.cluster.append("t", 1, ["a"])
      yield* reads(w, "t-1", 1)
      yield* TestClock.adjust("5 seconds")
      w.cluster.append("t", 0, ["b"])
      yield* reads(w, "t-0", 1)
    }))

  it.effect("a follower is read also where metadata may have no age at all", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 1 }, brokers: 2 }, {
        settings: { "bootstrap.servers": "fake:1", "metadata.max.age.ms": 0 }
      })
      w.cluster.at("t").follower = 2
      w.cluster.append("t", 0, ["a"])
      yield* w.group.assign(at(0))
      yield* reads(w, "t-0", 1)
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
        assert.isTrue(
          w.cluster.requests.filter(({ api }) => api === "Fetch").every(({ version }) => version === fetchVersion)
        )
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
      const w = yield* world(
        { topics: { t: 1 } },
        {},
        (group) => committed(group, 3, `topic.id=${Buffer.alloc(16, 99).toString("base64url")}`)
      )
      w.cluster.append("t", 0, numbers(0, 5))
      yield* w.group.assign(at(0))
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude((yield* viewOf(w, "t-0"))?.problem, { _tag: "GapError", kind: "recreated", from: 3, to: 0 })
    }))

  it.effect("a topic made anew is read from its beginning where that is wanted, while every other gap still stops", () =>
    Effect.gen(function*() {
      const w = yield* world(
        { topics: { t: 2 } },
        { onTopicRecreated: "continue" },
        (group) => {
          committed(group, 3, `topic.id=${Buffer.alloc(16, 99).toString("base64url")}`)
          committed(group, 9, "", 1)
        }
      )
      w.cluster.append("t", 0, numbers(0, 5))
      w.cluster.append("t", 1, numbers(0, 5))
      yield* w.group.assign(at(0), at(1))
      yield* reads(w, "t-0", 5)
      assert.deepStrictEqual(w.seen.get("t-0"), numbers(0, 5))
      assert.deepInclude((yield* viewOf(w, "t-1"))?.problem, { _tag: "GapError", kind: "beyond" })
    }))

  it.effect("a topic that is made anew again and again, with records in the queue each time, is read on", () =>
    Effect.gen(function*() {
      const options = { onTopicRecreated: "continue", maxBufferedBytes: 2_000 } as const
      const w = yield* world({ topics: { t: 1, u: 3 }, brokers: 3 }, options)
      yield* w.group.assign(at(0))
      for (let round = 0; round < 20; round++) {
        w.cluster.append("t", 0, numbers(10 * round, 10 * round + 10))
        // Fetched, and not polled.
        yield* TestClock.adjust("2 seconds")
        w.cluster.recreate("t")
        yield* TestClock.adjust("10 seconds")
        yield* drain(w)
      }
      // More brokers share the bound from here on.
      yield* w.group.assign(at(1, "u"), at(2, "u"))
      yield* TestClock.adjust("1 second")
      w.cluster.append("t", 0, ["last"])
      yield* passUntil(() => w.seen.get("t-0")?.at(-1) === "last", drain(w))
      assert.deepStrictEqual(w.seen.get("t-0"), [...numbers(0, 200), "last"])
    }))

  for (const days of ["36500", "9".repeat(17), "9".repeat(400)]) {
    it.effect(`by_duration:P${days.slice(0, 20)}D, before there were timestamps, begins with the first record`, () =>
      Effect.gen(function*() {
        const settings = { "bootstrap.servers": "fake:1", "auto.offset.reset": `by_duration:P${days}D` }
        const w = yield* world({ topics: { t: 1 } }, { settings })
        w.cluster.append("t", 0, numbers(0, 5))
        yield* w.consumer.subscribe(["t"])
        yield* w.group.assign(at(0))
        yield* reads(w, "t-0", 5)
        assert.isNull((yield* viewOf(w, "t-0"))?.problem)
      }))
  }

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
        for (const [key, position] of first.committed) {
          group.committed.set(key, { ...position, metadata: position.metadata.replace(/topic.id=\S+ /, "") })
        }
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
      const w = yield* world({ topics: { t: 4 } }, {
        maxBufferedBytes: 2_000,
        settings: { "bootstrap.servers": "fake:1", "max.partition.fetch.bytes": 500 }
      })
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
      const w = yield* world({ topics: { t: 3 } }, {
        maxBufferedBytes: 4_000,
        settings: { "bootstrap.servers": "fake:1", "fetch.max.bytes": 600, "max.partition.fetch.bytes": 600 }
      })
      for (let i = 0; i < 200; i++) w.cluster.append("t", 0, ["x".repeat(400)])
      for (let p = 1; p < 3; p++) w.cluster.append("t", p, ["y".repeat(5_000)])
      yield* w.group.assign(at(0), at(1), at(2))
      yield* passUntil(() => w.seen.has("t-1") && w.seen.has("t-2"), drain(w))
      assert.isBelow(w.seen.get("t-0")?.length ?? 0, 200)
    }))

  it.effect("poll gives no more than asked, but at least one piece", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 1 } }, {
        settings: { "bootstrap.servers": "fake:1", "max.partition.fetch.bytes": 1 }
      })
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
