/**
 * `npm run demo`: two Kafka clusters, 100 000 records that keep coming, two workers that mirror them through a share
 * group. One after the other they are killed with SIGKILL while they have a transaction open, and started again; then
 * an audit by a client that is not ours. Exit code 0 only when the guarantee that was in force has held.
 *
 * `npm run demo -- --kafka=embedded` does the same on clusters in this process, without Java. With `--keep` the clusters
 * stay after the verdict, to try things on, until Ctrl-C.
 *
 * Everything is bounded, on loopback, in .work, and gone at the end (also after Ctrl-C).
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { stringify } from "yaml"
import { createTopics, endOffsets, listTopics, untilSettled } from "../test/kit/admin.ts"
import { readTopics } from "../test/kit/auditor.ts"
import { compare, type Comparison } from "../test/kit/compare.ts"
import { type Bootstrap, makeRecords, openLoader } from "../test/kit/loader.ts"
import { type Config, type FlowState, type Onceover, startOnceover } from "../test/kit/onceover.ts"
import { projectRoot } from "../test/kit/paths.ts"
import { abortedTransactions, killInTransaction } from "../test/kit/transactions.ts"
import { until } from "../test/kit/until.ts"
import { type DemoClusters, type DemoKafka, startDemoClusters } from "./demo/clusters.ts"
import { number, verdict } from "./demo/table.ts"

const topics = [{ topic: "orders", partitions: 4 }, { topic: "payments", partitions: 2 }]
const flowName = "demo"
const perTopic = 50_000
const total = perTopic * topics.length
const abortedRecords = 5_000
/** The feed stays within so many records of the mirror, so that there is always something to be killed at. */
const ahead = 10_000
const chunk = 500
/** The workers are killed when about this many records are on the target. */
const killAt = [total / 5, total / 2]
const targetName = (topic: string): string => `east.${topic}`
const targetNames = topics.map(({ topic }) => targetName(topic))

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

interface Options {
  readonly kafka: DemoKafka
  readonly keep: boolean
}

const optionsOf = (args: ReadonlyArray<string>): Options => {
  const { values } = parseArgs({
    args: [...args],
    options: { kafka: { type: "string", default: "broker" }, keep: { type: "boolean", default: false } }
  })
  if (values.kafka === "broker" || values.kafka === "embedded") return { kafka: values.kafka, keep: values.keep }
  throw new Error(`--kafka=${values.kafka} is not known: broker (Kafka's own, the default) or embedded`)
}

const configuration = ({ east, west }: DemoClusters) => ({
  clusters: {
    east: { "bootstrap.servers": east.bootstrap },
    west: { "bootstrap.servers": west.bootstrap }
  },
  flows: [{
    name: flowName,
    source: "east",
    target: "west",
    topics: topics.map(({ topic }) => topic),
    "group.protocol": "share",
    "group.id": "onceover-demo",
    // What a killed worker has open hides what comes after it from read_committed readers until this is over.
    "producer.override.transaction.timeout.ms": 10_000
  }]
})

const abortSome = async (cluster: Bootstrap): Promise<void> => {
  const loader = await openLoader(cluster, { transactionalId: "demo" })
  await loader.begin()
  await loader.send(makeRecords({ topic: "orders", partitions: 4, count: abortedRecords, prefix: "aborted" }))
  await loader.abort()
  await loader.close()
}

/** Records and markers: enough to see that it moves. */
const onTarget = async (target: Bootstrap): Promise<number> => {
  const present = await listTopics(target)
  const ends = await Promise.all(
    targetNames.filter((name) => present.has(name)).map((name) => endOffsets(target, name))
  )
  return ends.flat().reduce((sum, end) => sum + end, 0)
}

/** All records, a chunk at a time. `done` answers when the source has confirmed the last one. */
const startFeed = async ({ east, west }: DemoClusters) => {
  const loader = await openLoader(east, { codec: "lz4" })
  undo.push(loader.close)
  let over = false
  const loop = async (): Promise<void> => {
    for (let from = 0; from < perTopic; from += chunk) {
      await until(async () => from * topics.length < ahead + await onTarget(west), {
        what: `the mirror to come within ${ahead} records`,
        timeoutMs: 120_000
      })
      await loader.send(topics.flatMap((topic) => [...makeRecords({ ...topic, from, count: chunk, valueBytes: 200 })]))
    }
  }
  const done = loop().finally(() => over = true)
  // Told by whoever waits for it.
  done.catch(() => undefined)
  return { done, over: () => over }
}

interface Worker {
  readonly name: string
  readonly process: Onceover
}

/** What the workers have counted; of one that was killed, what it said last. */
const prevented = new Map<number, number>()
const lookAt = async ({ name, process }: Worker): Promise<void> => {
  const metrics = await until(() => process.metrics(), { what: `the metrics of ${name}` })
  const samples = metrics.get("onceover_duplicates_prevented_total") ?? []
  prevented.set(process.pid, samples.reduce((sum, { value }) => sum + value, 0))
}

/** A worker that ends by itself will not bring about what is waited for: the demo ends there. */
const broken = Promise.withResolvers<never>()
broken.promise.catch(() => undefined)

