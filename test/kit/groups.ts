/**
 * Consumer groups through librdkafka: commits as an application makes them, and what a member of a group reads when
 * it begins where the group stands.
 */
import { type AuditRecord, toRecord } from "./auditor.ts"
import type { Bootstrap } from "./loader.ts"
import { call, connect, type Consumer, disconnect, KafkaConsumer, type Message } from "./rdkafka.ts"
import { until, within } from "./until.ts"

export interface GroupOffset {
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

const opened = async (cluster: Bootstrap, group: string): Promise<Consumer> => {
  const consumer = new KafkaConsumer({
    "bootstrap.servers": cluster.bootstrap,
    "group.id": group,
    "enable.auto.commit": false,
    "enable.partition.eof": true,
    "isolation.level": "read_committed"
    // A position that is not there must not look like one at the beginning.
  }, { "auto.offset.reset": "error" })
  await connect(consumer)
  return consumer
}

const using = async <A>(cluster: Bootstrap, group: string, use: (consumer: Consumer) => Promise<A>): Promise<A> => {
  const consumer = await opened(cluster, group)
  try {
    return await use(consumer)
  } finally {
    await within(disconnect(consumer), { what: "a member to disconnect", timeoutMs: 30_000 })
  }
}

/** Commits from outside of the group's membership, as an application with assigned partitions does. */
export const commitOffsets = (cluster: Bootstrap, group: string, offsets: ReadonlyArray<GroupOffset>): Promise<void> =>
  using(cluster, group, async (consumer) => {
    consumer.assign(offsets.map(({ partition, topic }) => ({ topic, partition })))
    // A coordinator that has just been elected is not there at once.
    await until(() => {
      consumer.commitSync(offsets.map((offset) => ({ ...offset })))
      return true
    }, { what: `offsets of ${group} to be committed` })
  })

/** What the group has committed, by "topic-partition". */
export const committedOffsets = (
  cluster: Bootstrap,
  group: string,
  parts: ReadonlyArray<{ readonly topic: string; readonly partition: number }>
): Promise<ReadonlyMap<string, number>> =>
  using(cluster, group, async (consumer) => {
    const found = await call<ReadonlyArray<{ topic: string; partition: number; offset?: number }>>(
      "committed",
      (done) => consumer.committed(parts.map((part) => ({ ...part })) as never, 30_000, done as never)
    )
    return new Map(
      found.flatMap(({ offset, partition, topic }) =>
        typeof offset === "number" && offset >= 0 ? [[`${topic}-${partition}`, offset] as const] : []
      )
    )
  })

/** Joins the group and reads from where it stands to the end of each partition. */
export const readAsGroup = (
  cluster: Bootstrap,
  group: string,
  topic: string,
  partitions: number
): Promise<ReadonlyArray<AuditRecord>> =>
  using(cluster, group, async (consumer) => {
    const records: Array<AuditRecord> = []
    const ended = new Set<number>()
    consumer.on("partition.eof", ({ partition }) => void ended.add(partition))
    consumer.subscribe([topic])
    consumer.setDefaultConsumeTimeout(200)
    await until(async () => {
      const messages = await call<ReadonlyArray<Message>>("consume", (done) => consumer.consume(5_000, done as never))
      for (const message of messages) records.push(toRecord(message))
      return ended.size === partitions
    }, {
      everyMs: 1,
      timeoutMs: 60_000,
      what: () => `the end of ${partitions} partitions; ended: ${[...ended].join()}`
    })
    return records
  })

export interface ActiveMember {
  readonly leave: () => Promise<void>
}

/** A member that does nothing but be one; answers when it has partitions. */
export const joinGroup = async (cluster: Bootstrap, group: string, topic: string): Promise<ActiveMember> => {
  const consumer = await opened(cluster, group)
  consumer.subscribe([topic])
  consumer.setDefaultConsumeTimeout(100)
  const consume = () => call<ReadonlyArray<Message>>("consume", (done) => consumer.consume(1, done as never))
  await until(async () => {
    await consume().catch(() => [])
    return consumer.assignments().length > 0
  }, { what: "the member to be given partitions" })
  return { leave: async () => void await within(disconnect(consumer), { what: "a member to leave" }) }
}
