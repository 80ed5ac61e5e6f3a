/**
 * KIP-1289 on the embedded cluster, in both drafts: what its authors test, and what a broker must refuse. No released
 * broker has it, so these cases run here only.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Embedded, makeEmbedded } from "../../src/embedded/embedded.ts"
import { txnShareAcknowledgeA, txnShareAcknowledgeB } from "../../src/wire/kip1289.ts"
import { type Bench, type Identity, makeBench, nameOf } from "./bench.ts"
import { ack, heartbeat, shareGroup, type ShareMember, shareMember } from "./shareBench.ts"

const is = (actual: unknown, expected: unknown) => assert.deepStrictEqual(actual, expected)

interface Given {
  readonly embedded: Embedded
  readonly b: Bench
  readonly out: string
  readonly txn: string
  readonly id: Identity
  readonly m: ShareMember
  /** One acknowledgement in the transaction; the top code, else the partition's. */
  readonly stage: (first: number, last: number, type: number, o?: StageOptions) => Effect.Effect<string, unknown>
}
interface StageOptions {
  readonly partition?: number
  readonly memberEpoch?: number
  readonly memberId?: string
  readonly txn?: string | null
  readonly id?: Identity
}

const stageWith =
  (draft: "A" | "B", b: Bench, m: ShareMember, txn: string, id: Identity): Given["stage"] =>
  (first, last, type, o = {}) =>
    Effect.gen(function*() {
      const partitionIndex = o.partition ?? 0
      const to = yield* b.leaderOf(m.topic, partitionIndex)
      const who = o.id ?? id
      const head = {
        transactionalId: o.txn === undefined ? txn : o.txn,
        groupId: m.groupId,
        producerId: who.pid,
        producerEpoch: who.epoch,
        memberId: o.memberId ?? m.memberId,
        memberEpoch: o.memberEpoch ?? m.memberEpoch
      }
      const range = { firstOffset: first, lastOffset: last }
      const topics = <B>(
        batch: B
      ) => [{ topicId: m.topicId, partitions: [{ partitionIndex, acknowledgementBatches: [batch] }] }]
      if (draft === "A") {
        const answer = yield* b.cluster.request(to, txnShareAcknowledgeA, {
          ...head,
          topics: topics({ ...range, acknowledgeType: type })
        })
        return nameOf(answer.errorCode || (answer.topics[0]?.partitions[0]?.errorCode ?? 0))
      }
      const answer = yield* b.cluster.request(to, txnShareAcknowledgeB, {
        ...head,
        topics: topics({ ...range, acknowledgeTypes: [type] })
      })
      return nameOf(answer.errorCode || (answer.responses[0]?.partitions[0]?.errorCode ?? 0))
    })

const COUNT = 4

/** A member that holds four records, and a producer with an output in an open transaction. */
const given = (draft: "A" | "B", o: { readonly limit?: string; readonly timeoutMs?: number } = {}) =>
  Effect.gen(function*() {
    const embedded = yield* makeEmbedded({ kip1289: draft, brokers: 2 })
    const b = makeBench(yield* embedded.cluster("bench"))
    for (const name of ["in", "out"]) embedded.createTopic(name, { replication: 2 })
    for (let n = 0; n < COUNT; n++) embedded.append("in", 0, [{ value: `${n}` }])
    const m = yield* shareMember(
      yield* shareGroup(b, "in", o.limit === undefined ? {} : { "share.delivery.count.limit": o.limit })
    )
    const id = yield* b.initDone("txn", { timeoutMs: o.timeoutMs ?? 60_000 })
    yield* m.take()
    yield* b.sendIn("txn", id, "out", ["output"])
    return { embedded, b, out: "out", txn: "txn", id, m, stage: stageWith(draft, b, m, "txn", id) } satisfies Given
  })

const states = (g: Given) =>
  (g.embedded.sharePartition(g.m.groupId, "in", 0)?.records ?? []).map((r) => `${r.offset} ${r.state} ${r.deliveries}`)
