/** Members that come, go and die while records keep coming, in both modes. Processes are bin/onceover's own. */
import { afterEach, assert, describe, it } from "vitest"
import { alterTopic, createTopic, endOffsets, groupConfigs } from "../kit/admin.ts"
import { load, type LoadRecord, makeRecords } from "../kit/loader.ts"
import { assertExact, assertNothingLost, assertOrdered, judge, mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { type Config, mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"
import { busyMembers, metric, shareMembers, startFeed, untilBlocked, untilMirrored } from "./mirrorRun.ts"

const { source, target } = sharedClusters()
const started: Array<Onceover> = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((mirror) => mirror.dispose()))
})

const start = async (flow: Config, top: Config = {}): Promise<Onceover> => {
  const mirror = await startOnceover({ config: mirrorConfig(source, target, flow, top) })
  started.push(mirror)
  return mirror
}
const running = async (flow: Config, top: Config = {}): Promise<Onceover> => {
  const mirror = await start(flow, top)
  await mirror.untilRunning()
  return mirror
}
const places = (topic: string) => ({ topic, targetTopic: `east.${topic}` })
const flowOf = (mode: "share" | "consumer", topic: string, groupId: string, more: Config = {}): Config => ({
  topics: [topic],
  "group.protocol": mode,
  "group.id": groupId,
  "delivery.guarantee": "at-least-once",
  // What a topic on the target takes is set here by hand.
  "sync.topic.configs.enabled": false,
  ...more
})

const working = (mirror: Onceover, name: string) =>
  until(async () => await metric(mirror, name) > 0, {
    what: () => `${name} above 0; the log ends with\n${mirror.output().slice(-2_000)}`
  })

/** SIGTERM, and the end that is promised for it: 0, and no round that was cut off. */
const stopInOrder = async (mirror: Onceover): Promise<void> => {
  await mirror.kill("SIGTERM")
  const { code, signal } = await mirror.exit()
  assert.deepStrictEqual([code, signal], [0, null], mirror.output())
  assert.notInclude(mirror.output(), "not finished within")
}

/**
 * A record that the target will not take until `raise`: whoever acquired it holds it. In a topic of its own: a share
 * group goes on behind it for share.partition.max.record.locks records only.
 */
const makeStuck = async (topic: string) => {
  await createTopic(source, topic)
  await createTopic(target, `east.${topic}`, { configs: { "max.message.bytes": "20000" } })
  const record: LoadRecord = { topic, partition: 0, key: "big", value: "big|".padEnd(50_000, "x") }
  return { record, raise: () => alterTopic(target, `east.${topic}`, { "max.message.bytes": "1000000" }) }
}

