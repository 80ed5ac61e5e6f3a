/** A principal that lacks a right: the line names the right's error and the resource; where one topic is concerned, the others go on. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { allow, authorizer, deny, type Right, undeny } from "../kit/acls.ts"
import { createTopics, listTopics } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { assertBothSay, endOfCheck } from "../kit/failures.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { type Config, type FlowState, type Onceover, startOnceover } from "../kit/onceover.ts"
import { unique } from "../kit/names.ts"
import { until } from "../kit/until.ts"

const PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
const users = ["mirror", "nogroup", "noread", "nowrite", "nocreate"] as const
type User = (typeof users)[number]
const password = (user: User): string => `${user}-secret`

/** Source and target are one cluster here: what matters is who may do what. */
let kafka: KafkaCluster

beforeAll(async () => {
  kafka = await startCluster({
    name: "rights",
    listeners: [{ name: "SASL", protocol: "SASL_PLAINTEXT" }],
    properties: {
      ...authorizer,
      "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
      "listener.name.sasl.plain.sasl.jaas.config": `${PLAIN} required ${
        users.map((user) => `user_${user}="${password(user)}"`).join(" ")
      };`
    }
  })
  const everything: ReadonlyArray<Right> = [
    ["ALL", "TOPIC", "*"],
    ["ALL", "GROUP", "*"],
    ["ALL", "TRANSACTIONAL_ID", "*"],
    ["CREATE", "CLUSTER", "kafka-cluster"],
    ["DESCRIBE", "CLUSTER", "kafka-cluster"],
    ["IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster"],
    ["DESCRIBE_CONFIGS", "CLUSTER", "kafka-cluster"]
  ]
  for (const user of users) await allow(kafka, user, everything)
})
afterAll(() => kafka?.stop())

const login = (user: User, secret = password(user)): Config => ({
  "bootstrap.servers": kafka.listeners["SASL"] as string,
  "security.protocol": "SASL_PLAINTEXT",
  "sasl.mechanism": "PLAIN",
  "sasl.username": user,
  "sasl.password": secret,
  "default.api.timeout.ms": 10_000
})

const config = (east: Config, west: Config, flow: Config): Config => ({
  clusters: { east, west },
  flows: [{
    source: "east",
    target: "west",
    "refresh.topics.interval.seconds": 1,
    "delivery.guarantee": "at-least-once",
    "group.id": unique("g"),
    ...flow
  }]
})

/** Two topics with ten records each. */
const twoTopics = async (): Promise<readonly [string, string]> => {
  const [one, two] = [unique("one"), unique("two")]
  await createTopics(kafka, [{ topic: one }, { topic: two }])
  await load(kafka, [...makeRecords({ topic: one, count: 10 }), ...makeRecords({ topic: two, count: 10 })])
  return [one, two]
}

const flowOf = async (mirror: Onceover): Promise<FlowState | undefined> => (await mirror.status())?.flows[0]
const arrived = async (topic: string): Promise<number> =>
  (await listTopics(kafka)).has(topic) ? (await readTopics(kafka, [topic])).length : 0

const waitFor = (what: string, mirror: Onceover, condition: () => Promise<boolean>): Promise<unknown> =>
  until(condition, { timeoutMs: 60_000, what: () => `${what}; the log ends with\n${mirror.output().slice(-3_000)}` })

/** The flow would run, without one topic: a warning, exit code 0, and nothing is created. */
const checkWarns = async (settings: Config, words: RegExp): Promise<void> => {
  const before = await listTopics(kafka)
  const { code, output } = await endOfCheck(settings)
  assert.strictEqual(code, 0, output)
  assert.match(output, words)
  assert.deepStrictEqual(await listTopics(kafka), before)
}

