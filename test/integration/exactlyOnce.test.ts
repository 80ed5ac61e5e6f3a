/** Exactly-once between two clusters while workers die: the ledger's promise, judged by librdkafka in read_committed. */
import { afterEach, assert, describe, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { assertExact, mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { type Config, mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { freezeInTransaction } from "../kit/transactions.ts"
import { until } from "../kit/until.ts"
import { metric, startFeed, untilMirrored } from "./mirrorRun.ts"

const { source, target } = sharedClusters()
const started: Array<Onceover> = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((mirror) => mirror.dispose()))
})

const running = async (flow: Config, top: Config = {}): Promise<Onceover> => {
  const mirror = await startOnceover({ config: mirrorConfig(source, target, flow, top) })
  started.push(mirror)
  await mirror.untilRunning()
  return mirror
}

const stopInOrder = async (mirror: Onceover): Promise<void> => {
  await mirror.kill("SIGTERM")
  const { code, signal } = await mirror.exit()
  assert.deepStrictEqual([code, signal], [0, null], mirror.output())
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

describe("a worker that is frozen in the middle of a transaction", () => {
  for (const mode of ["share", "consumer"] as const) {
    it(`${mode} mode: longer than its lock or session and its transaction last, it doubles nothing when it wakes`, async () => {
      const topic = unique(`exact-frozen-${mode}`)
      await createTopic(source, topic, { partitions: 2 })
      const flow: Config = {
        name: topic,
        topics: [topic],
        "group.protocol": mode,
        "group.id": topic,
        "exactly.once.fallback": "fail",
        "tasks.max": 1,
        "producer.override.transaction.timeout.ms": 3_000,
        "consumer.override.session.timeout.ms": "6000",
        ...(mode === "share" ? { "consumer.override.share.record.lock.duration.ms": "5000" } : {})
      }
      const places = { topic, targetTopic: `east.${topic}` }
      const victim = await running(flow, { "instance.id": "victim" })
      const feed = await startFeed(source, target, { ...places, partitions: 2, ahead: 2_000 })
      await feed.more(1_000)
      await freezeInTransaction(victim, { target, instance: "victim" })
      const other = await running(flow, { "instance.id": "other" })
      await feed.more(1_000)
      const count = await feed.stop()
      // What the frozen one has had is the other's: its locks are over, and so is its transaction.
      assertExact(await untilMirrored(source, target, places, [other]), count)
      await victim.kill("SIGCONT")
      await until(async () => (await victim.status()) !== undefined, { what: "the frozen worker to be awake" })
      await load(source, makeRecords({ topic, count: 1_000, partitions: 2, prefix: "awake" }))
      await untilMirrored(source, target, places, [victim, other])
      await Promise.all([victim, other].map(stopInOrder))
      const comparison = await untilMirrored(source, target, places)
      assertExact(comparison, count + 1_000)
      if (mode === "consumer") assert.deepStrictEqual(comparison.outOfOrder, [])
    })
  }
})

it("a flow goes from share to consumer mode and back under its own name: nothing lost, nothing doubled", async () => {
  const topic = unique("exact-modes")
  await createTopic(source, topic, { partitions: 2 })
  const flow = (mode: string): Config => ({
    name: topic,
    topics: [topic],
    "group.protocol": mode,
    // Groups of two kinds: neither knows how far the other was.
    "group.id": `${topic}-${mode}`,
    "exactly.once.fallback": "fail",
    "tasks.max": 2
  })
  const places = { topic, targetTopic: `east.${topic}` }
  const feed = await startFeed(source, target, { ...places, partitions: 2, ahead: 2_000 })
  let prevented = 0
  for (const mode of ["share", "consumer", "share"]) {
    const mirror = await running(flow(mode))
    await feed.more(1_500)
    prevented = await metric(mirror, "onceover_duplicates_prevented_total")
    // One is killed: what it had not acknowledged, the other group has never heard of either.
    await mirror.kill(mode === "consumer" ? "SIGKILL" : "SIGTERM")
    await mirror.exited
  }
  const count = await feed.stop()
  await mirrorUntilCaughtUp(source, target, flow("share"))
  assertExact(await untilMirrored(source, target, places), count)
  assert.isAbove(prevented, 0, "the share group comes to what it missed, and the ledger has it")
})

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
