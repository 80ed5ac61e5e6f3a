/**
 * What one seed makes of a run: how many lanes and brokers, which kinds of faults, how often. Kinds are switched on
 * by the seed, then their rates drawn (as FoundationDB's Buggify): runs with one kind of fault in plenty find what
 * runs with a little of everything do not.
 */
import type { Mutations } from "../../src/txn/ledger/mutations.ts"
import type { TxnShareDraft } from "../../src/embedded/model/state.ts"
import { Dice } from "./dice.ts"

export type Mode = "share" | "consumer" | "kip-1289"
export type BindingKind = "ledger" | "at-least-once" | "kip-1289"

/** Mean times between faults of a kind, milliseconds of virtual time; Infinity: never. */
export interface FaultTimes {
  readonly crash: number
  readonly freeze: number
  readonly sourceLeader: number
  readonly targetLeader: number
  readonly coordinator: number
  readonly fence: number
  readonly slowMarkers: number
  readonly brokerStop: number
  /** A broker without KIP-1289 for a while. */
  readonly oldBroker: number
}

/** Chances for each request. */
export interface RequestFaults {
  readonly loseRequest: number
  readonly loseAnswer: number
  readonly late: number
  readonly slow: number
  /** The most that a way takes, milliseconds; and one that is slow. */
  readonly latencyMs: number
  readonly slowMs: number
  /** That a write to the target is the moment for a crash, a stop, a move or the like. */
  readonly trouble: number
}

export interface Plan {
  readonly seed: number
  readonly mode: Mode
  readonly binding: BindingKind
  /** Lanes of each worker: a worker is a process. */
  readonly workers: ReadonlyArray<number>
  readonly partitions: number
  readonly sourceBrokers: number
  readonly targetBrokers: number
  readonly transactionVersion: 1 | 2
  /** Of KIP-1289. */
  readonly draft: TxnShareDraft
  readonly ledgerPartitions: number
  readonly records: number
  /** Source transactions, aborted ones among them, and holes of compaction. */
  readonly sourceGaps: boolean
  readonly faultPhaseMs: number
  /** In which everything has to be done once the faults are over. */
  readonly livenessMs: number
  readonly lockMs: number
  readonly transactionTimeoutMs: number
  /** How long a transaction gathers records; 0: each poll is one. */
  readonly gatherMs: number
  readonly patienceMs: number
  readonly snapshotEntries: number
  readonly sessionTimeoutMs: number
  /** Deliveries after which the share group gives a record up: then repair has to find it. null: never. */
  readonly deliveryLimit: number | null
  readonly requests: RequestFaults
  readonly times: FaultTimes
  readonly mutations: Mutations
}

const NEVER: FaultTimes = {
  crash: Infinity,
  freeze: Infinity,
  sourceLeader: Infinity,
  targetLeader: Infinity,
  coordinator: Infinity,
  fence: Infinity,
  slowMarkers: Infinity,
  brokerStop: Infinity,
  oldBroker: Infinity
}

const workersOf = (dice: Dice): ReadonlyArray<number> => {
  const lanes = dice.pick([1, 2, 2, 3, 3, 4])
  const workers: Array<number> = []
  for (let left = lanes; left > 0;) {
    const here = dice.int(1, Math.min(2, left))
    workers.push(here)
    left -= here
  }
  return workers
}

/** A kind that is on comes so many times in the run, or more rarely. */
const timesOf = (dice: Dice, phaseMs: number): FaultTimes => {
  const kind = (likely: number, most: number) =>
    dice.chance(likely) ? phaseMs / (1 + dice.next() * (most - 1)) : Infinity
  return {
    crash: kind(0.6, 8),
    freeze: kind(0.5, 6),
    sourceLeader: kind(0.4, 8),
    targetLeader: kind(0.4, 8),
    coordinator: kind(0.4, 8),
    fence: kind(0.4, 6),
    slowMarkers: kind(0.5, 10),
    brokerStop: kind(0.2, 3),
    oldBroker: kind(0.4, 4)
  }
}

const requestsOf = (dice: Dice): RequestFaults => {
  const rate = (likely: number, most: number) => dice.chance(likely) ? dice.next() * most : 0
  return {
    loseRequest: rate(0.5, 0.01),
    loseAnswer: rate(0.6, 0.02),
    late: rate(0.4, 0.02),
    slow: rate(0.5, 0.05),
    latencyMs: dice.pick([2, 10, 40]),
    slowMs: dice.pick([100, 500, 2_000]),
    trouble: rate(0.95, 0.25)
  }
}

export interface PlanOptions {
  readonly seed: number
  readonly mode: Mode
  readonly binding?: BindingKind
  readonly mutations?: Mutations
  /** No faults at all. */
  readonly calm?: boolean
}

export const makePlan = (options: PlanOptions): Plan => {
  const { mode, seed } = options
  const dice = new Dice(seed, "plan")
  const faultPhaseMs = dice.int(6_000, 16_000)
  const limits = new Dice(seed, "delivery limit")
  const repairs = mode === "share" && (options.binding ?? "ledger") === "ledger" && limits.chance(0.4)
  const draft = new Dice(seed, "draft").pick(["A", "B"] as const)
  const plan: Plan = {
    seed,
    mode,
    binding: options.binding ?? (mode === "kip-1289" ? "kip-1289" : "ledger"),
    workers: workersOf(dice),
    partitions: dice.int(1, 4),
    sourceBrokers: dice.int(1, 3),
    targetBrokers: dice.int(1, 3),
    transactionVersion: dice.chance(0.65) ? 2 : 1,
    draft: mode === "kip-1289" ? draft : "off",
    ledgerPartitions: dice.chance(0.7) ? 1 : 2,
    records: dice.int(30, 100),
    gatherMs: new Dice(seed, "gathering").pick([0, 20, 100, 500]),
    sourceGaps: new Dice(seed, "gaps").chance(0.4),
    faultPhaseMs,
    livenessMs: 240_000,
    lockMs: dice.int(1_000, 3_000),
    transactionTimeoutMs: dice.int(1_500, 6_000),
    patienceMs: dice.int(300, 3_000),
    snapshotEntries: dice.pick([3, 8, 20, 1_000]),
    sessionTimeoutMs: dice.int(700, 2_500),
    deliveryLimit: repairs ? limits.pick([1, 1, 2]) : null,
    requests: requestsOf(dice),
    times: timesOf(dice, faultPhaseMs),
    mutations: options.mutations ?? {}
  }
  return options.calm === true
    ? {
      ...plan,
      requests: { loseRequest: 0, loseAnswer: 0, late: 0, slow: 0, latencyMs: 5, slowMs: 5, trouble: 0 },
      times: NEVER
    }
    : plan
}
