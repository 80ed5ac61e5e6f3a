/**
 * Transactions whose markers a broker has left out (KAFKA-20734): what was aborted must not come with the next
 * transaction, what was committed must not go with it, and readers must not wait for ever.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Embedded, makeEmbedded } from "../../../src/embedded/embedded.ts"
import { abortByCoordinator } from "../../../src/embedded/model/transactions.ts"
import { lastStableOffset } from "../../../src/embedded/model/partitionLog.ts"
import type { PendingMarker } from "../../../src/embedded/model/transaction.ts"
import type { Binding } from "../../../src/txn/binding.ts"
import { ledger } from "../../../src/txn/ledger/ledgerBinding.ts"
import { ledgerTopicName } from "../../../src/txn/ledger/ledgerTopic.ts"
import { decodeRecords, encodeBatch } from "../../../src/wire/batch/records.ts"
import { endTxn } from "../../../src/wire/messages/endTxn.ts"
import { produce } from "../../../src/wire/messages/produce.ts"
import { passing } from "../../kit/passing.ts"

const FLOW = "f"
const OUT = "east.orders"
const LEDGER = ledgerTopicName(FLOW)

const batch = (value: string) => ({
  topic: OUT,
  partition: 0,
  bytes: encodeBatch([{ offset: 0, timestamp: 0n, key: null, value: Buffer.from(value), headers: [] }], {
    codec: "none"
  })
})

const make = (
  onStall = () => {},
  onRecover: (topic: string, partition: number, taken: boolean) => void = () => {},
  patienceMs = 10_000
) =>
  Effect.gen(function*() {
    const source = yield* makeEmbedded({ clusterId: "source-cluster-000" })
    const target = yield* makeEmbedded({ clusterId: "target-cluster-000", seed: 2 })
    target.createTopic(OUT)
    const lines: Array<string> = []
    const lane = Effect.gen(function*() {
      const of = ledger({
        source: yield* source.cluster("worker"),
        target: yield* target.cluster("worker"),
        flow: FLOW,
        patienceMs,
        transactionalId: (name) => name,
        onStall,
        onRecover,
        log: (_level, line) => void lines.push(line)
      })
      const binding = yield* passing(of.make({ name: "0" }))
      yield* passing(binding.start)
      return binding
    })
    return { target, lines, lane }
  })

/** A transaction of one record, up to its end. */
const write = (binding: Binding, offset: number) =>
  passing(Effect.gen(function*() {
    const transaction = yield* binding.begin
    const [outcome] = yield* transaction.produce([batch(`v${offset}`)])
    const baseOffset = outcome?.ok === true ? outcome.baseOffset : -1
    const range = { topic: "orders", topicId: "AAECAwQFBgcICQoLDA0ODw", partition: 0, first: offset, last: offset }
    yield* transaction.stage([range], [{ topic: OUT, partition: 0, baseOffset }])
    return transaction
  }))

/** What readers see, in read_committed, of a log where nothing is open; else what they wait for. */
const seen = (target: Embedded): ReadonlyArray<string> | string => {
  const log = target.log(OUT, 0)
  if (lastStableOffset(log) < log.endOffset) return `readers wait at ${lastStableOffset(log)}`
  return log.batches.filter(({ base, view }) =>
    !view.isControl &&
    !log.aborted.some((a) => a.producerId === view.producerId && a.firstOffset <= base && base <= a.lastOffset)
  ).flatMap(({ view }) => decodeRecords(view).map(({ value }) => value?.toString() ?? ""))
}

const isOf = (topic: string) => ({ participant }: PendingMarker) =>
  participant.kind === "partition" && participant.topic === topic

/** Holds markers back, lets `body` happen, loses those of a topic, and writes the rest. */
const losing = <A, E, R>(target: Embedded, topics: ReadonlyArray<string>, body: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    target.setMarkerDelay(null)
    const result = yield* body
    for (const topic of topics) target.loseMarkers(isOf(topic))
    target.releaseMarkers()
    target.setMarkerDelay(1)
    return result
  })

const timeOut = (target: Embedded) =>
  Effect.sync(() => {
    const [transaction] = target.state.transactions.values()
    if (transaction === undefined) throw new Error("there is no transaction")
    abortByCoordinator(target.state, transaction, 0)
    target.wake()
  })

const commit = (binding: Binding, offset: number) =>
  Effect.gen(function*() {
    const transaction = yield* write(binding, offset)
    return (yield* passing(transaction.commit)).kind
  })

