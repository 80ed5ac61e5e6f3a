/** Share groups: what is acquired, for how long, and what an acknowledgement makes of it. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { alterShareGroupOffsets } from "../../src/wire/messages/alterShareGroupOffsets.ts"
import { decidedOffsets } from "../../src/share/decided.ts"
import { shareGroupDescribe } from "../../src/wire/messages/shareGroupDescribe.ts"
import { format } from "../../src/wire/ranges.ts"
import { type Bench, type Case, claim, eventually, nameOf } from "./bench.ts"
import { ack, heartbeat, position, shareGroup, type ShareMember, shareMember, SHORT_LOCK } from "./shareBench.ts"

const is = (actual: unknown, expected: unknown) => assert.deepStrictEqual(actual, expected)

const countOf = (ranges: ReadonlyArray<ReadonlyArray<number>>): number =>
  ranges.reduce((sum, [first, last]) => sum + (last as number) - (first as number) + 1, 0)

const fill = (b: Bench, topic: string, count: number) =>
  Effect.forEach(Array.from({ length: count }, (_, n) => `${n}`), (value) => b.send(topic, [value]), { discard: true })

/** A case with `count` records of one batch each, and a member that has just joined. */
const withMember = (
  name: string,
  count: number,
  run: (m: ShareMember) => Effect.Effect<void, unknown>,
  settings: Readonly<Record<string, string>> = {}
): Case =>
  claim(name, (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* fill(b, topic, count)
      yield* run(yield* shareMember(yield* shareGroup(b, topic, settings)))
    }))

const sessions: ReadonlyArray<Case> = [
  withMember("a session opens with epoch 0 and counts from there", 0, (m) =>
    Effect.gen(function*() {
      is((yield* m.fetch({})).top, "NONE")
      is((yield* m.fetch({ epoch: 1 })).top, "NONE")
      is((yield* m.fetch({ epoch: 5 })).top, "INVALID_SHARE_SESSION_EPOCH")
      is((yield* m.fetch({ epoch: 2 })).top, "NONE")
    })),
  withMember("a session that was never opened is not found", 0, (m) =>
    Effect.gen(function*() {
      is((yield* m.fetch({ epoch: 1 })).top, "SHARE_SESSION_NOT_FOUND")
      is(yield* m.acknowledge([], { epoch: 1 }), "top SHARE_SESSION_NOT_FOUND")
      is((yield* m.fetch({ epoch: -1 })).top, "SHARE_SESSION_NOT_FOUND")
    })),
  withMember(
    "a session cannot be opened with acknowledgements",
    1,
    (m) => Effect.map(m.fetch({ epoch: 0, acks: [[0, 0, ack.accept]] }), (a) => is(a.top, "INVALID_REQUEST"))
  ),
  withMember(
    "ShareAcknowledge cannot open a session",
    1,
    (m) =>
      Effect.map(
        m.acknowledge([[0, 0, ack.accept]], { epoch: 0 }),
        (code) => is(code, "top INVALID_SHARE_SESSION_EPOCH")
      )
  ),
  withMember("closing a session gives its records back", 2, (m) =>
    Effect.gen(function*() {
      is(countOf((yield* m.take()).ranges), 2)
      is((yield* m.fetch({ epoch: -1 })).top, "NONE")
      is(countOf((yield* m.take()).ranges), 2)
    })),
  withMember("opening a session again leaves the member what it holds", 2, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      is((yield* m.fetch({ epoch: 0 })).ranges, [])
      is(yield* m.acknowledge([[0, 1, ack.accept]]), "NONE")
    }))
]

