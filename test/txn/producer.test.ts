import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import { makeProducer, type ProducerOptions, type Stall } from "../../src/txn/producer.ts"
import type { Outgoing, ProduceOutcome } from "../../src/txn/produceRun.ts"
import { encodeBatch } from "../../src/wire/batch/records.ts"
import { HOUR_MS, withJumpingClock } from "../kit/jumpingClock.ts"
import { FakeCluster, type Faults } from "./fakeCluster.ts"

const batch = (topic: string, partition: number, value: string, records = 1): Outgoing => ({
  topic,
  partition,
  bytes: encodeBatch(
    Array.from(
      { length: records },
      () => ({ offset: 0, timestamp: 1_700_000_000_000n, key: null, value: Buffer.from(value), headers: [] })
    ),
    { codec: "none" }
  )
})

/** Lets virtual time pass until the effect has ended; an hour of it without an end is a failure. */
const finished = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    for (let turns = 0; fiber.pollUnsafe() === undefined; turns++) {
      assert.isBelow(turns, 3_600, "an hour has passed and nothing came of it")
      yield* TestClock.adjust("1 second")
    }
    return yield* Fiber.join(fiber)
  })

const setUp = (options: Partial<ProducerOptions> & { readonly partitions?: number } = {}) =>
  Effect.gen(function*() {
    const fake = new FakeCluster(3)
    fake.create("orders", options.partitions ?? 4)
    const producer = yield* makeProducer({ cluster: fake.cluster, purpose: "test", ...options })
    return { fake, producer }
  })
const summary = (outcomes: ReadonlyArray<ProduceOutcome>) =>
  outcomes.map((o) => o.ok ? o.baseOffset : `${o.error._tag} ${o.error.written}`)

