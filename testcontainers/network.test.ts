/**
 * Faults of a network, which processes on one machine cannot have: a cluster that is off it, with everything else
 * going on, on both sides. Judged by librdkafka. How long a fault lasts is told by what the other side has done
 * meanwhile (given the member up, renewed its locks), never by a clock.
 */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { metric, untilBlocked, untilMirrored } from "../test/integration/mirrorRun.ts"
import { alterTopic, createTopic, endOffsets } from "../test/kit/admin.ts"
import { type ContainerCluster, startContainerCluster } from "../test/kit/containers.ts"
import { load, makeRecords } from "../test/kit/loader.ts"
import { assertExact, assertOrdered } from "../test/kit/mirror.ts"
import { type Config, mirrorConfig, type Onceover, startOnceover } from "../test/kit/onceover.ts"
import { unique } from "../test/kit/shared.ts"
import { until } from "../test/kit/until.ts"

let source: ContainerCluster
let target: ContainerCluster
const started: Array<Onceover> = []
beforeAll(async () => {
  const both = await Promise.all([
    startContainerCluster({ name: "network-source" }),
    startContainerCluster({ name: "network-target" })
  ])
  source = both[0]
  target = both[1]
})
afterAll(async () => {
  await Promise.all([source, target].map((cluster) => cluster?.stop()))
})
afterEach(async () => {
  await Promise.all(started.splice(0).map((mirror) => mirror.dispose()))
})

/** One topic through both modes in one process: the share flow to east.TOPIC, the consumer flow to ordered.TOPIC. */
const running = async (topic: string, lockMs: number): Promise<Onceover> => {
  const common = {
    source: "east",
    target: "west",
    topics: [topic],
    "tasks.max": 1,
    "exactly.once.fallback": "fail",
    // Shorter than these faults: a transaction that is open when the network goes is over when it is back.
    "producer.override.transaction.timeout.ms": 5_000,
    // What a topic on the target takes is set here by hand.
    "sync.topic.configs.enabled": false
  }
  const flows: ReadonlyArray<Config> = [
    {
      ...common,
      name: "shared",
      "group.protocol": "share",
      "group.id": unique("shared"),
      "consumer.override.share.record.lock.duration.ms": String(lockMs)
    },
    {
      ...common,
      name: "ordered",
      "group.protocol": "consumer",
      "group.id": unique("ordered"),
      "topic.mapping": { [topic]: `ordered.${topic}` }
    }
  ]
  const mirror = await startOnceover({ config: mirrorConfig(source, target, {}, { flows, log: { level: "debug" } }) })
  started.push(mirror)
  await mirror.untilRunning()
  return mirror
}

const places = (topic: string) => {
  const shared = { topic, targetTopic: `east.${topic}` }
  const ordered = { topic, targetTopic: `ordered.${topic}` }
  return { shared, ordered }
}

const untilArrived = (topic: string, count: number): Promise<unknown> =>
  until(async () => (await endOffsets(target, topic)).reduce((sum, end) => sum + end, 0) >= count, {
    what: `${count} records of ${topic}`
  })

describe("a source that is off the network until it has given the members up", () => {
  it("gives what they held to them again when it is back; nothing is lost or doubled, the consumer flow keeps the order", async () => {
    const topic = unique("source-off")
    await createTopic(source, topic, { partitions: 2 })
    await createTopic(target, `east.${topic}`, { partitions: 2, configs: { "max.message.bytes": "20000" } })
    const mirror = await running(topic, 5_000)
    await load(source, makeRecords({ topic, count: 500, partitions: 2 }))
    await untilArrived(`ordered.${topic}`, 500)
    // A record that the target does not take yet: the lock on it is held when the network goes.
    await load(source, [{ topic, partition: 0, key: "big", value: "big|".padEnd(50_000, "x") }])
    await untilBlocked(mirror, topic, 0)
    await source.disconnect()
    // The session lasts 6 s, longer than the lock: when it has ended, so has the lock.
    await until(() => /\[GroupId shared-\w+\] Member \S+ fenced from the group/.test(source.logTail(2_000)), {
      what: () => `the source to give the share member up; its log ends with\n${source.logTail()}`
    })
    await source.reconnect()
    await alterTopic(target, `east.${topic}`, { "max.message.bytes": "1000000" })
    await load(source, makeRecords({ topic, count: 500, partitions: 2, prefix: "after" }))
    const { ordered, shared } = places(topic)
    assertExact(await untilMirrored(source, target, shared, [mirror]), 1_001)
    assertOrdered(await untilMirrored(source, target, ordered, [mirror]), 1_001)
    assert.isAtLeast(await metric(mirror, "onceover_records_redelivered_total"), 1)
  })
})

describe("a target that is off the network for longer than the lock", () => {
  it("costs no delivery: locks are renewed, nothing is lost or doubled, and the source gives nothing twice", async () => {
    const topic = unique("target-off")
    await createTopic(source, topic, { partitions: 2 })
    const mirror = await running(topic, 5_000)
    await load(source, makeRecords({ topic, count: 500, partitions: 2 }))
    await untilArrived(`east.${topic}`, 500)
    await untilArrived(`ordered.${topic}`, 500)
    await target.disconnect()
    await load(source, makeRecords({ topic, count: 500, partitions: 2, prefix: "while" }))
    const renewals = () => mirror.logs().filter(({ msg }) => msg?.startsWith("renewed the locks") === true).length
    const before = renewals()
    // At half of a lock each: three are more than one lock.
    await until(() => renewals() >= before + 3, {
      what: () => `three renewals; the log ends with\n${mirror.output().slice(-2_000)}`
    })
    await target.reconnect()
    await load(source, makeRecords({ topic, count: 500, partitions: 2, prefix: "after" }))
    const { ordered, shared } = places(topic)
    assertExact(await untilMirrored(source, target, shared, [mirror]), 1_500)
    assertOrdered(await untilMirrored(source, target, ordered, [mirror]), 1_500)
    assert.strictEqual(await metric(mirror, "onceover_records_redelivered_total"), 0)
  })
})
