/**
 * The least rights of docs/security.md: principals that have exactly these run two flows, one with everything that is on
 * by default and one with everything that can be switched on, and `check` names each of them that is missing. Source
 * and target are one cluster that checks rights.
 */
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { ResolvedConfig } from "../../src/config/types.ts"
import { checkService } from "../../src/mirror/check.ts"
import { positionsOf } from "../../src/mirror/control/groupPositions.ts"
import { moveGroup } from "../../src/mirror/control/groups.ts"
import { rightSentence } from "../../src/mirror/control/missingRights.ts"
import { takeMm2Positions } from "../../src/mirror/mm2Positions.ts"
import { offsetsOf, type OffsetsQuestion } from "../../src/mirror/offsetsService.ts"
import { verifyService } from "../../src/mirror/verify/verify.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { allow, authorizer, type Right } from "../kit/acls.ts"
import { createTopics, deleteTopics, endOffsets, listTopics } from "../kit/admin.ts"
import { load as loadConfig } from "../kit/configFile.ts"
import { committedOffsets, commitOffsets } from "../kit/groups.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { unique } from "../kit/names.ts"
import { type Config, type Onceover, parseLogs, startOnceover } from "../kit/onceover.ts"
import { until } from "../kit/until.ts"

interface Flow {
  /** Of the flow and of its topic. */
  readonly name: string
  /** Aliases: they are in the names of topics. */
  readonly ends: readonly [source: string, target: string]
  readonly settings: Config
  readonly source: ReadonlyArray<Right>
  readonly target: ReadonlyArray<Right>
  /** Of the target, too: that of topics which only records name. */
  readonly unseen?: ReadonlyArray<Right>
}

const CLUSTER = "kafka-cluster"
const [app, queue] = [unique("app"), unique("queue")]
const [letters, side, gone] = [unique("letters"), unique("side"), unique("gone")]
const folder = mkdtempSync(join(tmpdir(), "onceover-rights-"))
const path = join(folder, "pick.mjs")
/** One record cannot be mirrored, another one names a topic of its own. */
const MODULE = `
export const transform = (record) => {
  if (record.offset === 3) throw new TypeError("not this one")
  return record.offset === 4 ? { ...record, topic: "${side}" } : record
}
`

const on = (topic: string, ...operations: ReadonlyArray<Right[0]>): ReadonlyArray<Right> =>
  operations.map((operation): Right => [operation, "TOPIC", topic])
/** READ, WRITE, DELETE and ALTER bring DESCRIBE with them, ALTER_CONFIGS brings DESCRIBE_CONFIGS. */
const ownTopics = (flow: string): ReadonlyArray<Right> => [
  ...on(`__onceover_ledger_${flow}`, "CREATE", "READ", "WRITE", "DELETE", "ALTER_CONFIGS"),
  ...on(`__onceover_offsets_${flow}`, "CREATE", "READ", "WRITE", "DELETE"),
  ...on(`__onceover_control_${flow}`, "CREATE", "READ", "WRITE"),
  ["READ", "GROUP", `__onceover_control_${flow}`],
  ["WRITE", "TRANSACTIONAL_ID", "onceover.*"]
]

const byDefault: Flow = (() => {
  const name = unique("plain")
  return {
    name,
    ends: ["east", "west"],
    settings: {},
    source: [
      ...on(name, "READ", "DESCRIBE_CONFIGS"),
      ["READ", "GROUP", `g-${name}`],
      ["ALTER_CONFIGS", "GROUP", `g-${name}`],
      ["DESCRIBE", "GROUP", app],
      ["DESCRIBE", "CLUSTER", CLUSTER]
    ],
    target: [
      ...on(`east.${name}`, "CREATE", "WRITE", "READ", "ALTER", "ALTER_CONFIGS"),
      ...ownTopics(name),
      ["READ", "GROUP", app],
      ["ALTER", "CLUSTER", CLUSTER]
    ]
  }
})()

