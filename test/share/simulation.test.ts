/** Members on brokers that break connections, evict sessions and move leaders, by seed. A failure names its seed. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import { type Acquired, makeShareConsumer, type ShareConsumer } from "../../src/share/consumer.ts"
import { HOUR_MS, withJumpingClock } from "../kit/jumpingClock.ts"
import { FakeShareCluster, type Fault, TOPIC } from "./fakeShareCluster.ts"

const LIMITS = { maxWaitMs: 300, maxBytes: 1_000_000, maxRecords: 15 } as const
const SETTINGS = { retryBackoffMs: 20, retryBackoffMaxMs: 200, requestTimeoutMs: 1000, closeTimeoutMs: 2000 } as const

/** Runs on virtual time until it ends. */
const inVirtualTime = <A, E, R>(effect: Effect.Effect<A, E, R>, limitMs: number) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    for (let spent = 0; spent < limitMs && fiber.pollUnsafe() === undefined; spent += 20) yield* TestClock.adjust(20)
    if (fiber.pollUnsafe() === undefined) {
      // Its finalizers wait on virtual time as well.
      const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber))
      for (let spent = 0; spent < 60_000 && stopping.pollUnsafe() === undefined; spent += 20) {
        yield* TestClock.adjust(20)
      }
      return yield* Effect.die(new Error(`not done after ${limitMs} ms of virtual time`))
    }
    return yield* Fiber.join(fiber)
  })

const member = (fake: FakeShareCluster) =>
  makeShareConsumer({ cluster: fake.cluster, groupId: "g", topics: [TOPIC], mode: "explicit", ...SETTINGS })

/** Works on what it has for a while, then accepts most and releases some. Answers what the broker confirmed. */
const work = (consumer: ShareConsumer, acquired: Acquired, confirmed: (offset: string) => void) =>
  Effect.gen(function*() {
    yield* Effect.sleep(yield* Random.nextIntBetween(0, 2500))
    const parts = []
    for (const { first, last } of acquired.ranges) {
      const middle = yield* Random.nextIntBetween(first, last)
      const type = (yield* Random.next) < 0.8 ? "accept" as const : "release" as const
      parts.push({ first, last: middle, type: "accept" as const }, { first: middle + 1, last, type })
    }
    for (const r of yield* consumer.acknowledge(acquired, parts.filter((p) => p.first <= p.last))) {
      if (r.outcome === "done" && r.type === "accept") {
        for (let o = r.first; o <= r.last; o++) confirmed(`${acquired.partition}:${o}`)
      }
    }
  })

const scenario = (seed: string) =>
  Effect.gen(function*() {
    const fake = new FakeShareCluster([60, 45, 30])
    const confirmed = new Map<string, number>()
    let faults = 0
    const dice = yield* Random.nextIntBetween(3, 12)
    let countdown = dice
    const kinds: ReadonlyArray<Fault> = ["before", "after", "evict", "timeout"]
    fake.fault = () => {
      if (faults >= 25 || --countdown > 0) return "none"
      countdown = 2 + ((dice * 7 + faults * 5) % 9)
      faults++
      return kinds[(faults + dice) % 4] as Fault
    }
    const confirm = (at: string) => {
      const [partition, offset] = at.split(":").map(Number) as [number, number]
      assert.strictEqual(
        fake.partitions[partition]?.log[offset]?.state,
        "accepted",
        `what the consumer says of ${at} is what the broker did`
      )
      confirmed.set(at, (confirmed.get(at) ?? 0) + 1)
    }
    const allAccepted = () => fake.states().every((s) => s === "accepted")
    const run = (consumer: ShareConsumer) =>
      Effect.gen(function*() {
        while (!allAccepted()) {
          const got = yield* consumer.poll(LIMITS)
          yield* Effect.forEach(got, (a) => work(consumer, a, confirm), { concurrency: "unbounded" })
        }
      })
    const moves = Effect.gen(function*() {
      for (let i = 0; i < 6; i++) {
        yield* Effect.sleep(yield* Random.nextIntBetween(200, 1500))
        fake.moveLeader(yield* Random.nextIntBetween(0, 2))
      }
    })
    const ids: Array<string> = []
    yield* Effect.scoped(Effect.gen(function*() {
      const members = [yield* member(fake), yield* member(fake)]
      ids.push(...members.map((m) => m.memberId))
      yield* Effect.all([...members.map(run), moves], { concurrency: "unbounded" })
    }))
    assert.isAbove(faults, 3, "faults were injected")
    assert.strictEqual(fake.wrongEpochs, 0, "no request was out of turn")
    for (const id of ids) assert.strictEqual(fake.heldBy(id), 0, "nothing is held after closing")
    assert.strictEqual(fake.members.size, 0, "both have left")
    for (const [offset, times] of confirmed) assert.strictEqual(times, 1, `${offset} was confirmed once`)
  }).pipe(Random.withSeed(seed))

