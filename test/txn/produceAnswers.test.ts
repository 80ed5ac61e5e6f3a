import { assert, describe, it } from "@effect/vitest"
import { judgeProduce } from "../../src/txn/produceAnswers.ts"
import { KAFKA_ERRORS } from "../../src/wire/kafkaErrors.ts"

const byKind = (kind: string): ReadonlyArray<string> =>
  [...KAFKA_ERRORS.values()].filter(({ code }) => judgeProduce(code).kind === kind).map(({ name }) => name)

describe("the codes of a Produce answer", () => {
  it("only success and a remembered duplicate mean written", () => {
    assert.deepStrictEqual(byKind("written"), ["NONE", "DUPLICATE_SEQUENCE_NUMBER"])
  })

  it("what Kafka calls a matter of the record is refused, never retried for ever", () => {
    const refused = byKind("refused")
    for (const { class: kind, name } of KAFKA_ERRORS.values()) if (kind === "record") assert.include(refused, name)
    const corrupt = judgeProduce(2)
    assert.isTrue(corrupt.kind === "retry" && corrupt.attempts < 10 && corrupt.then === "refused")
  })

  it("after these the batch may be in the log: its sequence must not be given away", () => {
    const maybe = [...KAFKA_ERRORS.values()].filter(({ code }) => {
      const verdict = judgeProduce(code)
      return verdict.kind === "retry" && verdict.maybeWritten
    }).map(({ name }) => name)
    assert.deepStrictEqual(maybe, [
      "UNKNOWN_SERVER_ERROR",
      "NOT_LEADER_OR_FOLLOWER",
      "REQUEST_TIMED_OUT",
      "NETWORK_EXCEPTION",
      "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
      "KAFKA_STORAGE_ERROR"
    ])
  })

  it("a missing right on the topic blocks the partition, one on the cluster ends the producer", () => {
    assert.strictEqual(judgeProduce(29).kind, "blocked")
    assert.strictEqual(judgeProduce(31).kind, "fatal")
    assert.strictEqual(judgeProduce(53).kind, "fatal")
  })

  it("a code from a newer Kafka blocks its partition and nothing else", () => {
    assert.strictEqual(judgeProduce(9_999).kind, "blocked")
  })
})