describe("a producer", () => {
  it.effect("gives each batch its offset, in the order of the call", () =>
    Effect.gen(function*() {
      const { producer } = yield* setUp()
      const outcomes = yield* finished(
        producer.produce([
          batch("orders", 1, "a", 3),
          batch("orders", 0, "b"),
          batch("orders", 1, "c", 2),
          batch("orders", 1, "d")
        ])
      )
      assert.deepStrictEqual(summary(outcomes), [0, 0, 3, 5])
    }))

  it.effect("never has more than five requests under way to a broker", () =>
    Effect.gen(function*() {
      const { fake, producer } = yield* setUp({ settings: { maxRequestBytes: 1 } })
      yield* finished(producer.produce(Array.from({ length: 200 }, (_, i) => batch("orders", i % 4, `${i}`))))
      assert.strictEqual(fake.mostUnderWay, 5)
    }))

  for (const version of [3, 8, 9, 12, 13]) {
    it.effect(`speaks Produce ${version}`, () =>
      Effect.gen(function*() {
        const { fake, producer } = yield* setUp()
        fake.version = version
        assert.deepStrictEqual(
          summary(yield* finished(producer.produce([batch("orders", 0, "a"), batch("orders", 1, "b")]))),
          [0, 0]
        )
      }))
  }

  it.effect("refuses bytes that are not one batch, and sends nothing behind them", () =>
    Effect.gen(function*() {
      const { fake, producer } = yield* setUp()
      const two = Buffer.concat([batch("orders", 0, "a").bytes, batch("orders", 0, "b").bytes])
      const outcomes = yield* finished(
        producer.produce([
          { topic: "orders", partition: 0, bytes: two },
          batch("orders", 0, "c"),
          batch("orders", 1, "d")
        ])
      )
      assert.deepStrictEqual(summary(outcomes), ["RecordRefused no", "HeldBack no", 0])
      assert.deepStrictEqual(fake.values("orders", 0), [])
    }))

  it.effect("waits for a target that is down, says why, and recovers by itself", () =>
    Effect.gen(function*() {
      const stalls: Array<Stall> = []
      const recovered: Array<string> = []
      const { fake, producer } = yield* setUp({
        onStall: (stall) => stalls.push(stall),
        onRecover: (topic, partition) => recovered.push(`${topic}-${partition}`)
      })
      fake.faults = { ...fake.faults, refusedConnection: 1 }
      const fiber = yield* Effect.forkChild(producer.produce([batch("orders", 2, "a")]))
      yield* TestClock.adjust("10 minutes")
      assert.isUndefined(fiber.pollUnsafe())
      assert.include((yield* producer.stalls)[0]?.reason, "connection refused")
      assert.isAtLeast(stalls.length, 300, "it tries again every second")
      fake.faults = { ...fake.faults, refusedConnection: 0 }
      assert.deepStrictEqual(summary(yield* finished(Fiber.join(fiber))), [0])
      assert.deepStrictEqual([recovered, yield* producer.stalls], [["orders-2"], []])
    }))

  it.effect("does not speak of a transaction that is still being ended, unless that takes long", () =>
    Effect.gen(function*() {
      const stalls: Array<Stall> = []
      const { fake, producer } = yield* setUp({ onStall: (stall) => stalls.push(stall) })
      fake.codes.push(51, 51, 51)
      assert.deepStrictEqual(summary(yield* finished(producer.produce([batch("orders", 0, "a")]))), [0])
      assert.deepStrictEqual(stalls, [])
      fake.codes.push(...Array.from({ length: 30 }, () => 51))
      assert.deepStrictEqual(summary(yield* finished(producer.produce([batch("orders", 0, "b")]))), [1])
      assert.include(stalls[0]?.reason, "CONCURRENT_TRANSACTIONS")
    }))

  it.effect("leaves a partition without a leader out after some seconds, so that the others go on, and takes it in again", () =>
    Effect.gen(function*() {
      const { fake, producer } = yield* setUp({ settings: { partitionPatienceMs: 5_000 } })
      const led = fake.topics.get("orders")?.partitions[1] as { leader: number; epoch: number }
      led.leader = -1
      const both = [batch("orders", 0, "a"), batch("orders", 1, "b")]
      assert.deepStrictEqual(summary(yield* finished(producer.produce(both))), [0, "PartitionBlocked no"])
      const again = yield* Effect.forkChild(producer.produce([batch("orders", 0, "c"), batch("orders", 1, "b")]))
      yield* TestClock.adjust("1500 millis")
      assert.isDefined(again.pollUnsafe(), "known to take nothing: the second call does not wait for it")
      assert.deepStrictEqual(summary(yield* Fiber.join(again)), [1, "PartitionBlocked no"])
      led.leader = 1
      led.epoch++
      assert.deepStrictEqual(summary(yield* finished(producer.produce([batch("orders", 1, "b")]))), [0])
      assert.deepStrictEqual([fake.values("orders", 0), fake.values("orders", 1)], [["a", "c"], ["b"]])
    }))

  it.effect("goes on after a target that was down where timers go off a little early, as those of a busy process do", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const early: Clock.Clock = {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
        currentTimeMillis: clock.currentTimeMillis,
        currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
        currentTimeNanos: clock.currentTimeNanos,
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        monotonicTimeNanos: clock.monotonicTimeNanos,
        sleep: (duration) => clock.sleep(Duration.millis(Math.max(1, Duration.toMillis(duration) - 3)))
      }
      const { fake, producer } = yield* setUp()
      fake.faults = { ...fake.faults, refusedConnection: 1 }
      const sent = producer.produce([batch("orders", 2, "a")]).pipe(Effect.provideService(Clock.Clock, early))
      const fiber = yield* Effect.forkChild(sent)
      yield* TestClock.adjust("1 minute")
      fake.faults = { ...fake.faults, refusedConnection: 0 }
      assert.deepStrictEqual(summary(yield* finished(Fiber.join(fiber))), [0])
    }))

  it.effect("goes on after a target that was down though the wall clock is set back ten hours meanwhile", () =>
    withJumpingClock((jump) =>
      Effect.gen(function*() {
        const { fake, producer } = yield* setUp()
        fake.faults = { ...fake.faults, refusedConnection: 1 }
        const fiber = yield* Effect.forkChild(producer.produce([batch("orders", 2, "a")]))
        yield* TestClock.adjust("1 minute")
        jump(-10 * HOUR_MS)
        fake.faults = { ...fake.faults, refusedConnection: 0 }
        assert.deepStrictEqual(summary(yield* finished(Fiber.join(fiber))), [0])
      })
    ))

  for (const [code, name] of [[2, "damage on the way"], [-1, "a broker's own failure"]] as const) {
    it.effect(`${name} that follows a long outage has its own tries: it is not the batch's fault yet`, () =>
      Effect.gen(function*() {
        const { fake, producer } = yield* setUp()
        fake.faults = { ...fake.faults, refusedConnection: 1 }
        const fiber = yield* Effect.forkChild(producer.produce([batch("orders", 0, "a")]))
        yield* TestClock.adjust("1 minute")
        fake.faults = { ...fake.faults, refusedConnection: 0 }
        fake.codes.push(19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, code, 19, code)
        assert.deepStrictEqual(summary(yield* finished(Fiber.join(fiber))), [0])
      }))
  }

  it.effect("after the delivery timeout says whether the batch may be in the log", () =>
    Effect.gen(function*() {
      const { fake, producer } = yield* setUp({ settings: { deliveryTimeoutMs: 60_000 } })
      yield* finished(producer.produce([batch("orders", 0, "first")]))
      fake.faults = { ...fake.faults, lostAnswer: 1 }
      const outcomes = yield* finished(producer.produce([batch("orders", 0, "a"), batch("missing", 0, "b")]))
      assert.deepStrictEqual(summary(outcomes), ["DeliveryTimedOut unknown", "DeliveryTimedOut no"])
      fake.faults = { ...fake.faults, lostAnswer: 0 }
      yield* finished(producer.produce([batch("orders", 0, "c")]))
      assert.deepStrictEqual(fake.values("orders", 0), ["first", "a", "c"])
    }))

  it.effect("a broker that lost its newest batches and our state with them gets the rest under a new epoch", () =>
    Effect.gen(function*() {
      const { fake, producer } = yield* setUp()
      yield* finished(producer.produce(["a", "b", "c"].map((value) => batch("orders", 0, value))))
      fake.topics.get("orders")?.partitions[0]?.log.truncate(1)
      const outcomes = yield* finished(producer.produce(["d", "e"].map((value) => batch("orders", 0, value))))
      assert.isTrue(outcomes.every((o) => o.ok))
      assert.deepStrictEqual(fake.values("orders", 0), ["a", "b", "d", "e"])
    }))

  it.effect("takes another producer id when somebody else uses its own", () =>
    Effect.gen(function*() {
      const { fake, producer } = yield* setUp()
      yield* finished(producer.produce([batch("orders", 0, "a")]))
      const log = fake.topics.get("orders")?.partitions[0]?.log
      const id = log?.log[0]?.producerId ?? -1
      log?.append("stranger", id, 9, 0, 1)
      yield* finished(producer.produce([batch("orders", 0, "b"), batch("orders", 0, "c")]))
      assert.deepStrictEqual(fake.values("orders", 0), ["a", "stranger", "b", "c"])
      assert.notStrictEqual(log?.log[2]?.producerId, id)
    }))
})

