/** What must hold between settings, and between flows. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CLUSTERS, flowOf, load, loadFlow, minimal, type Plain } from "../kit/configFile.ts"

const refused = (value: unknown, line: string) =>
  Effect.gen(function*() {
    assert.deepStrictEqual((yield* load(value)).lines, [line])
  })
const flows = (...list: ReadonlyArray<Plain>): Plain => minimal({ flows: list })

describe("clusters and flows", () => {
  it.effect("a flow names clusters that exist", () =>
    refused(
      minimal({}, { source: "eest" }),
      "flows[0].source is \"eest\", which is not under clusters; allowed: east, west; did you mean \"east\"?"
    ))

  it.effect("a flow never writes where it reads", () =>
    refused(
      minimal({}, { target: "east" }),
      "flows[0].target is \"east\", the source of the same flow; a flow never writes where it reads"
    ))

  it.effect("a cluster has an address, whatever is wrong beside it", () =>
    Effect.gen(function*() {
      const { lines } = yield* load(minimal({ clusters: { ...CLUSTERS, x: { "client.idd": "y" } } }))
      assert.deepStrictEqual(lines, [
        "clusters.x.bootstrap.servers is missing; allowed: host:port, several with commas between them",
        "clusters.x.client.idd is not a Kafka client setting; did you mean \"client.id\"?"
      ])
    }))

  it.effect("an address that is none is found before anything connects", () =>
    Effect.gen(function*() {
      const { lines } = yield* load(minimal({ clusters: { ...CLUSTERS, x: { "bootstrap.servers": "a:b" } } }))
      assert.lengthOf(lines, 1)
      assert.match(lines[0] ?? "", /^clusters\.x\.bootstrap\.servers is "a:b"; allowed: host:port/)
    }))

  it.effect("a certificate that is not there is found too, in a cluster and in an override", () =>
    Effect.gen(function*() {
      const tls = { "security.protocol": "SSL", "ssl.ca.location": "/no/such/ca.pem" }
      const cluster = yield* load(minimal({ clusters: { ...CLUSTERS, x: { "bootstrap.servers": "a:1", ...tls } } }))
      assert.match(cluster.lines.join("\n"), /^clusters\.x\.ssl\.ca\.location is "[^\n]*no\/such\/ca\.pem[^\n]*$/)
      const override = yield* loadFlow({
        "producer.override.security.protocol": "SSL",
        "producer.override.ssl.ca.location": "/no/such/ca.pem"
      })
      assert.match(override.lines.join("\n"), /^flows\[0\]\.producer\.override\.ssl\.ca\.location is [^\n]*$/)
    }))

  it.effect("clusters and flows are there at all", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* load({})).lines, [
        "clusters is missing; allowed: a map of aliases to Kafka client settings",
        "flows is missing; allowed: a list of flows, each a map with source and target"
      ])
      assert.deepStrictEqual((yield* load({ clusters: CLUSTERS, flows: [] })).lines, [
        "flows is an empty list; allowed: a list of flows, each a map with source and target"
      ])
    }))

  it.effect("source and target are there", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* load(flows({}))).lines, [
        "flows[0].source is missing; allowed: an alias of clusters",
        "flows[0].target is missing; allowed: an alias of clusters"
      ])
    }))
})

describe("between flows", () => {
  it.effect("names are unique, also those that were not given", () =>
    Effect.gen(function*() {
      const { lines } = yield* load(
        flows({ source: "east", target: "west" }, { source: "east", target: "west", "group.id": "other" })
      )
      assert.deepStrictEqual(lines, [
        "flows[1].name is not given and its default is \"east->west\", the name of flows[0] too; names are unique"
      ])
    }))

  it.effect("no group is shared on one source, also not through another alias of it", () =>
    Effect.gen(function*() {
      const twin = yield* load(
        flows({ name: "a", source: "east", target: "west" }, { name: "b", source: "east", target: "west" })
      )
      assert.deepStrictEqual(twin.lines, [
        "flows[1].group.id is not given and its default is \"onceover-east-to-west\", the group of flows[0] on the same source; each would miss what the other reads"
      ])
      const aliased = yield* load({
        clusters: { ...CLUSTERS, again: CLUSTERS.east },
        flows: [{ source: "east", target: "west", "group.id": "g" }, {
          source: "again",
          target: "west",
          "group.id": "g"
        }]
      })
      assert.deepStrictEqual(aliased.lines, [
        "flows[1].group.id is \"g\", the group of flows[0] on the same source; each would miss what the other reads"
      ])
    }))

  it.effect("a flow that is off may keep its group, and one group on two sources is two groups", () =>
    Effect.gen(function*() {
      const { config } = yield* load(flows(
        { name: "a", source: "east", target: "west", "group.id": "g" },
        { name: "b", source: "east", target: "west", "group.id": "g", enabled: false },
        { name: "c", source: "west", target: "east", "group.id": "g" }
      ))
      assert.lengthOf(config?.flows ?? [], 3)
    }))
})

describe("between settings of a flow", () => {
  it.effect("implicit acknowledgement needs at-least-once", () =>
    Effect.gen(function*() {
      yield* refused(
        minimal({}, { "share.acknowledgement.mode": "implicit" }),
        "flows[0].share.acknowledgement.mode is \"implicit\", which acknowledges before the target has confirmed; it needs delivery.guarantee: at-least-once; allowed: explicit"
      )
      const flow = flowOf(
        yield* loadFlow({ "share.acknowledgement.mode": "implicit", "delivery.guarantee": "at-least-once" })
      )
      assert.strictEqual(flow.shareAcknowledgementMode, "implicit")
    }))

  it.effect("aborted records are mirrored with at-least-once only", () =>
    Effect.gen(function*() {
      yield* refused(
        minimal({}, { "consumer.override.isolation.level": "read_uncommitted" }),
        "flows[0].consumer.override.isolation.level is \"read_uncommitted\", with which aborted records are mirrored; it needs delivery.guarantee: at-least-once; allowed: read_committed"
      )
      const flow = flowOf(
        yield* loadFlow({
          "consumer.override.isolation.level": "read_uncommitted",
          "delivery.guarantee": "at-least-once"
        })
      )
      assert.strictEqual(flow.isolationLevel, "read_uncommitted")
    }))

  it.effect("the guarantee is not undermined by the producer's settings", () =>
    Effect.gen(function*() {
      yield* refused(
        minimal({}, { "producer.override.acks": 1 }),
        "flows[0].producer.override.acks is 1; allowed: all, -1"
      )
      yield* refused(
        minimal({}, { "producer.override.enable.idempotence": false }),
        "flows[0].producer.override.enable.idempotence is false; allowed: true"
      )
      yield* refused(
        minimal({}, { "producer.override.transactional.id": "x" }),
        "flows[0].producer.override.transactional.id is set by onceover: the guarantee rests on it"
      )
    }))

  it.effect("two topics cannot become one", () =>
    refused(
      minimal({}, { "topic.mapping": { a: "x", b: "y", c: "x" } }),
      "flows[0].topic.mapping.c is \"x\", to which \"a\" goes already; partition numbers are kept, so two topics cannot become one"
    ))

  it.effect("dead letters need a topic, and the topic a use", () =>
    Effect.gen(function*() {
      const topic = "errors.deadletterqueue.topic.name"
      yield* refused(
        minimal({}, { "on.record.refused": "deadletter" }),
        `flows[0].on.record.refused is "deadletter" but ${topic} names no topic`
      )
      yield* refused(
        minimal({}, { "errors.deadletterqueue.context.headers.enable": true }),
        `flows[0].errors.deadletterqueue.context.headers.enable has no effect: ${topic} names no topic`
      )
      yield* refused(
        minimal({}, { [topic]: "dead" }),
        `flows[0].${topic} is never used: the flow has no transforms that could fail, and on.record.refused is not deadletter`
      )
      const flow = flowOf(
        yield* loadFlow({
          [topic]: "dead",
          "on.record.refused": "deadletter",
          "errors.deadletterqueue.context.headers.enable": true
        })
      )
      assert.deepStrictEqual(flow.deadLetter, { topic: "dead", contextHeaders: true, replicationFactor: -1 })
    }))

  it.effect("what the mode makes useless is said and not refused", () =>
    Effect.gen(function*() {
      const { config } = yield* loadFlow({ "group.protocol": "consumer", "share.acknowledgement.mode": "implicit" })
      assert.deepStrictEqual(config?.warnings, [
        "flows[0].share.acknowledgement.mode has no effect: group.protocol is consumer"
      ])
    }))
})

describe("shutdown.timeout.ms", () => {
  it.effect("of a flow wins over the process's, which the longest of those that run decides", () =>
    Effect.gen(function*() {
      const { config } = yield* load(minimal({
        "shutdown.timeout.ms": 5_000,
        flows: [
          { source: "east", target: "west" },
          { source: "west", target: "east", "shutdown.timeout.ms": 9_000 },
          { name: "off", source: "west", target: "east", "shutdown.timeout.ms": 90_000, enabled: false }
        ]
      }))
      assert.deepStrictEqual(config?.flows.map((f) => f.shutdownTimeoutMs), [5_000, 9_000, 90_000])
      assert.strictEqual(config?.shutdownTimeoutMs, 9_000)
    }))
})
