/**
 * Rights: what is copied of those on the source's topics, what is taken back, and what `check` says of those that the
 * mirror itself lacks. Source and target are one cluster that checks rights; judged by reads of its ACLs.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { allow, authorizer, deny, revoke, type Right, topicRights } from "../kit/acls.ts"
import { createTopics } from "../kit/admin.ts"
import { endOfCheck } from "../kit/failures.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { unique } from "../kit/names.ts"
import { type Config, type Onceover, runOnceover, startOnceover } from "../kit/onceover.ts"
import { until } from "../kit/until.ts"

const PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
const users = ["mirror", "poor"] as const
let kafka: KafkaCluster

beforeAll(async () => {
  kafka = await startCluster({
    name: "control-rights",
    listeners: [{ name: "SASL", protocol: "SASL_PLAINTEXT" }],
    properties: {
      ...authorizer,
      "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
      "listener.name.sasl.plain.sasl.jaas.config": `${PLAIN} required ${
        users.map((user) => `user_${user}="secret"`).join(" ")
      };`
    }
  })
  const mirror: ReadonlyArray<Right> = [
    ["ALL", "TOPIC", "m*"],
    ["ALL", "TOPIC", "east.*"],
    ["ALL", "TOPIC", "__onceover*"],
    ["ALL", "GROUP", "*"],
    ["ALL", "TRANSACTIONAL_ID", "*"],
    ["CREATE", "CLUSTER", "kafka-cluster"],
    ["DESCRIBE", "CLUSTER", "kafka-cluster"],
    ["ALTER", "CLUSTER", "kafka-cluster"],
    ["IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster"]
  ]
  await allow(kafka, "mirror", mirror)
  const poor: ReadonlyArray<Right> = [
    ["READ", "TOPIC", "m*"],
    ["WRITE", "TOPIC", "east.*"],
    ["ALL", "GROUP", "*"],
    ["ALL", "TRANSACTIONAL_ID", "*"],
    ["CREATE", "CLUSTER", "kafka-cluster"],
    ["IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster"]
  ]
  await allow(kafka, "poor", poor)
})
afterAll(() => kafka?.stop())

const login = (user: (typeof users)[number]): Config => ({
  "bootstrap.servers": kafka.listeners["SASL"] as string,
  "security.protocol": "SASL_PLAINTEXT",
  "sasl.mechanism": "PLAIN",
  "sasl.username": user,
  "sasl.password": "secret",
  "default.api.timeout.ms": 10_000
})

const config = (user: (typeof users)[number], flow: Config): Config => ({
  clusters: { east: login(user), west: login(user) },
  flows: [{
    source: "east",
    target: "west",
    "refresh.topics.interval.seconds": 1,
    "sync.topic.acls.interval.seconds": 1,
    "delivery.guarantee": "at-least-once",
    "tasks.max": 1,
    ...flow
  }]
})

const waitFor = (what: string, mirror: Onceover, condition: () => Promise<boolean>): Promise<unknown> =>
  until(condition, { timeoutMs: 60_000, what: () => `${what}; the log ends with\n${mirror.output().slice(-3_000)}` })

describe("rights on topics", () => {
  it("are copied by MirrorMaker's rules without its traps, and taken back when the source revokes them", async () => {
    const topic = unique("m")
    const copy = `east.${topic}`
    const later = `${topic}-later`
    await createTopics(kafka, [{ topic }])
    await allow(kafka, "alice", [["READ", "TOPIC", topic], ["DESCRIBE_CONFIGS", "TOPIC", topic]])
    await allow(kafka, "bob", [["ALL", "TOPIC", topic]])
    await allow(kafka, "carol", [["WRITE", "TOPIC", topic], ["READ", "TOPIC", `${topic}*`], ["READ", "GROUP", topic]])
    await deny(kafka, "dave", [["ALL", "TOPIC", topic]])
    await allow(kafka, "erin", [["READ", "TOPIC", "*"]])
    // On the source it stops writers; on the target it would stop the mirror.
    await deny(kafka, "*", [["WRITE", "TOPIC", topic]])
    await allow(kafka, "frank", [["READ", "TOPIC", copy]])
    const flow = { topics: [topic, later], name: topic, "group.id": topic, "sync.topic.acls.strict": true }
    const of = (name: string) => topicRights(kafka, (one) => one === name)
    const byHand = `ALLOW frank READ LITERAL ${copy}`

    const checked = await endOfCheck(config("mirror", flow))
    assert.strictEqual(checked.code, 0, checked.output)
    assert.match(checked.output, new RegExp(`change +to copy: ALLOW User:bob from \\* to READ topic ${copy}`))
    assert.match(checked.output, /DENY User:\* from \* to WRITE topic .* would lock the mirror out: it is not copied/)
    assert.notMatch(checked.output, /^ *right /m)
    const dry = await startOnceover({ config: config("mirror", { ...flow, "sync.topic.acls.dry.run": true }) })
    try {
      await waitFor("the dry run", dry, async () => dry.output().includes(`dry run: would be copied: ALLOW User:alice`))
      assert.deepStrictEqual(await of(copy), [byHand])
    } finally {
      await dry.dispose()
    }

    const mirror = await startOnceover({ config: config("mirror", flow) })
    try {
      const wanted = [
        `ALLOW alice DESCRIBE_CONFIGS LITERAL ${copy}`,
        `ALLOW alice READ LITERAL ${copy}`,
        `ALLOW bob READ LITERAL ${copy}`,
        `ALLOW erin READ LITERAL ${copy}`,
        byHand,
        `DENY dave ALL LITERAL ${copy}`
      ]
      await waitFor("the rights", mirror, async () => (await of(copy)).length >= wanted.length)
      assert.deepStrictEqual(await of(copy), wanted)
      // A topic that comes later has its rights as soon as it is there.
      await allow(kafka, "gina", [["READ", "TOPIC", later]])
      await createTopics(kafka, [{ topic: later }])
      await waitFor("the later topic's rights", mirror, async () => (await of(`east.${later}`)).length === 2)
      assert.deepStrictEqual(await of(`east.${later}`), [
        `ALLOW erin READ LITERAL east.${later}`,
        `ALLOW gina READ LITERAL east.${later}`
      ])
      await revoke(kafka, "alice", [["READ", "TOPIC", topic]])
      await revoke(kafka, "erin", [["READ", "TOPIC", "*"]])
      await waitFor("what was revoked to be gone", mirror, async () => (await of(copy)).length === wanted.length - 2)
      assert.deepStrictEqual(await of(copy), wanted.filter((right) => !/alice READ|erin/.test(right)))
      const everything = await topicRights(kafka, (name) => name === "*" || name === "east.*")
      assert.deepStrictEqual(everything, [], "no right on * may ever appear on the target")
    } finally {
      await mirror.dispose()
    }
  })

  it("that the mirror lacks are named by check, on the principal, each with what does not work without it", async () => {
    const topic = unique("m")
    await createTopics(kafka, [{ topic }, { topic: `east.${topic}` }])
    const flow = { topics: [topic], name: topic, "group.id": topic, "sync.topic.deletes": true }
    const { code, output } = await runOnceover({ config: config("poor", flow), args: ["check", "--json"] })
    assert.strictEqual(code, 0, output)
    const report = JSON.parse(output.slice(output.indexOf("{"))) as {
      readonly flows: ReadonlyArray<{ readonly rights: ReadonlyArray<Readonly<Record<string, unknown>>> }>
    }
    const named = report.flows[0]?.rights.map(({ cluster, names, operation, principal, resource }) =>
      `${principal} ${operation} ${resource} ${(names as ReadonlyArray<string>).join()} ${cluster}`
    ).toSorted()
    assert.deepStrictEqual(
      named,
      [
        "User:poor ALTER CLUSTER kafka-cluster west",
        `User:poor ALTER TOPIC east.${topic} west`,
        `User:poor ALTER_CONFIGS TOPIC east.${topic} west`,
        `User:poor DELETE TOPIC east.${topic} west`,
        "User:poor DESCRIBE CLUSTER kafka-cluster east",
        "User:poor DESCRIBE CLUSTER kafka-cluster west",
        `User:poor DESCRIBE_CONFIGS TOPIC east.${topic} west`,
        `User:poor DESCRIBE_CONFIGS TOPIC ${topic} east`,
        // The map of offsets and the control topic, which are not there and could be made; and offsets of groups.
        ...["DELETE", "READ", "WRITE"].map((right) => `User:poor ${right} TOPIC __onceover_offsets_${topic} west`),
        ...["READ", "WRITE"].map((right) => `User:poor ${right} TOPIC __onceover_control_${topic} west`),
        `User:poor READ TOPIC east.${topic} west`
      ].toSorted()
    )
    const text = (await endOfCheck(config("poor", flow))).output
    assert.match(
      text,
      new RegExp(`right +User:poor lacks ALTER_CONFIGS on TOPIC east\\.${topic} of "west": settings are not copied`)
    )
  })

  it("that the mirror lacks stop no record, and the task that wants them says which", async () => {
    const topic = unique("m")
    await createTopics(kafka, [{ topic }])
    const flow = { topics: [topic], name: topic, "group.id": topic, "group.protocol": "consumer" }
    const mirror = await startOnceover({ config: config("poor", flow) })
    try {
      const tasks = async () => ((await mirror.status())?.flows[0] as unknown as {
        readonly state: string
        readonly control?: ReadonlyArray<
          { readonly task: string; readonly state: string; readonly reasons: ReadonlyArray<string> }
        >
      } | undefined)
      await waitFor(
        "both tasks to have a problem",
        mirror,
        async () => (await tasks())?.control?.filter(({ state }) => state === "problem").length === 2
      )
      const found = await tasks()
      assert.strictEqual(found?.state, "running")
      assert.match(
        found?.control?.find(({ task }) => task === "acls")?.reasons[0] ?? "",
        /CLUSTER_AUTHORIZATION_FAILED/
      )
      assert.match(
        found?.control?.find(({ task }) => task === "settings")?.reasons[0] ?? "",
        /TOPIC_AUTHORIZATION_FAILED/
      )
    } finally {
      await mirror.dispose()
    }
  })
})
