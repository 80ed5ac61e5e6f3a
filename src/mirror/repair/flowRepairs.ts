/** Repair (R12) for a flow that runs on a ledger and a share group: what it asks and whom it tells. */
import { Effect, type Scope } from "effect"
import type { BindingStopped } from "../../txn/binding.ts"
import { adoptProgress } from "../../txn/ledger/adopt.ts"
import { knownOf } from "../../txn/ledger/positions.ts"
import type { WorkerLedger } from "../../txn/ledger/worker.ts"
import { makeProducer } from "../../txn/producer.ts"
import { shareStartOffsets } from "../../share/startOffsets.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { endOffsets, partitionName, startOffsets } from "../control/offsets.ts"
import type { MirroredTopic } from "../control/topics.ts"
import type { Log } from "../report.ts"
import { makeRepairs, type Repairs, type Standing } from "./repairs.ts"

export interface FlowRepairOptions {
  readonly source: Cluster
  readonly target: Cluster
  readonly ledger: WorkerLedger
  readonly flow: string
  readonly groupId: string
  readonly readCommitted: boolean
  readonly fromEarliest: boolean
  readonly topics: () => ReadonlyArray<MirroredTopic>
  readonly onRepaired: (records: number) => void
  readonly log: Log
}

const INTERVAL_MS = 30_000
const MAX_BYTES = 4 * 1024 * 1024

const mirroredNow = (options: FlowRepairOptions) => {
  const names = new Set(options.topics().map((topic) => topic.source))
  return Effect.map(shareStartOffsets(options.source, options.groupId), (starts) => starts.filter((s) => names.has(s.topic) && s.startOffset > 0))
}

const standings = (options: FlowRepairOptions): Effect.Effect<ReadonlyArray<Standing>, WireError> =>
  Effect.gen(function*() {
    const begun = yield* mirroredNow(options)
    if (begun.length === 0) return []
    const named = new Set(begun.map((s) => s.topic))
    const logStarts = yield* startOffsets(options.source, options.topics().filter((topic) => named.has(topic.source)))
    return begun.flatMap(({ partition, startOffset, topic, topicId }) => {
      const logStart = logStarts.get(partitionName(topic, partition))
      return logStart === undefined ? [] : [{ topic, topicId, partition, groupStart: startOffset, logStart }]
    })
  })

/**
 * What the group had done before this flow had a ledger. The group's start offset lags behind what is acknowledged;
 * where nothing is left to do, all that is there is done.
 */
const adopt = (options: FlowRepairOptions): Effect.Effect<void, WireError | BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const begun = yield* mirroredNow(options)
    if (begun.length === 0) return
    const named = new Set(begun.map((s) => s.topic))
    const ends = yield* endOffsets(options.source, options.topics().filter((topic) => named.has(topic.source)), options.readCommitted)
    const progress = begun.map(({ lag, partition, startOffset, topic, topicId }) => {
      const end = ends.get(partitionName(topic, partition)) ?? startOffset
      return { topic, topicId, partition, below: lag === 0 ? Math.max(end, startOffset) : startOffset }
    })
    const producer = yield* makeProducer({ cluster: options.target, purpose: `ledger-adopt-${options.flow}` })
    const adopted = yield* adoptProgress(options.ledger, producer, progress)
    if (adopted === true) options.log("info", `the ledger is new: what group ${options.groupId} had done before counts as mirrored`)
    if (adopted === null) options.log("warn", `what group ${options.groupId} had done before could not be noted in the ledger`)
  })

/** Call before the flow's first lane starts. */
export const makeFlowRepairs = (options: FlowRepairOptions): Effect.Effect<Repairs, WireError | BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    yield* Effect.scoped(adopt(options))
    return yield* makeRepairs({
      cluster: options.source,
      purpose: `repair-${options.flow}`,
      readCommitted: options.readCommitted,
      fromEarliest: options.fromEarliest,
      maxBytes: MAX_BYTES,
      intervalMs: INTERVAL_MS,
      standings: standings(options),
      known: (at) => knownOf(options.ledger, at),
      onRepaired: (_, records) => options.onRepaired(records),
      log: options.log
    })
  })
