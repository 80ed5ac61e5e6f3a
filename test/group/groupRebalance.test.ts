/** What rebalances, commits and lasting errors do to the consumer, with a fake group, in virtual time. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { GroupConsumerOptions } from "../../src/group/groupConsumer.ts"
import { partitionKey, type TopicPartition } from "../../src/group/position.ts"
import { at, confirmAll, numbers, passUntil, reads, viewOf, type World, world } from "./world.ts"

describe("problems", () => {
  it.effect("bytes that are no record batches stop their partition only", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 2 } })
      w.cluster.at("t").garbage = Buffer.alloc(100, 7)
      w.cluster.append("t", 0, ["a"])
      w.cluster.append("t", 1, ["b"])
      yield* w.group.assign(at(0), at(1))
      yield* reads(w, "t-1", 1)
      assert.deepInclude((yield* viewOf(w, "t-0"))?.problem, {
        _tag: "SourceRecordError",
        topic: "t",
        partition: 0,
        offset: 0
      })
    }))

  it.effect("a missing right on one topic is that topic's affair: it says so, the others go on, and so does it once granted", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 1, u: 1 } })
      for (let i = 0; i < 4; i++) w.cluster.at("t").codes.push(29)
      w.cluster.append("t", 0, ["a"])
      w.cluster.append("u", 0, ["b"])
      yield* w.group.assign(at(0), at(0, "u"))
      yield* reads(w, "u-0", 1)
      assert.match((yield* viewOf(w, "t-0"))?.waiting ?? "", /t-0: TOPIC_AUTHORIZATION_FAILED/)
      yield* reads(w, "t-0", 1)
      assert.isNull((yield* viewOf(w, "t-0"))?.waiting)
    }))

  it.effect("a topic that may not be seen says so, and stops no other", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 1, u: 1 } })
      w.cluster.hidden.add("t")
      w.cluster.append("t", 0, ["a"])
      w.cluster.append("u", 0, ["b"])
      yield* w.group.assign(at(0), at(0, "u"))
      yield* reads(w, "u-0", 1)
      assert.match((yield* viewOf(w, "t-0"))?.waiting ?? "", /topic t: TOPIC_AUTHORIZATION_FAILED/)
      w.cluster.hidden.clear()
      yield* reads(w, "t-0", 1)
    }))

  it.effect("a missing right on the group ends poll, and nothing is given out after it", () =>
    Effect.gen(function*() {
      const w = yield* world({ topics: { t: 2 } })
      w.cluster.at("t").codes.push(30)
      w.cluster.append("t", 1, ["b"])
      yield* w.group.assign(at(0), at(1))
      yield* TestClock.adjust("2 seconds")
      const error = yield* Effect.flip(w.consumer.poll({ maxWaitMs: 1_000, maxBytes: 1_000 }))
      assert.match(error.message, /GROUP_AUTHORIZATION_FAILED/)
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
      const onRevoke = (partitions: ReadonlyArray<TopicPartition>) =>
        Effect.gen(function*() {
          w.group.events.push(`hook ${partitions.map(partitionKey).join(",")}`)
          yield* w.consumer.commit(
            w.pieces.filter((p) => p.partition === 0 && p.topic === "t").map((p) => ({
              topic: p.topic,
              partition: p.partition,
              offset: p.next,
              leaderEpoch: p.leaderEpoch,
              generation: p.generation
            }))
          )
        })
      const w: World = yield* start({ onRevoke })
      yield* w.group.revoke(at(0))
      assert.deepStrictEqual(w.group.events, ["hook t-0", "commit t-0=4", "given up t-0"])
      assert.strictEqual(yield* confirmAll(w), 1)
      w.cluster.append("t", 0, ["v4"])
      w.cluster.append("t", 1, ["v4"])
      yield* reads(w, "t-1", 5)
      assert.strictEqual(w.seen.get("t-0")?.length, 4)
    }))

  for (const how of ["revoked", "lost"] as const) {
    it.effect(`a partition that filled the buffer and is ${how} leaves its room to the others`, () =>
      Effect.gen(function*() {
        const w = yield* world({ topics: { t: 2 } }, { maxBufferedBytes: 100 })
        w.cluster.append("t", 0, numbers(0, 50))
        yield* w.group.assign(at(0), at(1))
        yield* passUntil(() => w.cluster.asked.some(({ key }) => key === "t-0"))
        // What was fetched waits to be polled; nothing more is asked for until there is room.
        yield* TestClock.adjust("5 seconds")
        yield* how === "revoked" ? w.group.revoke(at(0)) : w.group.lose(at(0))
        w.cluster.append("t", 1, ["a"])
        yield* reads(w, "t-1", 1)
      }))
  }

  it.effect("the last commit before a partition is given up is tried once more when the group was busy", () =>
    Effect.gen(function*() {
      const w = yield* start({ commitIntervalMs: 3_600_000 })
      yield* confirmAll(w)
      w.group.commitCodes.push(27)
      const revoking = yield* Effect.forkChild(w.group.revoke(at(0), at(1), at(0, "u")))
      yield* passUntil(() => revoking.pollUnsafe() !== undefined)
      assert.deepStrictEqual(w.group.events, [
        "commit t-0=4 t-1=4 u-0=4 refused 27",
        "commit t-0=4 t-1=4 u-0=4",
        "given up t-0,t-1,u-0"
      ])
    }))

  it.effect("what is being waited for is said, and no more once it is over", () =>
    Effect.gen(function*() {
      const w = yield* start()
      w.cluster.unreachable.add(1)
      w.cluster.changed.notify()
      yield* TestClock.adjust("5 seconds")
      assert.match((yield* viewOf(w, "t-0"))?.waiting ?? "", /broker 1: refused/)
      w.cluster.unreachable.clear()
      w.cluster.append("t", 0, ["v4"])
      yield* reads(w, "t-0", 5)
      assert.isNull((yield* viewOf(w, "t-0"))?.waiting)
    }))

  it.effect("a hook that does not end is dropped within a bound, and the partition is given up all the same", () =>
    Effect.gen(function*() {
      const w = yield* start({ onRevoke: () => Effect.never })
      const fiber = yield* Effect.forkChild(w.group.revoke(at(0)))
      yield* TestClock.adjust("60 seconds")
      assert.isTrue(
        Exit.isSuccess(yield* Effect.exit(Effect.suspend(() => fiber.pollUnsafe() ?? Exit.fail("still there"))))
      )
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

  it.effect("tells how many partitions are ours whenever that changes, and what each successful commit took", () =>
    Effect.gen(function*() {
      const counts: Array<number> = []
      const commits: Array<number> = []
      const w = yield* start({
        commitIntervalMs: 3_600_000,
        onAssignment: (count) => void counts.push(count),
        onCommit: (seconds) => void commits.push(seconds)
      })
      yield* confirmAll(w)
      w.group.gate = Effect.sleep("250 millis")
      const flushing = yield* Effect.forkChild(w.consumer.flush)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(flushing)
      assert.deepStrictEqual(commits, [0.25])
      w.group.gate = Effect.void
      w.cluster.append("t", 0, ["more"])
      yield* reads(w, "t-0", 5)
      w.group.commitCodes.push(22)
      yield* confirmAll(w)
      yield* w.consumer.flush
      assert.strictEqual(commits.length, 1)
      yield* w.group.lose(at(1))
      yield* w.group.revoke(at(0), at(0, "u"))
      assert.deepStrictEqual(counts, [3, 2, 0])
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

  it.effect("closing while the group rebalances: the last commit is tried until the rebalance is over", () =>
    Effect.gen(function*() {
      const closing = yield* Effect.forkChild(Effect.scoped(Effect.gen(function*() {
        const w = yield* start({ commitIntervalMs: 3_600_000 })
        yield* confirmAll(w)
        w.group.commitCodes.push(22, 27)
        return w.group.events
      })))
      yield* passUntil(() => closing.pollUnsafe() !== undefined)
      const all = "commit t-0=4 t-1=4 u-0=4"
      assert.deepStrictEqual(yield* Fiber.join(closing), [`${all} refused 22`, `${all} refused 27`, all, "left"])
    }))

  it.effect("closing does not wait for ever for a group that stays busy", () =>
    Effect.gen(function*() {
      const closing = yield* Effect.forkChild(Effect.scoped(Effect.gen(function*() {
        const w = yield* start({ commitIntervalMs: 3_600_000, closeTimeoutMs: 2_000 })
        yield* confirmAll(w)
        for (let i = 0; i < 100; i++) w.group.commitCodes.push(27)
        return w.group.events
      })))
      yield* passUntil(() => closing.pollUnsafe() !== undefined)
      assert.strictEqual((yield* Fiber.join(closing)).at(-1), "left")
    }))

  it.effect("confirming what was never given out is a defect", () =>
    Effect.gen(function*() {
      const w = yield* start()
      const exit = yield* Effect.exit(
        w.consumer.commit([{
          ...at(0),
          offset: 5,
          leaderEpoch: 0,
          generation: w.pieces.find((p) => p.topic === "t" && p.partition === 0)?.generation ?? -1
        }])
      )
      assert.isTrue(Exit.hasDies(exit))
    }))
})
