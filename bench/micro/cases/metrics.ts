/** What a scrape of /metrics costs with a thousand partitions, and what a mirrored batch adds to the counters. */
import { Effect, Scope } from "effect"
import { type FlowMetrics, makeFlowMetrics } from "../../../src/metrics/flowMetrics.ts"
import { prometheusText } from "../../../src/metrics/text.ts"
import type { MicroCase } from "../microCase.ts"

const PARTITIONS = 1000

/** One for all, as it is registered in the process. */
let made: FlowMetrics | null = null
const metrics = (): FlowMetrics => {
  if (made !== null) return made
  const found = Effect.runSync(Effect.provideService(makeFlowMetrics("f", "share"), Scope.Scope, Scope.makeUnsafe()))
  for (let partition = 0; partition < PARTITIONS; partition++) found.recordsMirrored("orders", partition, 1, 1)
  return made = found
}

const mirrored: MicroCase = {
  name: "count a mirrored batch",
  warmUp: 4000,
  operations: 1000,
  prepare: () => {
    const of = metrics()
    return (n) => {
      of.recordsMirrored("orders", n % PARTITIONS, 100, 16_384)
      of.recordAge("orders", 0.5, 0.25, 100)
      of.replicationLatency("orders", 0.75, 0.5, 100)
    }
  }
}

const scrape: MicroCase = {
  name: `scrape metrics of ${PARTITIONS} partitions`,
  warmUp: 4,
  operations: 1,
  prepare: () => {
    metrics()
    return () => Effect.runSync(prometheusText)
  }
}

export const cases: ReadonlyArray<MicroCase> = [mirrored, scrape]