/** Without rights (sync.topic.acls.enabled), so that nothing of the cluster is needed on either side. */
const withAll: Flow = (() => {
  const name = unique("rich")
  return {
    name,
    ends: ["north", "south"],
    settings: {
      topics: [name, gone],
      groups: [app, queue],
      "group.protocol": "consumer",
      "sync.topic.acls.enabled": false,
      "sync.topic.deletes": true,
      "emit.heartbeats.enabled": true,
      "heartbeats.topic.location": "both",
      "emit.checkpoints.enabled": true,
      "emit.checkpoints.interval.seconds": 1,
      "emit.offset-syncs.enabled": true,
      "errors.deadletterqueue.topic.name": letters,
      transforms: "pick",
      "transforms.pick.type": "module",
      "transforms.pick.path": path
    },
    source: [
      ...on(name, "READ", "DESCRIBE_CONFIGS"),
      ...on(gone, "READ", "DESCRIBE_CONFIGS"),
      ["READ", "GROUP", `g-${name}`],
      ["DESCRIBE", "GROUP", app],
      ["DESCRIBE", "GROUP", queue],
      ...on("heartbeats", "CREATE", "WRITE"),
      ...on("mm2-offset-syncs.south.internal", "CREATE", "WRITE")
    ],
    target: [
      ...on(`north.${name}`, "CREATE", "WRITE", "READ", "ALTER", "ALTER_CONFIGS", "DELETE"),
      ...ownTopics(name),
      ["READ", "GROUP", app],
      ["READ", "GROUP", queue],
      ...on("heartbeats", "CREATE", "WRITE"),
      ...on("north.checkpoints.internal", "CREATE", "WRITE"),
      ...on(letters, "CREATE", "WRITE")
    ],
    unseen: [
      // READ: who commits an offset must be allowed to read.
      ...on(side, "CREATE", "WRITE", "READ"),
      ...on(`north.${gone}`, "CREATE", "WRITE", "READ", "ALTER", "ALTER_CONFIGS", "DELETE")
    ]
  }
})()

const flows = [byDefault, withAll]
const userOf = (flow: Flow, end: "source" | "target"): string => `${flow.name}-${end}`
const all = (flow: Flow, end: "source" | "target"): ReadonlyArray<Right> =>
  end === "source" ? flow.source : [...flow.target, ...flow.unseen ?? []]

/** A principal for each right, which has all but that. */
interface Lacking {
  readonly flow: Flow
  readonly end: "source" | "target"
  readonly right: Right
  readonly user: string
}
const lacking: ReadonlyArray<Lacking> = flows.flatMap((flow) =>
  (["source", "target"] as const).flatMap((end) =>
    flow[end]
      // What becomes of a topic that is deleted is the same for each.
      .filter(([, , name]) => name !== gone)
      .map((right, n): Lacking => ({ flow, end, right, user: `${userOf(flow, end)}-${n}` }))
  )
)
/** Goes home: its offsets are written on the source. */
const home = "goes-home"
/** Takes over from MirrorMaker 2, and has nothing beside what that needs. */
const took = { name: unique("took"), source: "took-source", target: "took-target", blind: "took-blind" }
const positions = "mm2-offsets.north.internal"

let kafka: KafkaCluster
const login = (user: string): Config => ({
  "bootstrap.servers": kafka.listeners["SASL"] as string,
  "security.protocol": "SASL_PLAINTEXT",
  "sasl.mechanism": "PLAIN",
  "sasl.username": user,
  "sasl.password": "secret"
})

interface Users {
  readonly source?: string
  readonly target?: string
}
/** Each flow with its own principals, or with others. */
const config = (run: ReadonlyArray<Flow>, users: Users = {}): Config => ({
  clusters: Object.fromEntries(run.flatMap((flow) =>
    flow.ends.map((alias, n) => {
      const end = n === 0 ? "source" : "target"
      return [alias, login(users[end] ?? userOf(flow, end))]
    })
  )),
  flows: run.map(({ ends: [source, target], name, settings }) => ({
    source,
    target,
    name,
    topics: [name],
    "group.id": `g-${name}`,
    groups: [app],
    "tasks.max": 1,
    "refresh.topics.interval.seconds": 1,
    "sync.group.offsets.interval.seconds": 1,
    ...settings
  }))
})

const resolved = async (flow: Flow, users: Users = {}): Promise<ResolvedConfig> => {
  const { config: loaded, lines } = await Effect.runPromise(loadConfig(config([flow], users)))
  if (loaded === null) throw new Error(lines.join("\n"))
  return loaded
}

/** Everything that `check` has to say beside what it would do. */
const complaints = async (flow: Flow, users: Users = {}): Promise<ReadonlyArray<string>> => {
  const { flows: checked } = await Effect.runPromise(checkService(await resolved(flow, users)))
  return checked.flatMap(({ guarantee, problems, rights, warnings }) => [
    ...problems,
    ...guarantee.reasons.filter((reason) => !reason.startsWith("kip-1289")),
    ...warnings.filter((warning) => !/would be set from/.test(warning)),
    ...rights.map(rightSentence)
  ])
}

