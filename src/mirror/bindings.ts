/** The bindings this version has, made for a flow. The configuration's order decides which is tried first. */
import type { ResolvedFlow } from "../config/types.ts"
import { atLeastOnce } from "../txn/atLeastOnce.ts"
import type { BindingCandidate } from "../txn/binding.ts"
import { kip1289 } from "../txn/kip1289.ts"
import { ledger } from "../txn/ledger/ledgerBinding.ts"
import { transactionalIdOf } from "../txn/ledger/lastRuns.ts"
import type { LedgerMemory } from "../txn/ledger/worker.ts"
import type { Stall } from "../txn/producer.ts"
import type { ProducerSettings } from "../txn/producerSettings.ts"
import type { FlowClusters } from "./flowSetup.ts"
import type { Log } from "./report.ts"

export interface BindingHooks {
  readonly onStall: (stall: Stall) => void
  /** `taken`: it took what waited for it; false: nothing waits for it any more. */
  readonly onRecover: (topic: string, partition: number, taken: boolean) => void
  /** The target's coordinator of this transactional id does not answer, and why; null: it does again. */
  readonly onWaiting: (transactionalId: string, reason: string | null) => void
  readonly log: Log
  /** Tells this process's lanes from those of others that run the same flow: part of their transactional ids. */
  readonly instance: string
  /** Of this flow, through its restarts. */
  readonly ledgerMemory?: LedgerMemory
}

/** For who only asks which guarantee could hold: no lane of it writes. */
export const silentHooks: Pick<BindingHooks, "onStall" | "onRecover" | "onWaiting"> = {
  onStall: () => {},
  onRecover: () => {},
  onWaiting: () => {}
}

export const bindingCandidates = (
  clusters: FlowClusters,
  flow: ResolvedFlow,
  settings: ProducerSettings,
  hooks: BindingHooks
): ReadonlyArray<BindingCandidate> => {
  const { instance, ledgerMemory, log, onRecover, onStall, onWaiting } = hooks
  return [
    kip1289({
      ...clusters,
      groupProtocol: flow.groupProtocol.value,
      settings,
      onStall,
      onRecover,
      onWaiting,
      transactionalId: (lane) => transactionalIdOf(instance, lane, "kip-1289")
    }),
    ledger({
      ...clusters,
      flow: flow.name,
      settings,
      onStall,
      onRecover,
      onWaiting,
      log,
      ...(ledgerMemory === undefined ? {} : { memory: ledgerMemory }),
      patienceMs: flow.ledgerPatienceMs,
      transactionalId: (lane) => transactionalIdOf(instance, lane)
    }),
    atLeastOnce({ cluster: clusters.target, settings, onStall, onRecover })
  ]
}
