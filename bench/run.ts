/** One measured run: a mirror is started, sampled until all records are in the target, stopped; then its target is read and believed. */
import { execFile } from "node:child_process"
import { loadavg } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { promisify } from "node:util"
import type { KafkaCluster } from "../test/kit/kafka.ts"
import { projectRoot } from "../test/kit/paths.ts"
import { differences, type Fingerprint } from "./belief.ts"
import { type Figures, figuresOf, type Sample } from "./figures.ts"
import { type Job, type Mirror, type Peer, targetTopic, TRANSFORM_HEADER } from "./peers/peer.ts"
import { machineBusy, processesWith, processTree, usageOf } from "./proc.ts"
import { openProgress, type Progress } from "./progress.ts"
import type { Session } from "./session.ts"
import { recordBytes, type Shape, topicsOf } from "./shape.ts"
import { createMany, deleteMany } from "./topics.ts"

export interface Clusters {
  readonly session: Session
  readonly source: KafkaCluster
  readonly target: KafkaCluster
}

export interface Run extends Figures {
  readonly peer: string
  readonly shape: string
  /** Why the figures are not to be believed; empty: they are. */
  readonly doubts: ReadonlyArray<string>
  /** Load of the machine over the last minute before the run, by /proc/loadavg. */
  readonly load: number
}

/** Between two looks; more where a look at many topics takes long. */
const LOOK_MS = 50
/** All records may be there, and a marker or a double still come. */
const QUIET_MS = 600
const LIMIT_MS = 300_000
const TREE_EVERY_MS = 500

/** What a process tree uses, with the tree looked up now and then only. */
export const watchTree = (root: number): () => ReturnType<typeof usageOf> => {
  let pids = processTree(root)
  let looked = performance.now()
  return () => {
    if (performance.now() - looked > TREE_EVERY_MS) {
      pids = processTree(root)
      looked = performance.now()
    }
    return usageOf(pids)
  }
}

export interface Sampling {
  readonly mirror: Mirror
  readonly brokers: ReadonlyArray<number>
  readonly progress: Progress
  readonly records: number
  /** When the run began, by performance.now(). */
  readonly started: number
}

/** Samples until all records are there and nothing has come for a while. */
export const sampleUntilThere = async (
  { brokers, mirror, progress, records, started }: Sampling
): Promise<Array<Sample>> => {
  const usage = watchTree(mirror.pid)
  const samples: Array<Sample> = []
  let grown = performance.now()
  for (;;) {
    const asked = performance.now()
    const offsets = await progress.offsets()
    const now = performance.now()
    const before = samples.at(-1)
    if (before === undefined || offsets > before.offsets) grown = now
    const used = usage()
    const brokerSeconds = usageOf(brokers).cpuSeconds
    const { system, user } = process.cpuUsage()
    const otherSeconds = machineBusy() - used.cpuSeconds - brokerSeconds - (system + user) / 1e6
    samples.push({ at: now - started, offsets, ...used, brokerSeconds, otherSeconds })
    if (offsets >= records && now - grown > QUIET_MS) return samples
    if (!mirror.running()) throw new Error(`the mirror ended by itself: ${mirror.output().slice(-3_000)}`)
    if (now - started > LIMIT_MS) {
      throw new Error(`${offsets} of ${records} records after ${LIMIT_MS / 1000} s: ${mirror.output().slice(-3_000)}`)
    }
    await delay(Math.max(LOOK_MS, 3 * (now - asked)))
  }
}

const exec = promisify(execFile)

export const fingerprint = async (
  cluster: KafkaCluster,
  topics: ReadonlyArray<string>
): Promise<Fingerprint> => {
  const script = join(projectRoot, "bench/fingerprint.ts")
  const { stdout } = await exec(process.execPath, [script, cluster.bootstrap, TRANSFORM_HEADER, ...topics], {
    maxBuffer: 64 * 1024 * 1024,
    timeout: 600_000
  })
  return JSON.parse(stdout) as Fingerprint
}

let count = 0

export interface RunSpec extends Clusters {
  readonly peer: Peer
  readonly shape: Shape
  /** Of the source, read once for all runs. */
  readonly wanted: Fingerprint
  /** After the samples and before the stop: what else is looked at while it still runs. */
  readonly meanwhile?: (mirror: Mirror) => Promise<void>
}

export const makeJob = (clusters: Clusters, shape: Shape, peer: Peer): Job => ({
  ...clusters,
  shape,
  topics: topicsOf(shape),
  run: `r${count++}-${peer.id}`
})

/** The target topics exist before: how long their creation takes is no matter of throughput (see the suite of starts). */
export const measureRun = async (spec: RunSpec): Promise<Run> => {
  const { peer, shape, target, wanted } = spec
  const job = makeJob(spec, shape, peer)
  const topics = job.topics.map((topic) => targetTopic(job.run, topic))
  await createMany(target, topics, shape.partitions)
  const progress = await openProgress(target, topics)
  const brokers = [spec.source, target].flatMap(({ logDir }) => processesWith(`${logDir}/broker-`))
  const [load = 0] = loadavg()
  try {
    const started = performance.now()
    const mirror = await peer.start(job)
    let samples: Array<Sample>
    try {
      samples = await sampleUntilThere({ mirror, brokers, progress, records: shape.records, started })
      await spec.meanwhile?.(mirror)
    } finally {
      await mirror.stop()
    }
    const doubts = differences(wanted, await fingerprint(target, topics), peer.transform ? "all" : "none")
    const figures = figuresOf(samples, shape.records, recordBytes(shape))
    return { peer: peer.name, shape: shape.name, ...figures, doubts, load }
  } finally {
    await progress.close()
    await deleteMany(target, topics)
  }
}
