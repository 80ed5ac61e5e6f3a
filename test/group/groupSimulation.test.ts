/**
 * A consumer under random faults in virtual time: leaders move, brokers vanish, partitions are paused, revoked, lost
 * and assigned again, commits fail; a pipeline confirms a random part of what it was given. fast-check prints the seed
 * and the shortest steps that fail.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { type GroupConsumer, makeGroupConsumer } from "../../src/group/groupConsumer.ts"
import { partitionKey } from "../../src/group/position.ts"
import type { Fetched } from "../../src/group/shared.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"
import { FakeCluster } from "./fakeCluster.ts"
import { FakeMembership } from "./fakeMembership.ts"
import { passing } from "../kit/passing.ts"

const PARTITIONS = 3
const partition = fc.nat(PARTITIONS - 1)
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      partition,
      count: fc.integer({ min: 1, max: 5 }),
      producer: fc.integer({ min: -1, max: 2 })
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("commit" as const, "abort" as const),
      partition,
      producer: fc.integer({ min: 1, max: 2 })
    })
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("poll" as const), maxBytes: fc.integer({ min: 1, max: 2_000 }) })
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("confirm" as const), share: fc.double({ min: 0, max: 1, noNaN: true }) })
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 3_000 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("move" as const), partition, leader: fc.integer({ min: 1, max: 3 }) })
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("pause" as const, "resume" as const), partition }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("revoke" as const, "lose" as const, "assign" as const), partition })
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("cut" as const, "mend" as const),
      broker: fc.integer({ min: 1, max: 3 })
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("refuseCommit" as const), code: fc.constantFrom(22, 14, -195) })
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("fetchCode" as const),
      partition,
      code: fc.constantFrom(6, 9, 56, 75, 78, -1)
    })
  }
)
type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

/** The pipeline behind the consumer, and the judge of what it is given. */
class Judge {
  readonly cluster = new FakeCluster({ topics: { t: PARTITIONS }, brokers: 3 })
  readonly group = new FakeMembership()
  readonly owned = new Set<number>()
  /** Of those that are ours: a pause ends with the assignment. */
  readonly paused = new Set<number>()
  readonly given: Array<Fetched> = []
  readonly seen = new Map<string, string>()
  /** Per partition: what the pipeline has confirmed, highest. */
  readonly confirmed = new Map<string, number>()
  #n = 0

  take(pieces: ReadonlyArray<Fetched>): void {
    for (const piece of pieces) {
      const key = partitionKey(piece)
      assert.isFalse(this.paused.has(piece.partition), `${key} is paused`)
      assert.isTrue(this.owned.has(piece.partition), `${key} is not ours`)
      const before = this.given.findLast((other) => other.generation === piece.generation)
      if (before !== undefined) assert.strictEqual(piece.first, before.next, `${key}: pieces are contiguous`)
      else {assert.strictEqual(
          piece.first,
          this.group.committed.get(key)?.offset ?? 0,
          `${key}: starts at what is committed`
        )}
      this.given.push(piece)
      let last = piece.first - 1
      for (const batch of piece.batches) {
        for (const { offset, value } of decodeRecords(batch)) {
          if (offset < piece.first) continue
          assert.isAbove(offset, last, "records are in order")
          last = offset
          this.seen.set(`${key}@${offset}`, String(value))
        }
      }
      assert.isBelow(last, piece.next)
    }
  }

  confirm(consumer: GroupConsumer, share: number): Effect.Effect<void> {
    const count = Math.floor(this.given.length * share)
    const done = this.given.slice(0, count)
    for (const piece of done) {
      const key = partitionKey(piece)
      this.confirmed.set(key, Math.max(this.confirmed.get(key) ?? 0, piece.next))
    }
    return Effect.asVoid(
      consumer.commit(
        done.map((p) => ({
          topic: p.topic,
          partition: p.partition,
          offset: p.next,
          leaderEpoch: p.leaderEpoch,
          generation: p.generation
        }))
      )
    )
  }

  append(partition: number, count: number, producer: number): void {
    this.cluster.at("t", partition).log.append(
      Array.from({ length: count }, () => `v${this.#n++}`),
      producer === 0 ? -1 : producer
    )
    this.cluster.changed.notify()
  }

  checkCommits(): void {
    for (const [key, { offset }] of this.group.committed) {
      assert.isAtMost(offset, this.confirmed.get(key) ?? 0, `${key}: nothing is committed that was not confirmed`)
    }
  }
}

