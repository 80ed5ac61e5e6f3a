/** Transactions: who may write, what the end brings, and what readers see of it. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { crc32c } from "../../src/wire/batch/crc32c.ts"
import { describeTransactions } from "../../src/wire/messages/describeTransactions.ts"
import { initProducerId as initMessage } from "../../src/wire/messages/initProducerId.ts"
import { type Bench, type Case, claim, COMMITTED, eventually, type Identity, nameOf } from "./bench.ts"

const is = (actual: unknown, expected: unknown) => assert.deepStrictEqual(actual, expected)

/** Sets the transactional bit, and the checksum that goes with it. */
const asTransactional = (bytes: Buffer): Buffer => {
  const copy = Buffer.from(bytes)
  copy.writeInt16BE(copy.readInt16BE(21) | 0x10, 21)
  copy.writeUInt32BE(crc32c(copy, 21), 17)
  return copy
}

interface Given {
  readonly b: Bench
  readonly txn: string
  readonly topic: string
  readonly id: Identity
}

/** A case with a topic of two partitions and a transactional id that was just taken. */
const withId = (name: string, run: (given: Given) => Effect.Effect<void, unknown>): Case =>
  claim(name, (b) =>
    Effect.gen(function*() {
      const txn = b.unique("txn")
      const topic = yield* b.topic(2)
      yield* run({ b, txn, topic, id: yield* b.initDone(txn) })
    }))

const stateOf = (b: Bench, txn: string) =>
  Effect.map(
    eventually(
      b.cluster.request({ kind: "transaction", key: txn }, describeTransactions, { transactionalIds: [txn] }),
      (a) => ![14, 15, 16].includes(a.transactionStates[0]!.errorCode)
    ),
    (a) => {
      const found = a.transactionStates[0]!
      return found.errorCode === 0
        ? { state: found.transactionState, epoch: found.producerEpoch, topics: found.topics }
        : nameOf(found.errorCode)
    }
  )

const finished = (b: Bench, txn: string) =>
  eventually(
    stateOf(b, txn),
    (found) => typeof found === "string" || found.state.startsWith("Complete") || found.state === "Empty"
  )

const identity: ReadonlyArray<Case> = [
  withId("the first identity has epoch 0", ({ id }) => Effect.sync(() => is([id.code, id.epoch], ["NONE", 0]))),
  withId("each InitProducerId raises the epoch of the same producer id", ({ b, id, txn }) =>
    Effect.gen(function*() {
      is(yield* b.init(txn), { code: "NONE", pid: id.pid, epoch: 1 })
      is(yield* b.init(txn), { code: "NONE", pid: id.pid, epoch: 2 })
    })),
  withId(
    "a producer that names its identity gets the next epoch, and the same one again when it repeats",
    ({ b, id, txn }) =>
      Effect.gen(function*() {
        is(yield* b.init(txn, { pid: id.pid, epoch: 0 }), { code: "NONE", pid: id.pid, epoch: 1 })
        is(yield* b.init(txn, { pid: id.pid, epoch: 0 }), { code: "NONE", pid: id.pid, epoch: 1 })
      })
  ),
  withId("a producer with an older identity is fenced", ({ b, id, txn }) =>
    Effect.gen(function*() {
      yield* b.init(txn)
      yield* b.init(txn)
      is((yield* b.init(txn, { pid: id.pid, epoch: 0 })).code, "PRODUCER_FENCED")
      is((yield* b.init(txn, { pid: id.pid, epoch: 0, maxVersion: 3 })).code, "INVALID_PRODUCER_EPOCH")
    })),
  withId(
    "an identity of another producer is fenced",
    ({ b, id, txn }) =>
      Effect.map(b.init(txn, { pid: id.pid + 100_000, epoch: 0 }), (a) => is(a.code, "PRODUCER_FENCED"))
  ),
  claim("refuses a time-out of 0 and one above the broker's", (b) =>
    Effect.gen(function*() {
      const txn = b.unique("txn")
      is((yield* b.init(txn, { timeoutMs: 0 })).code, "INVALID_TRANSACTION_TIMEOUT")
      is((yield* b.init(txn, { timeoutMs: 2_000_000_000 })).code, "INVALID_TRANSACTION_TIMEOUT")
    })),
  claim(
    "refuses an empty transactional id",
    (b) =>
      Effect.map(
        b.cluster.request({ kind: "any" }, initMessage, { transactionalId: "", transactionTimeoutMs: 1000 }),
        (a) => is(nameOf(a.errorCode), "INVALID_REQUEST")
      )
  ),
  claim("idempotent producers each get an id of their own", (b) =>
    Effect.gen(function*() {
      const [one, two] = [yield* b.init(null), yield* b.init(null)]
      is([one.epoch, two.epoch, one.pid !== two.pid], [0, 0, true])
    })),
  claim(
    "a transactional id that nobody took is not found",
    (b) => Effect.map(stateOf(b, b.unique("txn")), (found) => is(found, "TRANSACTIONAL_ID_NOT_FOUND"))
  )
]

