/**
 * Bytes written by hand after Kafka's protocol description, piece by piece, against what our encoder writes and our
 * decoder reads: the messages that carry records, in flexible and older forms.
 */
import { assert, describe, it } from "@effect/vitest"
import { fetch } from "../../src/wire/messages/fetch.ts"
import { produce } from "../../src/wire/messages/produce.ts"
import { shareFetch } from "../../src/wire/messages/shareFetch.ts"
import { shareGroupHeartbeat } from "../../src/wire/messages/shareGroupHeartbeat.ts"
import { same, TOPIC_ID, TOPIC_ID_HEX, written } from "../kit/golden.ts"

describe("Produce", () => {
  it("request v8: lengths of four bytes, the topic's name, no tagged fields", () => {
    same(
      produce.request,
      8,
      {
        transactionalId: null,
        acks: -1,
        timeoutMs: 30000,
        topicData: [{ name: "ab", partitionData: [{ index: 3, records: Buffer.from("cafe", "hex") }] }]
      },
      written(
        ["ffff", "no transactional id"],
        ["ffff", "acks: all"],
        ["00007530", "30 seconds"],
        ["00000001", "one topic"],
        ["0002 6162", "its name"],
        ["00000001", "one partition"],
        ["00000003", "its number"],
        ["00000002 cafe", "records"]
      )
    )
  })

  it("request v13: varint lengths of one more, the topic's id, tagged fields behind every struct", () => {
    same(
      produce.request,
      13,
      {
        transactionalId: "t",
        acks: -1,
        timeoutMs: 1,
        topicData: [{ topicId: TOPIC_ID, partitionData: [{ index: 3, records: null }] }]
      },
      written(
        ["02 74", "transactional id"],
        ["ffff", "acks: all"],
        ["00000001", "1 millisecond"],
        ["02", "one topic"],
        [TOPIC_ID_HEX, "its id"],
        ["02", "one partition"],
        ["00000003", "its number"],
        ["00", "null records"],
        ["00 00 00", "no tagged fields: partition, topic, request"]
      )
    )
  })

  it("response v10: an error with the new leader and its address, in tagged fields", () => {
    const bytes = written(
      ["02", "one topic"],
      ["03 6162", "its name"],
      ["02", "one partition"],
      ["00000003", "its number"],
      ["0006", "NOT_LEADER_OR_FOLLOWER"],
      ["ffffffffffffffff", "base offset -1"],
      ["ffffffffffffffff", "append time -1"],
      ["0000000000000005", "log start 5"],
      ["01", "no record errors"],
      ["00", "no message"],
      ["01 00 09", "one tagged field, tag 0, nine bytes"],
      ["00000002 0000000b 00", "leader 2 in epoch 11, no tagged fields of its own"],
      ["00", "topic: no tagged fields"],
      ["00000007", "throttled for 7 ms"],
      ["01 00 0d", "one tagged field, tag 0, thirteen bytes"],
      ["02", "one node"],
      ["00000002 02 68 00002384", "node 2, host h, port 9092"],
      ["00 00", "no rack, no tagged fields"]
    )
    const value = produce.response.decode(10, Buffer.from(bytes, "hex"))
    assert.deepStrictEqual(value.responses[0]?.partitionResponses[0]?.currentLeader, { leaderId: 2, leaderEpoch: 11 })
    assert.deepStrictEqual(value.nodeEndpoints, [{ nodeId: 2, host: "h", port: 9092, rack: null }])
    assert.strictEqual(value.throttleTimeMs, 7)
    same(produce.response, 10, value, bytes)
  })
})

