/**
 * The instruments of one flow.
 *
 * Guarantees: an instrument of the other mode is not registered, and its methods do nothing; everything that has no
 * partition is there with 0 from the start; a partition's series are built once and removed when the partition goes;
 * no method throws, waits or allocates per record.
 *
 * Latencies: a batch gives two observations that stand for all its records, half at the time of its oldest and half
 * at the time of its newest record, because a batch's header has these two and reading the records would cost more
 * than mirroring them. So counts are exact, quantiles are within one batch.
 */
import { Effect, type Scope } from "effect"
import { type GroupStanding, makeGroupSeries } from "./groupSeries.ts"
import { INSTRUMENTS, type InstrumentName, type Mode, OUTCOMES, SKIP_REASONS } from "./instruments.ts"
import {
  type Counter,
  type Gauge,
  type Histogram,
  type Labels,
  makeSeries,
  SECONDS,
  type SeriesFactory
} from "./series.ts"

export interface GuaranteeInForce {
  readonly wanted: string
  readonly effective: string
  /** "kip-1289", "ledger", or "none". */
  readonly binding: string
}

/** Sums over the life of the process. */
export interface FlowTotals {
  readonly recordsMirrored: number
  readonly bytesMirrored: number
  readonly recordsAcquired: number
  readonly recordsAcknowledged: number
  readonly recordsReleased: number
  readonly recordsRejected: number
  readonly recordsRedelivered: number
  readonly recordsRepaired: number
  readonly recordsSkipped: number
  readonly duplicatesPrevented: number
  readonly transactionsCommitted: number
  readonly transactionsAborted: number
  readonly transactionsFenced: number
  readonly deadLetters: number
  readonly sourceGapRecords: number
}

export interface FlowMetrics {
  readonly flow: string
  readonly mode: Mode
  readonly recordsAcquired: (records: number, redelivered: number) => void
  /** `seconds` from the acquisition. */
  readonly recordsAcknowledged: (records: number, seconds: number) => void
  readonly recordsReleased: (records: number) => void
  readonly recordsRejected: (records: number) => void
  readonly recordsRepaired: (records: number) => void
  readonly acknowledgementsRefused: (records: number) => void
  /** Confirmed by the target. `bytes` as stored. */
  readonly recordsMirrored: (topic: string, partition: number, records: number, bytes: number) => void
  /** Ages in seconds of a batch's oldest and newest record at the confirmation; below 0 (clocks differ) counts as 0. */
  readonly replicationLatency: (topic: string, oldest: number, newest: number, records: number) => void
  /** The same when the batch was read. */
  readonly recordAge: (topic: string, oldest: number, newest: number, records: number) => void
  readonly lag: (topic: string, partition: number, records: number) => void
  readonly transaction: (outcome: (typeof OUTCOMES)[number]) => void
  readonly duplicatesPrevented: (records: number) => void
  readonly recordsSkipped: (reason: (typeof SKIP_REASONS)[number], records: number) => void
  readonly deadLetters: (records: number) => void
  readonly sourceGap: (records: number) => void
  readonly loopsPrevented: (records: number) => void
  /** A pass of a control task: what it changed, and how much it could not. */
  readonly controlPass: (task: string, changed: number, problems: number) => void
  /** All groups whose offsets are kept, after a pass; none where another process leads. */
  readonly groups: (standings: ReadonlyArray<GroupStanding>) => void
  readonly blockedPartitions: (count: number) => void
  readonly running: (running: boolean) => void
  /** Replaces what held before. */
  readonly guarantee: (inForce: GuaranteeInForce) => void
  readonly partitionCount: (count: number) => void
  readonly offsetCommit: (seconds: number) => void
  /** The partition is another member's now: its lag is theirs to tell. What was done here stays counted. */
  readonly forgetPartition: (topic: string, partition: number) => void
  /** No partition of the topic is ours any more. */
  readonly forgetTopic: (topic: string) => void
  readonly totals: () => FlowTotals
}

interface PartitionSeries {
  readonly records: Counter
  readonly bytes: Counter
  lag: Gauge | null
}
interface TopicSeries {
  readonly latency: Histogram
  readonly age: Histogram
}

