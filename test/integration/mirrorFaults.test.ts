/** Brokers that die, freeze or are not there, on either side, under mirrors that run. Clusters of their own. */
import { createServer, connect as dial, type Server, type Socket } from "node:net"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { createTopic, endOffsets } from "../kit/admin.ts"
import { type KafkaCluster, startClusters } from "../kit/kafka.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { assertExact, assertNothingLost } from "../kit/mirror.ts"
import { type Config, mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { releasePorts, takePorts } from "../kit/ports.ts"
import { unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"
import { metric, untilMirrored } from "./mirrorRun.ts"

let source: KafkaCluster
let target: KafkaCluster
const started: Array<Onceover> = []
beforeAll(async () => {
  const both = await startClusters([{ name: "faults-source" }, { name: "faults-target" }])
  source = both[0] as KafkaCluster
  target = both[1] as KafkaCluster
})
afterAll(async () => {
  await Promise.all([source, target].map((cluster) => cluster?.stop()))
})
afterEach(async () => {
  await Promise.all(started.splice(0).map((mirror) => mirror.dispose()))
})

const running = async (config: Config): Promise<Onceover> => {
  const mirror = await startOnceover({ config: { log: { level: "debug" }, ...config } })
  started.push(mirror)
  await mirror.untilRunning()
  return mirror
}

/**
 * One topic through both modes in one process: the share flow to east.TOPIC, the consumer flow to ordered.TOPIC, and
 * a share flow that is exactly-once to exact.TOPIC.
 */
const bothModes = (topic: string, share: Config = {}): Config => {
  const common = {
    source: "east",
    target: "west",
    topics: [topic],
    "delivery.guarantee": "at-least-once",
    "tasks.max": 1
  }
  const exact = { "delivery.guarantee": "exactly-once", "exactly.once.fallback": "fail" }
  return mirrorConfig(source, target, {}, {
    flows: [
      { ...common, name: "shared", "group.protocol": "share", "group.id": unique("shared"), ...share },
      {
        ...common,
        name: "ordered",
        "group.protocol": "consumer",
        "group.id": unique("ordered"),
        "topic.mapping": { [topic]: `ordered.${topic}` }
      },
      {
        ...common,
        ...exact,
        name: unique("exact"),
        "group.protocol": "share",
        "group.id": unique("exact"),
        "topic.mapping": { [topic]: `exact.${topic}` },
        ...share
      }
    ]
  })
}
const placesOf = (topic: string) =>
  [
    { topic, targetTopic: `east.${topic}` },
    { topic, targetTopic: `ordered.${topic}` },
    { topic, targetTopic: `exact.${topic}` }
  ] as const

const arrived = async (topic: string): Promise<number> =>
  (await endOffsets(target, topic)).reduce((sum, end) => sum + end, 0)

const readiness = async (mirror: Onceover) => {
  const { body, status } = await mirror.get("/health/ready")
  return { status, reasons: (JSON.parse(body) as { reasons: ReadonlyArray<string> }).reasons }
}
/** Waits until the service says that a flow cannot move, and gives its reasons. */
const untilNotReady = async (mirror: Onceover, flow: string): Promise<string> => {
  let said: ReadonlyArray<string> = []
  await until(async () => {
    const { reasons, status } = await readiness(mirror)
    said = reasons
    return status === 503 && reasons.some((reason) => reason.startsWith(`flow ${flow} `))
  }, { timeoutMs: 120_000, what: () => `/health/ready to say 503 for ${flow}; it says ${said.join("; ")}` })
  return said.join("\n")
}
const untilReady = async (mirror: Onceover): Promise<void> => {
  let said: ReadonlyArray<string> = []
  await until(async () => {
    const { reasons, status } = await readiness(mirror)
    said = reasons
    return status === 200
  }, { timeoutMs: 120_000, what: () => `/health/ready to say 200; it says ${said.join("; ")}` })
}

/** Renewals are at half of a lock: so many of them are more than half as many locks. */
const untilRenewed = (mirror: Onceover, times: number): Promise<unknown> => {
  const renewals = () => mirror.logs().filter(({ msg }) => msg?.startsWith("renewed the locks") === true).length
  const before = renewals()
  return until(() => renewals() >= before + times, {
    timeoutMs: 180_000,
    what: () => `${times} renewals, ${renewals() - before} came; the log ends with\n${mirror.output().slice(-3_000)}`
  })
}

describe("a broker that is killed", () => {
  it("on the source: both modes go on when it is back; nothing is lost, the consumer flow keeps the order", async () => {
    const topic = unique("source-killed")
    await createTopic(source, topic, { partitions: 2 })
    const mirror = await running(bothModes(topic))
    await load(source, makeRecords({ topic, count: 20_000, partitions: 2 }))
    await until(async () => await arrived(`east.${topic}`) > 0 && await arrived(`ordered.${topic}`) > 0, {
      what: "first records on the target"
    })
    await source.kill("SIGKILL")
    await untilNotReady(mirror, "shared")
    await untilNotReady(mirror, "ordered")
    await source.restart()
    await load(source, makeRecords({ topic, count: 1_000, partitions: 2, prefix: "after" }))
    const [shared, ordered, exact] = placesOf(topic)
    assertNothingLost(await untilMirrored(source, target, shared, [mirror]), 21_000)
    assertExact(await untilMirrored(source, target, exact, [mirror]), 21_000)
    const inOrder = await untilMirrored(source, target, ordered, [mirror])
    assertNothingLost(inOrder, 21_000)
    assert.deepStrictEqual(inOrder.outOfOrder, [])
    await untilReady(mirror)
  })

  it("on the target, for longer than the lock: locks are renewed, nothing is lost, doubled or delivered twice", async () => {
    const topic = unique("target-killed")
    await createTopic(source, topic, { partitions: 2 })
    const mirror = await running(bothModes(topic, { "consumer.override.share.record.lock.duration.ms": "15000" }))
    await load(source, makeRecords({ topic, count: 500, partitions: 2 }))
    await until(async () => await arrived(`east.${topic}`) === 500, { what: "the first records on the target" })
    await target.kill("SIGKILL")
    await load(source, makeRecords({ topic, count: 500, partitions: 2, prefix: "while" }))
    assert.match(await untilNotReady(mirror, "shared"), new RegExp(`east\\.${topic}|refused|connect`))
    await untilNotReady(mirror, "ordered")
    await untilRenewed(mirror, 3)
    await target.restart()
    await load(source, makeRecords({ topic, count: 500, partitions: 2, prefix: "after" }))
    const [shared, ordered, exact] = placesOf(topic)
    assertExact(await untilMirrored(source, target, shared, [mirror]), 1_500)
    assertExact(await untilMirrored(source, target, exact, [mirror]), 1_500)
    const inOrder = await untilMirrored(source, target, ordered, [mirror])
    assertExact(inOrder, 1_500)
    assert.deepStrictEqual(inOrder.outOfOrder, [])
    assert.strictEqual(await metric(mirror, "onceover_records_redelivered_total"), 0)
    await untilReady(mirror)
  })
})

describe("a target that is frozen for longer than all deliveries of a record would last", () => {
  it("costs no delivery: with a limit of 2, more than 3 locks later everything arrives", async () => {
    const topic = unique("target-frozen")
    await createTopic(source, topic, { partitions: 2 })
    const mirror = await running(bothModes(topic, {
      "consumer.override.share.record.lock.duration.ms": "5000",
      "consumer.override.share.delivery.count.limit": "2"
    }))
    await load(source, makeRecords({ topic, count: 500, partitions: 2 }))
    await until(async () => await arrived(`east.${topic}`) === 500, { what: "the first records on the target" })
    await target.kill("SIGSTOP")
    await load(source, makeRecords({ topic, count: 500, partitions: 2, prefix: "while" }))
    await untilRenewed(mirror, 7)
    await target.kill("SIGCONT")
    await load(source, makeRecords({ topic, count: 500, partitions: 2, prefix: "after" }))
    const [shared, ordered, exact] = placesOf(topic)
    assertExact(await untilMirrored(source, target, shared, [mirror]), 1_500)
    assertExact(await untilMirrored(source, target, exact, [mirror]), 1_500)
    const inOrder = await untilMirrored(source, target, ordered, [mirror])
    assertExact(inOrder, 1_500)
    assert.deepStrictEqual(inOrder.outOfOrder, [])
    await untilReady(mirror)
  })
})

/** A way to `to` that opens late: connections to the port are refused until then. */
const lateDoor = async (to: string) => {
  const [port] = await takePorts(1) as [number]
  const [host, toPort] = to.split(":") as [string, string]
  const sockets = new Set<Socket>()
  let server: Server | undefined
  return {
    bootstrap: `127.0.0.1:${port}`,
    open: () =>
      new Promise<void>((resolve) => {
        server = createServer((near) => {
          const far = dial(Number(toPort), host)
          for (const socket of [near, far]) {
            sockets.add(socket)
            socket.on("error", () => undefined)
          }
          near.pipe(far).pipe(near)
        }).listen(port, "127.0.0.1", resolve)
      }),
    close: () => {
      server?.close()
      for (const socket of sockets) socket.destroy()
      releasePorts([port])
    }
  }
}

describe("two flows in one process, one with a target that cannot be reached", () => {
  it("the other mirrors; /health/ready is 503 with the reason, and 200 when the target can be reached", async () => {
    const good = unique("good")
    const late = unique("late")
    await createTopic(source, good)
    await createTopic(source, late)
    await load(source, makeRecords({ topic: good, count: 200 }))
    await load(source, makeRecords({ topic: late, count: 200 }))
    const door = await lateDoor(target.bootstrap)
    try {
      const flow = (name: string, to: string): Config => ({
        source: "east",
        target: to,
        name,
        topics: [name],
        "group.id": unique(name),
        "delivery.guarantee": "at-least-once",
        "tasks.max": 1
      })
      const mirror = await startOnceover({
        config: {
          clusters: {
            east: { "bootstrap.servers": source.bootstrap },
            west: { "bootstrap.servers": target.bootstrap },
            far: { "bootstrap.servers": door.bootstrap }
          },
          flows: [flow(good, "west"), flow(late, "far")]
        }
      })
      started.push(mirror)
      assertExact(await untilMirrored(source, target, { topic: good, targetTopic: `east.${good}` }, [mirror]), 200)
      const reason = await untilNotReady(mirror, late)
      assert.include(reason, door.bootstrap)
      assert.notInclude(reason, `flow ${good} `)
      await door.open()
      await untilReady(mirror)
      assertExact(await untilMirrored(source, target, { topic: late, targetTopic: `east.${late}` }, [mirror]), 200)
    } finally {
      door.close()
    }
  })
})
