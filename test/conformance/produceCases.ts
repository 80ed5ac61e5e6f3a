/** What a partition takes and refuses, and what readers see of it. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { deleteRecords } from "../../src/wire/messages/deleteRecords.ts"
import { offsetForLeaderEpoch } from "../../src/wire/messages/offsetForLeaderEpoch.ts"
import { type Bench, type Case, claim, COMMITTED, nameOf, type ProduceOptions } from "./bench.ts"

const is = (actual: unknown, expected: unknown) => assert.deepStrictEqual(actual, expected)

/** A case of sends to one new topic, each with what it must be answered. */
const sends = (
  name: string,
  steps: ReadonlyArray<readonly [ReadonlyArray<string>, ProduceOptions, string]>,
  settings: Readonly<Record<string, string>> = {}
): Case =>
  claim(name, (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic(1, settings)
      for (const [values, options, expected] of steps) is(yield* b.send(topic, values, options), expected)
    }))

/** The same with an idempotent producer; the sequence comes first. */
const idempotent = (
  name: string,
  steps: ReadonlyArray<readonly [seq: number, values: ReadonlyArray<string>, expected: string, epoch?: number]>
): Case =>
  claim(name, (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      const { pid } = yield* b.init(null)
      for (const [seq, values, expected, epoch = 0] of steps) {
        is(yield* b.send(topic, values, { pid, epoch, seq }), expected)
      }
    }))

const flipped = (at: number) => (bytes: Buffer): Buffer => {
  const copy = Buffer.from(bytes)
  copy[at] = (copy[at] as number) ^ 1
  return copy
}

const refusals: ReadonlyArray<Case> = [
  sends("gives offsets one after the other", [[["a"], {}, "NONE@0"], [["b", "c"], {}, "NONE@1"], [
    ["d"],
    {},
    "NONE@3"
  ]]),
  sends("takes acks of 1", [[["a"], { acks: 1 }, "NONE@0"]]),
  sends("refuses acks of 2", [[["a"], { acks: 2 }, "INVALID_REQUIRED_ACKS"]]),
  sends("refuses a batch whose checksum does not fit", [[["aaaa"], { spoil: flipped(64) }, "CORRUPT_MESSAGE"]]),
  sends("refuses a checksum that was changed", [[["aaaa"], { spoil: flipped(17) }, "CORRUPT_MESSAGE"]]),
  sends("refuses two batches for one partition", [[["a"], { spoil: (b) => Buffer.concat([b, b]) }, "INVALID_RECORD"]]),
  sends("refuses a batch larger than max.message.bytes, and takes a smaller one", [
    [["x".repeat(2000)], {}, "MESSAGE_TOO_LARGE"],
    [["x"], {}, "NONE@0"]
  ], { "max.message.bytes": "1000" }),
  sends("refuses a record without a key where the topic is compacted", [[["a"], {}, "INVALID_RECORD"], [["a"], {
    key: "k"
  }, "NONE@0"]], { "cleanup.policy": "compact" }),
  sends("takes compressed batches", [[["a", "b"], { codec: "gzip" }, "NONE@0"], [["c"], { codec: "lz4" }, "NONE@2"]]),
  sends("min.insync.replicas asks for no more replicas than there are to be", [[["a"], {}, "NONE@0"]], {
    "min.insync.replicas": "2"
  }),
  sends("with acks of 1, min.insync.replicas is no concern", [[["a"], { acks: 1 }, "NONE@0"]], {
    "min.insync.replicas": "2"
  }),
  sends("ignores the base offset that a producer sends", [[["a"], {}, "NONE@0"], [["b"], {}, "NONE@1"]])
]

