/** A share group as a lane's source, on fake brokers and virtual time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Delivery, Source } from "../../src/mirror/delivery.ts"
import { makeShareSource } from "../../src/mirror/sources/shareSource.ts"
import type { ShareEvent } from "../../src/share/consumer.ts"
import type { ShareError } from "../../src/share/errors.ts"
import type { WireError } from "../../src/wire/errors.ts"
import { rec, storedBatch } from "./batches.ts"
import { FakeShareCluster, TOPIC } from "../share/fakeShareCluster.ts"

/** Runs an effect while time passes by itself. */
const passing = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    for (let i = 0; i < 6_000 && fiber.pollUnsafe() === undefined; i++) yield* TestClock.adjust(50)
    assert.isDefined(fiber.pollUnsafe(), "it has not ended in five minutes")
    return yield* Fiber.join(fiber)
  })

interface Bench {
  readonly fake: FakeShareCluster
  readonly events: ReadonlyArray<ShareEvent>
  readonly source: Source<ShareError | WireError>
}

const bench = (
  records: number,
  mode: "explicit" | "implicit" = "explicit"
): Effect.Effect<Bench, ShareError | WireError, Scope.Scope> =>
  Effect.gen(function*() {
    const fake = new FakeShareCluster([records])
    const events: Array<ShareEvent> = []
    const source = yield* makeShareSource({
      consumer: { cluster: fake.cluster, groupId: "g", topics: [TOPIC], mode, retryBackoffMs: 20 },
      maxWaitMs: 300,
      maxBytes: 1_000_000,
      maxRecords: 100,
      deliveryLimit: 5,
      onEvent: (event) => void events.push(event)
    })
    return { fake, events, source }
  })

const one = (source: Bench["source"]) =>
  Effect.gen(function*() {
    while (true) {
      const [delivery] = yield* source.poll
      if (delivery !== undefined) return delivery
    }
  })

const acceptAll = (delivery: Delivery) =>
  delivery.ranges.map(({ first, last }) => ({ first, last, type: "accept" as const }))

describe("a share group as a source", () => {
  for (
    const [code, why] of [
      [15, "the group's state cannot be written for a while"],
      [29, "a right was taken away, and given back"]
    ] as const
  ) {
    it.effect(`what the brokers refuse to take as acknowledged is said again until they do: ${why}`, () =>
      passing(Effect.scoped(Effect.gen(function*() {
        const { events, fake, source } = yield* bench(10)
        for (let i = 0; i < 12; i++) fake.acknowledgeCodes.push(code)
        const delivery = yield* one(source)
        const settled = yield* source.settle(delivery, acceptAll(delivery))
        assert.deepStrictEqual(settled, { confirmed: 10, refused: 0, reason: null })
        assert.isTrue(fake.partitions[0]?.log.every((entry) => entry.state === "accepted" && entry.count === 1))
        assert.lengthOf(events.filter(({ kind }) => kind === "acknowledgementWaits"), 1)
      }))))
  }

  it.effect("the same where polls acknowledge by themselves", () =>
    passing(Effect.scoped(Effect.gen(function*() {
      const { fake, source } = yield* bench(10, "implicit")
      for (let i = 0; i < 40; i++) fake.acknowledgeCodes.push(15)
      yield* one(source)
      const states = () => fake.partitions[0]?.log.map((entry) => `${entry.state} ${entry.count}`) ?? []
      while (!states().every((state) => state.startsWith("accepted"))) yield* source.poll
      assert.deepStrictEqual(new Set(states()), new Set(["accepted 1"]))
    }))))

  const whole = storedBatch([rec(0), rec(1), rec(2)])
  const old = Buffer.from(whole)
  old.writeInt8(1, 16)
  for (
    const [what, records, words] of [
      ["bytes of a format that is not mirrored", Buffer.concat([whole, old]), /format 1/],
      ["bytes that end before what was acquired", Buffer.concat([whole, whole.subarray(0, 30)]), /end before offset 3/]
    ] as const
  ) {
    it.effect(`${what} are a delivery that says so, and no end of the lane`, () =>
      passing(Effect.scoped(Effect.gen(function*() {
        const { fake, source } = yield* bench(6)
        fake.records = () => records
        const delivery = yield* one(source)
        assert.match(delivery.unreadable ?? "", words)
        assert.deepStrictEqual(delivery.ranges.map(({ first, last }) => [first, last]), [[0, 5]])
      }))))
  }

  it.effect("a batch that is cut behind what was acquired is no trouble", () =>
    passing(Effect.scoped(Effect.gen(function*() {
      const { fake, source } = yield* bench(3)
      fake.records = () => Buffer.concat([whole, whole.subarray(0, 30)])
      const delivery = yield* one(source)
      assert.isUndefined(delivery.unreadable)
      assert.lengthOf(delivery.batches, 1)
    }))))

  it.effect("a partition that is paused is not fetched, keeps its locks, and goes on when resumed", () =>
    passing(Effect.scoped(Effect.gen(function*() {
      const { fake, source } = yield* bench(150)
      const first = yield* one(source)
      yield* source.pause(TOPIC, 0)
      for (let n = 0; n < 10; n++) assert.deepStrictEqual(yield* source.poll, [])
      assert.isAtLeast(fake.renewals, 3)
      yield* source.resume(TOPIC, 0)
      const second = yield* one(source)
      assert.deepStrictEqual([first, second].map(({ ranges }) => ranges[0]?.first), [0, 100])
      assert.deepStrictEqual((yield* source.settle(first, acceptAll(first))).confirmed, 100)
    }))))
})
