/**
 * `npm run bench:soak -- --minutes M [--mode consumer|share] [--rate N]`: a mirror at constant load, and how its memory grows.
 * Prints a line a minute, then the slope of resident memory without the first quarter, in MB a minute, and writes
 * .work/bench/soak.json. Ends with 1 when records were lost, or when memory grows by more than --limit MB a minute (0.2).
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { parseArgs } from "node:util"
import { projectRoot } from "../test/kit/paths.ts"
import { connect, disconnect, Producer } from "../test/kit/rdkafka.ts"
import { until } from "../test/kit/until.ts"
import { differences } from "./belief.ts"
import { valueOf } from "./fill.ts"
import { describeMachine } from "./machine.ts"
import { onceover } from "./peers/onceover.ts"
import { type Job, type Mirror, targetTopic } from "./peers/peer.ts"
import { openProgress } from "./progress.ts"
import { fingerprint, makeJob, watchTree } from "./run.ts"
import { openSession, type Session } from "./session.ts"
import { makeShape } from "./shape.ts"
import { slope } from "./stats.ts"
import { createMany } from "./topics.ts"

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    mode: { type: "string", default: "consumer" },
    rate: { type: "string", default: "2000" },
    limit: { type: "string", default: "0.2" }
  }
})
const minutes = Number(values.minutes)
const rate = Number(values.rate)
const mode = values.mode === "share" ? "share" : "consumer"

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const SAMPLE_MS = 5_000
const PARTITIONS = 4

/** Records at a steady rate until it is told to stop; gives how many there were. */
const startLoad = async (job: Job): Promise<() => Promise<number>> => {
  const [topic = ""] = job.topics
  const producer = new Producer({
    "bootstrap.servers": job.source.bootstrap,
    "compression.codec": "lz4",
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000
  }, {})
  await connect(producer)
  producer.setPollInterval(100)
  const begun = performance.now()
  let sent = 0
  const pace = setInterval(() => {
    const due = (performance.now() - begun) / 1000 * rate
    for (; sent < due; sent++) producer.produce(topic, sent % PARTITIONS, valueOf(sent, 1_000), `k${sent}`)
  }, 5)
  return async () => {
    clearInterval(pace)
    await new Promise<void>((resolve) => void producer.flush(60_000, () => resolve()))
    await disconnect(producer)
    return sent
  }
}

type Point = readonly [minute: number, rssMb: number]

const watch = async (mirror: Mirror): Promise<ReadonlyArray<Point>> => {
  const usage = watchTree(mirror.pid)
  const begun = performance.now()
  const points: Array<Point> = []
  let told = 0
  for (;;) {
    await delay(SAMPLE_MS)
    if (!mirror.running()) throw new Error(`the mirror ended by itself: ${mirror.output().slice(-3_000)}`)
    const minute = (performance.now() - begun) / 60_000
    const { cpuSeconds, rssMb } = usage()
    points.push([minute, rssMb])
    if (minute >= told + 1) say(`  minute ${++told}: ${rssMb.toFixed(1)} MB, ${cpuSeconds.toFixed(1)} CPU s so far`)
    if (minute >= minutes) return points
  }
}

const soak = async (session: Session): Promise<number> => {
  const [source, target] = await session.clusters()
  const peer = onceover({ mode })
  const job = makeJob({ session, source, target }, makeShape({ name: "soak", partitions: PARTITIONS }, 1), peer)
  const topics = job.topics.map((topic) => targetTopic(job.run, topic))
  await createMany(source, job.topics, PARTITIONS)
  await createMany(target, topics, PARTITIONS)
  const mirror = await peer.start(job)
  const stopLoad = await startLoad(job)
  say(`${peer.name}: ${rate} records of 1 KB a second for ${minutes} minutes`)
  const points = await watch(mirror)
  const sent = await stopLoad()
  const progress = await openProgress(target, topics)
  const sides = () => Promise.all([fingerprint(source, job.topics), fingerprint(target, topics)])
  await until(async () => await progress.stable() >= sent, { what: "the mirror to catch up", everyMs: 500 })
  const doubts = await until(async () => {
    const [wanted, found] = await sides()
    const left = differences(wanted, found, "none")
    return left.length === 0 ? ["none"] : undefined
  }, { what: "both sides to hold the same records", timeoutMs: 120_000, everyMs: 2_000 }).catch((error: Error) => [
    error.message
  ])
  await progress.close()
  await mirror.stop()
  const growth = slope(points.filter(([minute]) => minute > minutes / 4))
  mkdirSync(join(projectRoot, ".work/bench"), { recursive: true })
  writeFileSync(
    join(projectRoot, ".work/bench/soak.json"),
    JSON.stringify({
      date: new Date().toISOString(),
      machine: describeMachine(),
      mode,
      rate,
      minutes,
      sent,
      growth,
      points
    })
  )
  const last = points.at(-1)?.[1] ?? Number.NaN
  say(
    `${sent} records; ${last.toFixed(1)} MB at the end, growth ${growth.toFixed(3)} MB a minute; doubts: ${
      doubts.join("; ")
    }`
  )
  return growth <= Number(values.limit) && doubts[0] === "none" ? 0 : 1
}

const session = openSession()
const stop = (code: number) => void session.end().finally(() => process.exit(code))
process.once("SIGINT", () => stop(130))
process.once("SIGTERM", () => stop(143))
let code = 1
try {
  code = await soak(session)
} catch (error) {
  process.stderr.write(`bench:soak: ${(error as Error).message}\n`)
} finally {
  await session.end()
}
process.exit(code)
