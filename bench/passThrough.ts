/**
 * `npm run bench`: what a mirror costs. The same records on the same brokers in one run: onceover in consumer and in
 * share mode, and librdkafka record by record. Prints a table and writes .work/bench.json.
 *
 * Arguments: --records N (default 500000), --bytes N (record value, default 1000), --rounds N (default 3).
 * Wall time is of the whole process, start to exit; both sides are compared by their record counts before a figure
 * is believed.
 */
import { writeFileSync } from "node:fs"
import { cpus, release, totalmem } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { createTopic, endOffsets } from "../test/kit/admin.ts"
import { type KafkaCluster, startClusters } from "../test/kit/kafka.ts"
import { type LoadRecord, openLoader } from "../test/kit/loader.ts"
import { mirrorConfig } from "../test/kit/onceover.ts"
import { makeWorkFolder, projectRoot } from "../test/kit/paths.ts"
import { measure, type Usage } from "./measure.ts"

const { values: options } = parseArgs({
  options: {
    records: { type: "string", default: "500000" },
    bytes: { type: "string", default: "1000" },
    rounds: { type: "string", default: "3" }
  }
})
const records = Number(options.records)
const bytes = Number(options.bytes)
const rounds = Number(options.rounds)
const PARTITIONS = 4
const topic = "bench"

/** Text that compresses to about half, as logs and JSON do; not the same bytes again and again. */
const words = Array.from({ length: 4096 }, (_, n) => (n * 2_654_435_761 >>> 0).toString(36))
const valueOf = (n: number): string => {
  let text = `${n}|`
  for (let i = n; text.length < bytes; i += 7) text += words[(i * 31) % words.length] as string
  return text.slice(0, bytes)
}

const fill = async (cluster: KafkaCluster): Promise<void> => {
  await createTopic(cluster, topic, { partitions: PARTITIONS })
  const loader = await openLoader(cluster, { codec: "lz4" })
  const CHUNK = 50_000
  for (let from = 0; from < records; from += CHUNK) {
    const chunk = Array.from(
      { length: Math.min(CHUNK, records - from) },
      (_, i): LoadRecord => ({
        topic,
        partition: (from + i) % PARTITIONS,
        key: `k${from + i}`,
        value: valueOf(from + i)
      })
    )
    await loader.send(chunk)
  }
  await loader.close()
}

const folder = makeWorkFolder("bench")
let run = 0

const mirror = async (mode: "share" | "consumer", source: KafkaCluster, target: KafkaCluster): Promise<Usage> => {
  const name = `${mode}-${run++}`
  const file = join(folder, `${name}.json`)
  // A name of its own: the ledger of a flow knows what was mirrored before, whatever the group.
  const flow = {
    name,
    topics: [topic],
    "topic.mapping": { [topic]: name },
    "group.id": name,
    "group.protocol": mode,
    "tasks.max": 2
  }
  writeFileSync(
    file,
    JSON.stringify({ ...mirrorConfig(source, target, flow), http: { listen: false }, log: { level: "warn" } })
  )
  const usage = await measure(process.execPath, [
    join(projectRoot, "src/cli/main.ts"),
    "run",
    file,
    "--until-caught-up"
  ])
  await believe(usage, target, name)
  return usage
}

const plain = async (source: KafkaCluster, target: KafkaCluster): Promise<Usage> => {
  const name = `plain-${run++}`
  await createTopic(target, name, { partitions: PARTITIONS })
  const usage = await measure(process.execPath, [
    join(projectRoot, "bench/recordByRecord.ts"),
    source.bootstrap,
    target.bootstrap,
    topic,
    name,
    String(records)
  ])
  await believe(usage, target, name)
  return usage
}

/** A figure counts only when all records are there. Markers of transactions count as offsets too. */
const believe = async (usage: Usage, target: KafkaCluster, name: string): Promise<void> => {
  if (usage.code !== 0) throw new Error(`${name} ended with ${usage.code}: ${usage.output}`)
  const there = (await endOffsets(target, name)).reduce((sum, end) => sum + end, 0)
  if (there < records) throw new Error(`${name} has ${there} of ${records} records`)
}

const median = (numbers: ReadonlyArray<number>): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0

const [source, target] = await startClusters([{ name: "source" }, { name: "target" }]) as [KafkaCluster, KafkaCluster]
try {
  console.log(`filling the source: ${records} records of ${bytes} bytes, ${PARTITIONS} partitions, lz4`)
  await fill(source)
  const found = new Map<string, Array<Usage>>([["onceover, consumer mode", []], ["onceover, share mode", []], [
    "librdkafka, record by record",
    []
  ]])
  for (let round = 0; round < rounds; round++) {
    found.get("onceover, consumer mode")?.push(await mirror("consumer", source, target))
    found.get("librdkafka, record by record")?.push(await plain(source, target))
    found.get("onceover, share mode")?.push(await mirror("share", source, target))
    console.log(`round ${round + 1} of ${rounds} done`)
  }
  const gigabytes = records * bytes / 1e9
  const table = [...found].map(([name, usages]) => ({
    name,
    "records/s": Math.round(records / median(usages.map((u) => u.wallSeconds))),
    "CPU s/GB": Number((median(usages.map((u) => u.cpuSeconds)) / gigabytes).toFixed(2)),
    "peak MB": Math.round(median(usages.map((u) => u.peakMb)))
  }))
  console.table(table)
  const machine = {
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1e9),
    os: release(),
    node: process.version,
    kafka: source.version
  }
  const file = join(projectRoot, ".work/bench.json")
  writeFileSync(
    file,
    JSON.stringify({ date: new Date().toISOString(), machine, records, bytes, rounds, runs: [...found] }, null, 2)
  )
  console.log(
    `written to .work/bench.json; ${machine.cores} x ${machine.cpu}, Node ${machine.node}, Kafka ${machine.kafka}`
  )
} finally {
  await Promise.all([source.stop(), target.stop()])
}