describe("a share group", () => {
  it("grows from 2 to 6 members on 2 partitions and shrinks to 1 under exactly-once: nothing lost, nothing doubled", async () => {
    const topic = unique("scaled")
    const group = unique("scaled-group")
    await createTopic(source, topic, { partitions: 2 })
    const members = (count: number) =>
      until(async () => await shareMembers(source, group) === count, { what: `${count} members in the group` })
    const exact = { name: topic, "delivery.guarantee": "exactly-once", "exactly.once.fallback": "fail" }
    const two = await running(flowOf("share", topic, group, { "tasks.max": 2, ...exact }))
    const feed = await startFeed(source, target, { ...places(topic), partitions: 2 })
    await members(2)
    await feed.more(500)
    const four = await running(flowOf("share", topic, group, { "tasks.max": 4, ...exact }))
    await members(6)
    await working(four, "onceover_records_acknowledged_total")
    await feed.more(500)
    await stopInOrder(two)
    const one = await running(flowOf("share", topic, group, { "tasks.max": 1, ...exact }))
    await working(one, "onceover_records_acknowledged_total")
    await stopInOrder(four)
    await members(1)
    await feed.more(500)
    const count = await feed.stop()
    const comparison = await untilMirrored(source, target, places(topic), [one])
    assertExact(comparison, count)
  })

  it("gives what a killed member held to the others: nothing lost, each duplicate a redelivery", async () => {
    const topic = unique("killed")
    const stuck = `${topic}-stuck`
    const group = unique("killed-group")
    await createTopic(source, topic, { partitions: 2 })
    const { raise, record } = await makeStuck(stuck)
    const flow = flowOf("share", `${topic}.*`, group, {
      "tasks.max": 2,
      "consumer.override.share.record.lock.duration.ms": "15000"
    })
    const victim = await running(flow)
    assert.strictEqual((await groupConfigs(source, group)).get("share.record.lock.duration.ms"), "15000")
    const feed = await startFeed(source, target, { ...places(topic), partitions: 2 })
    await feed.more(300)
    await load(source, [record])
    await untilBlocked(victim, stuck, 0)
    const survivor = await running(flow)
    await working(survivor, "onceover_records_acknowledged_total")
    await victim.kill("SIGKILL")
    await untilBlocked(survivor, stuck, 0)
    await feed.more(300)
    await raise()
    const count = await feed.stop()
    const comparison = await untilMirrored(source, target, places(topic), [survivor])
    assertNothingLost(comparison, count)
    assertNothingLost(await untilMirrored(source, target, places(stuck), [survivor]), 1)
    const redelivered = await metric(survivor, "onceover_records_redelivered_total")
    assert.isAtLeast(redelivered, 1)
    assert.isAtLeast(await metric(survivor, "onceover_records_acquired_total"), redelivered)
    assert.isAtMost(comparison.doubled.length, redelivered)
  })

  it("gets what a frozen member holds when its locks end, though the member's connections stay", async () => {
    const topic = unique("frozen")
    const group = unique("frozen-group")
    const { raise, record } = await makeStuck(topic)
    const flow = flowOf("share", topic, group, {
      "tasks.max": 1,
      "consumer.override.share.record.lock.duration.ms": "5000"
    })
    const frozen = await running(flow)
    await load(source, [record, ...makeRecords({ topic, count: 50 })])
    await untilBlocked(frozen, topic, 0)
    await frozen.kill("SIGSTOP")
    const other = await start(flow)
    await untilBlocked(other, topic, 0)
    await raise()
    const comparison = await untilMirrored(source, target, places(topic), [other])
    assertNothingLost(comparison, 51)
    assert.isAtLeast(await metric(other, "onceover_records_redelivered_total"), 1)
    await frozen.kill("SIGCONT")
    // Awake again it learns that the lock is gone: it must not end, nor write what it no longer holds.
    await until(async () => (await frozen.status()) !== undefined, { what: "the frozen member to be awake" })
    await stopInOrder(frozen)
    const after = await judge(source, target, [topic])
    assertNothingLost(after.comparison, 51)
  })

  it("holds nothing after SIGTERM: another member gets the records at once, not when the lock ends", async () => {
    const topic = unique("stopped")
    const group = unique("stopped-group")
    const { raise, record } = await makeStuck(topic)
    // Renewed at half its time, a lock of 60 s has 30 s left at least.
    const lock = { "consumer.override.share.record.lock.duration.ms": "60000", "shutdown.timeout.ms": 10_000 }
    const first = await running(flowOf("share", topic, group, { "tasks.max": 2, ...lock }))
    await load(source, [record, ...makeRecords({ topic, count: 200 })])
    await untilBlocked(first, topic, 0)
    const second = await start(flowOf("share", topic, group, { "tasks.max": 2, ...lock }))
    await until(async () => await shareMembers(source, group) === 4, { what: "4 members in the group" })
    await stopInOrder(first)
    await untilBlocked(second, topic, 0, 25_000)
    await raise()
    assertExact(await untilMirrored(source, target, places(topic), [second]), 201)
  })

  it("mirrors everything in implicit acknowledgement mode, and a second run finds nothing left to do", async () => {
    const topic = unique("implicit")
    const flow = flowOf("share", topic, unique("implicit-group"), {
      "share.acknowledgement.mode": "implicit",
      "tasks.max": 2
    })
    await createTopic(source, topic, { partitions: 2 })
    await load(source, makeRecords({ topic, count: 1_000, partitions: 2 }))
    await mirrorUntilCaughtUp(source, target, flow)
    assertExact((await judge(source, target, [topic])).comparison, 1_000)
    await load(source, makeRecords({ topic, count: 200, partitions: 2, prefix: "later" }))
    await mirrorUntilCaughtUp(source, target, flow)
    assertExact((await judge(source, target, [topic])).comparison, 1_200)
  })
})

