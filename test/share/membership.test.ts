import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import { makeShareConsumer, type ShareEvent } from "../../src/share/consumer.ts"
import { newMemberId } from "../../src/share/membership.ts"
import { FakeShareCluster, TOPIC } from "./fakeShareCluster.ts"

const given = (codes: ReadonlyArray<number>, joinTimeoutMs = 5000) => {
  const fake = new FakeShareCluster([5])
  fake.heartbeatCodes.push(...codes)
  const events: Array<ShareEvent> = []
  const make = makeShareConsumer({
    cluster: fake.cluster,
    groupId: "g",
    topics: [TOPIC],
    mode: "explicit",
    joinTimeoutMs,
    onEvent: (e) => events.push(e)
  })
  return { fake, events, make }
}
const LIMITS = { maxWaitMs: 100, maxBytes: 1000, maxRecords: 10 } as const

describe("membership", () => {
  for (
    const [code, reason, words] of [
      [35, "unsupported", /no share groups.*use group\.protocol: consumer/],
      [81, "full", /group\.share\.max\.size/],
      [30, "authorization", /may not READ the group/],
      [29, "authorization", /DESCRIBE/],
      [42, "refused", /INVALID_REQUEST/],
      [69, "refused", /another group\.id/]
    ] as const
  ) {
    it.effect(`a join that is refused with ${code} says what to do`, () =>
      Effect.gen(function*() {
        const { make } = given([code])
        const error = yield* Effect.flip(Effect.scoped(make))
        assert.strictEqual(error._tag, "ShareError")
        assert.strictEqual(error._tag === "ShareError" ? error.reason : "", reason)
        assert.match(error.message, words)
      }))
  }

  it.effect("a coordinator that moves or loads is looked up again and waited for", () =>
    Effect.scoped(Effect.gen(function*() {
      const { fake, make } = given([16, 15, 14])
      const fiber = yield* Effect.forkChild(make)
      yield* TestClock.adjust(2000)
      const consumer = yield* Fiber.join(fiber)
      assert.isAbove(consumer.memberEpoch(), 0)
      assert.strictEqual(fake.coordinatorLookups, 3)
    })))

  it.effect("a coordinator that never lets it in ends the wait with a sentence", () =>
    Effect.gen(function*() {
      const { make } = given(new Array<number>(1000).fill(14))
      const fiber = yield* Effect.forkChild(Effect.flip(Effect.scoped(make)))
      yield* TestClock.adjust(30_000)
      assert.match((yield* Fiber.join(fiber)).message, /did not let the member join within 5000 ms/)
    }))

  for (const code of [25, 110, 69]) {
    it.effect(`told ${code}, it joins again with epoch 0, its old id and its topics, and keeps what it holds`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { events, fake, make } = given([])
        const consumer = yield* make
        const polled = yield* Effect.forkChild(consumer.poll(LIMITS))
        yield* TestClock.adjust(200)
        const [held] = yield* Fiber.join(polled)
        fake.lockMs = 60_000
        fake.heartbeatCodes.push(code)
        yield* TestClock.adjust(1500)
        const rejoin = fake.heartbeats.findLast((h) => h.memberEpoch === 0)
        assert.deepStrictEqual(rejoin?.subscribedTopicNames, [TOPIC])
        assert.deepStrictEqual(events.filter((e) => e.kind === "fenced" || e.kind === "joined").map((e) => e.kind), [
          "joined",
          "fenced",
          "joined"
        ])
        assert.isFalse(held?.lost)
      })))
  }

  it.effect("a new member asks for its partitions again and again within tenths of a second, then at the group's pace", () =>
    Effect.scoped(Effect.gen(function*() {
      const { fake, make } = given([])
      yield* make
      yield* TestClock.adjust(250)
      assert.isAbove(fake.heartbeats.length, 3)
      yield* TestClock.adjust(60_000)
      const settled = fake.heartbeats.length
      yield* TestClock.adjust(10_000)
      assert.isAtMost(fake.heartbeats.length - settled, 10)
    })))

  it.effect("topics are sent at the join and when they change, not with every heartbeat", () =>
    Effect.scoped(Effect.gen(function*() {
      const { fake, make } = given([])
      const consumer = yield* make
      yield* TestClock.adjust(10_000)
      yield* consumer.subscribe([TOPIC, "payments"])
      yield* TestClock.adjust(10_000)
      const sent = fake.heartbeats.map((h) => h.subscribedTopicNames).filter((t) => t !== null)
      assert.deepStrictEqual(sent, [[TOPIC], [TOPIC, "payments"]])
      assert.isAbove(fake.heartbeats.length, 10)
    })))

  it.effect("what no heartbeat can mend fails the next poll, and the one that waits", () =>
    Effect.scoped(Effect.gen(function*() {
      const { fake, make } = given([])
      const consumer = yield* make
      yield* Effect.forkChild(Effect.ignore(consumer.poll(LIMITS)))
      yield* TestClock.adjust(200)
      const waiting = yield* Effect.forkChild(Effect.flip(consumer.poll({ ...LIMITS, maxWaitMs: 60_000 })))
      fake.heartbeatCodes.push(30)
      yield* TestClock.adjust(2000)
      assert.match((yield* Fiber.join(waiting)).message, /may not READ/)
      assert.match((yield* Effect.flip(consumer.poll(LIMITS))).message, /may not READ/)
    })))

  it.effect("a request that cannot be written ends the consumer with what is wrong: it is no fault of a broker", () =>
    Effect.gen(function*() {
      const { events, make } = given([])
      const fetching = yield* make
      const polled = yield* Effect.forkChild(Effect.flip(fetching.poll({ ...LIMITS, maxBytes: 1.5 })))
      yield* TestClock.adjust(1_000)
      assert.match((yield* Fiber.join(polled)).message, /ShareFetchRequest.*maxBytes is 1.5/)
      assert.isFalse(events.some(({ kind }) => kind === "lost"))
      const staying = yield* make
      yield* staying.subscribe([7 as never])
      yield* TestClock.adjust(1_000)
      assert.match((yield* Effect.flip(staying.poll(LIMITS))).message, /ShareGroupHeartbeatRequest/)
    }))

  it.effect("asks a broker for whole milliseconds, whatever is left of a wait", () =>
    Effect.gen(function*() {
      const { events, fake, make } = given([])
      const consumer = yield* make
      fake.partitions.forEach((partition) => partition.log.length = 0)
      const waiting = yield* Effect.forkChild(consumer.poll({ ...LIMITS, maxWaitMs: 9.25 }))
      yield* TestClock.adjust(1_000)
      assert.deepStrictEqual(yield* Fiber.join(waiting), [])
      assert.deepStrictEqual(events.filter(({ kind }) => kind === "sessionLost"), [])
    }))

  it.effect("leaves when its scope closes", () =>
    Effect.gen(function*() {
      const { fake, make } = given([])
      yield* Effect.scoped(make)
      assert.strictEqual(fake.heartbeats.at(-1)?.memberEpoch, -1)
      assert.strictEqual(fake.members.size, 0)
    }))

  it.effect("member ids are UUIDs that differ, and follow the seed", () =>
    Effect.gen(function*() {
      const make = Effect.all([newMemberId, newMemberId])
      const [a, b] = yield* make.pipe(Random.withSeed("1"))
      assert.match(a, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.notStrictEqual(a, b)
      assert.deepStrictEqual(yield* make.pipe(Random.withSeed("1")), [a, b])
    }))
})
