/** How long a record takes at a steady rate (a thousand a second), from a producer on the source to a reader in read_committed on the target. */
import { join } from "node:path"
import { projectRoot } from "../../test/kit/paths.ts"
import type { Heard, Probe } from "../latencyProbe.ts"
import { mirrorMaker } from "../peers/mirrorMaker.ts"
import { onceover } from "../peers/onceover.ts"
import { type Mirror, type Peer, targetTopic } from "../peers/peer.ts"
import type { Latencies, Latency, Measured } from "../results.ts"
import { makeJob } from "../run.ts"
import { makeShape } from "../shape.ts"
import { histogram, percentile } from "../stats.ts"
import { createMany, deleteMany } from "../topics.ts"
import type { Context } from "./context.ts"

const VALUE_BYTES = 1_000
const PARTITIONS = 4
const WARM_SECONDS = 5
const BOUNDS = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 2_000, 5_000]

const FLOW = { "transaction.max.latency.ms": 10 }

export const latencyPeers = {
  consumer: onceover({ mode: "consumer", flow: FLOW }),
  share: onceover({ mode: "share", flow: FLOW }),
  mirrorMaker: mirrorMaker({ tuned: false })
}

/** No mirror: a reader on the same cluster. What is left is the clients' and the broker's. */
export const FLOOR = "no mirror: a reader on the source"

const summed = (peer: string, { latencies }: Heard): Latency => {
  const sorted = Float64Array.from(latencies).toSorted()
  return {
    peer,
    records: sorted.length,
    median: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    max: percentile(sorted, 1),
    bins: histogram(sorted, BOUNDS)
  }
}

const listen = async (context: Context, probe: Probe, mirror: Mirror | undefined): Promise<Heard> => {
  const child = context.session.spawn(process.execPath, [
    join(projectRoot, "bench/latencyProbe.ts"),
    JSON.stringify(probe)
  ])
  if ((await child.exited) !== 0) {
    throw new Error(`the probe failed: ${child.output().slice(-1_500)} ${mirror?.output().slice(-1_500) ?? ""}`)
  }
  const heard = JSON.parse(child.output()) as Heard
  if (heard.lost > 0 || heard.doubled > 0) throw new Error(`${heard.lost} records were lost, ${heard.doubled} doubled`)
  return heard
}

const measureOne = async (context: Context, peer: Peer | undefined): Promise<Latency> => {
  const { options, source, target } = context
  const shape = makeShape(
    { name: `latency-${peer?.id ?? "floor"}`, valueBytes: VALUE_BYTES, partitions: PARTITIONS },
    1
  )
  const job = makeJob(context, shape, peer ?? latencyPeers.consumer)
  const [topic = ""] = job.topics
  const mirrored = peer === undefined ? topic : targetTopic(job.run, topic)
  await createMany(source, [topic], PARTITIONS)
  if (peer !== undefined) await createMany(target, [mirrored], PARTITIONS)
  let mirror: Mirror | undefined
  try {
    mirror = await peer?.start(job)
    const heard = await listen(context, {
      source: source.bootstrap,
      topic,
      target: peer === undefined ? source.bootstrap : target.bootstrap,
      targetTopic: mirrored,
      partitions: PARTITIONS,
      recordsPerSecond: options.latencyRate,
      valueBytes: VALUE_BYTES,
      warmSeconds: WARM_SECONDS,
      seconds: options.latencySeconds
    }, mirror)
    return summed(peer?.name ?? FLOOR, heard)
  } finally {
    await mirror?.stop()
    await deleteMany(source, [topic])
    await deleteMany(target, [mirrored])
  }
}

export const latency = async (context: Context): Promise<Omit<Latencies, keyof Measured>> => {
  const measured: Array<Latency> = []
  for (const peer of [undefined, ...Object.values(latencyPeers)]) {
    try {
      const one = await measureOne(context, peer)
      measured.push(one)
      context.say(`  ${one.peer}: median ${one.median} ms, 99 % ${one.p99} ms, max ${one.max} ms`)
    } catch (error) {
      context.fail(`latency of ${peer?.name ?? FLOOR} failed: ${(error as Error).message}`)
    }
  }
  return { recordsPerSecond: context.options.latencyRate, valueBytes: VALUE_BYTES, partitions: PARTITIONS, measured }
}
