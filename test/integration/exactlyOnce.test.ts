/** Exactly-once between two clusters while workers die: the ledger's promise, judged by librdkafka in read_committed. */
import { afterEach, assert, describe, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { assertExact, mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { type Config, mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { metric, startFeed, untilMirrored } from "./mirrorRun.ts"

const { source, target } = sharedClusters()
const started: Array<Onceover> = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((mirror) => mirror.dispose()))
})

const running = async (flow: Config): Promise<Onceover> => {
  const mirror = await startOnceover({ config: mirrorConfig(source, target, flow) })
  started.push(mirror)
  await mirror.untilRunning()
  return mirror
}

for (const mode of ["share", "consumer"] as const) {
  describe(`${mode} mode`, () => {
    it("workers that are killed while they write leave nothing lost and nothing doubled", async () => {
      const topic = unique(`exact-${mode}`)
      await createTopic(source, topic, { partitions: 3 })
      const flow: Config = {
        name: topic,
        topics: [topic],
        "group.protocol": mode,
        "group.id": unique("exact-group"),
        "exactly.once.fallback": "fail",
        "tasks.max": 2,
        ...(mode === "share"
          ? { "consumer.override.share.record.lock.duration.ms": "15000" }
          : { "consumer.override.session.timeout.ms": "6000" })
      }
      const survivor = await running(flow)
      const binding = (await survivor.status())?.flows[0]?.guarantee
      assert.deepStrictEqual([binding?.effective, binding?.binding], ["exactly-once", "ledger"])
      const feed = await startFeed(source, target, { topic, targetTopic: `east.${topic}`, partitions: 3, ahead: 4_000 })
      for (let n = 0; n < 3; n++) {
        const victim = await running(flow)
        await feed.more(2_000)
        await victim.kill("SIGKILL")
      }
      const count = await feed.stop()
      const comparison = await untilMirrored(source, target, { topic, targetTopic: `east.${topic}` }, started)
      assertExact(comparison, count)
      assert.isAbove(await metric(survivor, "onceover_transactions_total", { outcome: "committed" }), 0)
    })
  })
}

it("a flow that runs at-least-once for a while comes back to its ledger with nothing lost and nothing doubled", async () => {
  const topic = unique("exact-switch")
  await createTopic(source, topic, { partitions: 2 })
  const flow: Config = { name: topic, topics: [topic], "group.protocol": "share", "group.id": topic, "tasks.max": 2 }
  for (const [n, guarantee] of ["exactly-once", "at-least-once", "exactly-once"].entries()) {
    await load(source, makeRecords({ topic, count: 200, partitions: 2, from: 200 * n }))
    await mirrorUntilCaughtUp(source, target, { ...flow, "delivery.guarantee": guarantee })
  }
  assertExact(await untilMirrored(source, target, { topic, targetTopic: `east.${topic}` }), 600)
})
