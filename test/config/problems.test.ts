/** What a user sees of a wrong file: all of it at once, in words, without secrets. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { flowSettings } from "../../src/config/flowSettings.ts"
import { KAFKA_SETTINGS } from "../../src/config/kafkaSettings.ts"
import { CLUSTERS, load, loadFlow, loadText, minimal } from "../kit/configFile.ts"

const swapped = (name: string, at: number): string =>
  name.slice(0, at) + (name[at + 1] ?? "") + (name[at] ?? "") + name.slice(at + 2)

describe("a key that does not exist", () => {
  const cases: ReadonlyArray<readonly [what: string, value: unknown, line: string]> = [
    ["at top level", minimal({ cluster: 1 }), "cluster is not a setting; did you mean \"clusters\"?"],
    [
      "of a cluster",
      minimal({ clusters: { ...CLUSTERS, x: { "bootstrap.servers": "a:1", "sasl.mechanisim": "PLAIN" } } }),
      "clusters.x.sasl.mechanisim is not a Kafka client setting; did you mean \"sasl.mechanism\"?"
    ],
    ["of a flow", minimal({}, { topicz: ["a"] }), "flows[0].topicz is not a setting; did you mean \"topics\"?"],
    [
      "of a flow, with underscores",
      minimal({}, { tasks_max: 3 }),
      "flows[0].tasks_max is not a setting; did you mean \"tasks.max\"?"
    ],
    ["of http", minimal({ http: { lisen: "127.0.0.1:1" } }), "http.lisen is not a setting; did you mean \"listen\"?"],
    ["of log", minimal({ log: { levle: "info" } }), "log.levle is not a setting; did you mean \"level\"?"],
    [
      "of a consumer override",
      minimal({}, { "consumer.override.fetch.max.byte": 1 }),
      "flows[0].consumer.override.fetch.max.byte is not a Kafka client setting; did you mean \"fetch.max.bytes\"?"
    ],
    [
      "of a producer override",
      minimal({}, { "producer.override.ack": "all" }),
      "flows[0].producer.override.ack is not a Kafka client setting; did you mean \"acks\"?"
    ],
    [
      "of an admin override",
      minimal({}, { "admin.override.client.ip": "x" }),
      "flows[0].admin.override.client.ip is not a Kafka client setting; did you mean \"client.id\"?"
    ],
    [
      "of a transform",
      minimal({}, {
        transforms: "a",
        "transforms.a.type": "DropHeaders",
        "transforms.a.headers": "x",
        "transforms.a.header": "y"
      }),
      "flows[0].transforms.a.header is not a parameter of DropHeaders; allowed: headers; did you mean \"headers\"?"
    ],
    [
      "of a predicate",
      minimal({}, {
        predicates: "p",
        "predicates.p.type": "TopicNameMatches",
        "predicates.p.pattern": "x",
        "predicates.p.pattren": "y"
      }),
      "flows[0].predicates.p.pattren is not a parameter of TopicNameMatches; allowed: pattern; did you mean \"pattern\"?"
    ]
  ]
  for (const [what, value, line] of cases) {
    it.effect(`${what} is refused with the nearest name`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual((yield* load(value)).lines, [line])
      }))
  }

  it.effect("is said without a guess when nothing is near", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* loadFlow({ zzzzzz: 1 })).lines, ["flows[0].zzzzzz is not a setting"])
    }))

  it.effect("with two neighbouring letters swapped, is recognised whichever name it was", () =>
    Effect.gen(function*() {
      const names = Object.keys(flowSettings)
      const samples = fc.sample(fc.tuple(fc.constantFrom(...names), fc.nat()), { seed: 7, numRuns: 60 })
      for (const [name, n] of samples) {
        const misspelt = swapped(name, n % (name.length - 1))
        if (names.includes(misspelt)) continue
        const { problems } = yield* loadFlow({ [misspelt]: 1 })
        assert.strictEqual(problems.find((p) => p.path === `flows[0].${misspelt}`)?.nearest, name)
      }
    }))
})

describe("a setting in the wrong place", () => {
  const cases: ReadonlyArray<readonly [what: string, value: unknown, line: string]> = [
    ["a flow's at top level", minimal({ "tasks.max": 3 }), "tasks.max is a setting of a flow: write it under flows"],
    [
      "a top-level one in a flow",
      minimal({}, { "consumer.group.protocol": "share" }),
      "flows[0].consumer.group.protocol belongs at top level"
    ],
    ["http's in a flow", minimal({}, { listen: "a:1" }), "flows[0].listen belongs under http"],
    ["log.level as one key", minimal({ "log.level": "info" }), "log.level is written as a map: log: { level: ... }"],
    [
      "a nested map for a dotted key",
      minimal({}, { replication: { policy: "identity" } }),
      "flows[0].replication is a map; write it as one dotted key: replication.policy"
    ],
    [
      "a nested map in a cluster",
      minimal({ clusters: { ...CLUSTERS, x: { "bootstrap.servers": "a:1", sasl: { mechanism: "PLAIN" } } } }),
      "clusters.x.sasl is a map; write it as one dotted key: sasl.mechanism"
    ],
    [
      "a nested override",
      minimal({}, { "consumer.override": { "fetch.max.bytes": 1 } }),
      "flows[0].consumer.override is a map; write each setting as one dotted key: consumer.override.NAME; allowed: consumer.override.NAME: value"
    ],
    [
      "a producer's setting for the consumer",
      minimal({}, { "consumer.override.acks": "all" }),
      "flows[0].consumer.override.acks is a setting of Kafka's producer client, not of its consumer client"
    ],
    [
      "a group id of a client",
      minimal({}, { "consumer.override.group.id": "x" }),
      "flows[0].consumer.override.group.id is set by the flow: write group.id there"
    ],
    [
      "a flow's setting in a cluster",
      minimal({ clusters: { ...CLUSTERS, x: { "bootstrap.servers": "a:1", "auto.offset.reset": "latest" } } }),
      "clusters.x.auto.offset.reset is a setting of a flow: write auto.offset.reset there"
    ],
    [
      "one of MirrorMaker 2 that has another name here",
      minimal({}, { "replication.policy.class": "x.Y" }),
      "flows[0].replication.policy.class is not a setting here; write replication.policy: default or identity"
    ],
    [
      "Kerberos",
      minimal({ clusters: { ...CLUSTERS, x: { "bootstrap.servers": "a:1", "sasl.kerberos.service.name": "kafka" } } }),
      "clusters.x.sasl.kerberos.service.name is not supported: there is no Kerberos here; sasl.mechanism takes PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER"
    ]
  ]
  for (const [what, value, line] of cases) {
    it.effect(`${what} is told where it belongs`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual((yield* load(value)).lines, [line])
      }))
  }
})

describe("several mistakes", () => {
  it.effect("are all reported in one run, in the order of the file, each with its line", () =>
    Effect.gen(function*() {
      const { problems } = yield* loadText(`clusters:
  east: { bootstrap.servers: nowhere, request.timeout.ms: soon }
  west: { bootstrap.servers: "b:1" }
consumer.group.protocol: shar
flows:
  - source: eest
    target: west
    tasks.max: many
    topics: ["ok", "("]
    group.id: \${env:MISSING}
  - source: west
    target: west
    transforms: [x]
log: { level: loud }
`)
      assert.deepStrictEqual(problems.map((p) => [p.line, p.path]), [
        [2, "clusters.east.request.timeout.ms"],
        [2, "clusters.east.bootstrap.servers"],
        [4, "consumer.group.protocol"],
        [6, "flows[0].source"],
        [8, "flows[0].tasks.max"],
        [9, "flows[0].topics[1]"],
        [10, "flows[0].group.id"],
        [12, "flows[1].target"],
        [13, "flows[1].transforms.x.type"],
        [14, "log.level"]
      ])
    }))
})

describe("a secret", () => {
  it.effect("is in no message, whatever is wrong with it", () =>
    Effect.gen(function*() {
      const secrets = [...KAFKA_SETTINGS.keys()].filter((name) =>
        /password|jaas|secret|keystore\.key$|key\.pem/.test(name)
      )
      assert.isAbove(secrets.length, 6)
      for (const name of secrets) {
        for (const value of [{ hunter2: "hunter2" }, [["hunter2"]], "hunter2", "${nowhere:hunter2}"]) {
          const { lines } = yield* load(
            minimal({
              clusters: {
                ...CLUSTERS,
                x: {
                  "bootstrap.servers": "a:1",
                  "security.protocol": "SASL_SSL",
                  "sasl.mechanism": "PLAIN",
                  [name]: value
                }
              }
            })
          )
          assert.notInclude(lines.join("\n"), "hunter2", name)
        }
      }
    }))

  it.effect("is not in the message for a file that is no YAML", () =>
    Effect.gen(function*() {
      for (const value of ["*hunter2", "!hunter2 x", "\"\\hunter2\"", "|hunter2"]) {
        const { lines } = yield* loadText(`clusters:\n  east:\n    sasl.password: ${value}\n`)
        assert.strictEqual(lines.length > 0, true, value)
        assert.notInclude(lines.join("\n"), "hunter2", value)
      }
    }))
})