const acquiring: ReadonlyArray<Case> = [
  withMember("a record is with one member at a time", 4, (m) =>
    Effect.gen(function*() {
      const other = yield* shareMember(m)
      is(countOf((yield* m.take()).ranges), 4)
      is([countOf((yield* other.fetch({})).ranges), countOf((yield* other.fetch({})).ranges)], [0, 0])
    })),
  withMember("whoever fetches may be no member of the group", 2, (m) =>
    Effect.gen(function*() {
      yield* m.fetch({ epoch: 0 })
      yield* m.fetch({ epoch: -1 })
      is(countOf((yield* (yield* shareMember(m, false)).take()).ranges), 2)
    })),
  withMember("whole batches are acquired, beyond the limit of records", 0, (m) =>
    Effect.gen(function*() {
      yield* m.b.send(m.topic, ["a", "b", "c", "d"])
      yield* m.b.send(m.topic, ["e", "f"])
      is((yield* m.take({ maxRecords: 2 })).ranges, [[0, 3, 1]])
      is((yield* m.take({ maxRecords: 2 })).ranges, [[4, 5, 1]])
    })),
  withMember("in strict mode not one record more is acquired", 0, (m) =>
    Effect.gen(function*() {
      yield* m.b.send(m.topic, ["a", "b", "c", "d"])
      is((yield* m.take({ maxRecords: 3, strict: true })).ranges, [[0, 2, 1]])
      is((yield* m.take({ maxRecords: 3, strict: true })).ranges, [[3, 3, 1]])
    })),
  withMember(
    "ranges are cut at batches, with at least as many records as the batch size",
    6,
    (m) => Effect.map(m.take({ batchSize: 2 }), (a) => is(a.ranges, [[0, 1, 1], [2, 3, 1], [4, 5, 1]]))
  ),
  withMember("the answer says how long the locks are", 1, (m) => Effect.map(m.take(), (a) => is(a.lockMs, 15_000)), {
    "share.record.lock.duration.ms": "15000"
  }),
  withMember("a group starts at the end unless told otherwise", 3, (m) =>
    Effect.gen(function*() {
      // The first fetch loads the share partition; a record that it brings in tells that it has.
      yield* m.fetch({})
      let got = yield* m.fetch({})
      while (got.ranges.length === 0) {
        yield* m.b.send(m.topic, ["new"])
        got = yield* m.fetch({ maxWaitMs: 100 })
      }
      is([(got.ranges[0]?.[0] ?? 0) >= 3, got.values.every((value) => value === "new")], [true, true])
    }), { "share.auto.offset.reset": "latest" }),
  withMember("a fetch that waits is answered when a record comes", 0, (m) =>
    Effect.gen(function*() {
      yield* m.fetch({})
      const [, got] = yield* Effect.all([m.b.send(m.topic, ["a"]), m.take({ maxWaitMs: 2_000 })], { concurrency: 2 })
      is(got.values, ["a"])
    })),
  claim(
    "under read_committed an aborted record is skipped and an open transaction holds back",
    (b) =>
      Effect.gen(function*() {
        const [txn, topic] = [b.unique("txn"), yield* b.topic()]
        const id = yield* b.initDone(txn)
        yield* b.send(topic, ["a"])
        yield* b.sendIn(txn, id, topic, ["x", "y"])
        yield* b.send(topic, ["b"])
        const m = yield* shareMember(yield* shareGroup(b, topic, { "share.isolation.level": "read_committed" }))
        is((yield* m.take()).ranges, [[0, 0, 1]])
        yield* b.end(txn, id, false)
        yield* b.settled(topic)
        const rest = yield* m.take()
        is([rest.ranges[0], countOf(rest.ranges)], [[3, 4, 1], 2])
      })
  ),
  claim("under read_uncommitted everything is acquired, markers too", (b) =>
    Effect.gen(function*() {
      const [txn, topic] = [b.unique("txn"), yield* b.topic()]
      const id = yield* b.initDone(txn)
      yield* b.sendIn(txn, id, topic, ["x", "y"])
      yield* b.end(txn, id, false)
      yield* b.settled(topic)
      const m = yield* shareMember(yield* shareGroup(b, topic))
      is((yield* m.take()).ranges, [[0, 2, 1]])
      is(yield* m.acknowledge([[0, 1, ack.accept], [2, 2, ack.gap]]), "NONE")
      is(yield* eventually(position(m), ([, lag]) => lag === 0), [0, 0])
    }))
]

