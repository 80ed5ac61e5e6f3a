/**
 * What the target's transaction coordinators remember of a flow's runs (a week by default, transactional.id.expiration.ms):
 * the witness of a ledger that is gone, and the transactions of KIP-1289 that a run has left open.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { listTransactions } from "../../wire/messages/listTransactions.ts"

/** `lane` begins with the flow's name. Other bindings have other ids, so that each tells what has run. */
export const transactionalIdOf = (instance: string, lane: string, binding: "ledger" | "kip-1289" = "ledger"): string =>
  binding === "ledger" ? `onceover.${lane}.${instance}` : `onceover.${lane}.${instance}.kip-1289`

export interface KnownTransaction {
  readonly transactionalId: string
  readonly binding: "ledger" | "kip-1289"
  /** Not ended yet. */
  readonly open: boolean
}

const OPEN = new Set(["Ongoing", "PrepareCommit", "PrepareAbort"])
const isOf = (flow: string, id: string): boolean => {
  const prefix = `onceover.${flow}-`
  return id.startsWith(prefix) && /^\d+\../.test(id.slice(prefix.length))
}

/**
 * The transactional ids of the flow that the coordinators know, of all its processes. Empty on brokers that cannot
 * list them (before Kafka 3.0).
 */
export const knownTransactions = (
  cluster: Cluster,
  flow: string
): Effect.Effect<ReadonlyArray<KnownTransaction>, WireError> =>
  cluster.retrying(Effect.gen(function*() {
    const found = yield* Effect.forEach(yield* cluster.brokers, ({ id }) =>
      Effect.gen(function*() {
        const answer = yield* cluster.request({ kind: "broker", id }, listTransactions, {
          stateFilters: [],
          producerIdFilters: []
        })
        if (answer.errorCode !== 0) {
          return yield* new BrokerError({
            api: "ListTransactions",
            code: answer.errorCode,
            subject: `broker ${id}`,
            detail: null
          })
        }
        return answer.transactionStates
      }), { concurrency: "unbounded" })
    return found.flat().filter(({ transactionalId }) => isOf(flow, transactionalId)).map((
      { transactionState, transactionalId }
    ): KnownTransaction => ({
      transactionalId,
      binding: transactionalId.endsWith(".kip-1289") ? "kip-1289" : "ledger",
      open: OPEN.has(transactionState)
    }))
  })).pipe(Effect.catchTag("UnsupportedError", () => Effect.succeed([])))