const startWorker = async (config: Config, name: string): Promise<Worker> => {
  // A name of its own: the worker that is started again ends what the killed one had open.
  const process = await startOnceover({ config: { ...config, "instance.id": name } })
  undo.push(process.dispose)
  void process.exited.then(({ code, signal }) => {
    if (signal === null && code !== 0) broken.reject(new Error(`${name} ended with ${code}:\n${process.output()}`))
  })
  return { name, process }
}

const stopWorker = async ({ process }: Worker): Promise<void> => {
  await process.kill("SIGTERM")
  const { code, signal } = await process.exit(60_000)
  if (code !== 0) throw new Error(`a worker ended with ${code ?? signal}; it said\n${process.output()}`)
}

const stateOf = async ({ process }: Worker): Promise<FlowState | undefined> => (await process.status())?.flows[0]

const guaranteeOf = async (worker: Worker): Promise<FlowState["guarantee"]> => {
  const flow = await until(async () => {
    const found = await stateOf(worker)
    return found !== undefined && found.guarantee.effective !== null && found
  }, { what: "the guarantee in force" })
  return flow.guarantee
}

/** Until the group has passed every record of the source, as a worker sees it. */
const untilCaughtUp = async (source: Bootstrap, worker: Worker): Promise<void> => {
  for (const { topic } of topics) {
    const ends = await endOffsets(source, topic)
    await until(async () => {
      const partitions = (await stateOf(worker))?.partitions ?? []
      return ends.every((end, n) =>
        partitions.some((p) => p.topic === topic && p.partition === n && (p.position ?? 0) >= end)
      )
    }, { what: () => `${topic} to be mirrored; a worker said\n${worker.process.output()}`, timeoutMs: 120_000 })
  }
}

/** Kills it in the middle of a transaction and starts it again. Gives the one that is new and whether it hit. */
const killAndStart = async (config: Config, west: Bootstrap, worker: Worker, noMore: () => boolean) => {
  await lookAt(worker)
  const left = await killInTransaction(worker.process, { target: west, instance: worker.name, last: noMore })
  const open = left.length === 0
    ? "no transaction"
    : left.length === 1
    ? "a transaction"
    : `${left.length} transactions`
  say(`killed ${worker.name} with SIGKILL and ${open} open; ${number(await onTarget(west))} records were on west`)
  return { hit: left.length > 0, again: await startWorker(config, worker.name) }
}

const audit = async ({ east, west }: DemoClusters): Promise<Comparison> => {
  const names = topics.map(({ topic }) => topic)
  const [source, target] = await Promise.all([readTopics(east, names), readTopics(west, targetNames)])
  return compare(source, target, { topic: targetName })
}

/** The clusters stay until Ctrl-C, with a file for them. */
const stay = (config: Config): Promise<never> => {
  const file = ".work/demo.yaml"
  writeFileSync(join(projectRoot, file), stringify(config))
  say(`both clusters stay until Ctrl-C; their file is ${file}. In another terminal, from ${projectRoot}:`)
  for (const words of ["check", "run", "verify", "offsets list"]) {
    console.log(`            bin/onceover ${words} ${file}`)
  }
  return new Promise(() => setInterval(() => {}, 60_000))
}

const demo = async ({ kafka, keep }: Options): Promise<boolean> => {
  say(`starting two Kafka clusters, east and west${kafka === "embedded" ? ", in this process" : ""}`)
  const clusters = await startDemoClusters(kafka)
  const { east, west } = clusters
  undo.push(clusters.stop)
  await createTopics(east, topics)
  await abortSome(east)

  const config = configuration(clusters)
  say("starting two workers, bin/onceover run FILE, with this FILE:")
  console.log(stringify(config).trimEnd().replaceAll(/^/gm, "            "))
  const workers = [await startWorker(config, "worker-a"), await startWorker(config, "worker-b")]
  say(`filling east with ${number(total)} records`)
  const feed = await startFeed(clusters)
  let hits = 0
  for (const [n, limit] of killAt.entries()) {
    const worker = workers[n] as Worker
    await until(async () => await onTarget(west) > limit, {
      what: () => `${number(limit)} records on west; a worker said\n${worker.process.output()}`,
      timeoutMs: 120_000
    })
    const { again, hit } = await killAndStart(config, west, worker, feed.over)
    workers[n] = again
    if (hit) hits++
  }
  await feed.done
  say("east has them all; waiting for the mirror")
  const guarantee = await guaranteeOf(workers[0] as Worker)
  await untilCaughtUp(east, workers[0] as Worker)
  for (const worker of workers) await lookAt(worker)
  await Promise.all(workers.map(stopWorker))
  await untilSettled(west, targetNames)
  say("reading both clusters")
  const held = verdict({
    comparison: await audit(clusters),
    guarantee,
    abortedRecords,
    kills: killAt.length,
    killsInTransaction: hits,
    abortedTransactions: await abortedTransactions(west, [...targetNames, `__onceover_ledger_${flowName}`]),
    duplicatesPrevented: [...prevented.values()].reduce((sum, count) => sum + count, 0)
  })
  return keep ? stay(config) : held
}

try {
  process.exitCode = await Promise.race([demo(optionsOf(process.argv.slice(2))), broken.promise]) ? 0 : 1
} catch (error) {
  console.error(`\nFAILED: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
} finally {
  await cleanUp()
}