const act = (judge: Judge, consumer: GroupConsumer, one: Step): Effect.Effect<void, unknown> => {
  const { cluster, group } = judge
  switch (one.kind) {
    case "append":
      return Effect.sync(() => judge.append(one.partition, one.count, one.producer))
    case "commit":
    case "abort":
      return Effect.sync(() => {
        cluster.at("t", one.partition).log.finish(one.producer, one.kind)
        cluster.changed.notify()
      })
    case "poll":
      return Effect.map(consumer.poll({ maxWaitMs: 0, maxBytes: one.maxBytes }), (pieces) => judge.take(pieces))
    case "confirm":
      return judge.confirm(consumer, one.share)
    case "pass":
      return TestClock.adjust(one.ms)
    case "move":
      return Effect.sync(() => cluster.move("t", one.partition, one.leader))
    case "pause":
      if (!judge.owned.has(one.partition)) return Effect.void
      judge.paused.add(one.partition)
      return consumer.pause([{ topic: "t", partition: one.partition }])
    case "resume":
      judge.paused.delete(one.partition)
      return consumer.resume([{ topic: "t", partition: one.partition }])
    case "revoke":
    case "lose":
      if (!judge.owned.delete(one.partition)) return Effect.void
      judge.paused.delete(one.partition)
      // The last commit may be tried once more after a moment: the clock goes on until the group has its answer.
      return passing(group[one.kind]({ topic: "t", partition: one.partition }), 20)
    case "assign":
      if (judge.owned.has(one.partition)) return Effect.void
      judge.owned.add(one.partition)
      return group.assign({ topic: "t", partition: one.partition })
    case "cut":
      return Effect.sync(() => void cluster.unreachable.add(one.broker))
    case "mend":
      return Effect.sync(() => void cluster.unreachable.delete(one.broker))
    case "refuseCommit":
      return Effect.sync(() => void group.commitCodes.push(one.code))
    case "fetchCode":
      return Effect.sync(() => void cluster.at("t", one.partition).codes.push(one.code))
  }
}

const simulate = (steps: ReadonlyArray<Step>): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const judge = new Judge()
    const { cluster, group } = judge
    const consumer = yield* makeGroupConsumer({
      cluster: cluster.port,
      settings: { "bootstrap.servers": "fake:1", "max.partition.fetch.bytes": 300 },
      groupId: "g",
      protocol: "classic",
      onSourceGap: "fail",
      name: "lane",
      maxBufferedBytes: 1_500,
      membership: group.make
    })
    for (const one of steps) {
      yield* act(judge, consumer, one)
      judge.checkCommits()
    }
    // Faults off: everything must come.
    cluster.unreachable.clear()
    group.commitCodes.length = 0
    for (let p = 0; p < PARTITIONS; p++) {
      yield* act(judge, consumer, { kind: "resume", partition: p })
      yield* act(judge, consumer, { kind: "assign", partition: p })
      for (const producer of [1, 2]) cluster.at("t", p).log.finish(producer, "commit")
    }
    cluster.changed.notify()
    const ends = () => Array.from({ length: PARTITIONS }, (_, p) => cluster.at("t", p).log.end)
    const reached = () => ends().every((end, p) => (group.committed.get(`t-${p}`)?.offset ?? 0) === end)
    for (let round = 0; round < 400 && !reached(); round++) {
      judge.take(yield* consumer.poll({ maxWaitMs: 0, maxBytes: 5_000 }))
      yield* judge.confirm(consumer, 1)
      judge.checkCommits()
      yield* TestClock.adjust("250 millis")
    }
    assert.isTrue(
      reached(),
      `committed ${JSON.stringify([...group.committed.values()].map((p) => p.offset))} of ${JSON.stringify(ends())}`
    )
    for (let p = 0; p < PARTITIONS; p++) {
      for (const [offset, value] of cluster.at("t", p).log.visible) {
        assert.strictEqual(judge.seen.get(`t-${p}@${offset}`), value, "every visible record was given")
      }
    }
    const visible = Array.from({ length: PARTITIONS }, (_, p) => cluster.at("t", p).log.visible.size).reduce(
      (a, b) => a + b,
      0
    )
    assert.strictEqual(judge.seen.size, visible, "and nothing else")
  })

describe("a consumer under random faults", () => {
  it("loses nothing, keeps the order, and never commits more than what was confirmed", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 80, size: "max" }),
        (steps) =>
          Effect.runPromise(
            simulate([{ kind: "assign", partition: 0 }, { kind: "assign", partition: 1 }, ...steps]).pipe(
              Effect.scoped,
              Effect.provide(TestClock.layer())
            )
          )
      ),
      { numRuns: 150, timeout: 20_000 }
    )
  })
})