const version2: ReadonlyArray<Case> = [
  withId(
    "a commit is answered with the next epoch, and its records are seen",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        is(yield* b.sendIn(txn, id, topic, ["a", "b"]), "NONE@0")
        is(yield* b.end(txn, id, true), { code: "NONE", pid: id.pid, epoch: 1 })
        const found = yield* b.settled(topic)
        is([found.values, found.high, found.aborted], [["a", "b"], 3, []])
        const marker = found.batches.at(-1)!
        is([marker.isControl, marker.isTransactional, marker.producerEpoch, marker.producerId], [true, true, 1, id.pid])
      })
  ),
  withId(
    "records of an abort are named in the answer to readers of committed records",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        yield* b.send(topic, ["before"])
        yield* b.sendIn(txn, id, topic, ["a"])
        is(yield* b.end(txn, id, false), { code: "NONE", pid: id.pid, epoch: 1 })
        const found = yield* b.settled(topic)
        is([found.values, found.aborted], [["before", "a"], [{ producerId: id.pid, firstOffset: 1 }]])
        is((yield* b.read(topic, COMMITTED, 3)).aborted, [])
      })
  ),
  withId("nothing behind an open transaction is stable", ({ b, id, topic, txn }) =>
    Effect.gen(function*() {
      yield* b.sendIn(txn, id, topic, ["a"])
      yield* b.send(topic, ["behind"])
      const committed = yield* b.read(topic, COMMITTED)
      is([committed.values, committed.stable, committed.high], [[], 0, 2])
      is((yield* b.read(topic)).values, ["a", "behind"])
      is([yield* b.offsetAt(topic, -1), yield* b.offsetAt(topic, -1, COMMITTED)], [2, 0])
      yield* b.end(txn, id, true)
      is((yield* b.settled(topic)).values, ["a", "behind"])
    })),
  withId(
    "the next transaction uses the epoch that the end gave, from sequence 0",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        yield* b.sendIn(txn, id, topic, ["a"])
        const next = yield* b.end(txn, id, true)
        is(yield* b.sendIn(txn, next, topic, ["b"]), "NONE@2")
        is(yield* b.end(txn, next, true), { code: "NONE", pid: id.pid, epoch: 2 })
        is((yield* b.settled(topic)).values, ["a", "b"])
      })
  ),
  withId("an epoch that is over cannot write", ({ b, id, topic, txn }) =>
    Effect.gen(function*() {
      yield* b.sendIn(txn, id, topic, ["a"])
      yield* b.end(txn, id, true)
      yield* b.settled(topic)
      is(yield* b.sendIn(txn, id, topic, ["late"], 1), "INVALID_PRODUCER_EPOCH")
    })),
  withId("a repeated EndTxn is answered as the first was", ({ b, id, topic, txn }) =>
    Effect.gen(function*() {
      yield* b.sendIn(txn, id, topic, ["a"])
      const first = yield* b.end(txn, id, true)
      is(yield* eventually(b.end(txn, id, true), (a) => a.code !== "CONCURRENT_TRANSACTIONS"), first)
      is((yield* b.settled(topic)).high, 2)
    })),
  withId("a repeated EndTxn with the other decision is refused", ({ b, id, topic, txn }) =>
    Effect.gen(function*() {
      yield* b.sendIn(txn, id, topic, ["a"])
      yield* b.end(txn, id, true)
      yield* finished(b, txn)
      is((yield* b.end(txn, id, false)).code, "INVALID_TXN_STATE")
    })),
  withId(
    "a commit of nothing is refused",
    ({ b, id, txn }) => Effect.map(b.end(txn, id, true), (a) => is(a.code, "INVALID_TXN_STATE"))
  ),
  withId(
    "an abort of nothing raises the epoch",
    ({ b, id, txn }) => Effect.map(b.end(txn, id, false), (a) => is(a, { code: "NONE", pid: id.pid, epoch: 1 }))
  ),
  withId("an EndTxn with an epoch that is too high is fenced", ({ b, id, topic, txn }) =>
    Effect.gen(function*() {
      yield* b.sendIn(txn, id, topic, ["a"])
      is((yield* b.end(txn, { pid: id.pid, epoch: 5 }, true)).code, "PRODUCER_FENCED")
      is((yield* b.end(txn, { pid: id.pid + 100_000, epoch: 0 }, true)).code, "INVALID_PRODUCER_ID_MAPPING")
      yield* b.end(txn, id, false)
    })),
  withId("partitions get their markers all of them", ({ b, id, topic, txn }) =>
    Effect.gen(function*() {
      yield* b.sendIn(txn, id, topic, ["a"])
      yield* b.sendIn(txn, id, topic, ["b"], 0, { partition: 1 })
      yield* b.end(txn, id, true)
      is([(yield* b.settled(topic, 0)).high, (yield* b.settled(topic, 1)).high], [2, 2])
    })),
  withId(
    "InitProducerId of a successor aborts what is open and fences the older",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        yield* b.sendIn(txn, id, topic, ["old"])
        is((yield* b.init(txn)).code, "CONCURRENT_TRANSACTIONS")
        const next = yield* b.initDone(txn)
        is([next.code, next.pid, next.epoch > id.epoch], ["NONE", id.pid, true])
        is((yield* b.settled(topic)).aborted, [{ producerId: id.pid, firstOffset: 0 }])
        is((yield* b.end(txn, id, true)).code, "PRODUCER_FENCED")
        is(yield* b.sendIn(txn, id, topic, ["late"], 1), "INVALID_PRODUCER_EPOCH")
        is(yield* b.sendIn(txn, next, topic, ["new"]), "NONE@2")
        yield* b.end(txn, next, true)
      })
  ),
  withId(
    "fencing an open transaction raises the epoch twice: its marker carries the first",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        yield* b.sendIn(txn, id, topic, ["old"])
        is((yield* b.initDone(txn)).epoch, 2)
        is((yield* b.settled(topic)).batches.at(-1)!.producerEpoch, 1)
      })
  ),
  withId("a repeated batch inside a transaction is written once", ({ b, id, topic, txn }) =>
    Effect.gen(function*() {
      yield* b.sendIn(txn, id, topic, ["a"])
      is(yield* b.sendIn(txn, id, topic, ["a"]), "NONE@0")
      is(yield* b.sendIn(txn, id, topic, ["c"], 2), "OUT_OF_ORDER_SEQUENCE_NUMBER")
      yield* b.end(txn, id, true)
      is((yield* b.settled(topic)).values, ["a"])
    })),
  withId(
    "a first sequence other than 0 is refused in a transaction",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        is(yield* b.sendIn(txn, id, topic, ["a"], 3), "OUT_OF_ORDER_SEQUENCE_NUMBER")
        yield* b.end(txn, id, false)
      })
  ),
  withId(
    "a producer id that is not the transactional id's cannot write",
    ({ b, id, topic, txn }) =>
      Effect.map(
        b.sendIn(txn, { ...id, pid: id.pid + 100_000 }, topic, ["a"]),
        (code) => is(code, "INVALID_PRODUCER_ID_MAPPING")
      )
  ),
  withId("a transactional batch needs the transactional id in the request", ({ b, id, topic }) =>
    Effect.map(
      b.send(topic, ["a"], { pid: id.pid, epoch: id.epoch, seq: 0, spoil: asTransactional }),
      (code) => is(code, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    )),
  withId("the transaction tells what is in it while it is open", ({ b, id, topic, txn }) =>
    Effect.gen(function*() {
      yield* b.sendIn(txn, id, topic, ["a"])
      is(yield* stateOf(b, txn), { state: "Ongoing", epoch: 0, topics: [{ topic, partitions: [0] }] })
      yield* b.end(txn, id, true)
      is(yield* finished(b, txn), { state: "CompleteCommit", epoch: 1, topics: [] })
    })),
  claim(
    "a transaction that runs out of time is aborted: its producer cannot commit, and an abort comes too late to matter",
    (b) =>
      Effect.gen(function*() {
        const [txn, topic] = [b.unique("txn"), yield* b.topic()]
        const id = yield* b.initDone(txn, { timeoutMs: 500 })
        yield* b.sendIn(txn, id, topic, ["a"])
        is((yield* b.settled(topic)).aborted.length, 1)
        yield* finished(b, txn)
        is((yield* b.end(txn, id, true)).code, "INVALID_TXN_STATE")
        is(yield* b.end(txn, id, false), { code: "NONE", pid: id.pid, epoch: 1 })
        is(yield* b.sendIn(txn, id, topic, ["late"], 1), "INVALID_PRODUCER_EPOCH")
        is((yield* b.initDone(txn)).epoch, 2)
      })
  ),
  withId(
    "two transactions interleave in one partition, and each has its own end",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        const other = b.unique("txn")
        const second = yield* b.initDone(other)
        yield* b.sendIn(txn, id, topic, ["a"])
        yield* b.sendIn(other, second, topic, ["x"])
        yield* b.end(other, second, false)
        yield* finished(b, other)
        is((yield* b.read(topic, COMMITTED)).stable, 0)
        yield* b.end(txn, id, true)
        const found = yield* b.settled(topic)
        is([found.values, found.aborted], [["a", "x"], [{ producerId: second.pid, firstOffset: 1 }]])
      })
  )
]

