/** The text that Prometheus reads: names and labels of the contract, presence and absence per mode (KIP-1302). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Metric, Scope } from "effect"
import { type FlowMetrics, makeFlowMetrics } from "../../src/metrics/flowMetrics.ts"
import { type Instrument, INSTRUMENTS, type Mode } from "../../src/metrics/instruments.ts"
import { processMetrics } from "../../src/metrics/processMetrics.ts"
import { prometheusText } from "../../src/metrics/text.ts"

const isolated = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(Effect.provideService(Metric.MetricRegistry, new Map()))

/** Everything that can be told, told once. */
const tellAll = (m: FlowMetrics): void => {
  m.recordsAcquired(10, 2)
  m.recordsAcknowledged(7, 0.5)
  m.recordsReleased(2)
  m.recordsRejected(1)
  m.recordsRepaired(1)
  m.acknowledgementsRefused(1)
  m.recordsMirrored("east.orders", 3, 10, 1000)
  m.replicationLatency("east.orders", 2, 1, 10)
  m.recordAge("east.orders", 0.2, 0.1, 10)
  m.lag("east.orders", 3, 42)
  m.transaction("committed")
  m.duplicatesPrevented(5)
  m.recordsSkipped("error", 1)
  m.deadLetters(1)
  m.sourceGap(9)
  m.blockedPartitions(1)
  m.running(true)
  m.guarantee({ wanted: "exactly-once", effective: "at-least-once", binding: "none" })
  m.partitionCount(4)
  m.offsetCommit(0.01)
  m.loopsPrevented(1)
  m.controlPass("settings", 2, 1)
  m.groups([{ group: "app", partitions: new Map([["synced", 2]]), behind: 3 }])
}

const namesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, kind]) => `${name} ${kind}`).toSorted()
const seriesIn = (text: string): ReadonlyArray<string> =>
  text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
const expected = (mode: Mode): ReadonlyArray<string> =>
  Object.entries<Instrument>(INSTRUMENTS).filter(([, i]) => i.only === null || i.only === mode).map(([name, i]) =>
    `${name} ${i.kind}`
  ).toSorted()

