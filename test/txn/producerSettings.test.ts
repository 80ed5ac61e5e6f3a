import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { defaultProducerSettings, parseProducerSettings } from "../../src/txn/producerSettings.ts"
import { flowOf, loadFlow } from "../kit/configFile.ts"

describe("a producer's settings in Kafka's names", () => {
  it.effect("nothing set: a target that is down is waited for, five requests in flight", () =>
    Effect.gen(function*() {
      const settings = yield* parseProducerSettings({ "bootstrap.servers": "a:1" })
      assert.deepStrictEqual(settings, { ...defaultProducerSettings, partitionPatienceMs: 5_000 })
      assert.strictEqual(settings.deliveryTimeoutMs, Infinity)
    }))

  it.effect("all that have a meaning here are read, as text and as numbers", () =>
    Effect.gen(function*() {
      const settings = yield* parseProducerSettings({
        "max.request.size": "2000000",
        "delivery.timeout.ms": 90_000,
        "max.in.flight.requests.per.connection": "1",
        "request.timeout.ms": 15_000,
        "retry.backoff.ms": "250",
        "retry.backoff.max.ms": "4000",
        "transaction.timeout.ms": 120_000
      })
      assert.deepStrictEqual(settings, {
        maxRequestBytes: 2_000_000,
        deliveryTimeoutMs: 90_000,
        maxInFlight: 1,
        requestTimeoutMs: 15_000,
        retryBackoffMs: 250,
        retryBackoffMaxMs: 4_000,
        partitionPatienceMs: 5_000,
        transactionTimeoutMs: 120_000,
        afterFailure: "hold"
      })
    }))

  it.effect("a back-off above its own ceiling lifts the ceiling", () =>
    Effect.gen(function*() {
      const settings = yield* parseProducerSettings({ "retry.backoff.ms": 5_000 })
      assert.strictEqual(settings.retryBackoffMaxMs, 5_000)
    }))

  const wrong: ReadonlyArray<readonly [key: string, value: string, allowed: RegExp]> = [
    ["max.in.flight.requests.per.connection", "6", /from 1 to 5/],
    ["max.in.flight.requests.per.connection", "0", /from 1 to 5/],
    ["delivery.timeout.ms", "29999", /at least request\.timeout\.ms \(30000\)/],
    ["max.request.size", "0", /from 1 to/],
    ["transaction.timeout.ms", "-1", /from 1 to/]
  ]
  for (const [key, value, allowed] of wrong) {
    it.effect(`${key}: ${value} is refused with what is allowed`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(parseProducerSettings({ [key]: value }))
        assert.strictEqual(error.key, key)
        assert.match(error.allowed, allowed)
      }))
  }

  it.effect("what the configuration takes under producer.override, the producer takes; and the other way round", () =>
    Effect.gen(function*() {
      for (const value of ["0", "1", "5", "6"]) {
        const key = "max.in.flight.requests.per.connection"
        const loaded = yield* loadFlow({ [`producer.override.${key}`]: value })
        const parsed = yield* Effect.exit(parseProducerSettings({ [key]: value }))
        assert.strictEqual(loaded.config !== null, parsed._tag === "Success", value)
      }
      const flow = flowOf(yield* loadFlow({ "producer.override.max.request.size": 4096 }))
      assert.strictEqual((yield* parseProducerSettings(flow.producerOverrides)).maxRequestBytes, 4096)
    }))
})
