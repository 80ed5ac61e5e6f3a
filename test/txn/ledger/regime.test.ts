/** R13: times without the ledger, as one tail reads them, and their end on a cluster in this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import type { LedgerEntry, Slot } from "../../../src/txn/ledger/entry.ts"
import { knownOf } from "../../../src/txn/ledger/positions.ts"
import { comeBack, type DecidedAt, writeEntries } from "../../../src/txn/ledger/regime.ts"
import { LedgerTail } from "../../../src/txn/ledger/tail.ts"
import { openWorker } from "../../../src/txn/ledger/worker.ts"
import { makeProducer } from "../../../src/txn/producer.ts"
import { format } from "../../../src/wire/ranges.ts"
import { passing } from "../../kit/passing.ts"

const TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
const SOURCE = "source-cluster-000"
const slot: Slot = { clusterId: SOURCE, topicId: TOPIC_ID, partition: 0 }
const AT = { topic: "orders", topicId: TOPIC_ID, partition: 0 }

const away = (last: number): LedgerEntry => ({
  kind: "away",
  binding: "at-least-once",
  slots: last < 0 ? [] : [{ slot, done: [{ first: 0, last }] }]
})
const decided = (last: number): ReadonlyArray<DecidedAt> => [{ ...AT, ranges: [{ first: 0, last }] }]

/** A tail that has read these, one record a batch. */
const tailOf = (...entries: ReadonlyArray<LedgerEntry>): LedgerTail => {
  const tail = new LedgerTail(0)
  entries.forEach((entry, offset) =>
    tail.feed({
      kind: "data",
      baseOffset: offset,
      lastOffset: offset,
      producerId: -1,
      epoch: -1,
      transactional: false,
      entries: [{ offset, size: 1, entry }]
    })
  )
  return tail
}

describe("a tail", () => {
  it("takes the first note of a time away for what was decided, and the newest for who may end it", () => {
    const read = tailOf(away(9), away(19)).away
    assert.deepStrictEqual([read?.first, read?.last, read?.slots], [0, 1, [{ slot, done: [{ first: 0, last: 9 }] }]])
  })

  it("ends it with a return that knows of the newest note, and with no other", () => {
    assert.isNull(tailOf(away(9), away(19), { kind: "back", after: 1 }).away)
    assert.isNotNull(tailOf(away(9), away(19), { kind: "back", after: 0 }).away)
    assert.isNotNull(tailOf(away(9), { kind: "back", after: 0 }, away(19)).away)
  })

  it("lets nothing of a time away be pruned before its end", () => {
    assert.strictEqual(tailOf({ kind: "member", id: "m" }, away(9), { kind: "member", id: "m" }).decidedBelow, 1)
    assert.strictEqual(tailOf(away(9), { kind: "back", after: 0 }).decidedBelow, 2)
  })

  it("knows who works by the ledger meanwhile, and forgets it with the end", () => {
    const member = { kind: "member", id: "m" } as const
    assert.deepStrictEqual([...tailOf(member, away(9), member).away?.members ?? []], ["m"])
    assert.deepStrictEqual([...tailOf(away(9), member, { kind: "back", after: 0 }, away(9)).away?.members ?? []], [])
  })
})

/** A hundred seconds at most. */
const soon = <A, E, R>(effect: Effect.Effect<A, E, R>) => passing(effect, 50, 2_000)

const world = Effect.gen(function*() {
  const source = yield* makeEmbedded({ clusterId: SOURCE })
  const target = yield* (yield* makeEmbedded({ clusterId: "target-cluster-000", seed: 2 })).cluster("worker")
  const ledger = yield* openWorker({
    source: yield* source.cluster("worker"),
    target,
    flow: "f",
    patienceMs: 10_000,
    partitions: 3,
    log: () => {}
  })
  const producer = yield* makeProducer({ cluster: target, purpose: "notes" })
  const write = (entry: LedgerEntry) =>
    Effect.map(writeEntries(producer, ledger.topic.name, 0, [entry]), (problem) => assert.isNull(problem))
  const done = Effect.map(knownOf(ledger, AT), (known) => format(known.done))
  return { ledger, producer, write, done }
})

describe("coming back", () => {
  it.effect("what was decided since is done, and what was before stays to be repaired", () =>
    Effect.scoped(Effect.gen(function*() {
      const { done, ledger, producer, write } = yield* soon(world)
      yield* soon(write(away(9)))
      const members = Effect.succeed([])
      const parts = { ledger, producer, members, own: () => [], decided: Effect.succeed(decided(29)) }
      assert.deepStrictEqual(yield* soon(comeBack(parts)), { kind: "back", adopted: 20, since: "at-least-once" })
      assert.strictEqual(yield* soon(done), "10-29")
      assert.deepStrictEqual(yield* soon(comeBack(parts)), { kind: "back", adopted: 0, since: null })
    })))

  it.effect("waits for members that have not said that they work by the ledger", () =>
    Effect.scoped(Effect.gen(function*() {
      const { done, ledger, producer, write } = yield* soon(world)
      yield* soon(write(away(9)))
      const group = ["mine", "other"]
      const parts = {
        ledger,
        producer,
        members: Effect.sync(() => group),
        own: () => ["mine"],
        decided: Effect.succeed(decided(29))
      }
      assert.strictEqual((yield* soon(comeBack(parts))).kind, "away")
      assert.strictEqual(yield* soon(done), "")
      yield* soon(write({ kind: "member", id: "other" }))
      assert.strictEqual((yield* soon(comeBack(parts))).kind, "back")
    })))

  it.effect("is none when somebody begins without the ledger while the group is asked", () =>
    Effect.scoped(Effect.gen(function*() {
      const { done, ledger, producer, write } = yield* soon(world)
      yield* soon(write(away(9)))
      const parts = {
        ledger,
        producer,
        members: Effect.succeed([]),
        own: () => [],
        decided: Effect.as(write(away(19)), decided(29))
      }
      assert.strictEqual((yield* soon(comeBack(parts))).kind, "away")
      assert.strictEqual(yield* soon(done), "")
    })))
})