const storm: Faults = {
  lostRequest: 0.08,
  lostAnswer: 0.08,
  lateRequest: 0.05,
  leaderMoved: 0.06,
  failedAfterAppend: 0.05,
  refusedConnection: 0.05
}
const seeds = Array.from({ length: 15 }, (_, seed) => seed)

describe("through lost requests, lost answers, late requests and moving leaders", () => {
  it.effect("every batch gets into its partition exactly once, in order", () =>
    Effect.forEach(seeds, (seed) =>
      Effect.scoped(Effect.gen(function*() {
        const { fake, producer } = yield* setUp()
        fake.faults = { ...storm }
        const expected: ReadonlyArray<Array<string>> = [[], [], [], []]
        for (let call = 0; call < 3; call++) {
          const batches = Array.from({ length: 60 }, (_, i) => {
            expected[i % 4]?.push(`${call}/${i}`)
            return batch("orders", i % 4, `${call}/${i}`, 1 + i % 3)
          })
          assert.isTrue((yield* finished(producer.produce(batches))).every((o) => o.ok))
        }
        yield* TestClock.adjust("5 minutes")
        for (const partition of [0, 1, 2, 3]) {
          assert.deepStrictEqual(
            fake.values("orders", partition),
            expected[partition],
            `seed ${seed}, partition ${partition}`
          )
        }
        for (const fault of Object.keys(storm)) {
          assert.isAbove(fake.happened.get(fault) ?? 0, 0, `seed ${seed}: ${fault} never happened`)
        }
      })).pipe(Random.withSeed(seed))).pipe(Effect.asVoid))

  it.effect("refused batches are left out, and only they", () =>
    Effect.forEach(seeds, (seed) =>
      Effect.scoped(Effect.gen(function*() {
        const { fake, producer } = yield* setUp({ settings: { afterFailure: "continue" } })
        fake.faults = { ...storm }
        const values = Array.from({ length: 80 }, (_, i) => `${i}`)
        for (let i = 0; i < 8; i++) fake.refused.add(String(yield* Random.nextIntBetween(0, 80)))
        const outcomes = yield* finished(producer.produce(values.map((value, i) => batch("orders", i % 4, value))))
        assert.deepStrictEqual(
          outcomes.map((o) => o.ok),
          values.map((value) => !fake.refused.has(value)),
          `seed ${seed}`
        )
        yield* TestClock.adjust("5 minutes")
        for (const partition of [0, 1, 2, 3]) {
          assert.deepStrictEqual(
            fake.values("orders", partition),
            values.filter((value, i) => i % 4 === partition && !fake.refused.has(value)),
            `seed ${seed}`
          )
        }
      })).pipe(Random.withSeed(seed))).pipe(Effect.asVoid))

  it.effect("order is kept and nothing doubled when calls are interrupted and the rest is produced anew", () =>
    Effect.forEach(seeds, (seed) =>
      Effect.scoped(Effect.gen(function*() {
        const { fake, producer } = yield* setUp({ partitions: 1 })
        fake.faults = { ...storm }
        const done: Array<string> = []
        for (let call = 0; call < 6; call++) {
          const values = Array.from({ length: 20 }, (_, i) => `${call}/${i}`)
          const fiber = yield* Effect.forkChild(producer.produce(values.map((value) => batch("orders", 0, value))))
          yield* TestClock.adjust(yield* Random.nextIntBetween(1, 400))
          yield* Fiber.interrupt(fiber)
          assert.isTrue((yield* finished(producer.produce([batch("orders", 0, `${call}/end`)])))[0]?.ok)
          done.push(`${call}/end`)
        }
        yield* TestClock.adjust("5 minutes")
        const log = fake.values("orders", 0)
        const rank = (value: string) =>
          Number(value.split("/")[0]) * 1_000 + (value.endsWith("end") ? 999 : Number(value.split("/")[1]))
        assert.deepStrictEqual(log, [...new Set(log)].sort((a, b) => rank(a) - rank(b)), `seed ${seed}`)
        assert.deepStrictEqual(log.filter((value) => value.endsWith("end")), done, `seed ${seed}`)
      })).pipe(Random.withSeed(seed))).pipe(Effect.asVoid))
})
