/**
 * The least rights of docs/security.md: two principals that have exactly these run a flow with everything that is on by
 * default, and `check` names each of them that is missing. Source and target are one cluster that checks rights.
 */
import { Effect } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { checkService } from "../../src/mirror/check.ts"
import { rightSentence } from "../../src/mirror/control/missingRights.ts"
import { allow, authorizer, type Right } from "../kit/acls.ts"
import { createTopics, listTopics } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { load as loadConfig } from "../kit/configFile.ts"
import { committedOffsets, commitOffsets } from "../kit/groups.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { unique } from "../kit/names.ts"
import { type Config, parseLogs, startOnceover } from "../kit/onceover.ts"
import { until } from "../kit/until.ts"

const app = unique("app")
/** One flow that has run; one that has not, so that everything of it is still to be created. */
const [ran, fresh] = [unique("ran"), unique("fresh")]

const CLUSTER = "kafka-cluster"
/** READ, WRITE, DELETE and ALTER bring DESCRIBE with them, ALTER_CONFIGS brings DESCRIBE_CONFIGS. */
const ofSource = (flow: string): ReadonlyArray<Right> => [
  ["READ", "TOPIC", flow],
  ["DESCRIBE_CONFIGS", "TOPIC", flow],
  ["READ", "GROUP", `g-${flow}`],
  ["ALTER_CONFIGS", "GROUP", `g-${flow}`]
]
const ofTarget = (flow: string): ReadonlyArray<Right> => [
  ...(["CREATE", "WRITE", "READ", "ALTER", "ALTER_CONFIGS"] as const).map(
    (operation): Right => [operation, "TOPIC", `east.${flow}`]
  ),
  ...(["CREATE", "READ", "WRITE", "DELETE", "ALTER_CONFIGS"] as const).map(
    (operation): Right => [operation, "TOPIC", `__onceover_ledger_${flow}`]
  ),
  ...(["CREATE", "READ", "WRITE", "DELETE"] as const).map(
    (operation): Right => [operation, "TOPIC", `__onceover_offsets_${flow}`]
  ),
  ...(["CREATE", "READ", "WRITE"] as const).map(
    (operation): Right => [operation, "TOPIC", `__onceover_control_${flow}`]
  ),
  ["READ", "GROUP", `__onceover_control_${flow}`]
]
const sourceRights: ReadonlyArray<Right> = [
  ...ofSource(ran),
  ...ofSource(fresh),
  ["DESCRIBE", "GROUP", app],
  ["DESCRIBE", "CLUSTER", CLUSTER]
]
const targetRights: ReadonlyArray<Right> = [
  ...ofTarget(ran),
  ...ofTarget(fresh),
  ["WRITE", "TRANSACTIONAL_ID", "onceover.*"],
  ["READ", "GROUP", app],
  ["ALTER", "CLUSTER", CLUSTER]
]

interface Lacking {
  readonly right: Right
  readonly east: string
  readonly west: string
}
/** What is there needs no right to be created, and what is not there is not looked at further. */
const matters = ([operation, , name]: Right): boolean =>
  operation === "CREATE" ? name.includes(fresh) : !name.includes(fresh)
/** A principal for each right, which has all but that. */
const lacking: ReadonlyArray<Lacking> = [
  ...sourceRights.filter(matters).map((right, n): Lacking => ({ right, east: `s${n}`, west: "target" })),
  ...targetRights.filter(matters).map((right, n): Lacking => ({ right, east: "source", west: `t${n}` }))
]

let kafka: KafkaCluster
const login = (user: string): Config => ({
  "bootstrap.servers": kafka.listeners["SASL"] as string,
  "security.protocol": "SASL_PLAINTEXT",
  "sasl.mechanism": "PLAIN",
  "sasl.username": user,
  "sasl.password": "secret"
})
const flow = (name: string): Config => ({
  source: "east",
  target: "west",
  name,
  topics: [name],
  "group.id": `g-${name}`,
  groups: [app],
  "tasks.max": 1,
  "refresh.topics.interval.seconds": 1,
  "sync.group.offsets.interval.seconds": 1
})
const config = (east: string, west: string, flows: ReadonlyArray<string>): Config => ({
  clusters: { east: login(east), west: login(west) },
  flows: flows.map(flow)
})

