/**
 * `npm run demo`: two Kafka clusters, 100 000 records, two workers that mirror them through a share group, one of
 * them killed with SIGKILL on the way and started again; then an audit by a client that is not ours. Exit code 0 only
 * when the guarantee that was in force has held.
 *
 * Everything is bounded, on loopback, in .work, and gone at the end (also after Ctrl-C).
 */
import { stringify } from "yaml"
import { createTopics, endOffsets, listTopics, untilSettled } from "../test/kit/admin.ts"
import { readTopics } from "../test/kit/auditor.ts"
import { compare, type Comparison, describeComparison } from "../test/kit/compare.ts"
import { type KafkaCluster, startClusters } from "../test/kit/kafka.ts"
import { load, makeRecords, openLoader } from "../test/kit/loader.ts"
import { type Config, type FlowState, type Onceover, startOnceover } from "../test/kit/onceover.ts"
import { until } from "../test/kit/until.ts"

const topics = [{ topic: "orders", partitions: 4 }, { topic: "payments", partitions: 2 }]
const perTopic = 50_000
const total = perTopic * topics.length
const aborted = 5_000
const targetName = (topic: string): string => `east.${topic}`

const started = performance.now()
const say = (text: string): void => {
  console.log(`${((performance.now() - started) / 1000).toFixed(1).padStart(6)} s  ${text}`)
}

/** What to undo, last first. */
const undo: Array<() => Promise<void>> = []
const cleanUp = async (): Promise<void> => {
  for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step().catch(() => undefined)
}
for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
  process.once(signal, () => {
    say("stopping")
    void cleanUp().finally(() => process.exit(code))
  })
}

const configuration = (source: KafkaCluster, target: KafkaCluster) => ({
  clusters: {
    east: { "bootstrap.servers": source.bootstrap },
    west: { "bootstrap.servers": target.bootstrap }
  },
  flows: [{
    source: "east",
    target: "west",
    topics: topics.map(({ topic }) => topic),
    "group.protocol": "share",
    "group.id": "onceover-demo",
    // What the killed worker had open hides what comes after it from read_committed readers until this is over.
    "producer.override.transaction.timeout.ms": 10_000
  }]
})

/** Half of the records of each topic, from number `from`. */
const half = (cluster: KafkaCluster, from: number): Promise<unknown> =>
  Promise.all(
    topics.map((topic) =>
      load(cluster, makeRecords({ ...topic, from, count: perTopic / 2, valueBytes: 200 }), { codec: "lz4" })
    )
  )

const abortSome = async (cluster: KafkaCluster): Promise<void> => {
  const loader = await openLoader(cluster, { transactionalId: "demo" })
  await loader.begin()
  await loader.send(makeRecords({ topic: "orders", partitions: 4, count: aborted, prefix: "aborted" }))
  await loader.abort()
  await loader.close()
}

const worker = async (config: Config, ...options: ReadonlyArray<string>): Promise<Onceover> => {
  const process = await startOnceover({ config, args: ["run", ...options] })
  undo.push(process.dispose)
  return process
}

const ended = async (mirror: Onceover): Promise<void> => {
  const { code, signal } = await mirror.exit(180_000)
  if (code !== 0) throw new Error(`a worker ended with ${code ?? signal}; it said\n${mirror.output()}`)
}

/** Records and markers: enough to see that it moves. */
const onTarget = async (target: KafkaCluster): Promise<number> => {
  const present = await listTopics(target)
  const names = topics.map(({ topic }) => targetName(topic)).filter((name) => present.has(name))
  const ends = await Promise.all(names.map((name) => endOffsets(target, name)))
  return ends.flat().reduce((sum, end) => sum + end, 0)
}

const guaranteeOf = async (mirror: Onceover): Promise<FlowState["guarantee"]> => {
  const flow = await until(async () => {
    const found = (await mirror.status())?.flows[0]
    return found !== undefined && found.guarantee.effective !== null && found
  }, { what: "the guarantee in force" })
  return flow.guarantee
}