/** Makes series of one flow, keeps them for removal, and leaves out what is not of the mode. */
const makeMaker = (series: SeriesFactory, flow: string, mode: Mode) => {
  const open = new Set<{ readonly remove: () => void }>()
  const kept = <A extends { readonly remove: () => void }>(made: A): A => {
    open.add(made)
    return made
  }
  const present = (name: InstrumentName): boolean => INSTRUMENTS[name].only === null || INSTRUMENTS[name].only === mode
  return {
    counter: (name: InstrumentName, labels: Labels = {}): Counter | null =>
      present(name) ? kept(series.counter(name, INSTRUMENTS[name].help, { flow, ...labels })) : null,
    gauge: (name: InstrumentName, labels: Labels = {}): Gauge | null =>
      present(name) ? kept(series.gauge(name, INSTRUMENTS[name].help, { flow, ...labels })) : null,
    histogram: (name: InstrumentName, labels: Labels = {}): Histogram | null =>
      present(name) ? kept(series.histogram(name, INSTRUMENTS[name].help, { flow, ...labels }, SECONDS)) : null,
    drop: (made: { readonly remove: () => void } | null): void => {
      if (made === null) return
      open.delete(made)
      made.remove()
    },
    dropAll: (): void => {
      for (const made of open) made.remove()
      open.clear()
    }
  }
}
type Maker = ReturnType<typeof makeMaker>

/** Records are split between the batch's oldest and newest; one record is both. */
const observeBatch = (histogram: Histogram, oldest: number, newest: number, records: number): void => {
  const half = Math.floor(records / 2)
  histogram.observe(Math.max(0, oldest), records - half)
  histogram.observe(Math.max(0, newest), half)
}

/** The series that come and go with partitions and topics. */
const makePlaces = (make: Maker) => {
  const partitions = new Map<string, Map<number, PartitionSeries>>()
  const topics = new Map<string, TopicSeries>()
  const sums = { records: 0, bytes: 0 }
  const partitionOf = (topic: string, partition: number): PartitionSeries => {
    let ofTopic = partitions.get(topic)
    if (ofTopic === undefined) partitions.set(topic, ofTopic = new Map())
    let found = ofTopic.get(partition)
    if (found === undefined) {
      const labels = { topic, partition: String(partition) }
      found = {
        records: make.counter("onceover_records_mirrored_total", labels) as Counter,
        bytes: make.counter("onceover_bytes_mirrored_total", labels) as Counter,
        lag: null
      }
      ofTopic.set(partition, found)
    }
    return found
  }
  const topicOf = (topic: string): TopicSeries => {
    let found = topics.get(topic)
    if (found === undefined) {
      found = {
        latency: make.histogram("onceover_replication_latency_seconds", { topic }) as Histogram,
        age: make.histogram("onceover_record_age_seconds", { topic }) as Histogram
      }
      topics.set(topic, found)
    }
    return found
  }
  const forgetLag = (found: PartitionSeries | undefined): void => {
    if (found === undefined) return
    make.drop(found.lag)
    found.lag = null
  }
  return {
    mirrored: (topic: string, partition: number, records: number, bytes: number): void => {
      const at = partitionOf(topic, partition)
      at.records.add(records)
      at.bytes.add(bytes)
      sums.records += records
      sums.bytes += bytes
    },
    lag: (topic: string, partition: number, records: number): void => {
      const at = partitionOf(topic, partition)
      at.lag ??= make.gauge("onceover_lag_records", { topic, partition: String(partition) })
      at.lag?.set(Math.max(0, records))
    },
    latency: (topic: string, oldest: number, newest: number, records: number) =>
      observeBatch(topicOf(topic).latency, oldest, newest, records),
    age: (topic: string, oldest: number, newest: number, records: number) =>
      observeBatch(topicOf(topic).age, oldest, newest, records),
    // The counters stay: a member of this same process may be the next, and what is counted must not go back.
    forgetPartition: (topic: string, partition: number): void => forgetLag(partitions.get(topic)?.get(partition)),
    forgetTopic: (topic: string): void => {
      for (const found of partitions.get(topic)?.values() ?? []) {
        make.drop(found.records)
        make.drop(found.bytes)
        forgetLag(found)
      }
      partitions.delete(topic)
      make.drop(topics.get(topic)?.latency ?? null)
      make.drop(topics.get(topic)?.age ?? null)
      topics.delete(topic)
    },
    sums
  }
}

/** The guarantee's gauge: its labels are its value, so a change is another series. */
const makeGuarantee = (make: Maker) => {
  let current: { readonly key: string; readonly gauge: Gauge | null } | null = null
  return (inForce: GuaranteeInForce): void => {
    const key = JSON.stringify([inForce.wanted, inForce.effective, inForce.binding])
    if (current?.key === key) return
    make.drop(current?.gauge ?? null)
    const gauge = make.gauge("onceover_guarantee", {
      wanted: inForce.wanted,
      effective: inForce.effective,
      binding: inForce.binding
    })
    gauge?.set(1)
    current = { key, gauge }
  }
}

const sumOf = (counters: ReadonlyMap<string, Counter | null>): number =>
  [...counters.values()].reduce((sum, counter) => sum + (counter?.value() ?? 0), 0)

