/** Turns what lanes tell into the flow's state, its metrics and a few lines of the log. */
import { Effect } from "effect"
import type { FlowMetrics } from "../metrics/flowMetrics.ts"
import { rangeSet, size } from "../wire/ranges.ts"
import type { Delivery, Settled, Settlement } from "./delivery.ts"
import type { LaneEvents } from "./laneEvents.ts"
import type { FlowState } from "./state.ts"

const offsets = (ranges: ReadonlyArray<{ readonly first: number; readonly last: number }>): number =>
  ranges.reduce((sum, r) => sum + r.last - r.first + 1, 0)

const MILLIS = 1000

/** A line of the log from plain code; the fiber's context gives it the flow's annotations. */
export type Log = (level: "debug" | "info" | "warn" | "error", message: string) => void

export const makeLog: Effect.Effect<Log> = Effect.map(Effect.context<never>(), (context) => {
  const run = Effect.runForkWith(context)
  const by = { debug: Effect.logDebug, info: Effect.logInfo, warn: Effect.logWarning, error: Effect.logError }
  return (level, message) => {
    run(by[level](message))
  }
})

const acknowledged = (
  metrics: FlowMetrics,
  delivery: Delivery,
  settlements: ReadonlyArray<Settlement>,
  settled: Settled,
  nowMs: number
): void => {
  const of = (type: Settlement["type"]): number => offsets(settlements.filter((s) => s.type === type))
  // The broker's refusals are not told apart by type here: they are almost always of acceptances.
  const accepted = Math.max(0, of("accept") + of("gap") - settled.refused)
  if (accepted > 0) metrics.recordsAcknowledged(accepted, (nowMs - delivery.acquiredAtMs) / MILLIS)
  const released = of("release")
  if (released > 0) metrics.recordsReleased(released)
  const rejected = of("reject")
  if (rejected > 0) metrics.recordsRejected(rejected)
  if (settled.refused > 0) metrics.acknowledgementsRefused(settled.refused)
}

export const makeReport = (
  state: FlowState,
  metrics: FlowMetrics,
  targetOf: (topic: string) => string,
  log: Log
): LaneEvents => {
  const place = (delivery: Delivery) => state.partition(delivery.topic, delivery.partition, targetOf(delivery.topic))
  const where = (delivery: Delivery): string => `${delivery.topic}-${delivery.partition}`
  return {
    acquired: (delivery) => {
      const again = offsets(delivery.ranges.filter((range) => range.deliveryCount > 1))
      metrics.recordsAcquired(offsets(delivery.ranges), again)
      state.redelivered += again
      const newest = delivery.batches[delivery.batches.length - 1]?.view
      if (newest === undefined) return
      const age = (timestamp: bigint): number => (delivery.acquiredAtMs - Number(timestamp)) / MILLIS
      metrics.recordAge(
        targetOf(delivery.topic),
        age(newest.baseTimestamp),
        age(newest.maxTimestamp),
        newest.recordCount
      )
    },
    alreadyDone: (_delivery, ranges) => metrics.duplicatesPrevented(size(ranges)),
    mirrored: (delivery, unit, nowMs) => {
      const at = place(delivery)
      at.mirrored += unit.records
      state.mirrored += unit.records
      state.bytes += unit.bytes
      if (unit.filtered > 0) metrics.recordsSkipped("filtered", unit.filtered)
      if (unit.records === 0) return
      metrics.recordsMirrored(at.targetTopic, delivery.partition, unit.records, unit.bytes)
      const oldest = (nowMs - Number(unit.oldestTimestamp)) / MILLIS
      at.latencySeconds = Math.max(0, oldest)
      metrics.replicationLatency(
        at.targetTopic,
        oldest,
        (nowMs - Number(unit.newestTimestamp)) / MILLIS,
        unit.records
      )
    },
    settled: (delivery, settlements, settled, nowMs) => {
      acknowledged(metrics, delivery, settlements, settled, nowMs)
      if (settled.refused === 0) {
        if (state.mode === "share") {
          state.acknowledged(
            delivery.topic,
            delivery.partition,
            rangeSet(settlements.filter((s) => s.type !== "release"))
          )
        }
        return
      }
      state.refusedAcknowledgements += settled.refused
      log(
        "warn",
        `${where(delivery)}: ${settled.refused} records were mirrored but not acknowledged, they may come again: ${
          settled.reason ?? "no reason given"
        }`
      )
    },
    transaction: (outcome) => metrics.transaction(outcome),
    blocked: (delivery, reason) => {
      const at = place(delivery)
      if (at.state !== "blocked" || at.reason !== reason) log("warn", `${where(delivery)} is blocked: ${reason}`)
      at.state = "blocked"
      at.reason = reason
      metrics.blockedPartitions(state.blocked.length)
    },
    unblocked: (delivery) => {
      const at = place(delivery)
      if (at.state === "blocked") log("info", `${where(delivery)} goes on`)
      at.state = "running"
      at.reason = null
      metrics.blockedPartitions(state.blocked.length)
    },
    deadLettered: (delivery, offset, error) => {
      state.deadLettered++
      metrics.deadLetters(1)
      log("warn", `${where(delivery)} offset ${offset} went to the dead-letter topic: ${error.message}`)
    },
    skipped: (delivery, offset, error) => {
      state.skipped++
      metrics.recordsSkipped("error", 1)
      log("warn", `${where(delivery)} offset ${offset} is skipped (errors.tolerance is all): ${error.message}`)
    }
  }
}

/** Partitions that the source does not give: said when it begins, changes and ends, and seen in the state until then. */
export const makeTrouble = (
  state: FlowState,
  metrics: FlowMetrics,
  targetOf: (topic: string) => string,
  log: Log
): (topic: string, partition: number, reason: string | null) => void => {
  const told = new Map<string, string>()
  return (topic, partition, reason) => {
    const name = `${topic}-${partition}`
    const before = told.get(name) ?? null
    const words = reason === null ? null : `cannot be read from the source: ${reason}`
    if (words === before) return
    const at = state.partition(topic, partition, targetOf(topic))
    if (words !== null) {
      told.set(name, words)
      at.state = "blocked"
      at.reason = words
      log("warn", `${name} ${words}`)
    } else {
      told.delete(name)
      // A lane may hold records of it for a reason of its own.
      if (at.reason === before) {
        at.state = "running"
        at.reason = null
        log("info", `${name} is read again`)
      }
    }
    metrics.blockedPartitions(state.blocked.length)
  }
}