describe("a share flow and a consumer flow over one topic, in one process", () => {
  it("each mirrors everything, with progress and metrics of its own", async () => {
    const topic = unique("both")
    const ordered = `ordered.${topic}`
    await createTopic(source, topic, { partitions: 2 })
    const share = { source: "east", target: "west", name: "shared", ...flowOf("share", topic, unique("both-share")) }
    const consumer = {
      source: "east",
      target: "west",
      name: "ordered",
      ...flowOf("consumer", topic, unique("both-consumer"), { "topic.mapping": { [topic]: ordered } })
    }
    await load(source, makeRecords({ topic, count: 300, partitions: 2 }))
    await mirrorUntilCaughtUp(source, target, share)
    const both = await running({}, { flows: [share, consumer] })
    await load(source, makeRecords({ topic, count: 300, partitions: 2, prefix: "more" }))
    assertExact(await untilMirrored(source, target, places(topic), [both]), 600)
    assertOrdered(await untilMirrored(source, target, { topic, targetTopic: ordered }, [both]), 600)
    const mirrored = async () =>
      (await both.status())?.flows.map(({ name, totals }) => `${name} ${totals["recordsMirrored"]}`).join()
    await until(async () => await mirrored() === "shared 300,ordered 600", { what: "the counts of both flows" })
    assert.strictEqual(await metric(both, "onceover_records_acquired_total", { flow: "shared" }), 300)
    const metrics = await both.metrics()
    const flowsOf = (name: string) => [...new Set((metrics.get(name) ?? []).map(({ labels }) => labels["flow"]))]
    assert.deepStrictEqual(flowsOf("onceover_records_acquired_total"), ["shared"])
    assert.deepStrictEqual(flowsOf("onceover_partition_count"), ["ordered"])
    await until(async () => await metric(both, "onceover_partition_count") === 2, {
      what: "both partitions to be assigned, also when the group has just shared them out anew"
    })
    await until(async () => {
      const flows = (await both.status())?.flows ?? []
      return flows.length === 2 &&
        flows.every(({ partitions }) => partitions.length === 2 && partitions.every(({ lag }) => lag === 0))
    }, { what: "both flows to say that nothing is left" })
    await stopInOrder(both)
  })
})

describe("a consumer group", () => {
  const quick = { "consumer.override.session.timeout.ms": "6000", "consumer.override.heartbeat.interval.ms": "500" }

  it("survives a killed process: the other takes its partitions, nothing lost, order kept", async () => {
    const topic = unique("takeover")
    await createTopic(source, topic, { partitions: 4 })
    const flow = flowOf("consumer", topic, unique("takeover-group"), { "tasks.max": 1, ...quick })
    const victim = await running(flow)
    const feed = await startFeed(source, target, { ...places(topic), partitions: 4 })
    const survivor = await running(flow)
    const owned = (mirror: Onceover) => metric(mirror, "onceover_partition_count")
    await until(async () => await owned(victim) === 2 && await owned(survivor) === 2, {
      what: "2 partitions for each process"
    })
    await working(survivor, "onceover_records_mirrored_total")
    await feed.more(500)
    await victim.kill("SIGKILL")
    await until(async () => await owned(survivor) === 4, {
      what: () => `all partitions to be the survivor's\n${survivor.output().slice(-2_000)}`
    })
    await feed.more(500)
    const count = await feed.stop()
    const comparison = await untilMirrored(source, target, places(topic), [survivor])
    assertNothingLost(comparison, count)
    assert.deepStrictEqual(comparison.outOfOrder, [])
    await stopInOrder(survivor)
  })

  it("has its positions committed after SIGTERM: the next run doubles nothing and keeps the order", async () => {
    const topic = unique("committed")
    await createTopic(source, topic, { partitions: 2 })
    const group = unique("committed-group")
    const flow = flowOf("consumer", topic, group, { "tasks.max": 2, ...quick })
    // Committed by the stop, not by the clock.
    const first = await running({ ...flow, "offset.flush.interval.ms": 3_600_000 })
    const feed = await startFeed(source, target, { ...places(topic), partitions: 2 })
    await until(async () => await busyMembers(source, group) === 2, { what: "a partition for each of the two members" })
    await feed.more(1_000)
    await working(first, "onceover_records_mirrored_total")
    await stopInOrder(first)
    assert.isAbove((await endOffsets(target, `east.${topic}`)).reduce((sum, end) => sum + end, 0), 0)
    const count = await feed.stop()
    await mirrorUntilCaughtUp(source, target, flow)
    assertOrdered((await judge(source, target, [topic])).comparison, count)
  })
})