describe("a marker that was never written", () => {
  it.effect("of a transaction that was timed out: what it wrote does not come with the next one", () =>
    Effect.scoped(Effect.gen(function*() {
      const { lane, lines, target } = yield* make()
      const binding = yield* lane
      const transaction = yield* write(binding, 0)
      yield* losing(target, [OUT], timeOut(target))
      assert.strictEqual((yield* passing(transaction.commit)).kind, "aborted")
      assert.strictEqual(yield* commit(binding, 0), "committed")
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(seen(target), ["v0"])
      assert.match(lines.join("\n"), /hanging transaction of 0 from offset 0 on.*it was aborted, which is written now/)
    })))

  it.effect("of a committed transaction: readers get its records, although nothing more is written", () =>
    Effect.scoped(Effect.gen(function*() {
      const { lane, target } = yield* make()
      const binding = yield* lane
      assert.strictEqual(yield* losing(target, [OUT], commit(binding, 0)), "committed")
      assert.strictEqual(seen(target), "readers wait at 0")
      for (let n = 0; n < 200; n++) yield* TestClock.adjust(50)
      assert.deepStrictEqual(seen(target), ["v0"])
    })))

  it.effect("of a committed transaction: its records do not go with one that is aborted", () =>
    Effect.scoped(Effect.gen(function*() {
      const { lane, target } = yield* make()
      const binding = yield* lane
      yield* losing(target, [OUT], commit(binding, 0))
      // A broker that goes and comes takes longer than this.
      yield* TestClock.adjust(1_500)
      const next = yield* write(binding, 1)
      yield* passing(next.abort)
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(seen(target), ["v0"])
    })))

  for (const committed of [true, false]) {
    it.effect(`is seen to by the process that comes next; the transaction was ${committed ? "committed" : "aborted"}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { lane, target } = yield* make()
        yield* Effect.scoped(Effect.gen(function*() {
          const binding = yield* lane
          if (committed) yield* losing(target, [OUT], commit(binding, 0))
          else {
            yield* write(binding, 0)
            yield* losing(target, [OUT], timeOut(target))
          }
        }))
        const binding = yield* lane
        // What comes next there ends the other way.
        if (committed) yield* passing((yield* write(binding, 1)).abort)
        else assert.strictEqual(yield* commit(binding, 1), "committed")
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(seen(target), [committed ? "v0" : "v1"])
      })))
  }

  for (const topics of [[LEDGER], [LEDGER, OUT]]) {
    it.effect(`in ${topics.join(" and ")}, of a commit without an answer: the coordinator is asked`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { lane, target } = yield* make()
        const binding = yield* lane
        const lost = target.control(endTxn, () => ({ kind: "loseAnswer", then: "close" }))
        const outcome = yield* losing(target, topics, commit(binding, 0))
        assert.isTrue(lost.used)
        assert.strictEqual(outcome, "unknown")
        yield* passing(binding.start)
        yield* passing((yield* write(binding, 1)).abort)
        assert.strictEqual(yield* commit(binding, 1), "committed")
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(seen(target), ["v0", "v1"])
        const range = { topic: "orders", topicId: "AAECAwQFBgcICQoLDA0ODw", partition: 0, first: 0, last: 1 }
        assert.deepStrictEqual((yield* passing(binding.triage([range]))).done.map(({ first, last }) => [first, last]), [
          [0, 1]
        ])
      })))
  }
})

it.effect("a partition that stood still is nobody's trouble once the transaction over it has to be aborted", () =>
  Effect.scoped(Effect.gen(function*() {
    const noted: Array<string> = []
    const { lane, target } = yield* make(
      () => void noted.push("stall"),
      (_topic, _partition, taken) => void noted.push(taken ? "taken" : "given up")
    )
    const binding = yield* lane
    const transaction = yield* passing(binding.begin)
    yield* passing(transaction.produce([batch("v0")]))
    let away = true
    target.faults(({ apiKey }) => away && apiKey === produce.key ? { kind: "refuse" } : null)
    const second = yield* Effect.forkChild(transaction.produce([batch("v1")]))
    for (let n = 0; n < 400 && !noted.includes("stall"); n++) yield* TestClock.adjust(50)
    yield* timeOut(target)
    away = false
    yield* passing(Fiber.join(second))
    assert.deepStrictEqual([...new Set(noted)], ["stall", "given up"])
  })))

it.effect("a lane is patient with its own other producer, however late a marker is", () =>
  Effect.scoped(Effect.gen(function*() {
    const { lane, lines, target } = yield* make(undefined, undefined, 300)
    const binding = yield* lane
    target.setMarkerDelay(null)
    assert.strictEqual(yield* commit(binding, 0), "committed")
    target.setMarkerDelay(1)
    assert.strictEqual(yield* commit(binding, 1), "committed")
    const again = { topic: "orders", topicId: "AAECAwQFBgcICQoLDA0ODw", partition: 0, first: 0, last: 0 }
    for (let n = 0; n < 20; n++) {
      assert.lengthOf((yield* passing(binding.triage([again]))).wait, 1)
      yield* TestClock.adjust(100)
    }
    target.releaseMarkers()
    yield* TestClock.adjust(1_000)
    assert.lengthOf((yield* passing(binding.triage([again]))).done, 1)
    for (let n = 2; n < 6; n++) assert.strictEqual(yield* commit(binding, n), "committed")
    assert.notMatch(lines.join("\n"), /was fenced/)
  })))
