/**
 * Reads topics with librdkafka in read_committed and prints their fingerprint (belief.ts) as JSON: a process of its own, so
 * that what it holds and costs is gone before the next run is measured.
 *
 * Arguments: bootstrap, header that the transform adds, topics.
 */
import { call, connect, disconnect, KafkaConsumer, type Message } from "../test/kit/rdkafka.ts"
import { until } from "../test/kit/until.ts"
import { makePrinter } from "./belief.ts"

const [bootstrap = "", header = "", ...topics] = process.argv.slice(2)
const numbers = new Map(topics.map((topic, n) => [topic, n]))

const consumer = new KafkaConsumer({
  "bootstrap.servers": bootstrap,
  "group.id": `fingerprint-${process.pid}`,
  "enable.auto.commit": false,
  "enable.partition.eof": true,
  "isolation.level": "read_committed",
  "fetch.message.max.bytes": 4_000_000,
  "queued.max.messages.kbytes": 131_072
}, { "auto.offset.reset": "error" })
await connect(consumer)

const metadata = await call<{ topics: ReadonlyArray<{ name: string; partitions: ReadonlyArray<{ id: number }> }> }>(
  "metadata",
  (done) => consumer.getMetadata({ allTopics: true, timeout: 30_000 }, done as never)
)
const parts = metadata.topics.filter(({ name }) => numbers.has(name)).flatMap(({ name, partitions }) =>
  partitions.map(({ id }) => ({ topic: name, partition: id }))
)
const open = new Set(parts.map(({ partition, topic }) => `${topic}-${partition}`))
consumer.on("partition.eof", ({ partition, topic }) => void open.delete(`${topic}-${partition}`))
consumer.assign(parts.map((part) => ({ ...part, offset: -2 })))
consumer.setDefaultConsumeTimeout(50)

const printer = makePrinter()
const hasHeader = (message: Message): boolean => message.headers?.some((one) => Object.hasOwn(one, header)) ?? false
/** Every end of a partition ends a call: with ten thousand of them, a pause after each would be most of the time. */
const CALLS = 500
await until(async () => {
  for (let calls = 0; calls < CALLS && open.size > 0; calls++) {
    const messages = await call<ReadonlyArray<Message>>("consume", (done) => consumer.consume(5_000, done as never))
    for (const message of messages) {
      const { key, partition, timestamp, topic, value } = message
      printer.add(numbers.get(topic) as number, { partition, key, value, timestamp, header: hasHeader(message) })
    }
  }
  return open.size === 0
}, {
  timeoutMs: 300_000,
  everyMs: 1,
  what: () => `the end of ${open.size} partitions after ${printer.total()} records`
})
await disconnect(consumer)
process.stdout.write(JSON.stringify(printer.result()), () => process.exit(0))
