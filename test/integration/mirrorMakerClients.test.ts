/** Heartbeats, checkpoints and offset syncs, read by the classes of MirrorMaker 2 that its users' programs are built on. */
import { assert, describe, it } from "vitest"
import { heartbeatRecord } from "../../src/mirror/control/mm2Formats.ts"
import { createTopic } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { committedOffsets, commitOffsets } from "../kit/groups.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { readWithMirrorClient } from "../kit/mirrorClient.ts"
import { parseLogs, runOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"

const { source, target } = sharedClusters()

describe("MirrorMaker 2's clients", () => {
  it("translate offsets, find heartbeats and read pairs of offsets that MirrorMaker's file has written without a word", async () => {
    const topic = unique("clients")
    const alias = unique("src")
    const group = unique("app")
    await createTopic(source, topic, { partitions: 2 })
    await load(source, makeRecords({ topic, count: 200, partitions: 2 }))
    await commitOffsets(source, group, [{ topic, partition: 0, offset: 37 }, { topic, partition: 1, offset: 100 }])
    // Nothing of what is read below is asked for: MirrorMaker does it by default.
    const config = [
      `clusters = ${alias}, west`,
      `${alias}.bootstrap.servers = ${source.bootstrap}`,
      `west.bootstrap.servers = ${target.bootstrap}`,
      `${alias}->west.enabled = true`,
      `${alias}->west.topics = ${topic}`,
      `${alias}->west.groups = ${group}`,
      "offset-syncs.topic.location = target",
      // There is one broker; without this line a warning says whose default it is.
      "replication.factor = 1",
      "http.listen = false"
    ].join("\n")
    // The first run writes the heartbeat on the source that the second one mirrors.
    for (const turn of ["first", "second"]) {
      const { code, output } = await runOnceover({
        config,
        file: "mm2.properties",
        args: ["run", "--until-caught-up"]
      })
      assert.strictEqual(code, 0, `the ${turn} run ended with ${output}`)
      assert.deepStrictEqual(parseLogs(output).filter(({ level = 0 }) => level > 30).map(({ msg }) => msg), [])
    }
    const offsetSyncs = `mm2-offset-syncs.${alias}.internal`
    const lines = await readWithMirrorClient(target, { source: alias, group, offsetSyncs })
    const records = await readTopics(target, [`${alias}.${topic}`])
    const of = (word: string) =>
      lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1))
    // The group had consumed all of partition 1: its place is behind the last record, where the next will be or before.
    const [translated] = of("translated")
    const [, p0, p1] = /^\{.*-0=(\d+), .*-1=(\d+)\}$/.exec(translated ?? "") ?? []
    const offsets = (partition: number) => records.filter((r) => r.partition === partition).map((r) => r.offset)
    assert.strictEqual(Number(p0), offsets(0)[37], translated)
    assert.isAbove(Number(p1), offsets(1)[99] as number, translated)
    assert.include(of("heartbeats")[0], `${alias}.heartbeats`)
    assert.include(of("upstream")[0], alias)
    const beats = (await readTopics(target, [`${alias}.heartbeats`])).map(({ key }) => key?.toString("hex"))
    assert.include(beats, heartbeatRecord("west", alias, 0).key.toString("hex"))
    const places = [0, 1].map((partition) => ({ topic: `${alias}.${topic}`, partition }))
    assert.strictEqual(
      (await committedOffsets(target, group, places)).size,
      0,
      "sync.group.offsets.enabled is false there"
    )
    assert.include(of("checkpoints")[0], `${alias}.checkpoints.internal`)
    assert.isTrue(of("heartbeat").some((line) => line.includes(`sourceClusterAlias=${alias}, targetClusterAlias=west`)))
    assert.isTrue(
      of("checkpoint").some((line) =>
        line.includes(`consumerGroupId=${group}`) && line.includes("upstreamOffset=37") &&
        line.includes(`downstreamOffset=${p0}`)
      )
    )
    for (const partition of [0, 1]) {
      const pair = `upstreamOffset=99, downstreamOffset=${offsets(partition)[99]}`
      assert.isTrue(
        of("sync").some((line) => line.includes(`${topic}-${partition}`) && line.includes(pair)),
        of("sync").join("\n")
      )
    }
  })
})
