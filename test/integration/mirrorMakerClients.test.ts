/** Heartbeats, checkpoints and offset syncs, read by the classes of MirrorMaker 2 that its users' programs are built on. */
import { assert, describe, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { commitOffsets } from "../kit/groups.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { readWithMirrorClient } from "../kit/mirrorClient.ts"
import { mirrorConfig, runOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"

const { source, target } = sharedClusters()

describe("MirrorMaker 2's clients", () => {
  it("translate offsets, find heartbeats and read pairs of offsets from what onceover writes", async () => {
    const topic = unique("clients")
    const alias = unique("src")
    const group = unique("app")
    await createTopic(source, topic, { partitions: 2 })
    await load(source, makeRecords({ topic, count: 200, partitions: 2 }))
    await commitOffsets(source, group, [{ topic, partition: 0, offset: 37 }, { topic, partition: 1, offset: 100 }])
    const { clusters } = mirrorConfig(source, target, {}) as {
      readonly clusters: { readonly east: unknown; readonly west: unknown }
    }
    const { code, output } = await runOnceover({
      config: {
        clusters: { [alias]: clusters.east, west: clusters.west },
        flows: [{
          source: alias,
          target: "west",
          topics: [topic],
          "group.protocol": "consumer",
          groups: [group],
          "emit.heartbeats.enabled": true,
          "emit.checkpoints.enabled": true,
          "emit.offset-syncs.enabled": true,
          "offset-syncs.topic.location": "target"
        }]
      },
      args: ["run", "--until-caught-up"]
    })
    assert.strictEqual(code, 0, output)
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
    assert.include(of("heartbeats")[0], "heartbeats")
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
