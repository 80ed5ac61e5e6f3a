/**
 * The judge: reads whole topics through librdkafka in read_committed and compares what it saw. It shares no code
 * with what it judges.
 *
 * A read ends where the client says that a partition ends (partition.eof), so control records at the end, which are
 * never seen as records, do not matter, and with an open transaction it ends before it.
 *
 * Gotcha: this client shows a header's null value as an empty one; segments.ts sees the bytes themselves.
 */
import {
  call,
  type ClientProperties,
  connect,
  type Consumer,
  disconnect,
  KafkaConsumer,
  type Message
} from "./rdkafka.ts"
import { type Bootstrap, identityHeader } from "./loader.ts"
import { unique } from "./names.ts"
import { until, within } from "./until.ts"

export interface AuditRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: ReadonlyArray<readonly [key: string, value: Buffer]>
}

export interface ReadOptions {
  /** Default read_committed. */
  readonly isolation?: "read_committed" | "read_uncommitted"
  /** Milliseconds in all. Default 120 000. */
  readonly timeoutMs?: number
  readonly properties?: ClientProperties
}

const partitionsOf = async (consumer: Consumer, topic: string): Promise<ReadonlyArray<number>> => {
  const metadata = await call<{ topics: ReadonlyArray<{ name: string; partitions: ReadonlyArray<{ id: number }> }> }>(
    `metadata of ${topic}`,
    (done) => consumer.getMetadata({ topic, timeout: 10_000 }, done as never)
  )
  return metadata.topics.find(({ name }) => name === topic)?.partitions.map(({ id }) => id) ?? []
}

export const toRecord = (message: Message): AuditRecord => ({
  topic: message.topic,
  partition: message.partition,
  offset: message.offset,
  timestamp: message.timestamp ?? -1,
  key: message.key === null || message.key === undefined ? null : Buffer.from(message.key),
  value: message.value,
  headers: (message.headers ?? []).flatMap((header) =>
    Object.entries(header).map(([name, value]) => [name, Buffer.from(value)] as const)
  )
})

const readPartitions = async (
  consumer: Consumer,
  parts: ReadonlyArray<{ readonly topic: string; readonly partition: number }>,
  timeoutMs: number
): Promise<ReadonlyArray<AuditRecord>> => {
  const records: Array<AuditRecord> = []
  const open = new Set(parts.map(({ partition, topic }) => `${topic}-${partition}`))
  consumer.on("partition.eof", ({ partition, topic }) => void open.delete(`${topic}-${partition}`))
  consumer.assign(parts.map((part) => ({ ...part, offset: -2 })))
  consumer.setDefaultConsumeTimeout(200)
  await until(async () => {
    if (open.size === 0) return true
    const messages = await call<ReadonlyArray<Message>>("consume", (done) => consumer.consume(5_000, done as never))
    for (const message of messages) records.push(toRecord(message))
    return open.size === 0
  }, { timeoutMs, everyMs: 1, what: () => `the end of ${[...open].join(", ")} after ${records.length} records` })
  return records
}

/** Every record of these topics from the beginning to the end they have now. A topic that does not exist fails. */
export const readTopics = async (
  cluster: Bootstrap,
  topics: ReadonlyArray<string>,
  options: ReadOptions = {}
): Promise<ReadonlyArray<AuditRecord>> => {
  const consumer = new KafkaConsumer({
    "bootstrap.servers": cluster.bootstrap,
    "group.id": unique("auditor"),
    "enable.auto.commit": false,
    "enable.partition.eof": true,
    "isolation.level": options.isolation ?? "read_committed",
    "fetch.message.max.bytes": 10_000_000,
    ...options.properties
  }, { "auto.offset.reset": "error" })
  await connect(consumer)
  try {
    const parts: Array<{ topic: string; partition: number }> = []
    for (const topic of topics) {
      const partitions = await partitionsOf(consumer, topic)
      if (partitions.length === 0) throw new Error(`topic ${topic} does not exist on ${cluster.bootstrap}`)
      for (const partition of partitions) parts.push({ topic, partition })
    }
    return await readPartitions(consumer, parts, options.timeoutMs ?? 120_000)
  } finally {
    await within(disconnect(consumer), { what: "the auditor to disconnect", timeoutMs: 30_000 })
  }
}

/** Names of topics that a pattern matches. */
export const topicNames = async (cluster: Bootstrap, pattern: RegExp): Promise<ReadonlyArray<string>> => {
  const consumer = new KafkaConsumer({ "bootstrap.servers": cluster.bootstrap, "group.id": unique("auditor") }, {})
  await connect(consumer)
  try {
    const metadata = await call<{ topics: ReadonlyArray<{ name: string }> }>(
      "metadata",
      (done) => consumer.getMetadata({ allTopics: true, timeout: 10_000 }, done as never)
    )
    return metadata.topics.map(({ name }) => name).filter((name) => pattern.test(name)).sort()
  } finally {
    await disconnect(consumer)
  }
}

/** The identity that the loader gave a record: its header, else its value up to the first "|". */
export const identityOf = (record: AuditRecord): string => {
  const header = record.headers.find(([name]) => name === identityHeader)
  if (header !== undefined) return header[1].toString()
  const text = record.value?.toString() ?? ""
  if (!text.includes("|")) {
    throw new Error(`record ${record.topic}-${record.partition}@${record.offset} has no identity`)
  }
  return text.slice(0, text.indexOf("|"))
}
