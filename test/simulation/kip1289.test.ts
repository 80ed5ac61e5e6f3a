import { assert, describe, it } from "@effect/vitest"
import { makePlan } from "./plan.ts"
import { report } from "./report.ts"
import { CHUNK, chunks, runSeeds } from "./runSeeds.ts"
import { lateAcknowledgements } from "./scenarios.ts"
import { simulate } from "./simulation.ts"

describe("KIP-1289, under faults drawn from a seed: everything exactly once", () => {
  it.each(chunks(100))("ten seeds from %i", (from) => runSeeds("kip-1289", from, CHUNK))
})

it("an acknowledgement that arrives late is in no other transaction than its own, under version 1 too", async () => {
  for (let seed = 1; seed <= 10; seed++) {
    const plan = { ...makePlan({ seed, mode: "kip-1289", calm: true }), transactionVersion: 1 as const }
    const result = await simulate(plan, { script: lateAcknowledgements })
    assert.isNull(result.problem, report(result, 60).join("\n"))
  }
})