const sequences: ReadonlyArray<Case> = [
  idempotent("takes sequences in order", [[0, ["a"], "NONE@0"], [1, ["b", "c"], "NONE@1"], [3, ["d"], "NONE@3"]]),
  idempotent("answers a repeated batch with its first offset, and writes nothing", [
    [0, ["a"], "NONE@0"],
    [1, ["b"], "NONE@1"],
    [0, ["a"], "NONE@0"],
    [2, ["c"], "NONE@2"]
  ]),
  idempotent("knows the last five batches", [
    ...[0, 1, 2, 3, 4].map((n) => [n, [`${n}`], `NONE@${n}`] as const),
    [0, ["0"], "NONE@0"],
    [5, ["5"], "NONE@5"],
    [1, ["1"], "NONE@1"]
  ]),
  idempotent("refuses a sixth batch back", [
    ...[0, 1, 2, 3, 4, 5].map((n) => [n, [`${n}`], `NONE@${n}`] as const),
    [0, ["0"], "OUT_OF_ORDER_SEQUENCE_NUMBER"]
  ]),
  idempotent("refuses a gap", [[0, ["a"], "NONE@0"], [2, ["c"], "OUT_OF_ORDER_SEQUENCE_NUMBER"], [1, ["b"], "NONE@1"]]),
  idempotent("refuses a repeated first sequence with another length", [[0, ["a", "b"], "NONE@0"], [
    0,
    ["a"],
    "OUT_OF_ORDER_SEQUENCE_NUMBER"
  ]]),
  idempotent("takes any first sequence of a producer it does not know", [[7, ["a"], "NONE@0"], [8, ["b"], "NONE@1"]]),
  idempotent("a new epoch starts at sequence 0", [[0, ["a"], "NONE@0"], [1, ["b"], "OUT_OF_ORDER_SEQUENCE_NUMBER", 1], [
    0,
    ["b"],
    "NONE@1",
    1
  ]]),
  idempotent("refuses an epoch that is over", [[0, ["a"], "NONE@0", 1], [0, ["b"], "INVALID_PRODUCER_EPOCH", 0]]),
  idempotent("sequences go on at 0 after the largest", [[2147483646, ["a", "b"], "NONE@0"], [0, ["c"], "NONE@2"]])
]

const deleteBefore = (b: Bench, topic: string, offset: number) =>
  Effect.gen(function*() {
    const partitions = [{ partitionIndex: 0, offset }]
    const answer = yield* b.cluster.request(yield* b.leaderOf(topic), deleteRecords, {
      topics: [{ name: topic, partitions }],
      timeoutMs: 5000
    })
    const found = answer.topics[0]!.partitions[0]!
    return found.errorCode === 0 ? found.lowWatermark : nameOf(found.errorCode)
  })

