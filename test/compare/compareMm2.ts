/**
 * `npm run compare:mm2`: MirrorMaker 2 and onceover mirror the same source, each to a target of its own; topics, settings
 * and rights of the two targets are compared. Every difference has to be in the table of those that are on purpose, and
 * every entry of the table has to be seen. Takes a few minutes; not a part of npm test.
 */
import { Effect } from "effect"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { incrementalAlterConfigs } from "../../src/wire/messages/incrementalAlterConfigs.ts"
import { allow, authorizer, deny } from "../kit/acls.ts"
import { alterTopic, createTopics, growTopic, topicConfigs } from "../kit/admin.ts"
import { startClusters } from "../kit/kafka.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { mirrorConfig, startOnceover } from "../kit/onceover.ts"
import { until } from "../kit/until.ts"
import { compareFacts, factsOf, type Purpose } from "./differences.ts"
import { startMirrorMaker } from "./mirrorMaker.ts"

const mm2 = (fact: RegExp, why: string): Purpose => ({ only: "MirrorMaker 2", fact, why })
const own = (fact: RegExp, why: string): Purpose => ({ only: "onceover", fact, why })

const TIMESTAMPS =
  "a limit of the source's clock would make the target refuse records; MirrorMaker 2 means to leave it out and misses its name"
const DENY = "a DENY that would stop the mirror itself from writing is not copied, and is named"
const PINNED = "topic.settings.pinned keeps what the target has set"
const FROZEN = "a default of the source's brokers is their affair, and is not frozen into the topic"
const STAR = "a right on * becomes one on each mirrored topic, not on a name that no topic can have"

const purposes: ReadonlyArray<Purpose> = [
  mm2(/^topic mm2-.*\.internal has/, "Connect's own topics"),
  {
    ...mm2(
      /^topic (heartbeats|east\.checkpoints\.internal) has/,
      "only where emit.heartbeats and emit.checkpoints are on"
    ),
    optional: true
  },
  own(/^topic __onceover_/, "onceover's own topics"),
  mm2(/^setting east\.settings message\.timestamp\.after\.max\.ms=/, TIMESTAMPS),
  own(/^setting east\.settings message\.timestamp\.after\.max\.ms=/, TIMESTAMPS),
  mm2(/^setting east\.pinned retention\.ms=/, PINNED),
  own(/^setting east\.pinned retention\.ms=222222$/, PINNED),
  mm2(/^setting east\.\S+ segment\.ms=/, FROZEN),
  own(/^setting east\.\S+ segment\.ms=/, FROZEN),
  mm2(/^right ALLOW star READ LITERAL east\.\*$/, STAR),
  own(/^right ALLOW star READ LITERAL east\.[\w.]+$/, STAR),
  mm2(/^right DENY \* WRITE LITERAL east\.plain$/, DENY),
  own(
    /^(topic|setting) east\.west\.local /,
    "a local topic whose name looks remote is mirrored: the target has no original of it"
  )
]

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const properties = authorizer
const [east, theirs, ours] = await startClusters([
  { name: "compare-source", properties },
  { name: "compare-mm2", properties },
  { name: "compare-onceover", properties }
])
if (east === undefined || theirs === undefined || ours === undefined) throw new Error("three clusters are needed")

const prepare = async (): Promise<void> => {
  await createTopics(east, [
    {
      topic: "settings",
      partitions: 2,
      configs: {
        "cleanup.policy": "compact,delete",
        "min.compaction.lag.ms": "60000",
        "message.timestamp.after.max.ms": "9000000",
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "true"
      }
    },
    { topic: "pinned", configs: { "retention.ms": "3600000" } },
    { topic: "plain" },
    { topic: "west.local" }
  ])
  await alterBroker("log.roll.ms", "7200000")
  await allow(east, "reader", [["READ", "TOPIC", "plain"], ["DESCRIBE_CONFIGS", "TOPIC", "plain"]])
  await allow(east, "owner", [["ALL", "TOPIC", "plain"], ["DELETE", "TOPIC", "plain"]])
  await allow(east, "writer", [["WRITE", "TOPIC", "plain"], ["READ", "TOPIC", "pla*"]])
  await allow(east, "star", [["READ", "TOPIC", "*"]])
  await deny(east, "banned", [["ALL", "TOPIC", "plain"]])
  await deny(east, "*", [["WRITE", "TOPIC", "plain"]])
  for (const topic of ["settings", "pinned", "plain", "west.local"]) {
    // Keys, for the compacted one.
    await load(east, makeRecords({ topic, count: 10 }))
  }
}