describe("Fetch", () => {
  it("request v11: topic names, epochs, forgotten topics, rack", () => {
    same(
      fetch.request,
      11,
      {
        maxWaitMs: 500,
        minBytes: 1,
        maxBytes: 1048576,
        isolationLevel: 1,
        topics: [{
          topic: "ab",
          partitions: [{ partition: 3, currentLeaderEpoch: 9, fetchOffset: 258, partitionMaxBytes: 65536 }]
        }],
        forgottenTopicsData: [{ topic: "c", partitions: [1] }],
        rackId: "r"
      },
      written(
        ["ffffffff", "not a replica"],
        ["000001f4 00000001 00100000", "maximum wait, minimum and maximum bytes"],
        ["01", "read committed"],
        ["00000000 ffffffff", "no session"],
        ["00000001 0002 6162", "one topic"],
        ["00000001 00000003", "partition 3"],
        ["00000009", "in epoch 9"],
        ["0000000000000102", "from offset 258"],
        ["ffffffffffffffff", "log start, of followers"],
        ["00010000", "at most 64 KiB"],
        ["00000001 0001 63 00000001 00000001", "forget c-1"],
        ["0001 72", "rack"]
      )
    )
  })

  it("request v13: topic ids, the last fetched epoch, tagged fields of replicas stay out", () => {
    same(
      fetch.request,
      13,
      {
        maxWaitMs: 0,
        minBytes: 0,
        maxBytes: 1,
        isolationLevel: 0,
        sessionId: 5,
        sessionEpoch: 6,
        topics: [{
          topicId: TOPIC_ID,
          partitions: [{
            partition: 0,
            currentLeaderEpoch: 1,
            fetchOffset: 0,
            lastFetchedEpoch: -1,
            partitionMaxBytes: 1
          }]
        }]
      },
      written(
        ["ffffffff", "not a replica"],
        ["00000000 00000000 00000001 00", "limits, read uncommitted"],
        ["00000005 00000006", "session"],
        ["02", "one topic"],
        [TOPIC_ID_HEX, "its id"],
        ["02 00000000 00000001 0000000000000000 ffffffff ffffffffffffffff 00000001 00", "one partition"],
        ["00", "topic: no tagged fields"],
        ["01", "nothing forgotten"],
        ["01", "no rack"],
        ["00", "request: no tagged fields"]
      )
    )
  })

  it("response v4: aborted transactions, null and empty kept apart, records as they came", () => {
    const bytes = written(
      ["00000000", "not throttled"],
      ["00000001 0002 6162", "one topic"],
      ["00000002", "two partitions"],
      ["00000000 0000 0000000000000064 0000000000000063", "partition 0: high watermark 100, last stable offset 99"],
      ["00000001 0000000000000007 0000000000000032", "producer 7 aborted from 50"],
      ["00000003 010203", "records"],
      ["00000001 0001 ffffffffffffffff ffffffffffffffff", "partition 1: OFFSET_OUT_OF_RANGE"],
      ["ffffffff", "no list of aborted transactions"],
      ["ffffffff", "no records"]
    )
    const value = fetch.response.decode(4, Buffer.from(bytes, "hex"))
    const partitions = value.responses[0]?.partitions
    assert.strictEqual(value.responses[0]?.topic, "ab")
    assert.strictEqual(partitions?.[0]?.highWatermark, 100)
    assert.strictEqual(partitions?.[0]?.lastStableOffset, 99)
    assert.deepStrictEqual(partitions?.[0]?.abortedTransactions, [{ producerId: 7, firstOffset: 50 }])
    assert.deepStrictEqual(partitions?.[0]?.records, Buffer.of(1, 2, 3))
    assert.strictEqual(partitions?.[1]?.errorCode, 1)
    assert.isNull(partitions?.[1]?.abortedTransactions)
    assert.isNull(partitions?.[1]?.records)
    same(fetch.response, 4, value, bytes)
  })

  it("response v16: a diverging epoch and the new leader in tagged fields, an unknown tag skipped", () => {
    const bytes = written(
      ["00000000 0000 00000005", "not throttled, no error, session 5"],
      ["02", "one topic"],
      [TOPIC_ID_HEX, "its id"],
      ["02", "one partition"],
      ["00000001 0000 0000000000000064 0000000000000064 0000000000000000", "partition 1 and its offsets"],
      ["00", "null aborted transactions"],
      ["ffffffff", "no preferred replica"],
      ["01", "empty records"],
      ["03", "three tagged fields"],
      ["00 0d 00000004 0000000000000037 00", "diverging: epoch 4 ended at 55"],
      ["01 09 00000002 0000000b 00", "leader 2 in epoch 11"],
      ["63 02 abcd", "tag 99, which nobody knows"],
      ["00", "topic: no tagged fields"],
      ["00", "answer: no tagged fields"]
    )
    const partition = fetch.response.decode(16, Buffer.from(bytes, "hex")).responses[0]?.partitions[0]
    assert.deepStrictEqual(partition?.divergingEpoch, { epoch: 4, endOffset: 55 })
    assert.deepStrictEqual(partition?.currentLeader, { leaderId: 2, leaderEpoch: 11 })
    assert.deepStrictEqual(partition?.snapshotId, { endOffset: -1, epoch: -1 })
    assert.deepStrictEqual(partition?.records, Buffer.alloc(0))
  })
})