/** Everything that `check` has to say beside what it would do. */
const complaints = async (
  east: string,
  west: string,
  names: ReadonlyArray<string>
): Promise<ReadonlyArray<string>> => {
  const { config: loaded, lines } = await Effect.runPromise(loadConfig(config(east, west, names)))
  if (loaded === null) throw new Error(lines.join("\n"))
  const { flows } = await Effect.runPromise(checkService(loaded))
  return flows.flatMap(({ guarantee, problems, rights, warnings }) => [
    ...problems,
    ...guarantee.reasons.filter((reason) => !reason.startsWith("kip-1289")),
    ...warnings.filter((warning) => !/would be set from/.test(warning)),
    ...rights.map(rightSentence)
  ])
}

beforeAll(async () => {
  const users = ["source", "target", ...lacking.flatMap(({ east, west }) => [east, west])]
  kafka = await startCluster({
    name: "least-rights",
    listeners: [{ name: "SASL", protocol: "SASL_PLAINTEXT" }],
    properties: {
      ...authorizer,
      "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
      "listener.name.sasl.plain.sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required ${
        [...new Set(users)].map((user) => `user_${user}="secret"`).join(" ")
      };`
    }
  })
  await allow(kafka, "source", sourceRights)
  await allow(kafka, "target", targetRights)
  for (const { east, right, west } of lacking) {
    const [user, all] = east === "source" ? [west, targetRights] : [east, sourceRights]
    await allow(kafka, user, all.filter((one) => one !== right))
  }
  await createTopics(kafka, [{ topic: ran, partitions: 2 }, { topic: fresh }])
  await load(kafka, makeRecords({ topic: ran, count: 20, partitions: 2 }))
  await commitOffsets(kafka, app, [{ topic: ran, partition: 0, offset: 4 }])
}, 120_000)
afterAll(() => kafka?.stop())

describe("the least rights", () => {
  it("let a flow do all that is on by default, exactly once, and check has nothing to say", async () => {
    const mirror = await startOnceover({ config: config("source", "target", [ran]) })
    try {
      const place = { topic: `east.${ran}`, partition: 0 }
      const tail = () => mirror.output().slice(-3_000)
      await until(
        async () =>
          (await listTopics(kafka)).has(place.topic) && (await readTopics(kafka, [place.topic])).length === 20 &&
          (await committedOffsets(kafka, app, [place])).size === 1,
        { timeoutMs: 60_000, what: () => `records and offsets on the target\n${tail()}` }
      )
      const state = async () => (await mirror.status())?.flows[0]
      await until(
        async () => {
          const control = (await state())?.control ?? []
          return ["settings", "acls", "groups"].every((task) =>
            control.some((one) => one.task === task && one.state === "ok")
          )
        },
        { timeoutMs: 30_000, what: () => `the control tasks\n${tail()}` }
      )
      assert.strictEqual((await state())?.guarantee.effective, "exactly-once")
      const bad = parseLogs(mirror.output()).filter(({ level = 0 }) => level > 30).map(({ msg }) => msg)
      assert.deepStrictEqual(bad, [])
    } finally {
      await mirror.dispose()
    }
    assert.deepStrictEqual(await complaints("source", "target", [ran, fresh]), [])
  })

  it("are each named by check where it is missing", async () => {
    const silent: Array<string> = []
    // Four at a time: each has two clusters to connect to, and there may be two processors.
    const queue = [...lacking]
    await Promise.all(Array.from({ length: 4 }, async () => {
      for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
        const [operation, , name] = one.right
        const said = await complaints(one.east, one.west, [name.includes(fresh) ? fresh : ran])
        const word = operation.toLowerCase().replaceAll("_", "[ _]")
        if (!said.some((line) => new RegExp(word, "i").test(line) && line.includes(name.replace(/\*$/, "")))) {
          silent.push(`${one.right.join(" ")}: ${said.join(" | ")}`)
        }
      }
    }))
    assert.deepStrictEqual(silent, [])
  })
})
