/** Topics by the hundred: created and deleted in few requests. */
import { Admin } from "@platformatic/kafka"
import type { Bootstrap } from "../test/kit/loader.ts"
import { until } from "../test/kit/until.ts"

export const openAdmin = (cluster: Bootstrap): Admin =>
  new Admin({ clientId: "bench", bootstrapBrokers: [cluster.bootstrap], retries: 10, retryDelay: 200, timeout: 60_000 })

export const withAdmin = async <A>(cluster: Bootstrap, use: (admin: Admin) => Promise<A>): Promise<A> => {
  const admin = openAdmin(cluster)
  try {
    return await use(admin)
  } finally {
    await admin.close()
  }
}

const CHUNK = 100

const chunks = (names: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from({ length: Math.ceil(names.length / CHUNK) }, (_, n) => names.slice(n * CHUNK, (n + 1) * CHUNK))

/** Answers when every partition has a leader. */
export const createMany = (cluster: Bootstrap, topics: ReadonlyArray<string>, partitions: number): Promise<void> =>
  withAdmin(cluster, async (admin) => {
    for (const some of chunks(topics)) {
      await admin.createTopics({ topics: [...some], partitions, replicas: 1 })
      await until(async () => {
        const found = await admin.metadata({ topics: [...some], forceUpdate: true })
        return some.every((topic) => {
          const there = found.topics.get(topic)?.partitions
          return there?.length === partitions && there.every(({ leader }) => leader >= 0)
        })
      }, { what: () => `${some.length} topics to have leaders`, timeoutMs: 120_000 })
    }
  })

/** Those of these names that there are. */
export const deleteMany = (cluster: Bootstrap, topics: ReadonlyArray<string>): Promise<void> =>
  withAdmin(cluster, async (admin) => {
    const there = new Set(await admin.listTopics())
    for (const some of chunks(topics.filter((topic) => there.has(topic)))) {
      await admin.deleteTopics({ topics: [...some] })
    }
  })

export const topicsWithPrefix = (cluster: Bootstrap, prefix: string): Promise<ReadonlyArray<string>> =>
  withAdmin(cluster, async (admin) => (await admin.listTopics()).filter((topic) => topic.startsWith(prefix)))
