/** Lines of a MirrorMaker 2 file and what becomes of them. */
import { assert, describe, it } from "@effect/vitest"
import { parse } from "yaml"
import { asYaml } from "../../../src/config/mm2/yaml.ts"
import { BASE, importLines, importText } from "../../kit/mm2File.ts"

const MIRROR = "org.apache.kafka.connect.mirror"

/** Lines beside the base, and the entries of the flow east->west that come of them. */
const FLOW: ReadonlyArray<readonly [lines: ReadonlyArray<string>, flow: Readonly<Record<string, unknown>>]> = [
  [["topics = a.*, b"], { topics: ["a.*", "b"] }],
  [["topics = a", "east->west.topics = b"], { topics: ["b"] }],
  [["topics = x(a,b)y"], { topics: ["x(a|b)y"] }],
  [["topics = x{1,2}"], { topics: ["x{1,2}"] }],
  [["topics.exclude ="], { "topics.exclude": [] }],
  [["topics.blacklist = tmp.*"], { "topics.exclude": ["tmp.*"] }],
  [["topics.blacklist = tmp.*", "topics.exclude = other"], { "topics.exclude": ["other"] }],
  [["config.properties.exclude = retention\\\\.ms"], { "config.properties.exclude": ["retention\\.ms"] }],
  [["tasks.max = 4", "replication.factor = -1"], { "tasks.max": "4", "replication.factor": "-1" }],
  [["replication.policy.class = " + MIRROR + ".IdentityReplicationPolicy"], { "replication.policy": "identity" }],
  [["replication.policy.class = IdentityReplicationPolicy"], { "replication.policy": "identity" }],
  [["replication.policy.class = " + MIRROR + ".DefaultReplicationPolicy", "replication.policy.separator = _"], {
    "replication.policy": "default",
    "replication.policy.separator": "_"
  }],
  [["refresh.topics.interval.seconds = 1000000"], { "refresh.topics.interval.seconds": "86400" }],
  [["refresh.topics.interval.seconds = 30", "refresh.topics.enabled = false"], {
    "refresh.topics.interval.seconds": "86400"
  }],
  [["refresh.groups.interval.seconds = 30", "refresh.groups.enabled = false"], {
    "refresh.groups.interval.seconds": "86400"
  }],
  [["emit.checkpoints.interval.seconds = 0", "replication.policy.internal.topic.separator.enabled = false"], {
    "emit.checkpoints.interval.seconds": "1",
    "replication.policy.internal.topic.separator.enabled": "false"
  }],
  [["west.exactly.once.source.support = enabled"], { "delivery.guarantee": "exactly-once" }],
  [["west.exactly.once.source.support = disabled"], { "delivery.guarantee": "at-least-once" }],
  [["east.exactly.once.source.support = disabled"], {}],
  [["east->west.exactly.once.support = required"], {
    "delivery.guarantee": "exactly-once",
    "exactly.once.fallback": "fail"
  }],
  [["east.consumer.fetch.max.bytes = 1", "east->west.consumer.fetch.max.bytes = 2"], {
    "consumer.override.fetch.max.bytes": "1"
  }],
  [["east.consumer.fetch.max.bytes = 1", "east->west.source.consumer.fetch.max.bytes = 2"], {
    "consumer.override.fetch.max.bytes": "2"
  }],
  [["east->west.consumer.fetch.max.bytes = 2"], { "consumer.override.fetch.max.bytes": "2" }],
  [["west.producer.max.request.size = 1", "east->west.producer.override.max.request.size = 2"], {
    "producer.override.max.request.size": "2"
  }],
  [["west.admin.request.timeout.ms = 1"], { "admin.override.request.timeout.ms": "1" }],
  [["east->west.source.cluster.security.protocol = SSL"], { "consumer.override.security.protocol": "SSL" }],
  [["east->west.target.cluster.security.protocol = SSL"], {
    "producer.override.security.protocol": "SSL",
    "admin.override.security.protocol": "SSL"
  }],
  [["east.consumer.isolation.level = read_committed"], { "consumer.override.isolation.level": "read_committed" }],
  [["east.consumer.isolation.level = read_uncommitted"], {
    "consumer.override.isolation.level": "read_uncommitted",
    "delivery.guarantee": "at-least-once"
  }],
  [["east.consumer.isolation.level = read_uncommitted", "west.exactly.once.source.support = enabled"], {
    "delivery.guarantee": "exactly-once",
    "consumer.override.isolation.level": "read_committed"
  }],
  [["east.consumer.auto.offset.reset = latest"], { "consumer.override.auto.offset.reset": "latest" }],
  [["east->west.group.protocol = share", "east->west.on.source.gap = continue"], {
    "group.protocol": "share",
    "on.source.gap": "continue"
  }],
  [["east->west.transforms = a", "east->west.transforms.a.type = DropHeaders", "errors.tolerance = all"], {
    transforms: "a",
    "transforms.a.type": "DropHeaders",
    "errors.tolerance": "all"
  }]
]

