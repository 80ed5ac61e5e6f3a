/** From the start of the process to the first record that a reader in read_committed may read; the mirror creates the topic. */
import { setTimeout as delay } from "node:timers/promises"
import type { KafkaCluster } from "../../test/kit/kafka.ts"
import { load } from "../../test/kit/loader.ts"
import { mirrorMaker } from "../peers/mirrorMaker.ts"
import { onceover } from "../peers/onceover.ts"
import { type Mirror, type Peer, targetTopic } from "../peers/peer.ts"
import type { Measured, Starts } from "../results.ts"
import { makeJob } from "../run.ts"
import { makeShape } from "../shape.ts"
import { createMany, deleteMany, withAdmin } from "../topics.ts"
import type { Context } from "./context.ts"

const LOOK_MS = 20
const LIMIT_MS = 120_000

export const startPeers = {
  consumer: onceover({ mode: "consumer" }),
  share: onceover({ mode: "share" }),
  mirrorMaker: mirrorMaker({ tuned: true })
}

/** Answers at the look that finds a stable record in partition 0; a topic that is not there has none. */
const firstReadable = (cluster: KafkaCluster, topic: string, mirror: Mirror, started: number): Promise<number> =>
  withAdmin(cluster, async (admin) => {
    const partitions = [{ partitionIndex: 0, timestamp: -1n }]
    for (;;) {
      const found = (await admin.listTopics()).includes(topic)
        ? await admin.listOffsets({ topics: [{ name: topic, partitions }], isolationLevel: 1 }).catch(() => [])
        : []
      const seconds = (performance.now() - started) / 1000
      if (Number(found[0]?.partitions[0]?.offset ?? 0) > 0) return seconds
      if (!mirror.running()) throw new Error(`the mirror ended by itself: ${mirror.output().slice(-2_000)}`)
      if (seconds * 1000 > LIMIT_MS) {
        throw new Error(`no record after ${LIMIT_MS / 1000} s: ${mirror.output().slice(-2_000)}`)
      }
      await delay(LOOK_MS)
    }
  })

const measureOne = async (context: Context, peer: Peer): Promise<number> => {
  const { source, target } = context
  const job = makeJob(context, makeShape({ name: `start-${peer.id}`, partitions: 1 }, 1), peer)
  const [topic = ""] = job.topics
  await createMany(source, [topic], 1)
  await load(source, [{ topic, partition: 0, value: "the first record" }])
  const started = performance.now()
  const mirror = await peer.start(job)
  try {
    return await firstReadable(target, targetTopic(job.run, topic), mirror, started)
  } finally {
    await mirror.stop()
    await deleteMany(source, [topic])
    await deleteMany(target, [targetTopic(job.run, topic)])
  }
}

export const start = async (context: Context): Promise<Omit<Starts, keyof Measured>> => {
  const peers = Object.values(startPeers)
  const measured = peers.map(({ name }) => ({ peer: name, seconds: [] as Array<number> }))
  for (let round = 0; round < context.options.rounds; round++) {
    for (const [n, peer] of peers.entries()) {
      try {
        const seconds = await measureOne(context, peer)
        measured[n]?.seconds.push(seconds)
        context.say(`  ${peer.name}: ${seconds.toFixed(2)} s`)
      } catch (error) {
        context.fail(`start of ${peer.name} failed: ${(error as Error).message}`)
      }
    }
  }
  return { measured }
}
