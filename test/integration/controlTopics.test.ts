/** Topics that change while a flow runs and while it does not: created, set, grown, created again, deleted. Judged by reads of both sides. */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { alterTopic, createTopic, deleteTopics, growTopic, listTopics, topicConfigs } from "../kit/admin.ts"
import { identityOf, readTopics } from "../kit/auditor.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { type Config, mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"

const { source, target } = sharedClusters()

const start = (flow: Config): Promise<Onceover> =>
  startOnceover({ config: mirrorConfig(source, target, { "tasks.max": 1, ...flow }) })

const waitFor = (what: string, mirror: Onceover, condition: () => Promise<boolean>): Promise<unknown> =>
  until(condition, {
    timeoutMs: 60_000,
    everyMs: 200,
    what: () => `${what}; the log ends with\n${mirror.output().slice(-3_000)}`
  })

/** Identities of what a topic holds; nothing where there is none. */
const held = async (topic: string): Promise<ReadonlyArray<string>> =>
  (await listTopics(target)).has(topic) ? (await readTopics(target, [topic])).map(identityOf).toSorted() : []
const send = (topic: string, prefix: string, partitions = 1) =>
  load(source, makeRecords({ topic, count: 10 * partitions, partitions, prefix }))
const starting = (ids: ReadonlyArray<string>, prefix: string): number =>
  ids.filter((id) => id.startsWith(prefix)).length