/** Series of a task from its first pass on. */
const makeControl = (make: Maker) => {
  const tasks = new Map<string, { readonly changes: Counter | null; readonly problems: Gauge | null }>()
  return (task: string, changed: number, problems: number): void => {
    let series = tasks.get(task)
    if (series === undefined) {
      series = {
        changes: make.counter("onceover_control_changes_total", { task }),
        problems: make.gauge("onceover_control_problems", { task })
      }
      tasks.set(task, series)
    }
    series.changes?.add(changed)
    series.problems?.set(problems)
  }
}

const build = (make: Maker, flow: string, mode: Mode): FlowMetrics => {
  const acquired = make.counter("onceover_records_acquired_total")
  const acknowledged = make.counter("onceover_records_acknowledged_total")
  const released = make.counter("onceover_records_released_total")
  const rejected = make.counter("onceover_records_rejected_total")
  const redelivered = make.counter("onceover_records_redelivered_total")
  const repaired = make.counter("onceover_records_repaired_total")
  const refused = make.counter("onceover_acknowledgements_refused_total")
  const acknowledge = make.histogram("onceover_acknowledge_seconds")
  const prevented = make.counter("onceover_duplicates_prevented_total")
  const letters = make.counter("onceover_dead_letters_total")
  const gap = make.counter("onceover_source_gap_records_total")
  const blocked = make.gauge("onceover_blocked_partitions")
  const running = make.gauge("onceover_flow_running")
  const count = make.gauge("onceover_partition_count")
  const commit = make.histogram("onceover_offset_commit_seconds")
  const outcomes = new Map(
    OUTCOMES.map((outcome) => [outcome, make.counter("onceover_transactions_total", { outcome })])
  )
  const skipped = new Map(
    SKIP_REASONS.map((reason) => [reason, make.counter("onceover_records_skipped_total", { reason })])
  )
  const loops = make.counter("onceover_loops_prevented_total")
  const control = makeControl(make)
  const places = makePlaces(make)
  return {
    flow,
    mode,
    recordsAcquired: (records, again) => {
      acquired?.add(records)
      redelivered?.add(again)
    },
    recordsAcknowledged: (records, seconds) => {
      acknowledged?.add(records)
      acknowledge?.observe(Math.max(0, seconds), records)
    },
    recordsReleased: (records) => released?.add(records),
    recordsRejected: (records) => rejected?.add(records),
    recordsRepaired: (records) => repaired?.add(records),
    acknowledgementsRefused: (records) => refused?.add(records),
    recordsMirrored: places.mirrored,
    replicationLatency: places.latency,
    recordAge: places.age,
    lag: places.lag,
    transaction: (outcome) => outcomes.get(outcome)?.add(1),
    duplicatesPrevented: (records) => prevented?.add(records),
    recordsSkipped: (reason, records) => skipped.get(reason)?.add(records),
    deadLetters: (records) => letters?.add(records),
    loopsPrevented: (records) => loops?.add(records),
    controlPass: control,
    groups: makeGroupSeries(make),
    sourceGap: (records) => gap?.add(records),
    blockedPartitions: (n) => blocked?.set(n),
    running: (is) => running?.set(is ? 1 : 0),
    guarantee: makeGuarantee(make),
    partitionCount: (n) => count?.set(n),
    offsetCommit: (seconds) => commit?.observe(Math.max(0, seconds)),
    forgetPartition: places.forgetPartition,
    forgetTopic: places.forgetTopic,
    totals: () => ({
      recordsMirrored: places.sums.records,
      bytesMirrored: places.sums.bytes,
      recordsAcquired: acquired?.value() ?? 0,
      recordsAcknowledged: acknowledged?.value() ?? 0,
      recordsReleased: released?.value() ?? 0,
      recordsRejected: rejected?.value() ?? 0,
      recordsRedelivered: redelivered?.value() ?? 0,
      recordsRepaired: repaired?.value() ?? 0,
      recordsSkipped: sumOf(skipped),
      duplicatesPrevented: prevented?.value() ?? 0,
      transactionsCommitted: outcomes.get("committed")?.value() ?? 0,
      transactionsAborted: outcomes.get("aborted")?.value() ?? 0,
      transactionsFenced: outcomes.get("fenced")?.value() ?? 0,
      deadLetters: letters?.value() ?? 0,
      sourceGapRecords: gap?.value() ?? 0
    })
  }
}

/**
 * Registers a flow's instruments in the registry of the current context; they vanish when the scope closes. Make it
 * once for the life of a flow, outside its retries: counters start at 0 with it.
 */
export const makeFlowMetrics = (flow: string, mode: Mode): Effect.Effect<FlowMetrics, never, Scope.Scope> =>
  Effect.gen(function*() {
    const context = yield* Effect.context<never>()
    const make = yield* Effect.acquireRelease(
      Effect.sync(() => makeMaker(makeSeries(context), flow, mode)),
      (made) => Effect.sync(() => made.dropAll())
    )
    return build(make, flow, mode)
  })
