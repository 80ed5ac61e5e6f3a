/**
 * Measures how long records take from a producer on one cluster to a reader in read_committed on another: a process of its own
 * with both clients in it, so that one clock counts. Argument: a JSON document (Probe). Prints a JSON document (Heard).
 *
 * It sends at a steady rate from its start. What counts begins when the mirror has caught up (a record younger than a second
 * has arrived) and some seconds of warming up are over.
 */
import { connect, KafkaConsumer, type Message, Producer } from "../test/kit/rdkafka.ts"
import { until } from "../test/kit/until.ts"

export interface Probe {
  readonly source: string
  readonly topic: string
  readonly target: string
  readonly targetTopic: string
  readonly partitions: number
  readonly recordsPerSecond: number
  readonly valueBytes: number
  readonly warmSeconds: number
  readonly seconds: number
}

export interface Heard {
  /** Milliseconds, in the order of sending. */
  readonly latencies: ReadonlyArray<number>
  readonly lost: number
  readonly doubled: number
}

const probe = JSON.parse(process.argv[2] ?? "{}") as Probe

const producer = new Producer({
  "bootstrap.servers": probe.source,
  "linger.ms": 0,
  "socket.nagle.disable": true
}, {})
const consumer = new KafkaConsumer({
  "bootstrap.servers": probe.target,
  "group.id": `latency-${process.pid}`,
  "enable.auto.commit": false,
  "isolation.level": "read_committed",
  "fetch.min.bytes": 1,
  "fetch.wait.max.ms": 100,
  "socket.nagle.disable": true
}, { "auto.offset.reset": "earliest" })
await connect(producer)
await connect(consumer)
producer.setPollInterval(50)

const sentAt: Array<number> = []
const heardAt: Array<number> = []
let doubled = 0
/** The age of the youngest record that has arrived. */
let newest = Infinity

const hear = (message: Message): void => {
  const now = performance.now()
  const n = message.value?.readUInt32BE(0) ?? 0
  if (heardAt[n] !== undefined) doubled++
  else heardAt[n] = now
  newest = Math.min(newest, now - (sentAt[n] ?? -Infinity))
}

// It waits on the queue of what was fetched, and wakes with each record; a time-out is what would make it sleep.
consumer.setDefaultConsumeTimeout(1_000)
consumer.setDefaultConsumeLoopTimeoutDelay(1)
consumer.on("data", hear)
consumer.assign(
  Array.from({ length: probe.partitions }, (_, partition) => ({ topic: probe.targetTopic, partition, offset: -2 }))
)
consumer.consume()

const filler = Buffer.alloc(probe.valueBytes, "mirrors show what is before them; ")
const send = (): void => {
  const value = Buffer.from(filler)
  const n = sentAt.length
  value.writeUInt32BE(n, 0)
  sentAt.push(performance.now())
  producer.produce(probe.topic, n % probe.partitions, value, null)
}

const begun = performance.now()
const pace = setInterval(() => {
  const due = (performance.now() - begun) / 1000 * probe.recordsPerSecond
  while (sentAt.length < due) send()
}, 1)
const passed = async (seconds: number, what: string): Promise<void> => {
  const end = performance.now() + seconds * 1000
  await until(() => performance.now() >= end, { what, timeoutMs: seconds * 1000 + 60_000, everyMs: 20 })
}

await until(() => newest < 1_000, { what: "a record younger than a second", timeoutMs: 180_000 })
await passed(probe.warmSeconds, "warming up")
const from = sentAt.length
await passed(probe.seconds, "the time that counts")
const to = sentAt.length
// It goes on sending: what comes last must not wait longer than the rest because nothing follows.
const missing = (): number => {
  let count = 0
  for (let n = from; n < to; n++) if (heardAt[n] === undefined) count++
  return count
}
await until(() => missing() === 0, { what: "the last records", timeoutMs: 20_000 }).catch(() => undefined)
clearInterval(pace)

const latencies: Array<number> = []
for (let n = from; n < to; n++) {
  const heard = heardAt[n]
  if (heard !== undefined) latencies.push(Math.round((heard - (sentAt[n] as number)) * 100) / 100)
}
const heard: Heard = { latencies, lost: to - from - latencies.length, doubled }
process.stdout.write(JSON.stringify(heard), () => process.exit(0))
