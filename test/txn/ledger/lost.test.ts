/** A ledger topic that is not the one that was verified, on the cluster in this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { type Embedded, makeEmbedded } from "../../../src/embedded/embedded.ts"
import type { BindingStopped } from "../../../src/txn/binding.ts"
import { ledger } from "../../../src/txn/ledger/ledgerBinding.ts"
import { ledgerTopicName } from "../../../src/txn/ledger/ledgerTopic.ts"
import type { LedgerMemory } from "../../../src/txn/ledger/worker.ts"
import { createTopics } from "../../../src/wire/messages/createTopics.ts"
import { deleteTopics } from "../../../src/wire/messages/deleteTopics.ts"
import { passing } from "../../kit/passing.ts"

const FLOW = "f"
const TOPIC = ledgerTopicName(FLOW)
const range = (first: number, last: number) => ({
  topic: "orders",
  topicId: "AAECAwQFBgcICQoLDA0ODw",
  partition: 0,
  first,
  last
})

const worker = (source: Embedded, target: Embedded, memory: LedgerMemory) =>
  Effect.gen(function*() {
    return ledger({
      source: yield* source.cluster("worker"),
      target: yield* target.cluster("worker"),
      flow: FLOW,
      patienceMs: 10_000,
      memory,
      transactionalId: (lane) => lane,
      log: () => {}
    })
  })

const remove = (target: Embedded) =>
  Effect.gen(function*() {
    const cluster = yield* target.cluster("operator")
    yield* cluster.request({ kind: "controller" }, deleteTopics, {
      topics: [{ name: TOPIC, topicId: "AAAAAAAAAAAAAAAAAAAAAA" }],
      timeoutMs: 1_000
    })
  })
const create = (target: Embedded) =>
  Effect.gen(function*() {
    const cluster = yield* target.cluster("operator")
    yield* cluster.request({ kind: "controller" }, createTopics, {
      topics: [{ name: TOPIC, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
      timeoutMs: 1_000,
      validateOnly: false
    })
  })

const clusters = Effect.all([
  makeEmbedded({ clusterId: "source-cluster-000" }),
  makeEmbedded({ clusterId: "target-cluster-000", seed: 2 })
])

const lost = (error: BindingStopped, anew: boolean) => {
  assert.isTrue(error.forGood)
  assert.match(error.message, new RegExp(`was deleted${anew ? " and created anew" : ""} while this flow ran`))
}

describe("a ledger topic that was deleted", () => {
  for (const anew of [false, true]) {
    it.effect(`ends the lanes for good, ${anew ? "also when there is a new one" : "in words"}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const [source, target] = yield* clusters
        const of = yield* worker(source, target, { topicId: null })
        const { readers } = yield* passing(of.ledger)
        const lane = yield* passing(of.make({ name: "0" }))
        yield* passing(lane.start)
        yield* passing(remove(target))
        if (anew) yield* passing(create(target))
        lost(yield* passing(Effect.flip(readers[0]!.ended)), anew)
        lost(yield* passing(Effect.flip(lane.triage([range(0, 4)]))), anew)
      })))

    it.effect(`is not replaced at the next start of the flow${anew ? " by one that somebody made" : ""}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const [source, target] = yield* clusters
        const memory: LedgerMemory = { topicId: null }
        yield* passing(Effect.scoped(Effect.flatMap(worker(source, target, memory), (of) => of.make({ name: "0" }))))
        assert.strictEqual(memory.topicId, target.state.topics.get(TOPIC)?.id)
        yield* passing(remove(target))
        if (anew) yield* passing(create(target))
        const again = yield* worker(source, target, memory)
        lost(yield* passing(Effect.flip(Effect.scoped(again.make({ name: "0" })))), anew)
        assert.strictEqual(target.state.topics.has(TOPIC), anew)
      })))
  }

  it.effect("an entry that lands below what was read is never committed", () =>
    Effect.scoped(Effect.gen(function*() {
      const [source, target] = yield* clusters
      target.createTopic("out")
      const of = yield* worker(source, target, { topicId: null })
      const lane = yield* passing(of.make({ name: "0" }))
      yield* passing(lane.start)
      const mirror = (first: number) =>
        Effect.gen(function*() {
          const transaction = yield* lane.begin
          yield* transaction.stage([range(first, first)], [])
          return yield* transaction.commit
        })
      assert.deepStrictEqual(yield* passing(mirror(0)), { kind: "committed" })
      const { readers } = yield* passing(of.ledger)
      yield* passing(readers[0]!.toEnd)
      // The log loses its end under the same name and id, and the reader does not hear of it.
      target.faults(({ apiName }) => apiName === "Fetch" ? { kind: "loseRequest", then: "silence" } : null)
      yield* TestClock.adjust(1_000)
      const log = target.log(TOPIC, 0)
      log.batches = []
      log.endOffset = 0
      const error = yield* passing(Effect.flip(mirror(1)))
      assert.isTrue(error._tag === "BindingStopped" && error.forGood === true, error.message)
      assert.match(error.message, /read up to/)
    })))
})
