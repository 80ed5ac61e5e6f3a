/** The simulation itself: it is the same run each time, it happens what the plan says, and at-least-once loses nothing. */
import { assert, describe, it } from "@effect/vitest"
import { makePlan, type Mode } from "./plan.ts"
import { replayCommand, report } from "./report.ts"
import { CHUNK, chunks, runSeeds } from "./runSeeds.ts"
import { simulate } from "./simulation.ts"

const MODES: ReadonlyArray<Mode> = ["share", "consumer", "kip-1289"]

/** Of the seeds, on a machine that has much else to do. */
const PATIENT_MS = 240_000

describe("a run", () => {
  it.each(MODES)("is the same for the same seed, event by event (%s)", async (mode) => {
    const [first, second] = [await simulate(makePlan({ seed: 7, mode })), await simulate(makePlan({ seed: 7, mode }))]
    assert.isAbove(first.history.length, 50)
    assert.deepStrictEqual(second.history.last(10_000), first.history.last(10_000))
    assert.deepStrictEqual([second.steps, second.requests], [first.steps, first.requests])
  })

  it("is another one for another seed", async () => {
    const [first, second] = [
      await simulate(makePlan({ seed: 7, mode: "share" })),
      await simulate(makePlan({ seed: 8, mode: "share" }))
    ]
    assert.notDeepEqual(second.history.last(10_000), first.history.last(10_000))
  })

  it("has every kind of fault in it, over some seeds", async () => {
    const lines: Array<string> = []
    const look = async (seed: number, mode: Mode) => {
      lines.push(...(await simulate(makePlan({ seed, mode }))).history.last(20_000))
    }
    for (let seed = 1; seed <= 8; seed++) for (const mode of MODES) await look(seed, mode)
    // Records that the group gives up are rarer.
    for (let seed = 60; seed <= 95 && !lines.some((line) => line.includes("has repaired")); seed++) {
      if (makePlan({ seed, mode: "share" }).deliveryLimit !== null) await look(seed, "share")
    }
    const kinds = [
      "is killed",
      "SIGSTOP",
      "SIGCONT",
      "is fenced",
      "is led by broker",
      "a coordinator moves",
      "markers take up to",
      "does not reach the source",
      "does not reach the target",
      "loses its connections to the source",
      "the request is lost",
      "the answer is lost",
      "lost for the client, arrives",
      "stops",
      "is without KIP-1289",
      "has repaired",
      "done", // duplicates prevented
      "transaction aborted",
      "begins at offset", // a ledger that was pruned
      "is assigned",
      "not heard of any more"
    ]
    for (const kind of kinds) assert.isTrue(lines.some((line) => line.includes(kind)), `never happened: ${kind}`)
  }, PATIENT_MS)

  it("that fails names its seed, the command to see it again, and how it came to it", async () => {
    const plan = { ...makePlan({ seed: 3, mode: "share", calm: true }), livenessMs: 1 }
    // Nobody works until the faults are over, and then there is no time left.
    const result = await simulate(plan, {
      script: ({ loop, workers }) => workers.forEach((worker) => loop.after(1, () => worker.crash()))
    })
    const text = report(result, 40).join("\n")
    assert.include(text, "seed 3")
    assert.include(text, replayCommand(plan))
    assert.include(text, "have no committed output")
    assert.include(text, "is killed")
  })
})

describe("at-least-once, under the same faults: nothing is lost", () => {
  it.each(chunks(20))("ten seeds from %i", (from) => runSeeds("share", from, CHUNK, "at-least-once"))
  it.each(chunks(10))("ten seeds from %i, consumer mode", (from) => runSeeds("consumer", from, CHUNK, "at-least-once"))
})