const startOf = (g: Given) => g.embedded.sharePartition(g.m.groupId, "in", 0)!.start
const ended = (g: Given, committed: boolean) =>
  Effect.gen(function*() {
    is((yield* g.b.end(g.txn, g.id, committed)).code, "NONE")
    yield* g.b.settled(g.out)
    g.embedded.releaseMarkers()
  })

for (const draft of ["A", "B"] as const) {
  const claim = (name: string, run: (g: Given) => Effect.Effect<void, unknown>, o?: Parameters<typeof given>[1]) =>
    it.live(name, () => Effect.scoped(Effect.flatMap(given(draft, o), run)))

  describe(`KIP-1289, draft ${draft}`, () => {
    claim("a commit accepts", (g) =>
      Effect.gen(function*() {
        is(yield* g.stage(0, 3, ack.accept), "NONE")
        is([startOf(g), states(g)[0]], [0, "0 pending 1"])
        yield* ended(g, true)
        is([startOf(g), states(g)], [4, []])
      }))

    claim(
      "an abort makes the records come again, the delivery count kept, and takes the output back",
      (g) =>
        Effect.gen(function*() {
          yield* g.stage(0, 3, ack.accept)
          yield* ended(g, false)
          is((yield* g.b.read(g.out, 1)).aborted.length, 1)
          const again = (yield* g.m.take()).ranges
          is([countOf(again), again.every(([, , deliveries]) => deliveries === 2)], [4, true])
        })
    )

    claim("a commit of a REJECT archives", (g) =>
      Effect.gen(function*() {
        is(yield* g.stage(1, 1, ack.reject), "NONE")
        yield* ended(g, true)
        is(states(g), ["0 acquired 1", "1 archived 1", "2 acquired 1", "3 acquired 1"])
      }))

    claim("a commit of a subset leaves the rest acquired", (g) =>
      Effect.gen(function*() {
        yield* g.stage(0, 1, ack.accept)
        yield* ended(g, true)
        is([startOf(g), states(g)], [2, ["2 acquired 1", "3 acquired 1"]])
      }))

    claim("several calls belong to one transaction, gaps too", (g) =>
      Effect.gen(function*() {
        is([yield* g.stage(0, 0, ack.accept), yield* g.stage(1, 1, ack.gap), yield* g.stage(2, 3, ack.accept)], [
          "NONE",
          "NONE",
          "NONE"
        ])
        yield* ended(g, true)
        is(startOf(g), 4)
      }))

    claim(
      "a pending record goes to nobody, is nobody's to acknowledge, and its lock does not end",
      (g) =>
        Effect.gen(function*() {
          yield* g.stage(0, 3, ack.accept)
          is((yield* (yield* shareMember(g.m)).fetch({})).ranges, [])
          is(yield* g.m.acknowledge([[0, 0, ack.accept]]), "INVALID_RECORD_STATE")
          is((yield* g.m.fetch({ epoch: -1 })).top, "NONE")
          is(states(g)[0], "0 pending 1")
        })
    )

    claim(
      "a release may not be in a transaction",
      (g) => Effect.map(g.stage(0, 0, ack.release), (code) => is(code, "INVALID_REQUEST"))
    )

    claim("what the member does not hold is refused", (g) =>
      Effect.gen(function*() {
        yield* g.m.acknowledge([[0, 0, ack.accept]])
        is([yield* g.stage(0, 1, ack.accept), yield* g.stage(9, 9, ack.accept)], [
          "INVALID_RECORD_STATE",
          "INVALID_RECORD_STATE"
        ])
        is(states(g), ["1 acquired 1", "2 acquired 1", "3 acquired 1"])
      }))

    claim(
      "an epoch of the member that is over, and a member that is not known, are told so",
      (g) =>
        Effect.gen(function*() {
          is(yield* g.stage(0, 0, ack.accept, { memberEpoch: g.m.memberEpoch + 5 }), "STALE_MEMBER_EPOCH")
          is(yield* g.stage(0, 0, ack.accept, { memberId: "stranger" }), "UNKNOWN_MEMBER_ID")
        })
    )

    claim("the member's epoch counts when staging, not when the transaction ends", (g) =>
      Effect.gen(function*() {
        yield* g.stage(0, 3, ack.accept)
        yield* heartbeat(g.b, g.m.groupId, g.m.memberId, -1, null)
        yield* ended(g, true)
        is(startOf(g), 4)
      }))

    claim("the ids have to be there", (g) =>
      Effect.gen(function*() {
        is([yield* g.stage(0, 0, ack.accept, { txn: null }), yield* g.stage(0, 0, ack.accept, { memberId: "" })], [
          "INVALID_REQUEST",
          "INVALID_REQUEST"
        ])
      }))

    claim("a broker whose feature was taken back does not support it", (g) =>
      Effect.gen(function*() {
        g.embedded.state.features.get("share.version")!.level = 2
        is(yield* g.stage(0, 0, ack.accept), "UNSUPPORTED_VERSION")
      }))

    claim("acknowledgements of a fenced producer never land", (g) =>
      Effect.gen(function*() {
        yield* g.stage(0, 1, ack.accept)
        yield* g.b.initDone(g.txn)
        is(states(g)[0], "0 available 1")
        is(yield* g.stage(2, 2, ack.accept), "PRODUCER_FENCED")
        is((yield* g.b.end(g.txn, g.id, true)).code, "PRODUCER_FENCED")
        is(startOf(g), 0)
      }))

    claim("a transaction that runs out of time gives the records back", (g) =>
      Effect.gen(function*() {
        yield* g.stage(0, 3, ack.accept)
        is(countOf((yield* (yield* shareMember(g.m)).take({ maxWaitMs: 1_000 })).ranges), 4)
      }), { timeoutMs: 300 })

    claim(
      "the partition's leader stops before the abort: the records come again from its successor",
      (g) =>
        Effect.gen(function*() {
          yield* g.stage(0, 3, ack.accept)
          g.embedded.moveLeader("in", 0)
          is(states(g)[0], "0 pending 1")
          yield* ended(g, false)
          is(states(g)[0], "0 available 1")
        })
    )

    claim("the partition's leader stops after the abort: the same", (g) =>
      Effect.gen(function*() {
        yield* g.stage(0, 3, ack.accept)
        yield* ended(g, false)
        g.embedded.moveLeader("in", 0)
        is(states(g)[0], "0 available 1")
      }))

    claim("a broker that no longer leads says so, and the transaction can be aborted", (g) =>
      Effect.gen(function*() {
        g.embedded.moveLeader("in", 0)
        is(yield* g.stage(0, 0, ack.accept), "NOT_LEADER_OR_FOLLOWER")
        yield* ended(g, false)
      }))

    it.live("records on partitions whose state lies apart are decided together", () =>
      Effect.scoped(Effect.gen(function*() {
        const g = yield* given(draft)
        const other = yield* makeOther(g)
        yield* g.stage(0, 3, ack.accept)
        is(yield* stageWith(draft, g.b, other, g.txn, g.id)(0, 0, ack.accept), "NONE")
        yield* ended(g, true)
        is([startOf(g), g.embedded.sharePartition(other.groupId, "in2", 0)!.start], [4, 1])
      })))
  })
}

const countOf = (ranges: ReadonlyArray<ReadonlyArray<number>>): number =>
  ranges.reduce((sum, [first, last]) => sum + (last as number) - (first as number) + 1, 0)

/** A member of another group on another topic. */
const makeOther = (g: Given) =>
  Effect.gen(function*() {
    g.embedded.createTopic("in2", { replication: 2 })
    g.embedded.append("in2", 0, [{ value: "x" }])
    const other = yield* shareMember(yield* shareGroup(g.b, "in2"))
    yield* other.take()
    return other
  })