/** Lines that become a note; the note names the last of them. */
const NOTES: ReadonlyArray<readonly [lines: ReadonlyArray<string>, why: RegExp]> = [
  [["offset.storage.replication.factor = 1"], /progress is kept in the group/],
  [["offset.flush.interval.ms = 10000"], /positions are written/],
  [["listeners = http://localhost:8083"], /no REST/],
  [["west.group.id = x"], /no Connect worker/],
  [["west.producer.acks = 1"], /always all/],
  [["west.producer.enable.idempotence = false"], /always true/],
  [["west.producer.compression.type = zstd"], /the codec they have/],
  [["west.producer.max.in.flight.requests.per.connection = 10"], /at most 5/],
  [["west.producer.transactional.id = x"], /transactional ids are set by onceover/],
  [["east.producer.max.request.size = 1"], /offset syncs/],
  [["west.consumer.fetch.max.bytes = 1"], /internal topics on the target/],
  [["east->west.producer.max.request.size = 1"], /offset syncs/],
  [["east.consumer.group.id = x"], /in no group/],
  [["consumer.fetch.max.bytes = 1"], /behind a cluster's alias or a flow's/],
  [["west.replication.factor = 1"], /ignores it behind a cluster's alias/],
  [["key.converter = org.apache.kafka.connect.converters.ByteArrayConverter"], /records pass as bytes/],
  [["topic.filter.class = " + MIRROR + ".DefaultTopicFilter"], /built in/],
  [["errors.tolerance = all"], /blocks its partition/],
  [["east->west.exactly.once.support = requested"], /what is wanted/],
  [["config.providers = vault"], /always understood/],
  [["offset.lag.max = 0"], /known exactly/],
  [["refresh.groups.enabled = true"], /always looked for/]
]

const PROBLEMS: ReadonlyArray<readonly [line: string, problem: RegExp]> = [
  ["east->wset.enabled = true", /^east->wset\.enabled is about a cluster "wset".*did you mean "west"\?$/],
  ["esat.bootstrap.servers = a:1", /^esat\.bootstrap\.servers is not .*did you mean "east\.bootstrap\.servers"\?$/],
  ["repliaction.factor = 1", /^repliaction\.factor is not .*did you mean "replication\.factor"\?$/],
  ["east.sasl.mechanisim = PLAIN", /^east\.sasl\.mechanisim is not .*did you mean "sasl\.mechanism"\?$/],
  ["east->west.sync.topic.acl.enabled = true", /did you mean "sync\.topic\.acls\.enabled"\?$/],
  ["replication.policy.class = com.example.Mine", /no Java class is loaded.*topic\.mapping/],
  ["topic.filter.class = com.example.Mine", /no Java class is loaded.*topics\.exclude/],
  ["east.sasl.kerberos.service.name = kafka", /no Kerberos/],
  ["east.sasl.login.callback.handler.class = com.example.Mine", /no Java class is loaded/]
]

describe("the import of a MirrorMaker 2 file", () => {
  it("makes these settings of a flow", () => {
    for (const [lines, flow] of FLOW) {
      const imported = importLines(...lines)
      assert.deepStrictEqual(imported.problems, [], lines.join("; "))
      assert.deepStrictEqual(imported.flow, flow, lines.join("; "))
    }
  })

  it("says of these why they have no place, and takes nothing from them", () => {
    for (const [lines, why] of NOTES) {
      const { flow, notes, problems } = importLines(...lines)
      assert.deepStrictEqual(problems, [], lines.join("; "))
      assert.deepStrictEqual(flow, {}, lines.join("; "))
      const key = lines.at(-1)?.split(" = ")[0]
      const [note, ...more] = notes.filter(({ from }) => from.key === key)
      assert.match(note?.why ?? "no note", why, lines.join("; "))
      assert.deepStrictEqual(more, [], "said once")
    }
  })

  it("refuses these with the nearest name or the reason", () => {
    for (const [line, wanted] of PROBLEMS) {
      const { problems } = importLines(line)
      assert.lengthOf(problems, 1, line)
      assert.match(problems[0] ?? "", wanted)
    }
  })

  it("hands security at the top to every cluster that does not say its own", () => {
    const { clusters } = importLines("security.protocol = SSL", "east.security.protocol = PLAINTEXT")
    assert.strictEqual(clusters["east"]?.["security.protocol"], "PLAINTEXT")
    assert.strictEqual(clusters["west"]?.["security.protocol"], "SSL")
  })

  it("renames configuration providers, and refuses what needs a class of Java", () => {
    const renamed = importLines(
      "config.providers = vault",
      "config.providers.vault.class = org.apache.kafka.common.config.provider.FileConfigProvider",
      "east.sasl.jaas.config = ${vault:/run/s.properties:jaas} ${env:X} ${nobody:y}"
    )
    assert.deepStrictEqual(renamed.problems, [])
    assert.strictEqual(
      renamed.clusters["east"]?.["sasl.jaas.config"],
      "${file:/run/s.properties:jaas} ${env:X} $${nobody:y}"
    )
    const { problems } = importLines(
      "config.providers = dir",
      "config.providers.dir.class = org.apache.kafka.common.config.provider.DirectoryConfigProvider",
      "east.ssl.key.password = ${dir:/run:key}"
    )
    assert.lengthOf(problems, 1)
    assert.match(problems[0] ?? "", /^east\.ssl\.key\.password needs the configuration provider "dir"/)
  })

  it("reads flows in both directions, those that are off, and aliases that are words or hold dots", () => {
    const { draft } = importText(`clusters = source, eu.west
source.bootstrap.servers = a:1
eu.west.bootstrap.servers = b:1
source->eu.west.enabled = true
source.consumer.fetch.max.bytes = 7
eu.west->source.topics = x
`)
    assert.deepStrictEqual(draft.problems, [])
    const [first, second] = draft.flows
    assert.deepStrictEqual([first?.source, first?.target, second?.source], ["source", "eu.west", "eu.west"])
    assert.strictEqual(first?.section.get("consumer.override.fetch.max.bytes")?.value, "7")
    assert.isFalse(first?.section.has("enabled"))
    assert.strictEqual(second?.section.get("enabled")?.value, "false")
  })

  it("reads a connector's settings as properties and as Connect's JSON", () => {
    const config = {
      "connector.class": MIRROR + ".MirrorSourceConnector",
      "source.cluster.alias": "east",
      "target.cluster.alias": "west",
      "source.cluster.bootstrap.servers": "a:1",
      "target.cluster.bootstrap.servers": "b:1",
      topics: "orders",
      "tasks.max": 3,
      "source.consumer.fetch.max.bytes": "9",
      "producer.override.max.request.size": "8",
      "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"
    }
    const properties = Object.entries(config).map(([key, value]) => `${key}=${value}`).join("\n")
    for (
      const { clusters, flow, problems } of [
        importText(JSON.stringify({ name: "m", config }), "m.json"),
        importText(JSON.stringify(config), "m.json"),
        importText(`name=m\n${properties}`, "m.properties")
      ]
    ) {
      assert.deepStrictEqual(problems, [])
      assert.deepStrictEqual(flow, {
        topics: ["orders"],
        "tasks.max": "3",
        "consumer.override.fetch.max.bytes": "9",
        "producer.override.max.request.size": "8"
      })
      assert.deepStrictEqual(clusters, { east: { "bootstrap.servers": "a:1" }, west: { "bootstrap.servers": "b:1" } })
    }
  })

  it("does by default what MirrorMaker does by default, and nothing that the file switches off", () => {
    const KEYS = [
      "emit.heartbeats.enabled",
      "heartbeats.topic.location",
      "heartbeats.replication.enabled",
      "emit.checkpoints.enabled",
      "emit.offset-syncs.enabled",
      "sync.group.offsets.enabled"
    ]
    const made = (text: string, at = 0) =>
      KEYS.map((key) => importText(text).draft.flows[at]?.section.get(key)?.value ?? "-").join(" ")
    assert.strictEqual(made(BASE), "true both true true true false")
    // Each direction writes its heartbeats on its own target.
    const both = `${BASE}west->east.enabled = true\n`
    assert.deepStrictEqual([made(both), made(both, 1)], Array(2).fill("true - true true true false"))
    assert.strictEqual(made(`${BASE}emit.heartbeats.enabled = false\n`), "false - true true true false")
    assert.strictEqual(made(`${BASE}west->east.emit.heartbeats.enabled = false\n`), "true - true true true false")
    assert.strictEqual(made(`${BASE}east->west.emit.heartbeats.enabled = false\n`), "true source true true true false")
    assert.strictEqual(
      made(`${BASE}heartbeats.replication.enabled = false
emit.checkpoints.enabled = false
emit.offset-syncs.enabled = false
sync.group.offsets.enabled = true
heartbeats.topic.location = target
`),
      "true target false false false true"
    )
    const connector = `connector.class=${MIRROR}.MirrorSourceConnector
source.cluster.alias=east
target.cluster.alias=west
source.cluster.bootstrap.servers=a:1
target.cluster.bootstrap.servers=b:1
`
    assert.strictEqual(made(connector), "- - true - true false")
  })

  it("refuses a connector that mirrors no records, and says where its work is switched on", () => {
    for (const type of ["MirrorCheckpointConnector", "MirrorHeartbeatConnector"]) {
      const { problems } = importText(`connector.class=${MIRROR}.${type}\nsource.cluster.alias=east\n`)
      assert.lengthOf(problems, 1)
      assert.match(problems[0] ?? "", /^connector\.class is .*mirrors no records.*emit\.checkpoints\.enabled/)
    }
  })

  it("that has no clusters, or switches nothing on, says what is missing", () => {
    assert.match(importText("a.bootstrap.servers = x:1\n").problems.join(), /^clusters is missing/)
    assert.match(importText(BASE.replace("true", "false")).problems.join(), /east->west\.enabled = true/)
  })
})

describe("the text of an import", () => {
  const lines = [
    "west.sasl.jaas.config = login required password=\"a#b\";",
    "east->west.topics = orders, pay.*",
    "tasks.max = 8",
    "listeners = http://:8083",
    "west.ssl.key.password = 0123",
    "http.listen = 127.0.0.1:0"
  ]

  it("is YAML that says the same, numbers as numbers and passwords as text", () => {
    const { draft } = importLines(...lines)
    assert.deepStrictEqual(parse(asYaml(draft, "mm2.properties")), {
      clusters: {
        east: { "bootstrap.servers": "127.0.0.1:19092" },
        west: {
          "bootstrap.servers": "127.0.0.1:29092",
          "sasl.jaas.config": "login required password=\"a#b\";",
          "ssl.key.password": "0123"
        }
      },
      flows: [{
        source: "east",
        target: "west",
        topics: ["orders", "pay.*"],
        "group.protocol": "consumer",
        "tasks.max": 8,
        "emit.checkpoints.enabled": true,
        "emit.heartbeats.enabled": true,
        "emit.offset-syncs.enabled": true,
        "heartbeats.replication.enabled": true,
        "heartbeats.topic.location": "both",
        "sync.group.offsets.enabled": false
      }],
      http: { listen: "127.0.0.1:0" }
    })
  })

  it("says in comments what has no place, with its line, and marks secrets in clear text", () => {
    const yaml = asYaml(importLines(...lines).draft, "mm2.properties")
    assert.match(yaml, /^# - listeners \(line 8\): processes need no REST/m)
    assert.strictEqual(yaml.match(/A secret in clear text/g)?.length, 2)
    assert.match(yaml, /# As MirrorMaker: the order within a partition is kept/)
  })
})
