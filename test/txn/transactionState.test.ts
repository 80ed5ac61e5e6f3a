import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { judgeAddPartitions, judgeEndTxn, type Outcome, TransactionState } from "../../src/txn/transactionState.ts"
import { KAFKA_ERRORS } from "../../src/wire/kafkaErrors.ts"

const identity = { producerId: 1, epoch: 0 }
const open = (): TransactionState => {
  const state = new TransactionState()
  state.initialised(identity)
  state.begin()
  state.touch()
  return state
}
const ended = (outcome: Outcome | { readonly kind: "ask" }): string => outcome.kind

describe("a transaction", () => {
  it("does not begin before InitProducerId", () => {
    assert.isFalse(new TransactionState().begin())
  })

  it("without anything sent ends without a request", () => {
    const state = new TransactionState()
    state.initialised(identity)
    state.begin()
    assert.strictEqual(ended(state.end(true)), "committed")
    assert.isTrue(state.begin())
    assert.strictEqual(ended(state.end(false)), "aborted")
  })

  it("that must abort is aborted although a commit is asked for", () => {
    const state = open()
    state.fail("a batch is missing")
    assert.deepStrictEqual(state.end(true), { kind: "ask", commit: false, reason: "a batch is missing" })
  })

  it("takes the identity that EndTxn brings, and keeps its own where it brings none", () => {
    const state = open()
    state.end(true)
    state.ended(true, "", { producerId: 1, epoch: 1 })
    assert.deepStrictEqual(state.identity, { producerId: 1, epoch: 1 })
    state.begin()
    state.touch()
    state.end(true)
    state.ended(true, "", null)
    assert.deepStrictEqual(state.identity, { producerId: 1, epoch: 1 })
  })

  it("whose commit stays unanswered is unknown, and nothing begins before InitProducerId", () => {
    const state = open()
    state.end(true)
    assert.strictEqual(state.noAnswer(true, "silence").kind, "unknown")
    assert.isFalse(state.begin())
    state.initialised({ producerId: 1, epoch: 1 })
    assert.isTrue(state.begin())
  })

  it("refused after a try that may have been carried out is unknown, refused at once is aborted", () => {
    const first = open()
    first.end(true)
    assert.strictEqual(first.notEnded(true, "fenced", true, "").kind, "unknown")
    const second = open()
    second.end(true)
    assert.strictEqual(second.notEnded(true, "fenced", false, "").kind, "aborted")
  })

  it("with something in doubt commits, and then InitProducerId comes first", () => {
    const state = open()
    state.inDoubt()
    state.end(true)
    assert.strictEqual(state.ended(true, "", null).kind, "committed")
    assert.isFalse(state.begin())
  })

  it("fenced twice in a row is fenced for good; a commit in between is not", () => {
    const state = new TransactionState()
    const round = (fenced: boolean) => {
      state.initialised(identity)
      state.begin()
      state.touch()
      state.end(true)
      if (fenced) state.notEnded(true, "fenced", false, "")
      else state.ended(true, "", null)
    }
    for (const fenced of [true, false, true]) round(fenced)
    assert.isFalse(state.fencedForGood)
    round(true)
    assert.isTrue(state.fencedForGood)
  })

  it("whatever happens: committed only on the coordinator's word, and none begins after a doubt", () => {
    const step = fc.constantFrom(
      "init",
      "begin",
      "touch",
      "doubt",
      "fail",
      "fenced",
      "commit",
      "abort",
      "done",
      "refused",
      "unclear",
      "silence"
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) => {
        const state = new TransactionState()
        let clean = false
        let asked: boolean | null = null
        for (const name of steps) {
          const busy = state.phase.kind === "ending"
          if (name === "init" && !busy) {
            state.initialised(identity)
            clean = true
          } else if (name === "begin" && state.phase.kind !== "open" && state.phase.kind !== "mustAbort") {
            if (!busy && state.begin()) assert.isTrue(clean, "began in doubt")
          } else if (name === "touch") state.touch()
          else if (name === "doubt") {
            if (state.phase.kind === "open" || state.phase.kind === "mustAbort") clean = false
            state.inDoubt()
          } else if (name === "fail" || name === "fenced") {
            if (state.phase.kind === "open" && name === "fenced") clean = false
            state.fail("", { fenced: name === "fenced" })
          } else if ((name === "commit" || name === "abort") && !busy) {
            const touched = state.phase.kind === "open" && state.phase.touched
            const next = state.end(name === "commit")
            asked = next.kind === "ask" ? next.commit : null
            if (next.kind === "committed") assert.isFalse(touched, "committed without asking")
          } else if (busy && asked !== null) {
            if (name === "done") assert.strictEqual(state.ended(asked, "", null).kind, asked ? "committed" : "aborted")
            else if (name === "refused" || name === "unclear" || name === "silence") {
              clean = false
              const outcome = name === "silence"
                ? state.noAnswer(asked, "")
                : state.notEnded(asked, name === "refused" ? "invalid" : "unclear", false, "")
              assert.notStrictEqual(outcome.kind, "committed")
              if (name !== "refused" && asked) assert.strictEqual(outcome.kind, "unknown")
            }
          }
        }
      }),
      { numRuns: 2_000 }
    )
  })
})

describe("error codes", () => {
  it("only 0 ends or extends a transaction, of all that Kafka has", () => {
    const codes = [...KAFKA_ERRORS.keys()]
    assert.isAbove(codes.length, 130)
    assert.deepStrictEqual(codes.filter((code) => judgeEndTxn(code) === "done"), [0])
    assert.deepStrictEqual(codes.filter((code) => judgeAddPartitions(code) === "added"), [0])
  })

  it("EndTxn codes that say nothing about what was done are unclear, also those of a newer Kafka", () => {
    for (const code of [-1, 42, 87, 9_999]) assert.strictEqual(judgeEndTxn(code), "unclear")
  })
})