const acknowledging: ReadonlyArray<Case> = [
  withMember(
    "an accepted record counts at once, and moves the start that others see with the next write",
    3,
    (m) =>
      Effect.gen(function*() {
        yield* m.take()
        is(yield* position(m), [-1, -1])
        is(yield* m.acknowledge([[0, 1, ack.accept]]), "NONE")
        is(yield* eventually(position(m), ([, lag]) => lag === 1), [0, 1])
        is(yield* m.acknowledge([[2, 2, ack.accept]]), "NONE")
        is(yield* eventually(position(m), ([, lag]) => lag === 0), [2, 0])
      })
  ),
  withMember("the start waits for the first open record, the lag does not", 4, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      is(yield* m.acknowledge([[1, 2, ack.accept]]), "NONE")
      is(yield* eventually(position(m), ([, lag]) => lag === 2), [0, 2])
      is(yield* m.acknowledge([[0, 0, ack.accept]]), "NONE")
      is(yield* m.acknowledge([[3, 3, ack.accept]]), "NONE")
      is(yield* eventually(position(m), ([, lag]) => lag === 0), [3, 0])
    })),
  withMember("a released record comes again, with the next delivery count", 2, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      is(yield* m.acknowledge([[0, 0, ack.release], [1, 1, ack.accept]]), "NONE")
      is((yield* m.take()).ranges, [[0, 0, 2]])
    })),
  withMember("a rejected record is done", 1, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      is(yield* m.acknowledge([[0, 0, ack.reject]]), "NONE")
      is(yield* eventually(position(m), ([, lag]) => lag === 0), [0, 0])
    })),
  withMember(
    "a record is archived when it was delivered as often as the group allows",
    1,
    (m) =>
      Effect.gen(function*() {
        for (const delivery of [1, 2]) {
          is((yield* m.take()).ranges, [[0, 0, delivery]])
          is(yield* m.acknowledge([[0, 0, ack.release]]), "NONE")
        }
        is(yield* eventually(position(m), ([, lag]) => lag === 0), [0, 0])
      }),
    { "share.delivery.count.limit": "2" }
  ),
  withMember("a type for each offset", 3, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      is(yield* m.acknowledge([[0, 2, [ack.accept, ack.release, ack.accept]]]), "NONE")
      is((yield* m.take()).ranges, [[1, 1, 2]])
    })),
  withMember("acknowledgements ride on a fetch", 2, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      is((yield* m.fetch({ acks: [[0, 1, ack.accept]] })).ack, "NONE")
      is(yield* eventually(position(m), ([, lag]) => lag === 0), [0, 0])
    })),
  withMember("what another member holds cannot be acknowledged", 2, (m) =>
    Effect.gen(function*() {
      const other = yield* shareMember(m)
      yield* m.take()
      yield* other.fetch({})
      is(yield* other.acknowledge([[0, 0, ack.accept]]), "INVALID_RECORD_STATE")
    })),
  withMember("one range that is refused refuses all of them", 3, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      yield* m.acknowledge([[1, 1, ack.accept]])
      is(yield* m.acknowledge([[0, 0, ack.accept], [1, 1, ack.accept]]), "INVALID_RECORD_STATE")
      is(yield* m.acknowledge([[0, 0, ack.accept]]), "NONE")
    })),
  withMember("an offset in two ranges is in the wrong state for the second", 3, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      is(yield* m.acknowledge([[0, 1, ack.accept], [1, 2, ack.accept]]), "INVALID_RECORD_STATE")
      is(yield* m.acknowledge([[0, 2, ack.accept]]), "NONE")
    })),
  withMember("below the start everything passes", 2, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      yield* m.acknowledge([[0, 0, ack.accept]])
      is(yield* m.acknowledge([[0, 0, ack.accept]]), "NONE")
    })),
  ...([
    ["ranges that overlap", [[0, 2, ack.accept], [1, 2, ack.accept]]],
    ["ranges that do not ascend", [[2, 2, ack.accept], [0, 0, ack.accept]]],
    ["a range that ends before it begins", [[1, 0, ack.accept]]],
    ["a type that does not exist", [[0, 0, 9]]],
    ["fewer types than offsets", [[0, 2, [ack.accept, ack.accept]]]],
    ["a range without a type", [[0, 0, []]]],
    ["a renewal that the request does not announce", [[0, 0, ack.renew]]]
  ] as const).map(([what, acks]) =>
    withMember(`${what} is an invalid request`, 3, (m) =>
      Effect.gen(function*() {
        yield* m.take()
        is(yield* m.acknowledge(acks), "INVALID_REQUEST")
      }))
  )
]