/** Those of which `check` does not say what is missing. */
const silentOn = async (cases: ReadonlyArray<Lacking>): Promise<ReadonlyArray<string>> => {
  const silent: Array<string> = []
  // Four at a time: each has two clusters to connect to, and there may be two processors.
  const open = [...cases]
  await Promise.all(Array.from({ length: 4 }, async () => {
    for (let one = open.shift(); one !== undefined; one = open.shift()) {
      const [operation, , name] = one.right
      const said = await complaints(one.flow, { [one.end]: one.user })
      const word = operation.toLowerCase().replaceAll("_", "[ _]")
      if (!said.some((line) => new RegExp(word, "i").test(line) && line.includes(name.replace(/\*$/, "")))) {
        silent.push(`${one.end} ${one.right.join(" ")}: ${said.join(" | ")}`)
      }
    }
  }))
  return silent
}
const creates = ({ right: [operation] }: Lacking): boolean => operation === "CREATE"

const asAdmin = <A, E>(use: (cluster: Cluster) => Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(Effect.flatMap(makeCluster("kit", { "bootstrap.servers": kafka.bootstrap }), use))
  )

beforeAll(async () => {
  writeFileSync(path, MODULE)
  const principals: Array<readonly [user: string, rights: ReadonlyArray<Right>]> = [
    ...flows.flatMap((flow) =>
      (["source", "target"] as const).map((end) => [userOf(flow, end), all(flow, end)] as const)
    ),
    ...lacking.map(({ end, flow, right, user }) => [user, all(flow, end).filter((one) => one !== right)] as const),
    [home, [...byDefault.source, ["READ", "GROUP", app]]],
    [took.source, [["READ", "TOPIC", withAll.name], ["READ", "GROUP", `g-${took.name}`]]],
    [took.target, [["READ", "TOPIC", positions], ["DESCRIBE", "GROUP", "north-mm2"]]],
    [took.blind, [["READ", "TOPIC", positions]]]
  ]
  kafka = await startCluster({
    name: "least-rights",
    listeners: [{ name: "SASL", protocol: "SASL_PLAINTEXT" }],
    properties: {
      ...authorizer,
      "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
      "listener.name.sasl.plain.sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required ${
        principals.map(([user]) => `user_${user}="secret"`).join(" ")
      };`
    }
  })
  for (let at = 0; at < principals.length; at += 8) {
    await Promise.all(principals.slice(at, at + 8).map(([user, rights]) => allow(kafka, user, rights)))
  }
  await createTopics(kafka, [{ topic: byDefault.name, partitions: 2 }, { topic: withAll.name }, { topic: gone }])
  await load(kafka, makeRecords({ topic: byDefault.name, count: 20, partitions: 2 }))
  await load(kafka, makeRecords({ topic: withAll.name, count: 20 }))
  await load(kafka, makeRecords({ topic: gone, count: 1 }))
  await commitOffsets(kafka, app, [
    { topic: byDefault.name, partition: 0, offset: 4 },
    { topic: withAll.name, partition: 0, offset: 12 }
  ])
  const at = { topic: withAll.name, partition: 0, offset: 12, metadata: "" }
  await asAdmin((cluster) => moveGroup(cluster, queue, "share", [at]))
}, 120_000)
afterAll(async () => {
  await kafka?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** What is said of what the test does, and of groups before their topic is there. */
const TOLD = /sync\.topic\.deletes|went to the dead-letter topic: not this one|the target has no such partition yet/

/** Whether a topic is there and has so many offsets. */
const holds = async (topic: string, count: number): Promise<boolean> =>
  (await listTopics(kafka)).has(topic) && (await endOffsets(kafka, topic)).reduce((sum, end) => sum + end, 0) >= count

const untilAllIsDone = async (mirror: Onceover): Promise<void> => {
  const tail = () => mirror.output().slice(-3_000)
  const copies = [
    [`east.${byDefault.name}`, 20],
    [`north.${withAll.name}`, 18],
    [`north.${gone}`, 1],
    [letters, 1],
    [side, 1],
    ["heartbeats", 2],
    ["north.checkpoints.internal", 1],
    ["mm2-offset-syncs.south.internal", 1]
  ] as const
  for (const [topic, count] of copies) {
    await until(() => holds(topic, count), { timeoutMs: 60_000, what: () => `${count} offsets in ${topic}\n${tail()}` })
  }
  await until(async () =>
    (await committedOffsets(kafka, app, [
      { topic: `east.${byDefault.name}`, partition: 0 },
      { topic: `north.${withAll.name}`, partition: 0 }
    ])).size === 2, { timeoutMs: 30_000, what: () => `the offsets of ${app}\n${tail()}` })
  const ofQueue = () => asAdmin((cluster) => positionsOf(cluster, queue, "share"))
  await until(async () => (await ofQueue()).has(`north.${withAll.name}-0`), {
    timeoutMs: 30_000,
    what: () => `the offsets of ${queue}\n${tail()}`
  })
  await deleteTopics(kafka, [gone])
  await until(async () => !(await listTopics(kafka)).has(`north.${gone}`), {
    timeoutMs: 30_000,
    what: () => `north.${gone} to be deleted\n${tail()}`
  })
}

describe("the least rights", () => {
  it("to create what is not there yet are named by check where one is missing, and suffice where none is", async () => {
    for (const flow of flows) assert.deepStrictEqual(await complaints(flow), [])
    assert.deepStrictEqual(await silentOn(lacking.filter(creates)), [])
  })

  it("let flows do all that is on by default and all that can be switched on, exactly once, and check has nothing to say", async () => {
    const mirror = await startOnceover({ config: config(flows) })
    try {
      await untilAllIsDone(mirror)
      const states = async () => (await mirror.status())?.flows ?? []
      let tasks: ReadonlyArray<string> = []
      const wanted = ["settings", "acls", "groups", "deletes", "heartbeats", "checkpoints", "offset-syncs"]
      await until(async () => {
        tasks = (await states()).flatMap(({ control = [] }) =>
          control.map(({ reasons, state, task }) => [task, state, ...reasons].join(" "))
        )
        return wanted.every((task) => tasks.includes(`${task} ok`)) && tasks.every((one) => one.endsWith(" ok"))
      }, { timeoutMs: 30_000, what: () => `the control tasks: ${tasks.join("; ")}` })
      assert.deepStrictEqual((await states()).map(({ guarantee }) => guarantee.effective), [
        "exactly-once",
        "exactly-once"
      ])
      const bad = parseLogs(mirror.output()).filter(({ level = 0 }) => level > 30).map(({ msg = "" }) => msg)
      assert.deepStrictEqual(bad.filter((line) => !TOLD.test(line)), [])
    } finally {
      await mirror.dispose()
    }
    for (const flow of flows) assert.deepStrictEqual(await complaints(flow), [])
  })

  it("are each named by check where it is missing", async () => {
    assert.deepStrictEqual(await silentOn(lacking.filter((one) => !creates(one))), [])
  })

  it("let verify compare, and offsets list and translate", async () => {
    const own = await resolved(byDefault)
    const options = { flow: null, topics: null, from: null, to: null, sample: null }
    const verified = await Effect.runPromise(verifyService(own, options, () => undefined))
    assert.isTrue(verified.equal, JSON.stringify(verified.flows))
    const asked = async (question: OffsetsQuestion, users: Users = {}) => {
      const rows = await Effect.runPromise(offsetsOf(await resolved(byDefault, users), { flow: null, question }))
      return rows.map(({ reason, state }) => `${state} ${reason}`)
    }
    assert.deepStrictEqual(await asked({ kind: "list", group: null }), ["synced null"])
    assert.deepStrictEqual(await asked({ kind: "group", group: app, reverse: false, commit: true }), ["synced null"])
    await commitOffsets(kafka, app, [{ topic: `east.${byDefault.name}`, partition: 0, offset: 8 }])
    const back = { kind: "group", group: app, reverse: true, commit: true } as const
    assert.match((await asked(back)).join(), /^failed .*GROUP_AUTHORIZATION_FAILED/)
    assert.deepStrictEqual(await asked(back, { source: home }), ["synced null"])
  })

  it("let a flow go on where MirrorMaker 2 stopped, and not where it cannot be seen whether it has", async () => {
    await createTopics(kafka, [{ topic: positions }])
    const key = JSON.stringify(["MirrorSourceConnector", { cluster: "north", partition: 0, topic: withAll.name }])
    await load(kafka, [{ topic: positions, partition: 0, key, value: JSON.stringify({ offset: 6 }) }])
    const flow = { ...withAll, name: took.name, settings: { topics: [withAll.name], "group.protocol": "consumer" } }
    const origin = { source: "north", target: "south", offsetsTopic: positions, workerGroup: "north-mm2" }
    const take = async (target: string) =>
      Effect.runPromise(takeMm2Positions(await resolved(flow, { source: took.source, target }), [origin]))
    const blind = await take(took.blind).then(() => "", String)
    assert.match(blind, /whether MirrorMaker 2 is still running cannot be seen: .* DESCRIBE on GROUP north-mm2/)
    const [taken] = await take(took.target)
    assert.deepStrictEqual([taken?.partitions, taken?.reason], [1, null])
    const at = { topic: withAll.name, partition: 0 }
    assert.deepStrictEqual([...(await committedOffsets(kafka, `g-${took.name}`, [at])).values()], [7])
  })
})