describe("share groups", () => {
  it("ShareFetch request v2: limits, acquire mode, acknowledgements with the fetch", () => {
    same(
      shareFetch.request,
      2,
      {
        groupId: "g",
        memberId: "m",
        shareSessionEpoch: 1,
        maxWaitMs: 500,
        minBytes: 1,
        maxBytes: 1048576,
        maxRecords: 500,
        batchSize: 100,
        shareAcquireMode: 1,
        isRenewAck: true,
        topics: [{
          topicId: TOPIC_ID,
          partitions: [{
            partitionIndex: 3,
            acknowledgementBatches: [{ firstOffset: 10, lastOffset: 11, acknowledgeTypes: [1, 0] }]
          }]
        }],
        forgottenTopicsData: [{ topicId: TOPIC_ID, partitions: [4] }]
      },
      written(
        ["02 67", "group"],
        ["02 6d", "member"],
        ["00000001", "session epoch"],
        ["000001f4 00000001 00100000", "maximum wait, minimum and maximum bytes"],
        ["000001f4 00000064", "records and batch size"],
        ["01", "acquire mode: at most maxRecords"],
        ["01", "renewals are in it"],
        ["02", "one topic"],
        [TOPIC_ID_HEX, "its id"],
        ["02 00000003", "one partition"],
        ["02 000000000000000a 000000000000000b", "one acknowledged range"],
        ["03 01 00 00", "accept, gap; no tagged fields"],
        ["00 00", "no tagged fields: partition, topic"],
        ["02", "one topic to forget"],
        [`${TOPIC_ID_HEX} 02 00000004 00`, "its id and partition"],
        ["00", "request: no tagged fields"]
      )
    )
  })

  it("ShareFetch response v1: records, acquired ranges with delivery counts, the lock's time", () => {
    const bytes = written(
      ["00000000 0000 00", "not throttled, no error, no message"],
      ["00007530", "locks hold for 30 seconds"],
      ["02", "one topic"],
      [TOPIC_ID_HEX, "its id"],
      ["02", "one partition"],
      ["00000003 0000 00 0079 02 78", "partition 3, fetched, INVALID_RECORD_STATE for what was acknowledged: x"],
      ["ffffffff ffffffff 00", "no new leader"],
      ["03 abcd", "records"],
      ["02 000000000000000a 000000000000000b 0002 00", "10 to 11 acquired, delivered twice"],
      ["00 00", "no tagged fields: partition, topic"],
      ["01", "no node endpoints"],
      ["00", "answer: no tagged fields"]
    )
    const value = shareFetch.response.decode(1, Buffer.from(bytes, "hex"))
    assert.strictEqual(value.acquisitionLockTimeoutMs, 30000)
    assert.deepInclude(value.responses[0]?.partitions[0], {
      partitionIndex: 3,
      errorCode: 0,
      errorMessage: null,
      acknowledgeErrorCode: 121,
      acknowledgeErrorMessage: "x",
      records: Buffer.from("abcd", "hex")
    })
    assert.deepStrictEqual(value.responses[0]?.partitions[0]?.acquiredRecords, [{
      firstOffset: 10,
      lastOffset: 11,
      deliveryCount: 2
    }])
    same(shareFetch.response, 1, value, bytes)
  })

  it("ShareGroupHeartbeat response v1: an assignment that is there, and one that is null", () => {
    const head = written(["00000000 0000 00", "not throttled, no error, no message"], ["02 6d", "member"], [
      "00000001 00001388",
      "epoch, interval"
    ])
    const there = `${head}${
      written(["01", "there"], ["02", "one topic"], [`${TOPIC_ID_HEX} 02 00000005 00`, "partition 5"], [
        "00 00",
        "tags"
      ])
    }`
    const decoded = shareGroupHeartbeat.response.decode(1, Buffer.from(there, "hex"))
    assert.deepStrictEqual(decoded.assignment, { topicPartitions: [{ topicId: TOPIC_ID, partitions: [5] }] })
    same(shareGroupHeartbeat.response, 1, decoded, there)
    assert.isNull(shareGroupHeartbeat.response.decode(1, Buffer.from(`${head}ff00`, "hex")).assignment)
  })
})
