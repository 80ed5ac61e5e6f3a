import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { adminSettings, sourceSettings, targetSettings } from "../../src/config/clients.ts"
import { flowOf, load, loadFlow, loadText, minimal } from "../kit/configFile.ts"

describe("the smallest configuration", () => {
  it.effect("wants exactly-once through a share group, loses nothing old, and names things after the aliases", () =>
    Effect.gen(function*() {
      const flow = flowOf(yield* load(minimal()))
      assert.deepInclude(flow, {
        name: "east->west",
        enabled: true,
        groupId: "onceover-east-to-west",
        deliveryGuarantee: "exactly-once",
        exactlyOnceBindings: ["kip-1289", "ledger"],
        exactlyOnceFallback: "at-least-once",
        autoOffsetReset: "earliest",
        isolationLevel: "read_committed",
        onSourceGap: "fail",
        onRecordRefused: "block",
        errorsTolerance: "none",
        deadLetter: null,
        replicationPolicy: "default",
        replicationPolicySeparator: ".",
        replicationFactor: -1,
        shareAcknowledgementMode: "explicit",
        refreshTopicsIntervalMs: 5_000,
        shutdownTimeoutMs: 30_000
      })
      assert.deepStrictEqual(flow.groupProtocol, { value: "share", origin: "the default" })
    }))

  it.effect("mirrors every topic but the internal ones of MirrorMaker 2 and Kafka", () =>
    Effect.gen(function*() {
      const flow = flowOf(yield* load(minimal()))
      assert.deepStrictEqual(flow.topics, [".*"])
      assert.deepStrictEqual(flow.topicsExclude, ["mm2.*\\.internal", ".*\\.replica", "__.*"])
    }))

  it.effect("serves HTTP on loopback, and not at all when told so", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* load(minimal())).config?.http, { host: "127.0.0.1", port: 8080 })
      for (const off of [false, "false"]) assert.isNull((yield* load(minimal({ http: { listen: off } }))).config?.http)
      assert.deepStrictEqual((yield* load(minimal({ http: { listen: "[::1]:0" } }))).config?.http, {
        host: "::1",
        port: 0
      })
    }))

  it.effect("may be JSON, indented with tabs", () =>
    Effect.gen(function*() {
      const loaded = yield* loadText(JSON.stringify(minimal(), null, "\t"), { name: "mirror.json" })
      assert.strictEqual(flowOf(loaded).name, "east->west")
    }))
})

describe("the topics of a flow", () => {
  it.effect("are a list, or one text with commas as in MirrorMaker 2, whose brackets do not split", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(flowOf(yield* loadFlow({ topics: ["a,b", "c"] })).topics, ["a,b", "c"])
      assert.deepStrictEqual(flowOf(yield* loadFlow({ topics: "a, b{1,2},[c,d],e\\(x,f" })).topics, [
        "a",
        "b{1,2}",
        "[c,d]",
        "e\\(x",
        "f"
      ])
    }))

  it.effect("take Java's (?i) in front", () =>
    Effect.gen(function*() {
      const [pattern = ""] = flowOf(yield* loadFlow({ topics: ["(?i)orders.*"] })).topics
      assert.match("ORDERS-1", new RegExp(`^(?:${pattern})$`))
      assert.notMatch("x-orders", new RegExp(`^(?:${pattern})$`))
    }))
})

describe("client settings", () => {
  it.effect("keep the text they were written with, whatever YAML makes of it", () =>
    Effect.gen(function*() {
      const { config } = yield* loadText(`
clusters:
  east: { bootstrap.servers: "a:1", sasl.password: 0123, client.id: 12345678901234567890, ssl.key.password: 1e3, client.rack: True }
  west: { bootstrap.servers: ["b:1", "c:2"], request.timeout.ms: 5_000 }
flows: [{ source: east, target: west }]
`.replace("5_000", "5000"))
      assert.deepInclude(config?.clusters.get("east")?.settings, {
        "sasl.password": "0123",
        "client.id": "12345678901234567890",
        "ssl.key.password": "1e3",
        "client.rack": "True"
      })
      assert.deepStrictEqual(config?.clusters.get("west")?.settings, {
        "bootstrap.servers": "b:1,c:2",
        "request.timeout.ms": "5000"
      })
    }))

  it.effect("of a flow win over the cluster's, each at its own end", () =>
    Effect.gen(function*() {
      const { config } = yield* loadFlow({
        "consumer.override.client.id": "reader",
        "producer.override.client.id": "writer",
        "admin.override.request.timeout.ms": 7000,
        "auto.offset.reset": "Latest"
      })
      const flow = config?.flows[0]
      if (config === null || flow === undefined) return assert.fail("refused")
      assert.deepStrictEqual(sourceSettings(config, flow), {
        "bootstrap.servers": "127.0.0.1:19092",
        "client.id": "reader",
        "auto.offset.reset": "latest",
        "isolation.level": "read_committed"
      })
      assert.deepStrictEqual(targetSettings(config, flow), {
        "bootstrap.servers": "127.0.0.1:29092",
        "client.id": "writer"
      })
      assert.deepStrictEqual(adminSettings(config, flow, "source"), {
        "bootstrap.servers": "127.0.0.1:19092",
        "request.timeout.ms": "7000"
      })
    }))

  it.effect("in librdkafka's names become Kafka's", () =>
    Effect.gen(function*() {
      const { config } = yield* load(
        minimal({
          clusters: {
            east: { "metadata.broker.list": "a:1", "socket.timeout.ms": 5000 },
            west: { "bootstrap.servers": "b:1" }
          }
        })
      )
      assert.deepStrictEqual(config?.clusters.get("east")?.settings, {
        "bootstrap.servers": "a:1",
        "request.timeout.ms": "5000"
      })
    }))

  it.effect("that do nothing here are said, not refused", () =>
    Effect.gen(function*() {
      const { config } = yield* load(
        minimal({
          clusters: {
            east: { "bootstrap.servers": "a:1", "metric.reporters": "x.Y" },
            west: { "bootstrap.servers": "b:1" }
          }
        }, { "producer.override.linger.ms": 5 })
      )
      assert.deepStrictEqual(config?.warnings, [
        "clusters.east.metric.reporters has no effect: no Java class is loaded",
        "flows[0].producer.override.linger.ms has no effect: whole batches pass through, so nothing is gathered"
      ])
    }))

  it.effect("say where a new group starts: by the flow, and by its override before that", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        flowOf(yield* loadFlow({ "auto.offset.reset": "by_duration:p1dt2h" })).autoOffsetReset,
        "by_duration:P1DT2H"
      )
      const both = yield* loadFlow({ "auto.offset.reset": "earliest", "consumer.override.auto.offset.reset": "LATEST" })
      assert.strictEqual(flowOf(both).autoOffsetReset, "latest")
    }))
})
