/**
 * What a run of a flow has to do with the flow's ledger, before its first lane and beside them: begin with it, or leave
 * it; repair; watch it.
 */
import { Effect, type Scope } from "effect"
import type { ResolvedFlow } from "../../config/types.ts"
import type { BindingCandidate, BindingStopped } from "../../txn/binding.ts"
import type { WorkerLedger } from "../../txn/ledger/worker.ts"
import type { WireError } from "../../wire/errors.ts"
import type { MirroredTopic } from "../control/topics.ts"
import type { FlowClusters } from "../flowSetup.ts"
import { watchLedger } from "../ledgerWatch.ts"
import { makeFlowRepairs } from "../repair/flowRepairs.ts"
import type { Repairs } from "../repair/repairs.ts"
import type { Log } from "../report.ts"
import { beginWithLedger } from "./begin.ts"
import { leaveLedger } from "./leave.ts"

export interface LedgerSideOptions {
  readonly flow: ResolvedFlow
  readonly clusters: FlowClusters
  readonly candidate: BindingCandidate
  readonly topics: () => ReadonlyArray<MirroredTopic>
  /** Member ids of this process's lanes, where they are members of a share group. */
  readonly ownMembers: () => ReadonlyArray<string>
  readonly onRepaired: (records: number) => void
  readonly log: Log
}

export interface LedgerSide {
  /** null: the flow has none in force. */
  readonly ledger: WorkerLedger | null
  /** Share mode with a ledger. */
  readonly repairs: Repairs | null
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
    return { ledger: null, repairs: null, beside: watch ?? Effect.never } satisfies LedgerSide
  })

const withLedger = (options: LedgerSideOptions, ledger: WorkerLedger) =>
  Effect.gen(function*() {
    const { candidate, flow, log, onRepaired, ownMembers } = options
    const begin = { ...groupOf(options), ledger, ownMembers, onLedgerLost: flow.onLedgerLost, log }
    const watching = watchLedger(candidate)
    if (flow.groupProtocol.value === "share") {
      const repairs = yield* makeFlowRepairs({
        ...begin,
        fromEarliest: flow.autoOffsetReset === "earliest",
        onRepaired
      })
      return { ledger, repairs, beside: Effect.raceFirst(repairs.run, watching) } satisfies LedgerSide
    }
    const { inForce } = yield* beginWithLedger({ ...begin, mode: "consumer" })
    const look = Effect.andThen(
      Effect.sleep(AWAY_LOOK_MS),
      Effect.catchTags(inForce, {
        BrokerError: () => Effect.void,
        ConnectionError: () => Effect.void
      })
    )
    return { ledger, repairs: null, beside: Effect.raceFirst(Effect.forever(look), watching) } satisfies LedgerSide
  })

/** Call before the flow's first lane starts. */
export const openLedgerSide = (
  options: LedgerSideOptions
): Effect.Effect<LedgerSide, WireError | BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const { ledger } = options.candidate
    return ledger === undefined ? yield* without(options) : yield* withLedger(options, yield* ledger)
  })
