import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { AckQueue, type AckResult, makeTicket, settleTicket } from "../../src/share/ackQueue.ts"
import { Hold } from "../../src/share/held.ts"
import { Code } from "../../src/share/verdicts.ts"

const hold = (partition = 0): Hold =>
  new Hold({
    topic: "t",
    topicId: "id",
    partition,
    ranges: [{ first: 0, last: 99, deliveryCount: 1 }],
    records: Buffer.alloc(0),
    broker: 1,
    requestedAtMs: 0,
    acquiredAtMs: 0,
    lockTimeoutMs: 10_000,
    generation: 0
  })

/** Acknowledges a range; the results fill up as answers come. */
const acknowledge = (
  queue: AckQueue,
  of: Hold,
  first: number,
  last: number
): { results: ReadonlyArray<AckResult> | null } => {
  const told: { results: ReadonlyArray<AckResult> | null } = { results: null }
  const ticket = makeTicket((results) => told.results = results)
  queue.push(of, of.take([{ first, last, type: "accept" }]).taken, ticket)
  settleTicket(ticket)
  return told
}

describe("acknowledgements under way", () => {
  it("a lost offset costs only the range it is in, however many ranges go together", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 0, max: 99 }), { maxLength: 8 }),
        fc.integer({ min: 1, max: 25 }),
        (lost, length) => {
          const queue = new AckQueue()
          const held = hold()
          const told = []
          for (let first = 0; first < 100; first += length) {
            const last = Math.min(99, first + length - 1)
            told.push({ first, last, outcome: acknowledge(queue, held, first, last) })
          }
          let requests = 0
          while (!queue.isEmpty) {
            // All of a partition's ranges in a request are applied, or none.
            for (const units of queue.next().values()) {
              const refused = units.some((u) => lost.some((o) => o >= u.part.first && o <= u.part.last))
              queue.answered(units, "ShareAcknowledge", refused ? Code.invalidRecordState : Code.none, null)
            }
            assert.isBelow(++requests, 500)
          }
          for (const { first, last, outcome } of told) {
            const gone = lost.some((o) => o >= first && o <= last)
            assert.deepStrictEqual(outcome.results?.map((r) => r.outcome), [gone ? "refused" : "done"])
          }
          assert.strictEqual(held.taken, 0)
        }
      )
    )
  })

  it("partitions go in one request, and one's refusal is not the other's", () => {
    const queue = new AckQueue()
    const [a, b] = [acknowledge(queue, hold(0), 0, 9), acknowledge(queue, hold(1), 0, 9)]
    const batches = queue.next()
    assert.strictEqual(batches.size, 2)
    for (const [key, units] of batches) {
      queue.answered(units, "ShareAcknowledge", key === "id:0" ? Code.topicAuthorizationFailed : Code.none, null)
    }
    assert.deepStrictEqual([a.results?.[0]?.outcome, b.results?.[0]?.outcome], ["refused", "done"])
  })

  it("a refusal that leaves the lock gives the range back, to be acknowledged again", () => {
    const queue = new AckQueue()
    const held = hold()
    const told = acknowledge(queue, held, 0, 9)
    for (const units of queue.next().values()) {
      queue.answered(units, "ShareAcknowledge", Code.topicAuthorizationFailed, "no")
    }
    assert.deepStrictEqual(told.results?.map((r) => [r.outcome, r.held, r.error?.code]), [[
      "refused",
      true,
      Code.topicAuthorizationFailed
    ]])
    assert.deepStrictEqual(held.held, [{ first: 0, last: 99 }])
  })

  it("a state write that fails is tried again by itself, and given back when it keeps failing", () => {
    const queue = new AckQueue()
    const held = hold()
    const told = acknowledge(queue, held, 0, 99)
    let tries = 0
    while (!queue.isEmpty) {
      for (const units of queue.next().values()) {
        tries++
        const said = queue.answered(units, "ShareAcknowledge", Code.coordinatorNotAvailable, null)
        if (told.results === null) assert.strictEqual(said, "again")
      }
    }
    assert.isAbove(tries, 1)
    assert.deepStrictEqual(told.results?.map((r) => [r.outcome, r.held]), [["refused", true]])
  })

  it("a moved leader refuses for good, and says so of the whole partition", () => {
    const queue = new AckQueue()
    const held = hold()
    const told = acknowledge(queue, held, 0, 9)
    for (const units of queue.next().values()) {
      assert.strictEqual(queue.answered(units, "ShareFetch", Code.notLeaderOrFollower, null), "moved")
    }
    assert.deepStrictEqual(told.results?.map((r) => [r.outcome, r.held]), [["refused", false]])
    assert.isTrue(held.lost)
  })

  it("an unanswered request is unknown, what was not sent is lost", () => {
    const queue = new AckQueue()
    const held = hold()
    const sent = acknowledge(queue, held, 0, 9)
    const batches = queue.next()
    const waiting = acknowledge(queue, held, 10, 19)
    queue.unanswered(batches, "unknown", "connection lost")
    queue.lose("session lost")
    assert.deepStrictEqual([sent.results?.[0]?.outcome, waiting.results?.[0]?.outcome], ["unknown", "lost"])
    assert.isTrue(queue.isEmpty)
    assert.strictEqual(held.taken, 0)
  })
})