describe("a principal that may not", () => {
  it("log in: the wrong password is in no line", async () => {
    for (const end of ["east", "west"] as const) {
      const wrong = login("mirror", "a-wrong-secret")
      const clusters = { east: login("mirror"), west: login("mirror"), [end]: wrong }
      const settings = config(clusters.east, clusters.west, { topics: ["x"] })
      await assertBothSay(
        settings,
        new RegExp(`"${end}" cannot be used: .*SASL PLAIN authentication (?!.*a-wrong-secret)`)
      )
    }
  })

  for (const mode of ["share", "consumer"] as const) {
    it(`read with the group (${mode}): the program ends with the group's name`, async () => {
      const [one] = await twoTopics()
      const groupId = unique("closed")
      await deny(kafka, "nogroup", [["READ", "GROUP", groupId]])
      const settings = config(login("nogroup"), login("mirror"), {
        topics: [one],
        "group.protocol": mode,
        "group.id": groupId,
        "tasks.max": 1
      })
      await assertBothSay(settings, new RegExp(`group ${groupId}: the principal may not READ the group`))
    })

    it(`read one topic (${mode}): it is blocked with the reason, the other goes on, and it follows when the right is there`, async () => {
      const [closed, open] = await twoTopics()
      await deny(kafka, "noread", [["READ", "TOPIC", closed]])
      const settings = config(login("noread"), login("mirror"), { topics: [closed, open], "group.protocol": mode })
      await checkWarns(
        settings,
        new RegExp(`topic ${closed} could not be read: the principal may not READ it on "east"`)
      )
      const mirror = await startOnceover({ config: settings })
      try {
        await waitFor("the open topic", mirror, async () => await arrived(`east.${open}`) === 10)
        await waitFor(
          "the closed topic to be blocked",
          mirror,
          async () => (await flowOf(mirror))?.partitions.find(({ topic }) => topic === closed)?.state === "blocked"
        )
        const flow = await flowOf(mirror)
        assert.strictEqual(flow?.state, "blocked")
        assert.match(
          flow?.reason ?? "",
          new RegExp(`${closed}-0: cannot be read from the source: .*TOPIC_AUTHORIZATION_FAILED`)
        )
        assert.strictEqual(flow?.partitions.find(({ topic }) => topic === open)?.state, "running")
        await undeny(kafka, "noread", [["READ", "TOPIC", closed]])
        await waitFor("the topic that was closed", mirror, async () => await arrived(`east.${closed}`) === 10)
        await waitFor("the flow to run again", mirror, async () => (await flowOf(mirror))?.state === "running")
      } finally {
        await mirror.dispose()
      }
    })
  }

  it("write one target topic: it is blocked with the reason, the other goes on, and it follows when the right is there", async () => {
    const [closed, open] = await twoTopics()
    await deny(kafka, "nowrite", [["WRITE", "TOPIC", `east.${closed}`]])
    await createTopics(kafka, [{ topic: `east.${closed}` }])
    const settings = config(login("mirror"), login("nowrite"), { topics: [closed, open] })
    await checkWarns(
      settings,
      new RegExp(`topic east\\.${closed} could not be written: the principal may not WRITE it on "west"`)
    )
    const mirror = await startOnceover({ config: settings })
    try {
      await waitFor("the open topic", mirror, async () => await arrived(`east.${open}`) === 10)
      await waitFor(
        "the closed topic to be blocked",
        mirror,
        async () => (await flowOf(mirror))?.partitions.find(({ topic }) => topic === closed)?.state === "blocked"
      )
      const reason = (await flowOf(mirror))?.partitions.find(({ topic }) => topic === closed)?.reason ?? ""
      assert.match(reason, new RegExp(`east\\.${closed}-0 takes no records: TOPIC_AUTHORIZATION_FAILED`))
      await undeny(kafka, "nowrite", [["WRITE", "TOPIC", `east.${closed}`]])
      await waitFor("the topic that was closed", mirror, async () => await arrived(`east.${closed}`) === 10)
    } finally {
      await mirror.dispose()
    }
  })

  it("create one target topic: it is left out with the reason, the other goes on, and it follows when the right is there", async () => {
    const [closed, open] = await twoTopics()
    await createTopics(kafka, [{ topic: `east.${open}` }])
    await deny(kafka, "nocreate", [["CREATE", "CLUSTER", "kafka-cluster"], ["CREATE", "TOPIC", `east.${closed}`]])
    const settings = config(login("mirror"), login("nocreate"), { topics: [closed, open] })
    await checkWarns(
      settings,
      new RegExp(`topic east\\.${closed} could not be created on "west": .*AUTHORIZATION_FAILED`)
    )
    const mirror = await startOnceover({ config: settings })
    try {
      await waitFor("the open topic", mirror, async () => await arrived(`east.${open}`) === 10)
      const flow = await flowOf(mirror)
      assert.strictEqual(flow?.state, "blocked")
      assert.match(flow?.reason ?? "", new RegExp(`1 topics? cannot be mirrored: ${closed}: .*AUTHORIZATION_FAILED`))
      await undeny(kafka, "nocreate", [["CREATE", "CLUSTER", "kafka-cluster"], ["CREATE", "TOPIC", `east.${closed}`]])
      await waitFor("the topic that could not be made", mirror, async () => await arrived(`east.${closed}`) === 10)
    } finally {
      await mirror.dispose()
    }
  })

  it("set what a share group needs: check and run say which setting, and what may happen", async () => {
    const [one] = await twoTopics()
    const groupId = unique("pinned")
    await deny(kafka, "nogroup", [["ALTER_CONFIGS", "GROUP", groupId]])
    const { code, output } = await endOfCheck(
      config(login("nogroup"), login("mirror"), { topics: [one], "group.id": groupId })
    )
    assert.strictEqual(code, 0, output)
    assert.match(
      output,
      new RegExp(`warning +group ${groupId}: share\\.auto\\.offset\\.reset cannot be set .*may never be mirrored`)
    )
  })
})