const locks: ReadonlyArray<Case> = [
  withMember("a lock that ends gives the record to another member", 1, (m) =>
    Effect.gen(function*() {
      const other = yield* shareMember(m)
      yield* m.take()
      is((yield* other.take({ maxWaitMs: 500 })).ranges, [[0, 0, 2]])
      is(yield* m.acknowledge([[0, 0, ack.accept]]), "INVALID_RECORD_STATE")
    }), SHORT_LOCK),
  withMember(
    "a renewal is answered without records, and the record can be accepted after",
    2,
    (m) =>
      Effect.gen(function*() {
        yield* m.take()
        is(yield* m.acknowledge([[0, 1, ack.renew]], { renewing: true }), "NONE")
        const renewed = yield* m.fetch({ acks: [[0, 1, ack.renew]], renewing: true })
        is([renewed.ack, renewed.ranges], ["NONE", []])
        is(yield* m.acknowledge([[0, 1, ack.accept]]), "NONE")
      })
  ),
  withMember("a group may forbid renewals", 1, (m) =>
    Effect.gen(function*() {
      yield* m.take()
      is(yield* m.acknowledge([[0, 0, ack.renew]], { renewing: true }), "INVALID_RECORD_STATE")
    }), { "share.renew.acknowledge.enable": "false" }),
  withMember("a connection that closes gives the records back", 2, (m) =>
    Effect.gen(function*() {
      const other = yield* shareMember(m)
      yield* m.take()
      yield* m.disconnect
      is(countOf((yield* other.take({ maxWaitMs: 200 })).ranges), 2)
    })),
  withMember("a member that leaves without closing its session keeps what it holds", 2, (m) =>
    Effect.gen(function*() {
      const other = yield* shareMember(m)
      yield* m.take()
      yield* heartbeat(m.b, m.groupId, m.memberId, -1, null)
      is([countOf((yield* other.fetch({})).ranges), countOf((yield* other.fetch({ maxWaitMs: 100 })).ranges)], [0, 0])
      is(yield* m.acknowledge([[0, 1, ack.accept]]), "NONE")
    }))
]

const beat = (name: string, run: (b: Bench, groupId: string, topic: string) => Effect.Effect<void, unknown>): Case =>
  claim(name, (b) => Effect.flatMap(b.topic(), (topic) => run(b, b.unique("share"), topic)))

const described = (b: Bench, groupId: string) =>
  Effect.map(
    b.cluster.request({ kind: "group", key: groupId }, shareGroupDescribe, {
      groupIds: [groupId],
      includeAuthorizedOperations: false
    }),
    (a) => {
      const group = a.groups[0]!
      return [nameOf(group.errorCode), group.groupState, group.members.length]
    }
  )

