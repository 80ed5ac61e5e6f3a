/** Fills the source of a run through librdkafka; the same records for the same shape, every time. */
import { createMany } from "./topics.ts"
import { call, connect, disconnect, Producer } from "../test/kit/rdkafka.ts"
import { until } from "../test/kit/until.ts"
import type { Bootstrap } from "../test/kit/loader.ts"
import { recordBytes, type Shape, topicsOf } from "./shape.ts"
import { openProgress } from "./progress.ts"

/** Text that compresses to about half, as logs and JSON do; not the same bytes again and again. */
const words = Array.from({ length: 4_096 }, (_, n) => (n * 2_654_435_761 >>> 0).toString(36)).join("")

export const valueOf = (n: number, bytes: number): Buffer => {
  const value = Buffer.allocUnsafe(bytes)
  let at = value.write(`${n}|`)
  // Pieces of 200 bytes from places that differ from record to record.
  for (let i = n; at < bytes; i += 7) {
    const from = (Math.imul(i, 0x9e37_79b1) >>> 8) % (words.length - 200)
    at += value.write(words.slice(from, from + 200), at)
  }
  return value
}

const QUEUE_FULL = -184

export const fill = async (cluster: Bootstrap, shape: Shape): Promise<void> => {
  const topics = topicsOf(shape)
  await createMany(cluster, topics, shape.partitions)
  const producer = new Producer({
    "bootstrap.servers": cluster.bootstrap,
    "compression.codec": shape.codec,
    "batch.size": shape.batchBytes,
    "linger.ms": 5,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 131_072,
    "message.max.bytes": 2_000_000
  }, {})
  await connect(producer)
  producer.setPollInterval(5)
  const produce = (n: number): boolean => {
    try {
      const topic = topics[Math.floor(n / shape.partitions) % topics.length] as string
      producer.produce(topic, n % shape.partitions, valueOf(n, shape.valueBytes), `k${n}`)
      return true
    } catch (error) {
      if ((error as { readonly code?: number }).code === QUEUE_FULL) return false
      throw error
    }
  }
  for (let n = 0; n < shape.records; n++) {
    if (!produce(n)) await until(() => produce(n), { what: "room in the producer's queue", everyMs: 5 })
  }
  await call("flush", (done) => producer.flush(120_000, done as never))
  await disconnect(producer)
  const progress = await openProgress(cluster, topics)
  const there = await progress.offsets()
  await progress.close()
  if (there !== shape.records) throw new Error(`the source of ${shape.name} has ${there} of ${shape.records} records`)
}

export const describe = (shape: Shape): string =>
  `${shape.name}: ${shape.records} records, ${Math.round(recordBytes(shape) / 1e6)} MB`
