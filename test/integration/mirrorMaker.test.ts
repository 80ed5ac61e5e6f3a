/** A MirrorMaker 2 file in place of a configuration: it mirrors, and goes on where MirrorMaker stopped. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { runCli } from "../kit/cli.ts"
import { load, type LoadRecord, makeRecords } from "../kit/loader.ts"
import { sharedClusters, unique } from "../kit/shared.ts"

const { source, target } = sharedClusters()

/** A position as MirrorMaker's source connector keeps it (Kafka 4.3.1). */
const position = (offsetsTopic: string, topic: string, partition: number, offset: number | null): LoadRecord => ({
  topic: offsetsTopic,
  partition: 0,
  key: JSON.stringify(["MirrorSourceConnector", { cluster: "east", partition, topic }]),
  value: offset === null ? null : JSON.stringify({ offset })
})

const properties = (topic: string, more: ReadonlyArray<string>): string =>
  [
    "# a file as they are found",
    "clusters = east, west",
    `east.bootstrap.servers = ${source.bootstrap}`,
    `west.bootstrap.servers = ${target.bootstrap}`,
    "east->west.enabled = true",
    `east->west.topics = ${topic}`,
    "replication.factor = 1",
    "offset.storage.replication.factor = 1",
    "sync.topic.acls.enabled = false",
    "emit.heartbeats.enabled = false",
    "west.producer.compression.type = zstd",
    "dedicated.mode.enable.internal.rest = true",
    "tasks.max = 2",
    // A ledger of its own: all tests share the target.
    `east->west.name = ${unique("flow")}`,
    `east->west.group.id = ${unique("g-mm2")}`,
    "http.listen = false",
    ...more
  ].join("\n")

const withFile = async (text: string, use: (path: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "onceover-mm2-"))
  try {
    const path = join(folder, "mm2.properties")
    writeFileSync(path, text)
    await use(path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const run = async (path: string): Promise<string> => {
  const end = await runCli(["run", path, "--until-caught-up"], { timeoutMs: 120_000 })
  assert.strictEqual(end.code, 0, end.out + end.err)
  return end.out
}
const valuesOf = async (topic: string): Promise<ReadonlyArray<string>> =>
  (await readTopics(target, [`east.${topic}`])).map(({ value }) => value?.toString().split("|")[0] ?? "null")

describe("run mm2.properties", () => {
  it("mirrors from the beginning where MirrorMaker has never run, in order; verify takes the file too", async () => {
    const topic = unique("mm2")
    await createTopic(source, topic)
    await load(source, makeRecords({ topic, count: 300 }))
    await withFile(properties(topic, [`offset.storage.topic = ${unique("none")}`]), async (path) => {
      assert.include(await run(path), "nothing to take over from MirrorMaker 2")
      assert.deepStrictEqual(await valuesOf(topic), Array.from({ length: 300 }, (_, n) => `${topic}:${n}`))
      const verified = await runCli(["verify", path], { timeoutMs: 120_000 })
      assert.strictEqual(verified.code, 0, verified.out + verified.err)
    })
  })

  for (const protocol of ["consumer", "share"] as const) {
    it(`goes on where MirrorMaker stopped, once, and from the beginning in what it had not begun (${protocol})`, async () => {
      const topic = unique("mm2")
      const offsetsTopic = unique("mm2-offsets")
      await createTopic(source, topic, { partitions: 3 })
      await createTopic(target, offsetsTopic)
      await load(source, makeRecords({ topic, count: 300, partitions: 3 }))
      await load(target, [
        position(offsetsTopic, topic, 0, 10),
        position(offsetsTopic, topic, 1, 5),
        position(offsetsTopic, topic, 2, 7),
        position(offsetsTopic, topic, 0, 59),
        position(offsetsTopic, topic, 2, null),
        position(offsetsTopic, "of another flow", 0, 3),
        { topic: offsetsTopic, partition: 0, key: "[\"MirrorHeartbeatConnector\",{}]", value: "{\"offset\":0}" }
      ])
      const more = [`offset.storage.topic = ${offsetsTopic}`, `east->west.group.protocol = ${protocol}`]
      await withFile(properties(topic, more), async (path) => {
        assert.include(await run(path), "goes on where MirrorMaker 2 stopped: 2 partitions")
        const expected = Array.from({ length: 300 }, (_, n) => n)
          .filter((n) => n % 3 === 2 || Math.floor(n / 3) > (n % 3 === 0 ? 59 : 5))
          .map((n) => `${topic}:${n}`)
        assert.deepStrictEqual((await valuesOf(topic)).toSorted(), expected.toSorted())
        if (protocol === "share") return
        assert.include(await run(path), "has positions of its own")
        assert.strictEqual((await valuesOf(topic)).length, expected.length)
      })
    })
  }
})
