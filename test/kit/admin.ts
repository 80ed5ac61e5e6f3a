/**
 * Topics, settings and deletions on a test cluster, through the admin client of @platformatic/kafka. Each answers
 * when what it did can be seen (a topic: every partition has a leader).
 */
import { Admin, ConfigResourceTypes, IncrementalAlterConfigOperationTypes } from "@platformatic/kafka"
import type { Bootstrap } from "./loader.ts"
import { until } from "./until.ts"

export interface TopicSpec {
  readonly topic: string
  /** Default 1. */
  readonly partitions?: number
  /** Default: the broker's. */
  readonly replicas?: number
  readonly configs?: Readonly<Record<string, string>>
}

const withAdmin = async <A>(cluster: Bootstrap, use: (admin: Admin) => Promise<A>): Promise<A> => {
  const admin = new Admin({
    clientId: "kit",
    bootstrapBrokers: cluster.bootstrap.split(","),
    retries: 10,
    retryDelay: 200
  })
  try {
    return await use(admin)
  } finally {
    await admin.close()
  }
}

const visible = async (admin: Admin, topic: string, partitions: number): Promise<boolean> => {
  const metadata = await admin.metadata({ topics: [topic], forceUpdate: true })
  const found = metadata.topics.get(topic)
  return found !== undefined && found.partitions.length === partitions &&
    found.partitions.every(({ leader }) => leader >= 0)
}

export const createTopics = (cluster: Bootstrap, specs: ReadonlyArray<TopicSpec>): Promise<void> =>
  withAdmin(cluster, async (admin) => {
    for (const { configs = {}, partitions = 1, replicas = -1, topic } of specs) {
      const settings = Object.entries(configs).map(([name, value]) => ({ name, value }))
      await admin.createTopics({ topics: [topic], partitions, replicas, configs: settings })
    }
    for (const { partitions = 1, topic } of specs) {
      await until(() => visible(admin, topic, partitions), { what: `topic ${topic} to have leaders` })
    }
  })

export const createTopic = (cluster: Bootstrap, topic: string, spec: Omit<TopicSpec, "topic"> = {}): Promise<void> =>
  createTopics(cluster, [{ ...spec, topic }])

export const deleteTopics = (cluster: Bootstrap, topics: ReadonlyArray<string>): Promise<void> =>
  withAdmin(cluster, async (admin) => {
    await admin.deleteTopics({ topics: [...topics] })
    await until(async () => {
      const left = await admin.listTopics()
      return topics.every((topic) => !left.includes(topic))
    }, { what: `topics ${topics.join(", ")} to be gone` })
  })

/** Grows a topic to `count` partitions. */
export const growTopic = (cluster: Bootstrap, topic: string, count: number): Promise<void> =>
  withAdmin(cluster, async (admin) => {
    await admin.createPartitions({ topics: [{ name: topic, count, assignments: null }] })
    await until(() => visible(admin, topic, count), { what: `topic ${topic} to have ${count} partitions` })
  })

const alter = (
  cluster: Bootstrap,
  resourceType: number,
  resourceName: string,
  changes: Readonly<Record<string, string | null>>
): Promise<void> =>
  withAdmin(cluster, async (admin) => {
    const configs = Object.entries(changes).map(([name, value]) => ({
      name,
      value: value ?? "",
      configOperation: value === null
        ? IncrementalAlterConfigOperationTypes.DELETE
        : IncrementalAlterConfigOperationTypes.SET
    }))
    await admin.incrementalAlterConfigs({ resources: [{ resourceType: resourceType as never, resourceName, configs }] })
  })

/** Sets settings of a topic; null takes one back to the default. */
export const alterTopic = (
  cluster: Bootstrap,
  topic: string,
  changes: Readonly<Record<string, string | null>>
): Promise<void> => alter(cluster, ConfigResourceTypes.TOPIC, topic, changes)

/** Sets settings of a group ("share.record.lock.duration.ms"). */
export const alterGroup = (
  cluster: Bootstrap,
  group: string,
  changes: Readonly<Record<string, string | null>>
): Promise<void> => alter(cluster, ConfigResourceTypes.GROUP, group, changes)

const describe = (
  cluster: Bootstrap,
  resourceType: number,
  resourceName: string
): Promise<ReadonlyMap<string, string | null>> =>
  withAdmin(cluster, async (admin) => {
    const [found] = await admin.describeConfigs({
      resources: [{ resourceType: resourceType as never, resourceName, configurationKeys: [] }]
    })
    return new Map((found?.configs ?? []).map(({ name, value }) => [name, value ?? null]))
  })

export const topicConfigs = (cluster: Bootstrap, topic: string) => describe(cluster, ConfigResourceTypes.TOPIC, topic)
export const groupConfigs = (cluster: Bootstrap, group: string) => describe(cluster, ConfigResourceTypes.GROUP, group)

/** Deletes records below an offset, as retention would. */
export const deleteRecords = (cluster: Bootstrap, topic: string, partition: number, before: number): Promise<void> =>
  withAdmin(cluster, async (admin) => {
    await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition, offset: BigInt(before) }] }] })
  })

/** Number of partitions by topic; internal topics left out. */
export const listTopics = (cluster: Bootstrap): Promise<ReadonlyMap<string, number>> =>
  withAdmin(cluster, async (admin) => {
    const names = await admin.listTopics()
    if (names.length === 0) return new Map()
    const metadata = await admin.metadata({ topics: names, forceUpdate: true })
    return new Map([...metadata.topics].map(([name, { partitions }]) => [name, partitions.length]))
  })

const ends = (cluster: Bootstrap, topic: string, isolationLevel: 0 | 1): Promise<ReadonlyArray<number>> =>
  withAdmin(cluster, async (admin) => {
    const metadata = await admin.metadata({ topics: [topic], forceUpdate: true })
    const count = metadata.topics.get(topic)?.partitions.length ?? 0
    const partitions = Array.from({ length: count }, (_, partitionIndex) => ({ partitionIndex, timestamp: -1n }))
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions }], isolationLevel })
    return (found?.partitions ?? []).toSorted((a, b) => a.partitionIndex - b.partitionIndex).map(({ offset }) =>
      Number(offset)
    )
  })

/** Log end offset (high watermark) of each partition of a topic. */
export const endOffsets = (cluster: Bootstrap, topic: string): Promise<ReadonlyArray<number>> => ends(cluster, topic, 0)

/** Last stable offset of each partition: below the first record of an open transaction. */
export const stableOffsets = (cluster: Bootstrap, topic: string): Promise<ReadonlyArray<number>> =>
  ends(cluster, topic, 1)

/**
 * Waits until no transaction is open on these topics: only then does a reader in read_committed see all that is there.
 * One that a killed worker has left open ends when it is fenced, or after its time-out.
 */
export const untilSettled = async (
  cluster: Bootstrap,
  topics: ReadonlyArray<string>,
  timeoutMs = 120_000
): Promise<void> => {
  for (const topic of topics) {
    await until(async () => {
      const [end, stable] = await Promise.all([endOffsets(cluster, topic), stableOffsets(cluster, topic)])
      return end.every((offset, partition) => offset === stable[partition])
    }, { timeoutMs, everyMs: 200, what: `the open transactions on ${topic} to end` })
  }
}
