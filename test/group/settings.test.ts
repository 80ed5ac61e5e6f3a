import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parseCommitMetadata, writeCommitMetadata } from "../../src/group/commitMetadata.ts"
import { librdkafkaConf } from "../../src/group/librdkafkaConf.ts"
import { parseGroupSettings } from "../../src/group/settings.ts"

const base = { "bootstrap.servers": "127.0.0.1:9092" }
const conf = (settings: Record<string, string | number | boolean>, protocol: "classic" | "consumer") =>
  librdkafkaConf({ ...base, ...settings }, { groupId: "g", protocol, member: "lane-0", metadataRefreshMs: 5_000 })

describe("consumer settings", () => {
  it.effect("a mirror reads committed records from the beginning unless told otherwise", () =>
    Effect.gen(function*() {
      const settings = yield* parseGroupSettings(base)
      assert.deepInclude(settings, { readCommitted: true, offsetReset: "earliest" })
      const other = yield* parseGroupSettings({
        ...base,
        "isolation.level": "read_uncommitted",
        "auto.offset.reset": "by_duration:P1DT2H"
      })
      assert.deepInclude(other, { readCommitted: false, offsetReset: { backMs: 26 * 3_600_000 } })
    }))

  for (
    const [key, value] of [["isolation.level", "dirty"], ["auto.offset.reset", "newest"], ["fetch.max.bytes", "many"], [
      "max.partition.fetch.bytes",
      0
    ], ["fetch.max.wait.ms", -1]] as const
  ) {
    it.effect(`${key}=${value} is refused with its name, its value and what is allowed`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(parseGroupSettings({ ...base, [key]: value }))
        assert.strictEqual(error.key, key)
        assert.strictEqual(error.value, String(value))
        assert.notStrictEqual(error.allowed, "")
      }))
  }
})

describe("librdkafka's configuration", () => {
  it("never commits by itself, and is not asked to create topics", () => {
    for (const protocol of ["classic", "consumer"] as const) {
      assert.deepInclude(conf({ "enable.auto.commit": true }, protocol), {
        "enable.auto.commit": false,
        "enable.auto.offset.store": false,
        "allow.auto.create.topics": false
      })
    }
  })
  it("takes incremental rebalances unless told otherwise, and Java's names of assignors", () => {
    assert.strictEqual(conf({}, "classic")["partition.assignment.strategy"], "cooperative-sticky")
    const java =
      "org.apache.kafka.clients.consumer.RangeAssignor, org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert.strictEqual(
      conf({ "partition.assignment.strategy": java }, "classic")["partition.assignment.strategy"],
      "range,cooperative-sticky"
    )
  })
  it("leaves out with KIP-848 what librdkafka then refuses", () => {
    const settings = {
      "session.timeout.ms": 10_000,
      "heartbeat.interval.ms": 1_000,
      "partition.assignment.strategy": "range",
      "group.remote.assignor": "uniform"
    }
    const modern = conf(settings, "consumer")
    assert.deepStrictEqual(Object.keys(settings).filter((key) => key in modern), ["group.remote.assignor"])
    const classic = conf(settings, "classic")
    assert.deepStrictEqual(Object.keys(settings).filter((key) => key in classic), [
      "session.timeout.ms",
      "heartbeat.interval.ms",
      "partition.assignment.strategy"
    ])
  })
  it("looks for new partitions at least once an hour: librdkafka refuses to be made with more", () => {
    const refresh = (ms: number) =>
      librdkafkaConf(base, { groupId: "g", protocol: "consumer", member: "lane-0", metadataRefreshMs: ms })[
        "topic.metadata.refresh.interval.ms"
      ]
    assert.deepStrictEqual([refresh(5_000), refresh(3_600_000), refresh(86_400_000)], [5_000, 3_600_000, 3_600_000])
  })
  it("gives each member of a process an instance id of its own", () => {
    assert.strictEqual(conf({ "group.instance.id": "mirror" }, "classic")["group.instance.id"], "mirror-lane-0")
    assert.isFalse("group.instance.id" in conf({}, "classic"))
  })
})

describe("what is committed beside an offset", () => {
  it("comes back as it was written", () => {
    for (const topicId of [null, "kTbvp9yIRY-wZmyy6oCvIw"]) {
      for (const partitions of [null, 12]) {
        assert.deepStrictEqual(parseCommitMetadata(writeCommitMetadata({ topicId, partitions })), {
          topicId,
          partitions
        })
      }
    }
    // As the add-on commits it.
    assert.strictEqual(
      parseCommitMetadata("topic.id=kTbvp9yIRY-wZmyy6oCvIw\0").topicId,
      "kTbvp9yIRY-wZmyy6oCvIw"
    )
  })
  it("is unknown where somebody else wrote it, and where the broker has no topic ids", () => {
    for (const text of ["", "leader_epoch: 3", "topic.id=short", "xpartitions=3"]) {
      assert.deepStrictEqual(parseCommitMetadata(text), { topicId: null, partitions: null })
    }
    assert.strictEqual(writeCommitMetadata({ topicId: "AAAAAAAAAAAAAAAAAAAAAA", partitions: null }), "")
  })
})
