import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type BindingCandidate, type BindingName, chooseBinding } from "../../src/txn/binding.ts"

const candidate = (name: BindingName, reason: string | null): BindingCandidate => ({
  name,
  guarantee: name === "at-least-once" ? "at-least-once" : "exactly-once",
  support: Effect.succeed(reason === null ? { supported: true } : { supported: false, reason }),
  make: () => Effect.die("not made here")
})
const choose = (
  wanted: "exactly-once" | "at-least-once",
  fallback: "at-least-once" | "fail",
  candidates: ReadonlyArray<BindingCandidate>,
  order: ReadonlyArray<BindingName> = ["kip-1289", "ledger"]
) =>
  Effect.map(
    chooseBinding({ wanted, order, fallback, candidates }),
    ({ candidate: chosen, ...rest }) => ({ ...rest, name: chosen?.name ?? null })
  )

describe("the choice of a binding", () => {
  it.effect("is the first in the configured order that can hold, with a reason for each before it", () =>
    Effect.gen(function*() {
      const candidates = [
        candidate("ledger", null),
        candidate("kip-1289", "source and target are two clusters"),
        candidate("at-least-once", null)
      ]
      assert.deepStrictEqual(yield* choose("exactly-once", "at-least-once", candidates), {
        name: "ledger",
        wanted: "exactly-once",
        effective: "exactly-once",
        reasons: [{ binding: "kip-1289", reason: "source and target are two clusters" }]
      })
      assert.strictEqual((yield* choose("exactly-once", "fail", candidates, ["ledger"])).reasons.length, 0)
    }))

  it.effect("falls back to at-least-once, and says what is wanted, what holds and why", () =>
    Effect.gen(function*() {
      const candidates = [candidate("ledger", "the target has no transactions"), candidate("at-least-once", null)]
      assert.deepStrictEqual(yield* choose("exactly-once", "at-least-once", candidates), {
        name: "at-least-once",
        wanted: "exactly-once",
        effective: "at-least-once",
        reasons: [
          { binding: "kip-1289", reason: "this version of onceover does not have it" },
          { binding: "ledger", reason: "the target has no transactions" }
        ]
      })
    }))

  it.effect("is none where the fallback is to fail, at-least-once in the order or not", () =>
    Effect.gen(function*() {
      const candidates = [candidate("ledger", "no"), candidate("at-least-once", null)]
      const choice = yield* choose("exactly-once", "fail", candidates, ["ledger", "at-least-once"])
      assert.deepStrictEqual([choice.name, choice.effective, choice.reasons], [null, null, [{
        binding: "ledger",
        reason: "no"
      }]])
    }))

  it.effect("is at-least-once at once, without reasons, where that is wanted", () =>
    Effect.gen(function*() {
      const choice = yield* choose("at-least-once", "fail", [
        candidate("ledger", null),
        candidate("at-least-once", null)
      ])
      assert.deepStrictEqual([choice.name, choice.effective, choice.reasons], ["at-least-once", "at-least-once", []])
    }))
})