const version1: ReadonlyArray<Case> = [
  withId(
    "version 1: partitions are added first, and the epoch stays",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        is(yield* b.add(txn, id, [[topic, 0]]), ["NONE"])
        is(yield* b.send(topic, ["a"], { pid: id.pid, epoch: 0, seq: 0, txn, maxVersion: 11 }), "NONE@0")
        is((yield* b.end(txn, id, true, 4)).code, "NONE")
        is((yield* b.settled(topic)).batches.at(-1)!.producerEpoch, 0)
        is(yield* eventually(b.add(txn, id, [[topic, 0]]), (codes) => codes[0] !== "CONCURRENT_TRANSACTIONS"), ["NONE"])
        is(yield* b.send(topic, ["b"], { pid: id.pid, epoch: 0, seq: 1, txn, maxVersion: 11 }), "NONE@2")
        is((yield* b.end(txn, id, true, 4)).code, "NONE")
        is((yield* b.settled(topic)).values, ["a", "b"])
      })
  ),
  withId("version 1: a partition that was not added is refused", ({ b, id, topic, txn }) =>
    Effect.gen(function*() {
      yield* b.add(txn, id, [[topic, 1]])
      is(yield* b.send(topic, ["a"], { pid: id.pid, epoch: 0, seq: 0, txn, maxVersion: 11 }), "TRANSACTION_ABORTABLE")
      is(yield* b.send(topic, ["a"], { pid: id.pid, epoch: 0, seq: 0, txn, maxVersion: 10 }), "INVALID_TXN_STATE")
      yield* b.end(txn, id, false, 4)
    })),
  withId(
    "version 1: a repeated EndTxn succeeds, the other decision does not",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        yield* b.add(txn, id, [[topic, 0]])
        yield* b.end(txn, id, true, 4)
        yield* finished(b, txn)
        is((yield* b.end(txn, id, true, 4)).code, "NONE")
        is((yield* b.end(txn, id, false, 4)).code, "INVALID_TXN_STATE")
      })
  ),
  withId(
    "version 1: EndTxn without a transaction is refused",
    ({ b, id, txn }) => Effect.map(b.end(txn, id, true, 4), (a) => is(a.code, "INVALID_TXN_STATE"))
  ),
  withId(
    "adding a partition that does not exist adds none of them",
    ({ b, id, topic, txn }) =>
      Effect.map(
        b.add(txn, id, [[topic, 0], [`${topic}-none`, 0]]),
        (codes) => is([...codes].sort(), ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"])
      )
  ),
  withId(
    "adding with an older epoch is fenced, with another id not mapped",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        yield* b.init(txn)
        is(yield* b.add(txn, id, [[topic, 0]]), ["PRODUCER_FENCED"])
        is(yield* b.add(txn, { pid: id.pid + 100_000, epoch: 1 }, [[topic, 0]]), ["INVALID_PRODUCER_ID_MAPPING"])
      })
  ),
  withId(
    "a marker without data in the partition is there all the same",
    ({ b, id, topic, txn }) =>
      Effect.gen(function*() {
        yield* b.add(txn, id, [[topic, 0]])
        yield* b.end(txn, id, false, 4)
        yield* finished(b, txn)
        const found = yield* b.settled(topic)
        is([found.high, found.values, found.aborted], [1, [], []])
      })
  )
]

export const transactionCases: ReadonlyArray<Case> = [...identity, ...version2, ...version1]
