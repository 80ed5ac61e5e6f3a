/** The harness itself: a judge that sees nothing would pass everything. */
import { assert, describe, it } from "@effect/vitest"
import { createTopic, deleteRecords, endOffsets, growTopic, listTopics } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { compare } from "../kit/compare.ts"
import { startCluster } from "../kit/kafka.ts"
import { loadWithJava } from "../kit/javaLoader.ts"
import { type Codec, load, makeRecords, openLoader } from "../kit/loader.ts"
import { segmentBatches } from "../kit/segments.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"

const { source, target } = sharedClusters()

describe("the harness", () => {
  it("gives two clusters with ids of their own", () => {
    assert.notStrictEqual(source.clusterId, target.clusterId)
  })

  for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"] satisfies ReadonlyArray<Codec>) {
    it(`reads back every record that it wrote with ${codec}`, async () => {
      const topic = unique("kit-codec")
      await createTopic(source, topic, { partitions: 2 })
      await load(source, makeRecords({ topic, count: 500, partitions: 2 }), { codec })
      const records = await readTopics(source, [topic])
      assert.strictEqual(new Set(records.map(({ value }) => value?.toString())).size, 500)
      assert.deepStrictEqual(await endOffsets(source, topic), [250, 250])
    })
  }

  it("keeps null keys, null values, empty ones and repeated headers apart", async () => {
    const topic = unique("kit-nulls")
    await createTopic(source, topic)
    await load(source, [
      { topic, partition: 0, key: null, value: null, timestamp: 1_700_000_000_000, headers: [["h", "1"], ["h", "2"]] },
      { topic, partition: 0, key: "", value: "" }
    ])
    const [first, second] = await readTopics(source, [topic])
    assert.deepStrictEqual([first?.key, first?.value, first?.timestamp], [null, null, 1_700_000_000_000])
    assert.deepStrictEqual(first?.headers.map(([name, value]) => `${name}=${value}`), ["h=1", "h=2"])
    assert.deepStrictEqual([second?.key?.length, second?.value?.length], [0, 0])
  })

  it("writes null header values with Java, and sees them in the broker's file", async () => {
    const topic = unique("kit-java")
    await createTopic(source, topic)
    const headers = [["a", null], ["b", ""], ["a", "x"]] as const
    assert.deepStrictEqual(await loadWithJava(source, [{ topic, partition: 0, key: "k", value: null, headers }]), [0])
    const [batch] = segmentBatches(source, topic, 0)
    // Length, attributes, timestamp and offset deltas; key "k", value null (length -1 is 01), three headers.
    const tail = Buffer.from("026b" + "01" + "06" + "0261" + "01" + "0262" + "00" + "0261" + "0278", "hex")
    assert.strictEqual(batch?.recordCount, 1)
    assert.strictEqual(batch?.records.subarray(-tail.length).toString("hex"), tail.toString("hex"))
  })

  it("sees each batch in the broker's file, markers too", async () => {
    const topic = unique("kit-segments")
    await createTopic(source, topic)
    await load(source, makeRecords({ topic, count: 100 }), { codec: "zstd", transactionalId: unique("kit") })
    // The marker follows the commit by itself, a little later.
    const batches = await until(() => {
      const found = segmentBatches(source, topic, 0)
      return found.at(-1)?.isControl === true && found
    }, { what: "the commit's marker in the file" })
    const records = batches.filter(({ isControl }) => !isControl)
    assert.strictEqual(records.reduce((sum, { recordCount }) => sum + recordCount, 0), 100)
    assert.isTrue(records.every(({ codec, isTransactional }) => codec === "zstd" && isTransactional))
  })

  it("does not show what was aborted, nor what is still open", async () => {
    const topic = unique("kit-transactions")
    await createTopic(source, topic)
    const loader = await openLoader(source, { transactionalId: unique("kit") })
    const send = (prefix: string) => loader.send(makeRecords({ topic, count: 10, prefix }))
    await loader.begin()
    await send("committed")
    await loader.commit()
    await loader.begin()
    await send("aborted")
    await loader.abort()
    const committed = await readTopics(source, [topic])
    assert.strictEqual(committed.length, 10)
    await loader.begin()
    await send("open")
    assert.strictEqual((await readTopics(source, [topic])).length, 10)
    assert.strictEqual((await readTopics(source, [topic], { isolation: "read_uncommitted" })).length, 30)
    await loader.abort()
    await loader.close()
  })

  it("finds a record that is lost, doubled, altered, misplaced, out of order or foreign", async () => {
    const topic = unique("kit-compare")
    await createTopic(source, topic, { partitions: 2 })
    await createTopic(target, topic, { partitions: 2 })
    const records = [...makeRecords({ topic, count: 10, partitions: 2 })].map((r) => ({
      ...r,
      timestamp: 1_700_000_000_000
    }))
    await load(source, records)
    const [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9] = records as [typeof records[0], ...typeof records]
    const foreign = [...makeRecords({ topic, count: 1, from: 99 })].map((r) => ({ ...r, timestamp: 1_700_000_000_000 }))
    const bad = [r0, r0, { ...r1, value: "other" }, { ...r2, partition: 1 }, r4, r6, r8, r5, r3, r7, ...foreign]
    await load(target, bad as typeof records)
    const result = compare(await readTopics(source, [topic]), await readTopics(target, [topic]))
    const id = (n: number) => `${topic}:${n}`
    assert.deepStrictEqual(result.lost, [id(9)])
    assert.isDefined(r9)
    assert.deepStrictEqual(result.doubled, [id(0)])
    assert.deepStrictEqual(result.altered, [`${id(1)} (value)`])
    assert.deepStrictEqual(result.misplaced, [id(2)])
    assert.deepStrictEqual(result.outOfOrder, [id(3)])
    assert.deepStrictEqual(result.foreign, [id(99)])
  })

  it("grows a topic and deletes records from its start", async () => {
    const topic = unique("kit-grow")
    await createTopic(source, topic)
    await load(source, makeRecords({ topic, count: 10 }))
    await growTopic(source, topic, 3)
    assert.strictEqual((await listTopics(source)).get(topic), 3)
    await deleteRecords(source, topic, 0, 4)
    assert.strictEqual((await readTopics(source, [topic])).length, 6)
  })

  it("kills a broker and brings it back with its data", async () => {
    const cluster = await startCluster({ name: "kit-restart" })
    try {
      await createTopic(cluster, "t")
      await load(cluster, makeRecords({ topic: "t", count: 100 }))
      await cluster.kill("SIGKILL")
      await cluster.restart()
      assert.strictEqual((await readTopics(cluster, ["t"])).length, 100)
    } finally {
      await cluster.stop()
    }
  })

  it("runs a Kafka without share groups", async () => {
    const cluster = await startCluster({ name: "kit-old", version: "3.9.2" })
    try {
      await createTopic(cluster, "t")
      await load(cluster, makeRecords({ topic: "t", count: 10 }))
      assert.strictEqual((await readTopics(cluster, ["t"])).length, 10)
    } finally {
      await cluster.stop()
    }
  })
})
