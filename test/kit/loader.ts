/**
 * Fills topics through librdkafka: records with an identity, any codec, inside or outside of transactions.
 *
 *   await load(cluster, makeRecords({ topic: "orders", count: 1_000, partitions: 2 }), { codec: "zstd" })
 *
 *   const loader = await openLoader(cluster, { transactionalId: "t1" })
 *   await loader.begin(); await loader.send(records); await loader.abort()
 *   await loader.close()     // a transaction that is open then stays open until the broker's time-out
 *
 * Gotcha: this client cannot write a header whose value is null or whose key is not UTF-8; javaLoader.ts can.
 */
import { call, type ClientProperties, connect, disconnect, Producer, type Sender, toError } from "./rdkafka.ts"
import { until, within } from "./until.ts"

/** The header that carries a record's identity; the auditor looks there first. */
export const identityHeader = "kit-id"

export type Codec = "none" | "gzip" | "snappy" | "lz4" | "zstd"

export interface LoadRecord {
  readonly topic: string
  readonly partition: number
  readonly key?: Buffer | string | null
  readonly value: Buffer | string | null
  /** In order; a key may come more than once. */
  readonly headers?: ReadonlyArray<readonly [key: string, value: Buffer | string]>
  /** CreateTime, milliseconds; default now. */
  readonly timestamp?: number
}

export interface LoaderOptions {
  readonly codec?: Codec
  readonly transactionalId?: string
  /** Transaction time-out, milliseconds. Default 60 000. */
  readonly transactionTimeoutMs?: number
  readonly properties?: ClientProperties
}

export interface Loader {
  /** Answers when the broker has confirmed every record; the offsets are in the order of the records. */
  readonly send: (records: Iterable<LoadRecord>) => Promise<ReadonlyArray<number>>
  readonly begin: () => Promise<void>
  readonly commit: () => Promise<void>
  readonly abort: () => Promise<void>
  readonly close: () => Promise<void>
}

export interface Bootstrap {
  readonly bootstrap: string
}

const settings = (cluster: Bootstrap, options: LoaderOptions) => ({
  "bootstrap.servers": cluster.bootstrap,
  "compression.codec": options.codec ?? "none",
  "enable.idempotence": true,
  "linger.ms": 5,
  "queue.buffering.max.messages": 1_000_000,
  "message.max.bytes": 10_000_000,
  "dr_cb": true,
  ...(options.transactionalId === undefined ? {} : {
    "transactional.id": options.transactionalId,
    "transaction.timeout.ms": options.transactionTimeoutMs ?? 60_000
  }),
  ...options.properties
})

const bytes = (value: Buffer | string | null | undefined): Buffer | null =>
  value === null || value === undefined ? null : Buffer.from(value)

const queueFull = -184

const send = async (producer: Sender, records: Iterable<LoadRecord>): Promise<ReadonlyArray<number>> => {
  const offsets: Array<number> = []
  const failures: Array<Error> = []
  let sent = 0
  let answered = 0
  const onReport = (error: unknown, report: { opaque?: unknown; offset: number }) => {
    answered++
    if (error) failures.push(toError("delivery", error))
    else offsets[report.opaque as number] = report.offset
  }
  producer.on("delivery-report", onReport)
  const produce = ({ headers, key, partition, timestamp, topic, value }: LoadRecord): boolean => {
    try {
      const own = headers?.map(([name, content]) => ({ [name]: content }))
      producer.produce(topic, partition, bytes(value), bytes(key), timestamp ?? null, sent, own)
      return true
    } catch (error) {
      if ((error as { code?: number }).code === queueFull) return false
      throw toError(`produce to ${topic}-${partition}`, error)
    }
  }
  try {
    for (const record of records) {
      if (!produce(record)) await until(() => produce(record), { what: "room in the producer's queue" })
      sent++
      // Lets delivery reports in between.
      if (sent % 10_000 === 0) await new Promise(setImmediate)
    }
    await until(() => answered === sent, {
      what: () => `the broker's word on ${sent - answered} of ${sent} records`,
      timeoutMs: 120_000,
      everyMs: 10
    })
  } finally {
    producer.off("delivery-report", onReport)
  }
  if (failures.length > 0) throw new Error(`${failures.length} of ${sent} records failed: ${failures[0]?.message}`)
  return offsets
}

export const openLoader = async (cluster: Bootstrap, options: LoaderOptions = {}): Promise<Loader> => {
  const producer = new Producer(settings(cluster, options), {})
  await connect(producer)
  producer.setPollInterval(5)
  if (options.transactionalId !== undefined) {
    await call("initTransactions", (done) => producer.initTransactions(60_000, done as never))
  }
  return {
    send: (records) => send(producer, records),
    begin: () => call("beginTransaction", (done) => producer.beginTransaction(done as never)),
    commit: () => call("commitTransaction", (done) => producer.commitTransaction(60_000, done as never)),
    abort: () => call("abortTransaction", (done) => producer.abortTransaction(60_000, done as never)),
    close: async () => {
      await within(disconnect(producer), { what: "the loader to disconnect", timeoutMs: 30_000 })
    }
  }
}

/** Opens, sends, closes; with a transactional id, in one transaction that is committed. */
export const load = async (
  cluster: Bootstrap,
  records: Iterable<LoadRecord>,
  options: LoaderOptions = {}
): Promise<ReadonlyArray<number>> => {
  const loader = await openLoader(cluster, options)
  try {
    if (options.transactionalId === undefined) return await loader.send(records)
    await loader.begin()
    const offsets = await loader.send(records)
    await loader.commit()
    return offsets
  } finally {
    await loader.close()
  }
}

export interface RecordsOptions {
  readonly topic: string
  readonly count: number
  /** Spread round robin over this many. Default 1. */
  readonly partitions?: number
  /** Number of the first. Default 0. */
  readonly from?: number
  /** Length of each value. Default 100. */
  readonly valueBytes?: number
  /** Goes before the number in the identity. Default the topic. */
  readonly prefix?: string
}

/** Records whose identity ("prefix:number") is in a header, the key and the value. */
export const makeRecords = function*(options: RecordsOptions): Generator<LoadRecord> {
  const { count, from = 0, partitions = 1, prefix = options.topic, topic, valueBytes = 100 } = options
  for (let n = from; n < from + count; n++) {
    const id = `${prefix}:${n}`
    yield {
      topic,
      partition: n % partitions,
      key: `key-${n}`,
      value: `${id}|`.padEnd(valueBytes, String.fromCharCode(97 + n % 26)),
      headers: [[identityHeader, id]]
    }
  }
}