describe("a flow's metrics", () => {
  it.effect("of groups are those of the last pass", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      const m = yield* makeFlowMetrics("f", "share")
      const groups = Effect.map(prometheusText, (text) =>
        seriesIn(text).filter((line) =>
          line.startsWith("onceover_group_")
        ).map((line) => line.replace(/flow="f",?|,flow="f"/, "")).toSorted())
      m.groups([
        { group: "a", partitions: new Map([["synced", 2], ["active", 1]]), behind: 7 },
        { group: "b", partitions: new Map([["failed", 1]]), behind: 0 }
      ])
      assert.strictEqual((yield* groups).length, 5)
      m.groups([{ group: "a", partitions: new Map([["synced", 3]]), behind: 0 }])
      assert.deepStrictEqual(yield* groups, [
        "onceover_group_behind_records{group=\"a\"} 0",
        "onceover_group_partitions{group=\"a\",state=\"synced\"} 3"
      ])
      m.groups([])
      assert.deepStrictEqual(yield* groups, [])
    }))))

  for (const mode of ["share", "consumer"] as const) {
    it.effect(`in ${mode} mode are the ones of the mode and no other, whatever is told`, () =>
      isolated(Effect.scoped(Effect.gen(function*() {
        tellAll(yield* makeFlowMetrics("f", mode))
        assert.deepStrictEqual(namesIn(yield* prometheusText), expected(mode))
      }))))
  }

  it.effect("that have no partition are there with 0 before anything has happened", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      yield* makeFlowMetrics("f", "share")
      const text = yield* prometheusText
      for (
        const line of [
          "onceover_records_acquired_total{flow=\"f\"} 0",
          "onceover_transactions_total{flow=\"f\",outcome=\"committed\"} 0",
          "onceover_transactions_total{flow=\"f\",outcome=\"aborted\"} 0",
          "onceover_transactions_total{flow=\"f\",outcome=\"fenced\"} 0",
          "onceover_duplicates_prevented_total{flow=\"f\"} 0",
          "onceover_acknowledge_seconds_count{flow=\"f\"} 0"
        ]
      ) assert.include(seriesIn(text), line)
    }))))

  it.effect("have the names, labels and values of the contract", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      tellAll(yield* makeFlowMetrics("f", "share"))
      const series = seriesIn(yield* prometheusText)
      for (
        const line of [
          "onceover_records_acquired_total{flow=\"f\"} 10",
          "onceover_records_acknowledged_total{flow=\"f\"} 7",
          "onceover_records_released_total{flow=\"f\"} 2",
          "onceover_records_rejected_total{flow=\"f\"} 1",
          "onceover_records_redelivered_total{flow=\"f\"} 2",
          "onceover_records_repaired_total{flow=\"f\"} 1",
          "onceover_acknowledge_seconds_count{flow=\"f\"} 7",
          "onceover_acknowledge_seconds_sum{flow=\"f\"} 3.5",
          "onceover_records_mirrored_total{flow=\"f\",topic=\"east.orders\",partition=\"3\"} 10",
          "onceover_bytes_mirrored_total{flow=\"f\",topic=\"east.orders\",partition=\"3\"} 1000",
          "onceover_replication_latency_seconds_count{flow=\"f\",topic=\"east.orders\"} 10",
          "onceover_replication_latency_seconds_sum{flow=\"f\",topic=\"east.orders\"} 15",
          "onceover_record_age_seconds_count{flow=\"f\",topic=\"east.orders\"} 10",
          "onceover_lag_records{flow=\"f\",topic=\"east.orders\",partition=\"3\"} 42",
          "onceover_transactions_total{flow=\"f\",outcome=\"committed\"} 1",
          "onceover_duplicates_prevented_total{flow=\"f\"} 5",
          "onceover_guarantee{flow=\"f\",wanted=\"exactly-once\",effective=\"at-least-once\",binding=\"none\"} 1"
        ]
      ) assert.include(series, line)
    }))))

  it.effect("of two flows stand side by side", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      const [a, b] = [yield* makeFlowMetrics("a", "share"), yield* makeFlowMetrics("b", "consumer")]
      a.deadLetters(1)
      b.deadLetters(2)
      const series = seriesIn(yield* prometheusText)
      assert.include(series, "onceover_dead_letters_total{flow=\"a\"} 1")
      assert.include(series, "onceover_dead_letters_total{flow=\"b\"} 2")
      assert.lengthOf((yield* prometheusText).match(/# TYPE onceover_dead_letters_total/g) ?? [], 1)
    }))))

  it.effect("say one guarantee at a time", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      const m = yield* makeFlowMetrics("f", "share")
      m.guarantee({ wanted: "exactly-once", effective: "at-least-once", binding: "none" })
      m.guarantee({ wanted: "exactly-once", effective: "exactly-once", binding: "ledger" })
      const series = seriesIn(yield* prometheusText).filter((line) => line.startsWith("onceover_guarantee"))
      assert.deepStrictEqual(series, [
        "onceover_guarantee{flow=\"f\",wanted=\"exactly-once\",effective=\"exactly-once\",binding=\"ledger\"} 1"
      ])
    }))))

  it.effect("of a partition that goes to another member lose its lag and keep what was counted, to be gone with its topic", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      const m = yield* makeFlowMetrics("f", "share")
      for (const partition of [0, 1]) {
        m.recordsMirrored("t", partition, 5, 50)
        m.lag("t", partition, 1)
      }
      m.forgetPartition("t", 0)
      // Another lane of the same process has it now.
      m.recordsMirrored("t", 0, 2, 20)
      const series = seriesIn(yield* prometheusText)
      const of = (name: string) => series.filter((line) => line.startsWith(name))
      assert.deepStrictEqual(of("onceover_records_mirrored_total"), [
        "onceover_records_mirrored_total{flow=\"f\",topic=\"t\",partition=\"0\"} 7",
        "onceover_records_mirrored_total{flow=\"f\",topic=\"t\",partition=\"1\"} 5"
      ])
      assert.deepStrictEqual(of("onceover_lag_records"), [
        "onceover_lag_records{flow=\"f\",topic=\"t\",partition=\"1\"} 1"
      ])
      assert.strictEqual(m.totals().recordsMirrored, 12)
      m.forgetTopic("t")
      assert.notInclude(yield* prometheusText, "topic=\"t\"")
    }))))

  it.effect("vanish with the flow", () =>
    isolated(Effect.gen(function*() {
      const scope = yield* Scope.make()
      tellAll(yield* Effect.provideService(makeFlowMetrics("f", "share"), Scope.Scope, scope))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* prometheusText, "")
    })))

  it.effect("keep a counter from going back, and a histogram from what is no number", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      const m = yield* makeFlowMetrics("f", "share")
      m.deadLetters(-5)
      m.deadLetters(Number.NaN)
      m.replicationLatency("t", -3, Number.NaN, 4)
      const series = seriesIn(yield* prometheusText)
      assert.include(series, "onceover_dead_letters_total{flow=\"f\"} 0")
      assert.include(series, "onceover_replication_latency_seconds_sum{flow=\"f\",topic=\"t\"} 0")
    }))))

  it.effect("quote what a topic's or a flow's name may hold", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      const m = yield* makeFlowMetrics("a\"b\\c\nd", "share")
      m.deadLetters(1)
      assert.include(seriesIn(yield* prometheusText), "onceover_dead_letters_total{flow=\"a\\\"b\\\\c\\nd\"} 1")
    }))))
})

describe("a histogram of batches", () => {
  it.effect("counts every record, cumulates its buckets and ends at +Inf", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      const m = yield* makeFlowMetrics("f", "share")
      m.replicationLatency("t", 0.0015, 0.0005, 5)
      m.replicationLatency("t", 1e9, 1e9, 1)
      const buckets = seriesIn(yield* prometheusText).filter((line) =>
        line.startsWith("onceover_replication_latency_seconds_bucket")
      )
      const at = (le: string): string | undefined => buckets.find((line) => line.includes(`le="${le}"`))?.split(" ")[1]
      // Of five records, three count at the time of the oldest and two at that of the newest.
      assert.strictEqual(at("0.001"), "2")
      assert.strictEqual(at("0.002"), "5")
      assert.strictEqual(at("+Inf"), "6")
      const counts = buckets.map((line) => Number(line.split(" ")[1]))
      assert.deepStrictEqual(counts, counts.toSorted((a, b) => a - b))
    }))))
})

describe("the process's metrics", () => {
  it.effect("say the version, the memory, the processor time and the event loop's delay", () =>
    isolated(Effect.scoped(Effect.gen(function*() {
      yield* processMetrics("1.2.3")
      const text = yield* prometheusText
      const value = (name: string): number =>
        Number(seriesIn(text).find((line) => line.startsWith(`${name} `))?.split(" ")[1])
      assert.include(seriesIn(text), "onceover_build_info{version=\"1.2.3\"} 1")
      assert.isAbove(value("process_resident_memory_bytes"), 1_000_000)
      assert.isAbove(value("process_cpu_seconds_total"), 0)
      assert.isAtLeast(value("nodejs_eventloop_delay_seconds"), 0)
    }))))
})