const BROKER = 4
/** A dynamic default of all the source's brokers: MirrorMaker 2 takes it for the topic's own. */
const alterBroker = (name: string, value: string): Promise<unknown> =>
  Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const client = yield* makeCluster("compare", { "bootstrap.servers": east.bootstrap })
    const configs = [{ name, configOperation: 0, value }]
    const resources = [{ resourceType: BROKER, resourceName: "", configs }]
    const { responses } = yield* client.request({ kind: "any" }, incrementalAlterConfigs, {
      resources,
      validateOnly: false
    })
    if (responses[0]?.errorCode !== 0) throw new Error(responses[0]?.errorMessage ?? "not altered")
  })))

const has = async (cluster: typeof east, ...facts: ReadonlyArray<RegExp>): Promise<boolean> => {
  const found = [...await factsOf(cluster)]
  return facts.every((fact) => found.some((one) => fact.test(one)))
}

try {
  await prepare()
  const maker = await startMirrorMaker(east, theirs, {
    "refresh.topics.interval.seconds": "5",
    "sync.topic.configs.interval.seconds": "5",
    "sync.topic.acls.interval.seconds": "5"
  })
  const mirror = await startOnceover({
    config: mirrorConfig(east, ours, {
      topics: [".*"],
      "group.id": "compare",
      "replication.factor": 1,
      "sync.topic.configs.interval.seconds": 5,
      "sync.topic.acls.interval.seconds": 5,
      "topic.settings.pinned": { "east\\.pinned": ["retention\\.ms"] }
    })
  })
  try {
    const first = [
      /^topic east\.plain has/,
      /^topic east\.settings has 2/,
      /^topic east\.pinned/,
      /^right ALLOW owner READ LITERAL east\.plain/
    ]
    for (const [cluster, output] of [[theirs, maker.output], [ours, mirror.output]] as const) {
      await until(() => has(cluster, ...first), {
        timeoutMs: 180_000,
        everyMs: 1_000,
        what: () => `the first topics and rights on ${cluster.name}; the log ends with\n${output().slice(-3_000)}`
      })
      await alterTopic(cluster, "east.pinned", { "retention.ms": "222222" })
    }
    await alterTopic(east, "settings", { "max.message.bytes": "2000000", "min.compaction.lag.ms": null })
    await growTopic(east, "settings", 3)
    const later = [
      /^topic east\.settings has 3/,
      /^setting east\.settings max\.message\.bytes=2000000/,
      /^setting east\.settings min\.compaction\.lag\.ms=0/
    ]
    for (const cluster of [theirs, ours]) {
      await until(() => has(cluster, ...later), {
        timeoutMs: 180_000,
        everyMs: 1_000,
        what: `growth and settings on ${cluster.name}`
      })
    }
    await until(async () => (await topicConfigs(theirs, "east.pinned")).get("retention.ms") !== "222222", {
      timeoutMs: 60_000,
      everyMs: 1_000,
      what: "MirrorMaker 2 to take back what its target had set"
    })
    await until(() => has(ours, /^right ALLOW star READ LITERAL east\.west\.local$/), {
      what: "the last rights of ours"
    })
    const { differences, idle, same } = compareFacts(await factsOf(theirs), await factsOf(ours), purposes)
    say(`${same} facts are the same; ${differences.length} differ:`)
    for (const { fact, only, why } of differences) say(`  only ${only}: ${fact}\n    ${why ?? "NOT ON PURPOSE"}`)
    for (const { fact, only } of idle) say(`  not seen, though it should be: only ${only}: ${fact}`)
    const wrong = differences.filter(({ why }) => why === null).length + idle.length
    say(wrong === 0 ? "Each difference is on purpose." : `${wrong} are not as they should be.`)
    process.exitCode = wrong === 0 ? 0 : 1
  } finally {
    await mirror.dispose()
    await maker.stop()
  }
} finally {
  await Promise.all([east, theirs, ours].map((cluster) => cluster.stop()))
}
