/**
 * KIP-1302's cases that need a running flow: what the share group is given, which metrics each mode has, what one mode
 * does not know of the other; and records that expire before they are mirrored. The three levels of group.protocol
 * are in test/config/groupProtocol.test.ts, the acknowledgement loop in test/mirror/lane.test.ts.
 */
import { assert, describe, it } from "vitest"
import { createTopic, deleteRecords, groupConfigs } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { endOfRun } from "../kit/failures.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { type Config, mirrorConfig, type Onceover, type Sample, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"

const { source, target } = sharedClusters()
type Mode = "share" | "consumer"

const topicWith = async (count: number, partitions = 1): Promise<string> => {
  const topic = unique("modes")
  await createTopic(source, topic, { partitions })
  if (count > 0) await load(source, makeRecords({ topic, count, partitions }))
  return topic
}
const flow = (topic: string, mode: Mode, more: Config = {}): Config => ({
  topics: [topic],
  "group.protocol": mode,
  "group.id": unique(`g-${mode}`),
  "delivery.guarantee": "at-least-once",
  ...more
})
const arrived = async (topic: string): Promise<number> => (await readTopics(target, [`east.${topic}`])).length

const valueOf = (metrics: ReadonlyMap<string, ReadonlyArray<Sample>>, name: string): number =>
  (metrics.get(name) ?? []).reduce((sum, { value }) => sum + value, 0)

const running = async (config: Config, use: (mirror: Onceover) => Promise<void>): Promise<void> => {
  const mirror = await startOnceover({ config: mirrorConfig(source, target, config) })
  try {
    await mirror.untilRunning()
    await use(mirror)
  } finally {
    await mirror.dispose()
  }
}

describe("the share consumer's settings", () => {
  it("are what a mirror needs, with the flow's overrides over them", async () => {
    const topic = await topicWith(10)
    const settings = flow(topic, "share", { "consumer.override.share.record.lock.duration.ms": 15_000 })
    await mirrorUntilCaughtUp(source, target, settings)
    const configs = await groupConfigs(source, settings["group.id"] as string)
    assert.strictEqual(configs.get("share.auto.offset.reset"), "earliest")
    assert.strictEqual(configs.get("share.isolation.level"), "read_committed")
    assert.strictEqual(configs.get("share.record.lock.duration.ms"), "15000")
    assert.isAbove(Number(configs.get("share.delivery.count.limit")), 5)
  })

  it("implicit acknowledgement mirrors everything, and what was mirrored does not come again", async () => {
    const topic = await topicWith(500, 2)
    const settings = flow(topic, "share", { "share.acknowledgement.mode": "implicit" })
    await mirrorUntilCaughtUp(source, target, settings)
    assert.strictEqual(await arrived(topic), 500)
    await mirrorUntilCaughtUp(source, target, settings)
    assert.strictEqual(await arrived(topic), 500)
  })
})

describe("metrics of a flow that runs", () => {
  it("share: acquired and acknowledged agree with the records; nothing of the other mode", async () => {
    const topic = await topicWith(200, 2)
    await running(flow(topic, "share"), async (mirror) => {
      await until(async () => valueOf(await mirror.metrics(), "onceover_records_acknowledged_total") >= 200, {
        timeoutMs: 60_000,
        what: () => `200 acknowledged records; ${mirror.output().slice(-2_000)}`
      })
      const metrics = await mirror.metrics()
      assert.strictEqual(valueOf(metrics, "onceover_records_acquired_total"), 200)
      assert.strictEqual(valueOf(metrics, "onceover_acknowledge_seconds_count"), 200)
      assert.strictEqual(valueOf(metrics, "onceover_records_mirrored_total"), 200)
      for (const name of ["onceover_partition_count", "onceover_offset_commit_seconds_count"]) {
        assert.isFalse(metrics.has(name), name)
      }
    })
  })

  it("consumer: the partitions of all lanes and the time of commits; nothing of the other mode", async () => {
    const topic = await topicWith(200, 3)
    await running(flow(topic, "consumer", { "tasks.max": 2 }), async (mirror) => {
      let [partitions, commits, mirrored] = [0, 0, 0]
      await until(async () => {
        const metrics = await mirror.metrics()
        partitions = valueOf(metrics, "onceover_partition_count")
        commits = valueOf(metrics, "onceover_offset_commit_seconds_count")
        mirrored = valueOf(metrics, "onceover_records_mirrored_total")
        return partitions === 3 && commits > 0 && mirrored === 200
      }, {
        timeoutMs: 60_000,
        what: () =>
          `3 partitions (${partitions}), a commit (${commits}), 200 records (${mirrored}); ${
            mirror.output().slice(-2_000)
          }`
      })
      const metrics = await mirror.metrics()
      const strangers = [...metrics.keys()].filter((name) =>
        /^onceover_(records_(acquired|acknowledged|released|rejected|redelivered|repaired)|acknowledge)/.test(name)
      )
      assert.deepStrictEqual(strangers, [])
    })
  })
})

describe("a flow that changes its mode", () => {
  it("starts over with the other group, says that progress is separate, and finds its place again on the way back", async () => {
    const topic = await topicWith(30)
    const share = flow(topic, "share")
    const consumer = flow(topic, "consumer")
    const output = await mirrorUntilCaughtUp(source, target, share)
    assert.match(output, /the progress of a share group and of a consumer group are separate/)
    assert.strictEqual(await arrived(topic), 30)
    await mirrorUntilCaughtUp(source, target, consumer)
    assert.strictEqual(await arrived(topic), 60)
    await load(source, makeRecords({ topic, count: 5, prefix: "later" }))
    await mirrorUntilCaughtUp(source, target, share)
    assert.strictEqual(await arrived(topic), 65)
  })
})

describe("records that expire before they are mirrored", () => {
  // 40 were mirrored, 30 are gone, 30 are left. A share group's start offset lags behind, so it can only bound the count.
  const said = {
    share: "offsets \\d+ to 69, with (30 records|at least 30 and at most \\d+ records) that had not been mirrored",
    consumer: "offsets 40 to 69 \\(at most 30 records\\) are gone from the source"
  }
  for (const mode of ["share", "consumer"] as const) {
    it(`${mode}: fail ends the program with topic, partition and offsets; continue counts them and goes on`, async () => {
      const topic = await topicWith(40)
      const settings = flow(topic, mode, { "tasks.max": 1 })
      await mirrorUntilCaughtUp(source, target, settings)
      await load(source, makeRecords({ topic, count: 60, prefix: "more" }))
      await deleteRecords(source, topic, 0, 70)
      const end = await endOfRun(
        mirrorConfig(source, target, { ...settings, "on.source.gap": "fail" }),
        ["run", "--until-caught-up"]
      )
      assert.strictEqual(end.code, 1, end.output)
      assert.match(end.said.join("\n"), new RegExp(`${topic}-0: .*${said[mode]}`))
      assert.strictEqual(await arrived(topic), 40)
      await running({ ...settings, "on.source.gap": "continue" }, async (mirror) => {
        await until(async () => await arrived(topic) === 70, {
          timeoutMs: 60_000,
          what: () => `the records behind the gap; ${mirror.output().slice(-2_000)}`
        })
        const counted = valueOf(await mirror.metrics(), "onceover_source_gap_records_total")
        assert.isAtLeast(counted, 30)
        assert.isAtMost(counted, mode === "share" ? 60 : 30)
        assert.match(mirror.output(), new RegExp(`${topic}-0: .*${said[mode]}`))
      })
    })
  }
})
