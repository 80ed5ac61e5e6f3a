/**
 * What a run of a flow has to do with the flow's ledger, before its first lane and beside them: begin with it, or leave
 * it; repair; watch it.
 */
import { Effect, type Scope } from "effect"
import type { ResolvedFlow } from "../../config/types.ts"
import type { StartAt } from "../../group/shared.ts"
import type { BindingCandidate, BindingStopped } from "../../txn/binding.ts"
import { knownOf, startPosition } from "../../txn/ledger/positions.ts"
import { noteReader } from "../../txn/ledger/regime.ts"
import type { WorkerLedger } from "../../txn/ledger/worker.ts"
import type { WireError } from "../../wire/errors.ts"
import type { ControlLog } from "../control/controlLog.ts"
import { reachableStarts } from "../control/logOffsets.ts"
import { groupProgress, partitionName } from "../control/offsets.ts"
import type { MirroredTopic } from "../control/topics.ts"
import type { FlowClusters } from "../flowSetup.ts"
import { watchLedger } from "../ledgerWatch.ts"
import { makeFlowRepairs } from "../repair/flowRepairs.ts"
import type { Repairs } from "../repair/repairs.ts"
import type { Log } from "../report.ts"
import { beginWithLedger } from "./begin.ts"
import { leaveLedger } from "./leave.ts"
import { ledgerStart } from "./startAt.ts"

export interface LedgerSideOptions {
  readonly flow: ResolvedFlow
  readonly clusters: FlowClusters
  readonly candidate: BindingCandidate
  readonly topics: () => ReadonlyArray<MirroredTopic>
  /** Member ids of this process's lanes, where they are members of a share group. */
  readonly ownMembers: () => ReadonlyArray<string>
  readonly onRepaired: (records: number) => void
  readonly notes: ControlLog
  readonly log: Log
}

export interface LedgerSide {
  /** null: the flow has none in force. */
  readonly ledger: WorkerLedger | null
  /** Share mode with a ledger. */
  readonly repairs: Repairs | null
  /** Whether all below these offsets (by "topic-partition") is done by the ledger's word too; waits until it is. */
  readonly caughtUp: (goal: ReadonlyMap<string, number>) => Effect.Effect<void, WireError | BindingStopped>
  /** Consumer mode with a ledger: where partitions begin (R10). */
  readonly startAt: StartAt | null
  /** Runs beside the lanes; fails when they must not go on. */
  readonly beside: Effect.Effect<never, BindingStopped | WireError, Scope.Scope>
}

/** Between two looks at whether a time without the ledger can be ended, milliseconds. */
const AWAY_LOOK_MS = 5_000

const groupOf = ({ clusters, flow, topics }: LedgerSideOptions) => ({
  source: clusters.source,
  target: clusters.target,
  groupId: flow.groupId,
  readCommitted: flow.isolationLevel === "read_committed",
  flow: flow.name,
  topics
})

const without = (options: LedgerSideOptions) =>
  Effect.gen(function*() {
    const watch = yield* leaveLedger({
      ...groupOf(options),
      mode: options.flow.groupProtocol.value,
      sourceId: options.clusters.sourceId,
      binding: options.candidate.name,
      log: options.log
    })
    return {
      ledger: null,
      repairs: null,
      caughtUp: () => Effect.void,
      startAt: null,
      beside: watch ?? Effect.never
    } satisfies LedgerSide
  })

const GOAL_POLL_MS = 200

/** A group's position may be anywhere (R10): caught up is what the ledger has. */
const untilPast = (options: LedgerSideOptions, ledger: WorkerLedger, goal: ReadonlyMap<string, number>) =>
  Effect.gen(function*() {
    const { clusters: { source }, flow, topics } = options
    const at = topics().flatMap((topic) =>
      Array.from(
        { length: topic.partitions },
        (_, partition) => ({ topic: topic.source, topicId: topic.sourceId, partition })
      )
    )
    const open = new Map(at.map((one) => [partitionName(one.topic, one.partition), one]))
    while (open.size > 0) {
      const starts = (yield* reachableStarts(source, topics())).found
      const positions = yield* groupProgress(source, flow.groupId, topics())
      for (const [name, one] of open) {
        const logStart = starts.get(name)
        if (logStart === undefined) continue
        const { done } = yield* knownOf(ledger, one)
        const committed = positions.get(name)?.position ?? null
        const away = noteReader(ledger.readers).tail().away !== null
        const place = startPosition({ done, committed, logStart, away })
        if (place === null || place >= (goal.get(name) ?? 0)) open.delete(name)
      }
      if (open.size > 0) yield* Effect.sleep(GOAL_POLL_MS)
    }
  })

const withLedger = (options: LedgerSideOptions, ledger: WorkerLedger) =>
  Effect.gen(function*() {
    const { candidate, flow, log, notes, onRepaired, ownMembers } = options
    const begin = { ...groupOf(options), ledger, ownMembers, onLedgerLost: flow.onLedgerLost, notes, log }
    const watching = watchLedger(candidate)
    if (flow.groupProtocol.value === "share") {
      const repairs = yield* makeFlowRepairs({
        ...begin,
        fromEarliest: flow.autoOffsetReset === "earliest",
        onRepaired
      })
      return {
        ledger,
        repairs,
        caughtUp: () => repairs.clean,
        startAt: null,
        beside: Effect.raceFirst(repairs.run, watching)
      } satisfies LedgerSide
    }
    const { inForce } = yield* beginWithLedger({ ...begin, mode: "consumer" })
    const look = Effect.andThen(
      Effect.sleep(AWAY_LOOK_MS),
      Effect.catchTags(inForce, {
        BrokerError: () => Effect.void,
        ConnectionError: () => Effect.void
      })
    )
    const beside = Effect.raceFirst(Effect.forever(look), watching)
    const caughtUp = (goal: ReadonlyMap<string, number>) => untilPast(options, ledger, goal)
    return { ledger, repairs: null, caughtUp, startAt: ledgerStart(ledger, log), beside } satisfies LedgerSide
  })

/** Call before the flow's first lane starts. */
export const openLedgerSide = (
  options: LedgerSideOptions
): Effect.Effect<LedgerSide, WireError | BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const { ledger } = options.candidate
    return ledger === undefined ? yield* without(options) : yield* withLedger(options, yield* ledger)
  })
