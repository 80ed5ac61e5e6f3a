/** Exactly-once on clusters of three brokers whose leaders move: one broker at a time is killed, on either side. */
import { afterAll, assert, beforeAll, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { type KafkaCluster, startClusters } from "../kit/kafka.ts"
import { assertExact, assertOrdered } from "../kit/mirror.ts"
import { mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { startFeed, untilMirrored } from "./mirrorRun.ts"

const { source } = sharedClusters()
let target: KafkaCluster
let mirror: Onceover | undefined
beforeAll(async () => {
  const [started] = await startClusters([{ name: "leaders-target", brokers: 3 }])
  target = started as KafkaCluster
})
afterAll(async () => {
  await mirror?.dispose()
  await target?.stop()
})

it("a target of three brokers loses one and then another, both modes: nothing lost, nothing doubled, order kept", async () => {
  const topic = unique("leaders")
  await createTopic(source, topic, { partitions: 3 })
  const common = {
    source: "east",
    target: "west",
    topics: [topic],
    "exactly.once.fallback": "fail",
    "tasks.max": 2,
    "producer.override.transaction.timeout.ms": 10_000
  }
  mirror = await startOnceover({
    config: mirrorConfig(source, target, {}, {
      flows: [
        { ...common, name: "shared", "group.protocol": "share", "group.id": `${topic}-share` },
        {
          ...common,
          name: "ordered",
          "group.protocol": "consumer",
          "group.id": `${topic}-consumer`,
          "topic.mapping": { [topic]: `ordered.${topic}` }
        }
      ]
    })
  })
  await mirror.untilRunning()
  const shared = { topic, targetTopic: `east.${topic}` }
  const feed = await startFeed(source, target, { ...shared, partitions: 3 })
  await feed.more(500)
  for (const broker of target.brokerIds.slice(1)) {
    await target.kill("SIGKILL", broker)
    // Two of three are enough: the feed waits for the mirror, and goes on.
    await feed.more(3_000)
    await target.restart(broker)
    await feed.more(300)
  }
  const count = await feed.stop()
  assertExact(await untilMirrored(source, target, shared, [mirror]), count)
  assertOrdered(await untilMirrored(source, target, { topic, targetTopic: `ordered.${topic}` }, [mirror]), count)
  const flows = (await mirror.status())?.flows ?? []
  assert.deepStrictEqual(flows.map(({ guarantee }) => guarantee.binding), ["ledger", "ledger"])
})