const reading: ReadonlyArray<Case> = [
  claim("reads from an offset inside of a batch the whole batch", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["a", "b", "c"])
      yield* b.send(topic, ["d"])
      is((yield* b.read(topic, 0, 1)).values, ["a", "b", "c", "d"])
      is((yield* b.read(topic, 0, 3)).values, ["d"])
    })),
  claim("gives at least one batch however small the limit", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["a".repeat(500)])
      yield* b.send(topic, ["b".repeat(500)])
      is((yield* b.read(topic, 0, 0, 0, { maxBytes: 10 })).values.length, 1)
    })),
  claim("reading at the end is empty, beyond it out of range", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["a"])
      const end = yield* b.read(topic, 0, 1)
      is([end.code, end.values, end.high], ["NONE", [], 1])
      is((yield* b.read(topic, 0, 2)).code, "OFFSET_OUT_OF_RANGE")
    })),
  claim("tells a client whose leader epoch is newer than the leader's", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["a"])
      is((yield* b.read(topic, 0, 0, 0, { epoch: 7 })).code, "UNKNOWN_LEADER_EPOCH")
      is((yield* b.read(topic, 0, 0, 0, { epoch: 0 })).code, "NONE")
      is(yield* b.offsetAt(topic, -1, 0, 9), "UNKNOWN_LEADER_EPOCH")
    })),
  claim("finds the beginning, the end, a time, and the latest time", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      const now = Date.UTC(2026, 0, 1)
      for (const [value, after] of [["a", 0], ["b", 1000], ["c", 500], ["d", 3000]] as const) {
        yield* b.send(topic, [value], { timestamp: BigInt(now + after) })
      }
      is(yield* b.offsetAt(topic, -2), 0)
      is(yield* b.offsetAt(topic, -1), 4)
      is(yield* b.offsetAt(topic, now + 400), 1)
      is(yield* b.offsetAt(topic, now + 1001), 3)
      is(yield* b.offsetAt(topic, now + 3001), -1)
      is(yield* b.offsetAt(topic, -3), 3)
    })),
  claim("an empty log begins and ends at 0 and has no time", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      is([
        yield* b.offsetAt(topic, -2),
        yield* b.offsetAt(topic, -1),
        yield* b.offsetAt(topic, -3),
        yield* b.offsetAt(topic, 1)
      ], [0, 0, -1, -1])
    })),
  claim("deleted records are out of range, and the log begins behind them", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["a", "b", "c"])
      yield* b.send(topic, ["d"])
      is(yield* deleteBefore(b, topic, 2), 2)
      is((yield* b.read(topic, 0, 1)).code, "OFFSET_OUT_OF_RANGE")
      const rest = yield* b.read(topic, 0, 2)
      is([rest.start, rest.high, yield* b.offsetAt(topic, -2)], [2, 4, 2])
    })),
  claim("deletes to the high watermark with -1, and no further than that", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["a", "b"])
      is(yield* deleteBefore(b, topic, 3), "OFFSET_OUT_OF_RANGE")
      is(yield* deleteBefore(b, topic, -1), 2)
      is([yield* b.offsetAt(topic, -2), yield* b.offsetAt(topic, -1)], [2, 2])
      is(yield* b.send(topic, ["c"]), "NONE@2")
    })),
  claim("deleting what is deleted changes nothing", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["a", "b"])
      yield* deleteBefore(b, topic, 2)
      is(yield* deleteBefore(b, topic, 1), 2)
    })),
  claim("says where a leader epoch ended", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["a", "b"])
      const ask = (leaderEpoch: number) =>
        Effect.gen(function*() {
          const partitions = [{ partition: 0, currentLeaderEpoch: -1, leaderEpoch }]
          const answer = yield* b.cluster.request(yield* b.leaderOf(topic), offsetForLeaderEpoch, {
            topics: [{ topic, partitions }]
          })
          const found = answer.topics[0]!.partitions[0]!
          return [nameOf(found.errorCode), found.leaderEpoch, found.endOffset]
        })
      is(yield* ask(0), ["NONE", 0, 2])
      is(yield* ask(5), ["NONE", -1, -1])
    })),
  claim("writes the time of the append where the topic says so", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic(1, { "message.timestamp.type": "LogAppendTime" })
      const answer = yield* b.sendTo(topic, ["a"], { timestamp: 5n })
      const [batch] = (yield* b.read(topic)).batches
      is([batch!.timestampType, Number(batch!.maxTimestamp) === answer.logAppendTimeMs, batch!.crcIsValid()], [
        "logAppend",
        true,
        true
      ])
    })),
  claim("keeps a producer's time otherwise, and puts its own epoch and offset in", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["z"])
      const answer = yield* b.sendTo(topic, ["a"], { timestamp: 1_700_000_000_123n })
      const batch = (yield* b.read(topic, 0, 1)).batches[0]!
      is([
        answer.logAppendTimeMs,
        batch.timestampType,
        batch.maxTimestamp,
        batch.baseOffset,
        batch.partitionLeaderEpoch
      ], [-1, "create", 1_700_000_000_123n, 1, 0])
    })),
  claim("readers of committed records see what no transaction wrote at once", (b) =>
    Effect.gen(function*() {
      const topic = yield* b.topic()
      yield* b.send(topic, ["a"])
      const found = yield* b.read(topic, COMMITTED)
      is([found.values, found.stable, found.high, found.aborted], [["a"], 1, 1, []])
    }))
]

export const produceCases: ReadonlyArray<Case> = [...refusals, ...sequences, ...reading]
