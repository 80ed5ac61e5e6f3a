/**
 * Known-wrong variations of the ledger's rules (docs/ledger.md), each switched on in the code that lanes run: the
 * simulation must find what is wrong, or a green run would prove nothing. Beside each script a control: the same
 * trouble does nothing to the rules as they are. W9 is inside the producer, which has no switch for it: see
 * test/txn/ledger/rules.sim.test.ts.
 */
import { assert, describe, it } from "@effect/vitest"
import type { Mutations } from "../../src/txn/ledger/mutations.ts"
import { MUTATIONS } from "./mutations.ts"
import { makePlan, type Plan } from "./plan.ts"
import { report } from "./report.ts"
import { bothAtOnce, ghosts, slowReader, staleMarkers, thieves } from "./scenarios.ts"
import { simulate, type World } from "./simulation.ts"

const TWICE = /is committed twice/
const LOST = /has no committed output/
const STUCK = /have no committed output|not acknowledged/
const FOUND = new RegExp([TWICE, LOST, STUCK].map(({ source }) => source).join("|"))

const mutationsOf = (name: string): Mutations => {
  const found = MUTATIONS[name]
  if (found === undefined) throw new Error(`no variation ${name}`)
  return found
}

/** Where it was found when this was written, then some more: a change in the code moves it to another seed. */
const seedsFrom = (first: number): ReadonlyArray<number> => [first, ...Array.from({ length: 40 }, (_, n) => n + 1)]

describe("a known-wrong variation is found by chance", () => {
  const byChance = (name: string, mutation: string, first: number, expected: RegExp): void => {
    it(`${mutation}: ${name}`, async () => {
      for (const seed of seedsFrom(first)) {
        const plan = makePlan({ seed, mode: "share", mutations: mutationsOf(mutation) })
        const { problem } = await simulate({ ...plan, livenessMs: 60_000 })
        if (problem === null) continue
        return assert.match(problem, expected)
      }
      assert.fail("no seed finds it: the simulation proves nothing about this rule")
    })
  }
  byChance("commits without looking for conflicts", "W1", 8, TWICE)
  byChance("accepts before the commit is confirmed", "W3", 8, LOST)
  byChance("the tail starts at the log's end", "W4", 7, TWICE)
  byChance("a marker closes by equal epoch", "W5b", 1, FOUND)
  byChance("a snapshot replaces what is known", "W6", 3, TWICE)
  byChance("prunes below what is undecided", "W7b", 12, TWICE)
  byChance("prunes without a snapshot", "W7s", 8, TWICE)
})

/** Two workers of one lane each on one partition, and no trouble but the script's. */
const scripted = (mutations: Mutations, changes: Partial<Plan>): Plan => ({
  ...makePlan({ seed: 11, mode: "share", calm: true, mutations }),
  deliveryLimit: null,
  sourceGaps: false,
  workers: [1, 1],
  partitions: 1,
  ledgerPartitions: 1,
  transactionVersion: 2,
  patienceMs: 1_500,
  transactionTimeoutMs: 5_000,
  livenessMs: 60_000,
  ...changes
})

/** Nobody fences, and no transaction times out: what waits in a circle waits for ever. */
const NO_WAY_OUT: Partial<Plan> = { patienceMs: 300_000, transactionTimeoutMs: 300_000 }

describe("a known-wrong variation is found by a script that is harmless to the rules as they are", () => {
  const byScript = (
    name: string,
    mutation: string,
    script: (world: World) => void,
    expected: RegExp,
    changes: Partial<Plan> = {}
  ): void => {
    it(`${mutation}: ${name}`, async () => {
      const right = await simulate(scripted({}, changes), { script })
      assert.isNull(right.problem, report(right, 100).join("\n"))
      const wrong = await simulate(scripted(mutationsOf(mutation), changes), { script })
      assert.match(wrong.problem ?? "nothing was found", expected)
    })
  }
  byScript("an undecided earlier entry counts as absent", "W2", bothAtOnce, TWICE, NO_WAY_OUT)
  byScript("a marker closes by producer id alone", "W5", staleMarkers, LOST)
  const slow = { patienceMs: 20_000, transactionTimeoutMs: 30_000, snapshotEntries: 1 }
  byScript("prunes before the last stable offset has passed the snapshot", "W7", slowReader, TWICE, slow)
  byScript("a sibling's undecided entry counts as own", "W8", bothAtOnce, TWICE, { ...NO_WAY_OUT, workers: [3] })
  byScript("aborts on what is undecided, and tries again", "W10", ghosts, STUCK)
  byScript("waits for later entries too", "W11", bothAtOnce, STUCK, NO_WAY_OUT)
  byScript("fences at once", "W12", thieves, STUCK)
})
