/** Bytes written by hand (see goldenBytes.test.ts) of the messages that find the way to those that carry records. */
import { assert, describe, it } from "@effect/vitest"
import { apiVersions } from "../../src/wire/messages/apiVersions.ts"
import { findCoordinator } from "../../src/wire/messages/findCoordinator.ts"
import { metadata } from "../../src/wire/messages/metadata.ts"
import { same, TOPIC_ID, TOPIC_ID_HEX, written } from "../kit/golden.ts"

describe("Metadata", () => {
  it("request v1: null asks for all topics, an empty list for none", () => {
    same(metadata.request, 1, { topics: null }, "ffffffff")
    same(metadata.request, 1, { topics: [] }, "00000000")
  })

  it("request v12: by id, with a null name", () => {
    same(
      metadata.request,
      12,
      { topics: [{ topicId: TOPIC_ID, name: null }], allowAutoTopicCreation: false },
      written(["02", "one topic"], [`${TOPIC_ID_HEX} 00 00`, "its id, no name"], ["00", "create nothing"], [
        "00",
        "no rights asked"
      ], ["00", "tags"])
    )
  })

  it("response v1 and v12: brokers, controller, topics, partitions", () => {
    const old = written(
      ["00000001 00000002 0001 68 00002384 ffff", "broker 2 at h:9092, no rack"],
      ["00000002", "controller"],
      ["00000001 0000 0002 6162 00", "topic ab, not internal"],
      ["00000001 0000 00000003 00000002", "partition 3, leader 2"],
      ["00000001 00000002 00000001 00000002", "replicas, in sync"]
    )
    const inOld = metadata.response.decode(1, Buffer.from(old, "hex"))
    assert.deepStrictEqual(inOld.brokers, [{ nodeId: 2, host: "h", port: 9092, rack: null }])
    assert.strictEqual(inOld.controllerId, 2)
    assert.strictEqual(inOld.topics[0]?.topicId, "AAAAAAAAAAAAAAAAAAAAAA")
    assert.deepInclude(inOld.topics[0]?.partitions[0], {
      partitionIndex: 3,
      leaderId: 2,
      leaderEpoch: -1,
      replicaNodes: [2],
      isrNodes: [2]
    })
    same(metadata.response, 1, inOld, old)

    const now = written(
      ["00000000", "not throttled"],
      ["02 00000002 02 68 00002384 03 7231 00", "broker 2 at h:9092 in rack r1"],
      ["02 63", "cluster c"],
      ["00000002", "controller"],
      ["02 0000 03 6162", "topic ab"],
      [TOPIC_ID_HEX, "its id"],
      ["00", "not internal"],
      ["02 0000 00000003 00000002 0000000b", "partition 3, leader 2 in epoch 11"],
      ["02 00000002 02 00000002 01 00", "replicas, in sync, none offline"],
      ["80000000 00", "no rights asked, tags"],
      ["00", "tags"]
    )
    const inNow = metadata.response.decode(12, Buffer.from(now, "hex"))
    assert.strictEqual(inNow.topics[0]?.topicId, TOPIC_ID)
    assert.strictEqual(inNow.topics[0]?.partitions[0]?.leaderEpoch, 11)
    assert.strictEqual(inNow.brokers[0]?.rack, "r1")
    same(metadata.response, 12, inNow, now)
  })
})

describe("finding the way", () => {
  it("ApiVersions response v3 (KIP-511): features in tagged fields", () => {
    const bytes = written(
      ["0000", "no error"],
      ["02 0012 0000 0004 00", "ApiVersions, 0 to 4"],
      ["00000000", "not throttled"],
      ["02", "two tagged fields"],
      ["01 08 0000000000000009", "tag 1: epoch of the finalized features"],
      ["02 0a", "tag 2, ten bytes"],
      ["02 04 782e79", "one feature: x.y"],
      ["0002 0001 00", "levels 2, 1"]
    )
    const value = apiVersions.response.decode(3, Buffer.from(bytes, "hex"))
    assert.deepStrictEqual(value.finalizedFeatures, [{ name: "x.y", maxVersionLevel: 2, minVersionLevel: 1 }])
    assert.strictEqual(value.finalizedFeaturesEpoch, 9)
    assert.deepStrictEqual(value.supportedFeatures, [])
    same(apiVersions.response, 3, value, bytes)
  })

  it("FindCoordinator request: one key in v1, several in v4", () => {
    same(findCoordinator.request, 1, { key: "g", keyType: 0 }, written(["0001 67", "group"], ["00", "type"]))
    same(
      findCoordinator.request,
      4,
      { keyType: 1, coordinatorKeys: ["t", "u"] },
      written(["01", "type"], ["03 02 74 02 75", "keys"], ["00", "tags"])
    )
  })
})