const number = (n: number): string => n.toLocaleString("en-US")

const rows = (result: Comparison, guarantee: FlowState["guarantee"]): ReadonlyArray<readonly [string, string]> => [
  ["records on the source", number(result.source)],
  ["  and in an aborted transaction", number(aborted)],
  ["records on the target", number(result.target)],
  ["lost", number(result.lost.length)],
  ["doubled", number(result.doubled.length)],
  ["altered or misplaced", number(result.altered.length + result.misplaced.length)],
  ["aborted, yet on the target", number(result.foreign.length)],
  ["guarantee in force", guarantee.effective ?? "unknown"]
]

/** Prints the table and says whether the guarantee has held. */
const verdict = (result: Comparison, guarantee: FlowState["guarantee"]): boolean => {
  const lines = rows(result, guarantee)
  const width = Math.max(...lines.map(([name]) => name.length))
  const right = Math.max(...lines.map(([, value]) => value.length))
  console.log(`\nAudit by librdkafka, read_committed:\n`)
  for (const [name, value] of lines) console.log(`  ${name.padEnd(width)}  ${value.padStart(right)}`)
  if (guarantee.effective !== guarantee.wanted) {
    console.log(`\n${guarantee.wanted} is wanted; why it is not in force:`)
    for (const reason of guarantee.reasons) console.log(`  - ${reason}`)
  }
  const exactly = guarantee.effective === "exactly-once"
  const whole = [result.lost, result.altered, result.misplaced, result.foreign].every((ids) => ids.length === 0)
  if (!whole || (exactly && result.doubled.length > 0)) {
    console.log(`\nFAILED: ${describeComparison(result)}`)
    return false
  }
  const said = exactly
    ? "every record is on the target exactly once"
    : "nothing is lost; records may be doubled under this guarantee"
  console.log(`\nPASSED: ${said}.`)
  return true
}

const audit = async (east: KafkaCluster, west: KafkaCluster): Promise<Comparison> => {
  const names = topics.map(({ topic }) => topic)
  const [source, target] = await Promise.all([readTopics(east, names), readTopics(west, names.map(targetName))])
  return compare(source, target, { topic: targetName })
}

const demo = async (): Promise<boolean> => {
  say("starting two Kafka clusters, east and west")
  const [east, west] = await startClusters([{ name: "east" }, { name: "west" }]) as [KafkaCluster, KafkaCluster]
  undo.push(async () => void await Promise.all([east.stop(), west.stop()]))
  await createTopics(east, topics)
  say(`filling east: the first ${number(total / 2)} records`)
  await half(east, 0)
  await abortSome(east)

  const config = configuration(east, west)
  say("starting two workers, bin/onceover run FILE, with this FILE:")
  console.log(stringify(config).trimEnd().replaceAll(/^/gm, "            "))
  const first = await worker(config)
  const second = await worker(config)
  await until(async () => await onTarget(west) > total / 20, {
    what: () => `the first records on west; a worker said\n${first.output()}`,
    timeoutMs: 120_000
  })
  await first.kill("SIGKILL")
  say(`killed a worker with SIGKILL; ${number(await onTarget(west))} records were on west`)
  const guarantee = await guaranteeOf(second)
  say(`filling east: the other ${number(total / 2)} records`)
  await half(east, perTopic / 2)
  say("starting the killed worker again, until all is mirrored")
  await ended(await worker(config, "--until-caught-up"))
  await second.kill("SIGTERM")
  await ended(second)
  say("caught up; waiting for the end of the transaction that the killed worker had open")
  await untilSettled(west, topics.map(({ topic }) => targetName(topic)))
  say("reading both clusters")
  return verdict(await audit(east, west), guarantee)
}

try {
  process.exitCode = await demo() ? 0 : 1
} catch (error) {
  console.error(`\nFAILED: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
} finally {
  await cleanUp()
}
