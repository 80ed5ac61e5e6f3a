/**
 * The plain way to mirror with librdkafka, to compare with: consume each record, produce it again, until it is
 * told to end. Arguments: source bootstrap, target bootstrap, source topic, target topic, codec.
 */
import kafka from "@confluentinc/kafka-javascript"

const [sourceBootstrap = "", targetBootstrap = "", from = "", to = "", codec = "none"] = process.argv.slice(2)

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
    "compression.codec": codec as "none",
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
// A mirror has to know what was not delivered.
producer.on("delivery-report", (error) => {
  if (error !== null && error !== undefined) throw new Error(String(error))
})
consumer.subscribe([from])

const produced = (record: kafka.Message): boolean => {
  try {
    const { headers, key, partition, timestamp, value } = record
    producer.produce(to, partition, value, key, timestamp ?? null, null, headers ?? [])
    return true
  } catch {
    // Its queue is full.
    return false
  }
}

process.once("SIGTERM", () => process.exit(0))
for (;;) {
  const records = await new Promise<ReadonlyArray<kafka.Message>>((resolve, reject) =>
    consumer.consume(
      2_000,
      (error: unknown, batch: Array<kafka.Message>) =>
        error === null || error === undefined ? resolve(batch) : reject(new Error(String(error)))
    )
  )
  for (const record of records) {
    while (!produced(record)) await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