describe("share members on unreliable brokers", () => {
  for (let n = 0; n < 25; n++) {
    const seed = `share-${n}`
    it.effect(`every record is accepted in the end, and confirmed once at most: seed ${seed}`, () =>
      inVirtualTime(scenario(seed), 600_000))
  }

  it.effect("a target that is away for a hundred locks costs no delivery", () =>
    inVirtualTime(
      Effect.scoped(Effect.gen(function*() {
        const fake = new FakeShareCluster([10, 10])
        const consumer = yield* member(fake)
        const other = yield* member(fake)
        const got: Array<Acquired> = []
        while (got.reduce((sum, a) => sum + a.ranges.reduce((n, r) => n + r.last - r.first + 1, 0), 0) < 20) {
          got.push(...(yield* consumer.poll(LIMITS)))
        }
        for (let i = 0; i < 100; i++) {
          yield* Effect.sleep(fake.lockMs)
          assert.deepStrictEqual(yield* other.poll({ ...LIMITS, maxWaitMs: 10 }), [])
        }
        for (const a of got) {
          yield* consumer.acknowledge(a, a.ranges.map((r) => ({ first: r.first, last: r.last, type: "accept" })))
        }
        assert.isTrue(fake.partitions.every((p) => p.log.every((e) => e.state === "accepted" && e.count === 1)))
        assert.isAtLeast(fake.renewals, 100)
      })),
      600_000
    ))

  for (const [hours, way] of [[-1, "back"], [1, "forth"]] as const) {
    it.effect(`a wall clock that is set ${way} an hour costs no lock, and holds nothing up`, () =>
      withJumpingClock((jump) =>
        inVirtualTime(
          Effect.scoped(Effect.gen(function*() {
            const fake = new FakeShareCluster([10])
            const consumer = yield* member(fake)
            const got = yield* consumer.poll({ ...LIMITS, maxRecords: 5 })
            jump(hours * HOUR_MS)
            yield* Effect.sleep(fake.lockMs * 5)
            assert.isFalse(got.some(({ lost }) => lost))
            // Now in a back-off.
            let failures = 0
            fake.fault = () => (failures++ < 3 ? "before" : "none")
            while (failures === 0) yield* consumer.poll({ ...LIMITS, maxWaitMs: 10 })
            jump(hours * HOUR_MS)
            let more: ReadonlyArray<Acquired> = []
            while (more.length === 0) more = yield* consumer.poll(LIMITS)
          })),
          60_000
        )
      ))
  }

  it.effect("brokers that cannot renew: held still, an outage costs one delivery of each record, however long", () =>
    inVirtualTime(
      Effect.scoped(Effect.gen(function*() {
        const fake = new FakeShareCluster([10])
        fake.shareAcknowledgeVersion = 1
        const consumer = yield* member(fake)
        const first = yield* consumer.poll(LIMITS)
        yield* Effect.sleep(fake.lockMs * 100)
        assert.isTrue(first[0]?.lost)
        const again = yield* consumer.poll(LIMITS)
        assert.deepStrictEqual(again[0]?.ranges, [{ first: 0, last: 9, deliveryCount: 2 }])
        yield* consumer.acknowledge(again[0] as Acquired, [{ first: 0, last: 9, type: "accept" }])
        assert.isTrue(fake.states().every((s) => s === "accepted"))
      })),
      300_000
    ))

  it.effect("an answer that never comes makes the broker let go at once, not when the lock ends", () =>
    inVirtualTime(
      Effect.scoped(Effect.gen(function*() {
        const fake = new FakeShareCluster([10])
        fake.lockMs = 3_600_000
        const consumer = yield* member(fake)
        let calls = 0
        fake.fault = () => (++calls === 1 ? "timeout" : "none")
        let got: ReadonlyArray<Acquired> = []
        while (got.length === 0) got = yield* consumer.poll(LIMITS)
        assert.deepStrictEqual(got[0]?.ranges, [{ first: 0, last: 9, deliveryCount: 2 }])
      })),
      60_000
    ))

  it.effect("closing ends the session with each broker", () =>
    inVirtualTime(
      Effect.gen(function*() {
        const fake = new FakeShareCluster([10, 10])
        yield* Effect.scoped(Effect.gen(function*() {
          const consumer = yield* member(fake)
          while (fake.sessions.size < 2) yield* consumer.poll(LIMITS)
        }))
        assert.deepStrictEqual([fake.closes, fake.sessions.size], [2, 0])
      }),
      60_000
    ))

  it.effect("a broker that leads nothing of ours any more is let go of", () =>
    inVirtualTime(
      Effect.scoped(Effect.gen(function*() {
        const fake = new FakeShareCluster([10])
        const consumer = yield* member(fake)
        const accept = (got: ReadonlyArray<Acquired>) =>
          Effect.forEach(got, (a) =>
            consumer.acknowledge(a, a.ranges.map((r) => ({ first: r.first, last: r.last, type: "accept" }))))
        yield* accept(yield* consumer.poll({ ...LIMITS, maxRecords: 4 }))
        fake.moveLeader(0)
        while (
          !fake.states().every((s) =>
            s === "accepted"
          )
        ) yield* accept(yield* consumer.poll(LIMITS))
        assert.deepStrictEqual([...fake.sessions.keys()], [`${consumer.memberId}:2`])
      })),
      60_000
    ))

  it.effect("a transaction that decided records is not contradicted: they are neither renewed nor released", () =>
    inVirtualTime(
      Effect.gen(function*() {
        const fake = new FakeShareCluster([10])
        yield* Effect.scoped(Effect.gen(function*() {
          const consumer = yield* member(fake)
          const [got] = yield* consumer.poll(LIMITS)
          yield* consumer.forget(got as Acquired, [{ first: 0, last: 9 }])
          assert.deepStrictEqual(consumer.holding().flatMap((a) => a.held), [])
          yield* Effect.sleep(fake.lockMs * 3)
          assert.strictEqual(fake.renewals, 0)
        }))
      }),
      60_000
    ))
})