for (const mode of ["share", "consumer"] as const) {
  describe(`${mode} mode`, () => {
    const name = unique(`control-${mode}`)
    const topic = (which: string): string => `${name}-${which}`
    const copy = (which: string): string => `east.${topic(which)}`
    const flow = (more: Config = {}): Config => ({
      topics: [`${name}-.*`],
      name,
      "group.id": name,
      "group.protocol": mode,
      "refresh.topics.interval.seconds": 1,
      "sync.topic.configs.interval.seconds": 1,
      "topic.settings.pinned": { [`east\\.${name}-.*`]: ["retention\\.ms"] },
      ...more
    })
    let mirror: Onceover
    /** With `pause` the topic that was created again waits, with the reason, and the others go on. */
    const leftAlone = async (): Promise<void> => {
      const paused = await start(flow({ "on.topic.recreated": "pause" }))
      try {
        await send(topic("a"), "beside", 3)
        await waitFor("the other topic", paused, async () => starting(await held(copy("a")), "beside") === 30)
        await waitFor("the reason", paused, async () => {
          const state = (await paused.status())?.flows[0]
          return state?.state === "blocked" && /on\.topic\.recreated is pause/.test(state.reason ?? "")
        })
        assert.strictEqual(starting(await held(copy("again")), "third"), 0)
        await paused.kill("SIGTERM")
        assert.strictEqual((await paused.exit()).code, 0)
      } finally {
        await paused.dispose()
      }
    }

    beforeAll(async () => {
      await createTopic(source, topic("a"), {
        partitions: 2,
        configs: {
          "cleanup.policy": "compact,delete",
          "segment.ms": "3600000",
          "retention.ms": "7200000",
          "min.insync.replicas": "1",
          "message.timestamp.after.max.ms": "9000000",
          "unclean.leader.election.enable": "true"
        }
      })
      await createTopic(source, topic("gone"))
      await createTopic(source, topic("again"))
      await send(topic("a"), "a", 2)
      await send(topic("again"), "old")
      await send(topic("gone"), "gone")
      mirror = await start(flow())
      await waitFor(
        "the first records",
        mirror,
        async () =>
          (await held(copy("a"))).length === 20 && (await held(copy("again"))).length === 10 &&
          (await held(copy("gone"))).length === 10
      )
    })
    afterAll(() => mirror?.dispose())

    it("a target topic is created with partitions and settings, but for what is excluded or pinned", async () => {
      assert.strictEqual((await listTopics(target)).get(copy("a")), 2)
      const there = await topicConfigs(target, copy("a"))
      assert.strictEqual(there.get("cleanup.policy"), "compact,delete")
      assert.strictEqual(there.get("segment.ms"), "3600000")
      assert.notStrictEqual(there.get("retention.ms"), "7200000")
      assert.notStrictEqual(there.get("message.timestamp.after.max.ms"), "9000000")
      assert.strictEqual(there.get("unclean.leader.election.enable"), "false")
    })

    it("a setting that changes on the source changes on the target; what the target sets alone is taken back; pins stay", async () => {
      await alterTopic(target, copy("a"), {
        "retention.ms": "111111",
        "flush.messages": "7",
        "min.insync.replicas": "1",
        "segment.ms": "5"
      })
      await alterTopic(source, topic("a"), {
        "max.message.bytes": "2000000",
        "cleanup.policy": null,
        "retention.ms": "86400000"
      })
      await waitFor("the settings", mirror, async () => {
        const now = await topicConfigs(target, copy("a"))
        return now.get("max.message.bytes") === "2000000" && now.get("cleanup.policy") === "delete" &&
          now.get("flush.messages") !== "7" && now.get("segment.ms") === "3600000"
      })
      assert.strictEqual((await topicConfigs(target, copy("a"))).get("retention.ms"), "111111")
      const task = (await mirror.status())?.flows[0]?.control?.find((one) => one.task === "settings")
      assert.strictEqual(task?.state, "ok")
    })

    it("a topic that grows gets its partitions on the target, and their records from the first on", async () => {
      await growTopic(source, topic("a"), 3)
      await send(topic("a"), "grown", 3)
      await waitFor("the records of the new partition", mirror, async () => (await held(copy("a"))).length === 50)
      assert.strictEqual((await listTopics(target)).get(copy("a")), 3)
    })

    it("a topic that is created again while the flow runs is mirrored from its beginning, and said to be another", async () => {
      await deleteTopics(source, [topic("again")])
      await createTopic(source, topic("again"))
      await send(topic("again"), "new")
      await waitFor("the new topic's records", mirror, async () => starting(await held(copy("again")), "new") === 10)
      const ids = await held(copy("again"))
      assert.deepStrictEqual([starting(ids, "old"), ids.length], [10, 20])
      assert.match(mirror.output(), new RegExp(`topic ${topic("again")} was deleted and created again on the source`))
      await waitFor("its lag to be the new topic's", mirror, async () => {
        const at = (await mirror.status())?.flows[0]?.partitions.find((one) => one.topic === topic("again"))
        return at?.lag === 0 && at.position === 10
      })
    })

    it("a topic that is deleted on the source stays on the target, until sync.topic.deletes says otherwise", async () => {
      await deleteTopics(source, [topic("gone")])
      await waitFor(
        "the loss to be noticed",
        mirror,
        async () => mirror.output().includes(`topic ${topic("gone")} is gone from the source`)
      )
      assert.strictEqual((await held(copy("gone"))).length, 10)
      await mirror.kill("SIGTERM")
      assert.strictEqual((await mirror.exit()).code, 0)
      await mirror.dispose()
      // While nobody runs.
      await deleteTopics(source, [topic("again")])
      await createTopic(source, topic("again"))
      await send(topic("again"), "third")
      if (mode === "consumer") await leftAlone()
      mirror = await start(flow({ "sync.topic.deletes": true, "on.topic.recreated": "new-topic" }))
      await waitFor("the deletion", mirror, async () => !(await listTopics(target)).has(copy("gone")))
    })

    it("a topic that was created again while nobody ran gets a target topic of its own with new-topic", async () => {
      await waitFor(
        "the third topic's records",
        mirror,
        async () => starting(await held(`${copy("again")}.3`), "third") === 10
      )
      const [before, own] = [await held(copy("again")), await held(`${copy("again")}.3`)]
      assert.deepStrictEqual([before.length, own.length, starting(before, "third")], [20, 10, 0])
      assert.isTrue((await listTopics(target)).has(copy("a")))
    })

    // Once: it is the same in both modes.
    if (mode === "share") {
      it("the process that does all this is another one seconds after it was killed", async () => {
        const second = await start(flow({ "sync.topic.deletes": true }))
        try {
          await second.untilRunning()
          assert.notInclude(second.output(), "this process does the control tasks")
          await mirror.kill("SIGKILL")
          await waitFor(
            "the other process to take over",
            second,
            async () => second.output().includes("this process does the control tasks")
          )
          await alterTopic(source, topic("a"), { "max.message.bytes": "3000000" })
          await waitFor(
            "a setting",
            second,
            async () => (await topicConfigs(target, copy("a"))).get("max.message.bytes") === "3000000"
          )
        } finally {
          await second.dispose()
        }
      })
    }
  })
}
