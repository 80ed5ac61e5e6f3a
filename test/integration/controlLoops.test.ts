/**
 * Clusters that mirror to each other, at the same time in pairs with names kept, with prefixes and with names that are
 * mapped to each other, and in a ring of three: every record once on each of them, and then nothing moves. Groups of
 * topics that are mirrored both ways are left alone.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { createTopics, deleteTopics, endOffsets, listTopics } from "../kit/admin.ts"
import { type AuditRecord, identityOf, readTopics } from "../kit/auditor.ts"
import { committedOffsets, commitOffsets } from "../kit/groups.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"

const { source: east, target: west } = sharedClusters()
const HEADER = "onceover-provenance"
let north: KafkaCluster
beforeAll(async () => {
  north = await startCluster({ name: "loops-north" })
})
afterAll(() => north?.stop())

const provenance = (record: AuditRecord): string | null =>
  record.headers.find(([name]) => name === HEADER)?.[1]?.toString() ?? null
const sum = (offsets: ReadonlyArray<number>): number => offsets.reduce((all, one) => all + one, 0)

describe("active/active", () => {
  it("stands still with names kept, with prefixes, with names mapped to each other, and in a ring; a local topic whose name looks remote is mirrored", async () => {
    const [kept, plain, local] = [unique("kept"), unique("plain"), `west.${unique("local")}`]
    const [ring, here, there] = [unique("ring"), unique("here"), unique("there")]
    await createTopics(east, [{ topic: kept }, { topic: plain }, { topic: local }, { topic: ring }, { topic: here }])
    await createTopics(west, [{ topic: kept }, { topic: plain }, { topic: ring }, { topic: there }])
    await createTopics(north, [{ topic: ring }])
    for (const [cluster, name] of [[east, "e"], [west, "w"], [north, "n"]] as const) {
      await load(cluster, makeRecords({ topic: ring, count: 20, prefix: `ring-${name}` }))
    }
    await load(east, makeRecords({ topic: here, count: 20, prefix: "mapped-e" }))
    await load(west, makeRecords({ topic: there, count: 20, prefix: "mapped-w" }))
    for (const [cluster, name] of [[east, "e"], [west, "w"]] as const) {
      await load(cluster, makeRecords({ topic: kept, count: 20, prefix: `kept-${name}` }))
      await load(cluster, makeRecords({ topic: plain, count: 20, prefix: `plain-${name}` }))
    }
    await load(east, makeRecords({ topic: local, count: 20, prefix: "local" }))
    const app = unique("app")
    await commitOffsets(east, app, [{ topic: kept, partition: 0, offset: 5 }])
    const flow = (from: string, to: string, more: Readonly<Record<string, unknown>>) => ({
      source: from,
      target: to,
      "group.id": unique("loop"),
      "tasks.max": 1,
      "refresh.topics.interval.seconds": 1,
      ...more
    })
    const keep = (from: string, to: string) =>
      flow(from, to, { name: unique(`keep-${from}`), topics: [kept], groups: [app], "replication.policy": "identity" })
    const prefix = (from: string, to: string) =>
      flow(from, to, { name: unique(`prefix-${from}`), topics: [`(.*\\.)?${plain}`, local.replace(".", "\\.")] })
    const mapped = (from: string, to: string, names: readonly [string, string]) =>
      flow(from, to, { name: unique("mapped"), topics: [names[0]], "topic.mapping": { [names[0]]: names[1] } })
    const round = (from: string, to: string) =>
      flow(from, to, { name: unique("ring"), topics: [ring], "replication.policy": "identity" })
    const clusters = { east, west, north }
    const mirror = await startOnceover({
      config: {
        clusters: Object.fromEntries(
          Object.entries(clusters).map(([name, { bootstrap }]) => [name, { "bootstrap.servers": bootstrap }])
        ),
        flows: [
          keep("east", "west"),
          keep("west", "east"),
          prefix("east", "west"),
          prefix("west", "east"),
          mapped("east", "west", [here, there]),
          mapped("west", "east", [there, here]),
          round("east", "west"),
          round("west", "north"),
          round("north", "east")
        ]
      }
    })
    try {
      const ids = async (cluster: typeof east, topic: string) =>
        (await listTopics(cluster)).has(topic) ? (await readTopics(cluster, [topic])).map(identityOf).toSorted() : []
      const places = [
        [east, kept, 40],
        [west, kept, 40],
        [west, `east.${plain}`, 20],
        [east, `west.${plain}`, 20],
        [west, `east.${local}`, 20],
        [east, here, 40],
        [west, there, 40],
        [east, ring, 60],
        [west, ring, 60],
        [north, ring, 60]
      ] as const
      for (const [cluster, topic, count] of places) {
        await until(async () => (await ids(cluster, topic)).length >= count, {
          timeoutMs: 60_000,
          what: () => `${count} records in ${topic}; the log ends with\n${mirror.output().slice(-3_000)}`
        })
      }
      // Each flow has read what the others wrote: then nothing may come of it.
      await until(async () =>
        (await mirror.metrics()).get("onceover_loops_prevented_total")
          // 20 back in each direction of each pair; of the ring's 60 each once, where it has come to its origin.
          ?.reduce((all, { value }) => all + value, 0) === 140, {
        timeoutMs: 60_000,
        what: "all copies that came home to be seen"
      })
      // By the records of one side alone a group would be set behind some of the other side that it has not consumed.
      await until(
        async () =>
          (await mirror.status())?.flows.some(({ control = [] }) =>
            control.some(({ reasons }) => reasons.some((one) => one.includes(app) && /mirrored both ways/.test(one)))
          ),
        { timeoutMs: 30_000, what: "the group to be left alone with the reason" }
      )
      assert.strictEqual((await committedOffsets(west, app, [{ topic: kept, partition: 0 }])).size, 0)
      const ends = async () => {
        const all: Array<number> = []
        for (const [cluster, topic] of places) all.push(sum(await endOffsets(cluster, topic)))
        return all
      }
      const before = await ends()
      // A round trip through flows of each kind: were copies sent back, they would be there before these.
      await load(east, makeRecords({ topic: kept, count: 1, prefix: "last-e" }))
      await load(west, makeRecords({ topic: kept, count: 1, prefix: "last-w" }))
      await load(east, makeRecords({ topic: here, count: 1, prefix: "last-e" }))
      await load(east, makeRecords({ topic: ring, count: 1, prefix: "last-e" }))
      await until(
        async () =>
          (await ids(west, kept)).includes("last-e:0") && (await ids(east, kept)).includes("last-w:0") &&
          (await ids(west, there)).includes("last-e:0") && (await ids(north, ring)).includes("last-e:0"),
        {
          timeoutMs: 60_000,
          what: "the last records"
        }
      )
      for (const [cluster, topic, count] of places) {
        const found = await ids(cluster, topic)
        const more = topic === kept ? 2 : [here, there, ring].includes(topic) ? 1 : 0
        assert.strictEqual(found.length, count + more, topic)
        assert.strictEqual(new Set(found).size, found.length, `${topic} holds a record twice`)
      }
      const grown = (await ends()).map((end, n) => end - (before[n] ?? 0))
      assert.deepStrictEqual(grown.slice(2, 5), [0, 0, 0], "nothing but topics with new records has grown")
      const names = [...(await listTopics(east)).keys(), ...(await listTopics(west)).keys()]
      const rounds = names.filter((name) => name.includes("east.west.") || (name.includes("west.east.")))
      assert.deepStrictEqual(rounds.filter((name) => name !== `east.${local}`), [])
      for (const record of await readTopics(west, [kept])) {
        const from = identityOf(record).includes("-e") ? east.clusterId : null
        assert.strictEqual(provenance(record), from)
      }
      const passed = await readTopics(west, [`east.${plain}`])
      assert.isTrue(passed.every((record) => record.headers.every(([name]) => name !== HEADER)))
    } finally {
      await mirror.dispose()
      await deleteTopics(east, [local])
    }
  })
})
