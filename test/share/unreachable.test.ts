/** What a member says of partitions that no broker answers for. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { makeShareConsumer, type ShareEvent } from "../../src/share/consumer.ts"
import { FakeShareCluster, type Fault, TOPIC } from "./fakeShareCluster.ts"

const LIMITS = { maxWaitMs: 500, maxBytes: 1_000, maxRecords: 10 } as const

/** A member that polls all the time. Its end waits for what is under way, which takes virtual time. */
const whilePolling = <E>(
  fake: FakeShareCluster,
  test: (said: ReadonlyArray<string>) => Effect.Effect<void, E>
) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    yield* test(yield* Scope.provide(scope)(polling(fake)))
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
    yield* TestClock.adjust(60_000)
    yield* Fiber.join(closing)
  })

const polling = (fake: FakeShareCluster) =>
  Effect.gen(function*() {
    const said: Array<string> = []
    const consumer = yield* makeShareConsumer({
      cluster: fake.cluster,
      groupId: "g",
      topics: [TOPIC],
      mode: "explicit",
      onEvent: (event: ShareEvent) => {
        if (event.kind === "partitionProblem") said.push(`${event.topic}-${event.partition}: ${event.why}`)
        if (event.kind === "partitionRecovered") said.push(`${event.topic}-${event.partition} again`)
      }
    })
    yield* Effect.forkScoped(Effect.forever(consumer.poll(LIMITS)))
    yield* TestClock.adjust(1_000)
    return said
  })

describe("a broker that does not answer", () => {
  it.effect("is a matter of each of its partitions after some seconds, said once, and once more when it is back", () =>
    Effect.suspend(() => {
      const fake = new FakeShareCluster([5, 5, 5])
      return whilePolling(fake, (said) =>
        Effect.gen(function*() {
          let fault: Fault = "before"
          fake.fault = () => fault
          yield* TestClock.adjust(10_000)
          assert.deepStrictEqual(said.toSorted(), [
            `${TOPIC}-0: broker 1: the connection broke`,
            `${TOPIC}-1: broker 2: the connection broke`,
            `${TOPIC}-2: broker 1: the connection broke`
          ])
          yield* TestClock.adjust(60_000)
          assert.strictEqual(said.length, 3)
          fault = "none"
          yield* TestClock.adjust(5_000)
          assert.deepStrictEqual(said.slice(3).toSorted(), [`${TOPIC}-0 again`, `${TOPIC}-1 again`, `${TOPIC}-2 again`])
        }))
    }))

  it.effect("is nothing to speak of when it is back at once", () =>
    Effect.suspend(() => {
      const fake = new FakeShareCluster([5, 5])
      return whilePolling(fake, (said) =>
        Effect.gen(function*() {
          let left = 3
          fake.fault = () => left-- > 0 ? "before" : "none"
          yield* TestClock.adjust(30_000)
          assert.deepStrictEqual(said, [])
        }))
    }))

  it.effect("is forgotten with a partition that has another leader, once that answers", () =>
    Effect.suspend(() => {
      const fake = new FakeShareCluster([5])
      return whilePolling(fake, (said) =>
        Effect.gen(function*() {
          let dead = true
          fake.fault = () => dead ? "before" : "none"
          yield* TestClock.adjust(10_000)
          fake.moveLeader(0)
          dead = false
          yield* TestClock.adjust(5_000)
          assert.deepStrictEqual(said, [`${TOPIC}-0: broker 1: the connection broke`, `${TOPIC}-0 again`])
        }))
    }))
})

describe("a partition without a leader", () => {
  it.effect("is said after some seconds, and once more when it has one", () =>
    Effect.suspend(() => {
      const fake = new FakeShareCluster([5])
      return whilePolling(fake, (said) =>
        Effect.gen(function*() {
          const [partition] = fake.partitions
          if (partition === undefined) return assert.fail("the fake has one partition")
          partition.leader = -1
          yield* TestClock.adjust(60_000)
          assert.deepStrictEqual(said, [`${TOPIC}-0: no broker leads it now`])
          partition.leader = 2
          yield* TestClock.adjust(5_000)
          assert.deepStrictEqual(said.slice(1), [`${TOPIC}-0 again`])
        }))
    }))
})