const membership: ReadonlyArray<Case> = [
  beat("a member that joins gets an epoch and in time the partitions", (b, groupId, topic) =>
    Effect.gen(function*() {
      const id = b.unique("m")
      let last = yield* heartbeat(b, groupId, id, 0, [topic])
      is([nameOf(last.errorCode), last.memberId, last.memberEpoch > 0], ["NONE", id, true])
      while ((last.assignment?.topicPartitions.length ?? 0) === 0) last = yield* heartbeat(b, groupId, id, 0, [topic])
      is(last.assignment!.topicPartitions, [{ topicId: yield* b.idOf(topic), partitions: [0] }])
    })),
  beat(
    "the first heartbeat has to name topics",
    (b, groupId) =>
      Effect.map(heartbeat(b, groupId, b.unique("m"), 0, null), (a) => is(nameOf(a.errorCode), "INVALID_REQUEST"))
  ),
  beat(
    "a heartbeat needs a member id",
    (b, groupId, topic) =>
      Effect.map(heartbeat(b, groupId, "", 0, [topic]), (a) => is(nameOf(a.errorCode), "INVALID_REQUEST"))
  ),
  beat("a group that nobody joined is not found", (b, groupId) =>
    Effect.gen(function*() {
      is(nameOf((yield* heartbeat(b, groupId, b.unique("m"), 3, null)).errorCode), "GROUP_ID_NOT_FOUND")
      is(yield* described(b, groupId), ["GROUP_ID_NOT_FOUND", "", 0])
    })),
  beat(
    "a member that is not known and one with a wrong epoch are told so",
    (b, groupId, topic) =>
      Effect.gen(function*() {
        const id = b.unique("m")
        const { memberEpoch } = yield* heartbeat(b, groupId, id, 0, [topic])
        is(nameOf((yield* heartbeat(b, groupId, b.unique("m"), 1, null)).errorCode), "UNKNOWN_MEMBER_ID")
        is(nameOf((yield* heartbeat(b, groupId, id, memberEpoch + 50, null)).errorCode), "FENCED_MEMBER_EPOCH")
      })
  ),
  beat("a group is stable with a member, and empty when it has left", (b, groupId, topic) =>
    Effect.gen(function*() {
      const id = b.unique("m")
      yield* heartbeat(b, groupId, id, 0, [topic])
      is(yield* described(b, groupId), ["NONE", "Stable", 1])
      const left = yield* heartbeat(b, groupId, id, -1, null)
      is([nameOf(left.errorCode), left.memberEpoch], ["NONE", -1])
      is(yield* described(b, groupId), ["NONE", "Empty", 0])
    })),
  withMember(
    "the start of a group with members cannot be moved; of an empty one it can",
    4,
    (m) =>
      Effect.gen(function*() {
        const move = (startOffset: number) =>
          Effect.map(
            m.b.cluster.request({ kind: "group", key: m.groupId }, alterShareGroupOffsets, {
              groupId: m.groupId,
              topics: [{ topicName: m.topic, partitions: [{ partitionIndex: 0, startOffset }] }]
            }),
            (a) => nameOf(a.errorCode)
          )
        is(yield* move(2), "NON_EMPTY_GROUP")
        yield* m.take()
        yield* m.acknowledge([[0, 3, ack.accept]])
        yield* eventually(position(m), ([, lag]) => lag === 0)
        yield* heartbeat(m.b, m.groupId, m.memberId, -1, null)
        is(yield* move(2), "NONE")
        is(yield* position(m), [2, 2])
      })
  )
]

const decided: ReadonlyArray<Case> = [
  withMember(
    "what is decided one by one beyond the start is known, and not a record more",
    8,
    (m) =>
      Effect.gen(function*() {
        const known = Effect.map(
          decidedOffsets(m.b.cluster, m.groupId, new Set([m.topic]), new Map([[`${m.topic}-0`, 8]])),
          (all) => all.map(({ beyond, ranges }) => `${format(ranges)} (${beyond})`)
        )
        yield* m.take()
        yield* m.acknowledge([[0, 1, ack.accept], [3, 3, ack.reject], [4, 4, ack.release], [6, 6, ack.accept]])
        is(yield* known, ["0-1, 3, 6 (0)"])
        yield* m.acknowledge([[2, 2, ack.accept]])
        is(yield* known, ["0-3, 6 (0)"])
      })
  )
]

export const shareCases: ReadonlyArray<Case> = [
  ...sessions,
  ...acquiring,
  ...acknowledging,
  ...locks,
  ...membership,
  ...decided
]
