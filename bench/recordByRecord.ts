/**
 * The plain way to mirror with librdkafka, to compare with: consume each record, produce it again, until the end of
 * the topic. Arguments: source bootstrap, target bootstrap, source topic, target topic, records.
 */
import kafka from "@confluentinc/kafka-javascript"

const [sourceBootstrap, targetBootstrap, from, to, count] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string
]
const total = Number(count)

const consumer = new kafka.KafkaConsumer(
  {
    "bootstrap.servers": sourceBootstrap,
    "group.id": `bench-${process.pid}`,
    "enable.auto.commit": true,
    "queued.max.messages.kbytes": 65_536
  },
  { "auto.offset.reset": "earliest" }
)
const producer = new kafka.Producer(
  {
    "bootstrap.servers": targetBootstrap,
    "enable.idempotence": true,
    "compression.codec": "lz4",
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 262_144,
    dr_cb: true
  },
  {}
)

const connected = (client: { connect: (options: object, done: (error: unknown) => void) => unknown }): Promise<void> =>
  new Promise((resolve, reject) =>
    client.connect({}, (error) => error === null || error === undefined ? resolve() : reject(new Error(String(error))))
  )

await connected(producer)
await connected(consumer)
producer.setPollInterval(5)
let delivered = 0
const done = new Promise<void>((resolve, reject) => {
  producer.on("delivery-report", (error) => {
    if (error !== null && error !== undefined) return reject(new Error(String(error)))
    if (++delivered === total) resolve()
  })
})
consumer.subscribe([from])

/** Produces one record; waits when the queue is full. */
const pass = async (record: kafka.Message): Promise<void> => {
  for (;;) {
    try {
      producer.produce(
        to,
        record.partition,
        record.value,
        record.key,
        record.timestamp ?? null,
        null,
        record.headers ?? []
      )
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
}

let seen = 0
while (seen < total) {
  const records = await new Promise<ReadonlyArray<kafka.Message>>((resolve, reject) =>
    consumer.consume(
      2_000,
      (error: unknown, batch: Array<kafka.Message>) =>
        error === null || error === undefined ? resolve(batch) : reject(new Error(String(error)))
    )
  )
  for (const record of records) await pass(record)
  seen += records.length
}
await done
process.exit(0)
