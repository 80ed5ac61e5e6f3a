/** A run that failed, for people: what, how to see it again, and how it came to it. */
import type { Plan } from "./plan.ts"
import type { Result } from "./simulation.ts"

export const replayCommand = (plan: Plan, mutation?: string): string =>
  [
    `npm run simulate -- --seeds 1 --from ${plan.seed} --mode ${plan.mode}`,
    ...(plan.binding === "at-least-once" ? ["--binding at-least-once"] : []),
    ...(mutation === undefined ? [] : [`--mutate ${mutation}`])
  ].join(" ")

const inShort = (plan: Plan): string =>
  `${plan.mode}, ${plan.binding}, lanes ${
    plan.workers.join("+")
  }, ${plan.partitions} partitions, brokers ${plan.sourceBrokers} and ${plan.targetBrokers}, ` +
  `transactions of version ${plan.transactionVersion}, ledger of ${plan.ledgerPartitions}, lock ${plan.lockMs} ms, transaction.timeout.ms ${plan.transactionTimeoutMs}, ` +
  `patience ${plan.patienceMs} ms, a snapshot every ${plan.snapshotEntries} entries`

export const report = (result: Result, lines: number, mutation?: string): ReadonlyArray<string> => [
  ...result.history.last(lines),
  `seed ${result.plan.seed} (${inShort(result.plan)})`,
  `failed after ${(result.virtualMs / 1_000).toFixed(3)} s of virtual time: ${result.problem}`,
  `again: ${replayCommand(result.plan, mutation)}`
]
