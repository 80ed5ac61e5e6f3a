/** What is in the way at the start: each in one clear line, no stack, and the exit code of the contract. */
import { createServer as createHttpServer } from "node:http"
import { createServer, type Server } from "node:net"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { assertBothSay, endOfCheck, endOfRun } from "../kit/failures.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { type Config, mirrorConfig, startOnceover } from "../kit/onceover.ts"
import { releasePorts, takePorts } from "../kit/ports.ts"
import { sharedClusters, unique } from "../kit/shared.ts"

const { source, target } = sharedClusters()
const topic = unique("errors")
/** Long enough for an answer, short enough for a test. */
const IMPATIENT = { "default.api.timeout.ms": 4_000, "request.timeout.ms": 3_000 }

beforeAll(async () => {
  await createTopic(source, topic)
  await load(source, makeRecords({ topic, count: 10 }))
})

/** A flow between the shared clusters, with other settings for one of them. */
const withCluster = (end: "east" | "west", settings: Config, flow: Config = {}): Config => {
  const config = mirrorConfig(source, target, { topics: [topic], "group.id": unique("g"), ...flow })
  const clusters = config["clusters"] as Record<string, Config>
  return { ...config, clusters: { ...clusters, [end]: { ...clusters[end], ...IMPATIENT, ...settings } } }
}
const withFlow = (flow: Config, top: Config = {}): Config =>
  mirrorConfig(source, target, { topics: [topic], "group.id": unique("g"), ...flow }, top)

describe("a cluster that cannot be used", () => {
  let nobody: number
  let http: Server
  let httpPort: number
  beforeAll(async () => {
    ;[nobody] = await takePorts(1) as [number]
    http = createHttpServer((_, answer) => answer.end("hello"))
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve))
    httpPort = (http.address() as { port: number }).port
  })
  afterAll(() => {
    http.close()
    releasePorts([nobody])
  })

  for (const end of ["east", "west"] as const) {
    it(`nobody listens at the bootstrap address of ${end}`, () =>
      assertBothSay(
        withCluster(end, { "bootstrap.servers": `127.0.0.1:${nobody}` }),
        new RegExp(`the (source|target) "${end}" cannot be used: 127\\.0\\.0\\.1:${nobody}: nothing listens there`)
      ))
  }

  it("a name that does not resolve", () =>
    assertBothSay(
      withCluster("east", { "bootstrap.servers": "no-such-host.invalid:9092" }),
      /the source "east" cannot be used: .*no-such-host\.invalid/
    ))

  it("something else than Kafka listens there", () =>
    assertBothSay(
      withCluster("east", { "bootstrap.servers": `127.0.0.1:${httpPort}` }),
      /the source "east" cannot be used: 127\.0\.0\.1:\d+ .*(HTTP|Kafka)/
    ))

  it("TLS to a port without it", () =>
    assertBothSay(withCluster("east", { "security.protocol": "SSL" }), /the source "east" cannot be used: .*TLS/))

  it("SASL to a port without it", () =>
    assertBothSay(
      withCluster("west", {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": "not-to-be-seen"
      }),
      /the target "west" cannot be used: .*the listener wants no SASL(?!.*not-to-be-seen)/
    ))
})

describe("what else is in the way", () => {
  it("the group id belongs to a group of the other type: both are named, and that progress is separate", async () => {
    for (const [first, second] of [["consumer", "share"], ["share", "consumer"]] as const) {
      const groupId = unique("taken")
      await mirrorUntilCaughtUp(source, target, { topics: [topic], "group.protocol": first, "group.id": groupId })
      await assertBothSay(
        withFlow({ "group.protocol": second, "group.id": groupId }),
        new RegExp(
          `group\\.id ${groupId}: a (classic|consumer|share) group of this name exists.* a ${second} group is wanted.*progress`
        )
      )
    }
  })

  it("the HTTP port is taken", async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve))
    const { port } = taken.address() as { port: number }
    const { code, output, said } = await endOfRun(withFlow({}, { http: { listen: `127.0.0.1:${port}` } }))
    taken.close()
    assert.strictEqual(code, 1, output)
    assert.match(said.join("\n"), new RegExp(`^cannot listen on .*${port}: the port is in use.*http\\.listen`))
  })

  it("the dead-letter topic cannot be made", async () => {
    const letters = unique("letters")
    const { code, output, said } = await endOfRun(withFlow({
      "on.record.refused": "deadletter",
      "errors.deadletterqueue.topic.name": letters,
      "errors.deadletterqueue.topic.replication.factor": 3
    }))
    assert.strictEqual(code, 1, output)
    assert.strictEqual(said.length, 1, output)
    assert.match(said[0] as string, new RegExp(`dead-letter topic ${letters} cannot be made: .*REPLICATION_FACTOR`))
  })

  it("a transform's module that is not there", () =>
    assertBothSay(
      withFlow({ transforms: "own", "transforms.own.type": "module", "transforms.own.path": "./nowhere.js" }),
      /transform "own": .*nowhere\.js cannot be loaded/
    ))
})

describe("exactly-once that cannot be had", () => {
  const only = { "exactly.once.bindings": ["kip-1289"], "delivery.guarantee": "exactly-once" }

  it("exactly.once.fallback fail refuses to run, with the reason of each binding", () =>
    assertBothSay(
      withFlow({ ...only, "exactly.once.fallback": "fail" }),
      /exactly-once cannot be had and exactly\.once\.fallback is fail: kip-1289: \S+/
    ))

  it("the fallback is said in words by check, the log and /status, and shows in the metric", async () => {
    const config = withFlow({ ...only, "exactly.once.fallback": "at-least-once" })
    const words = /exactly-once is wanted, at-least-once .* in force: kip-1289: \S+/
    const checked = await endOfCheck(config)
    assert.strictEqual(checked.code, 0, checked.output)
    assert.match(checked.output, words)
    assert.match(checked.output, /guarantee +at-least-once \(wanted: exactly-once\)/)
    const { http: _, ...rest } = config as Record<string, unknown>
    const mirror = await startOnceover({ config: rest })
    try {
      await mirror.untilRunning()
      assert.match(mirror.logs().filter(({ level }) => level === 40).map(({ msg }) => msg).join("\n"), words)
      const guarantee = (await mirror.status())?.flows[0]?.guarantee
      assert.deepInclude(guarantee, { wanted: "exactly-once", effective: "at-least-once" })
      assert.match(guarantee?.reasons.join("\n") ?? "", /^kip-1289: \S+ \S+/)
      const samples = (await mirror.metrics()).get("onceover_guarantee") ?? []
      assert.deepStrictEqual(
        samples.map(({ labels, value }) => [labels["wanted"], labels["effective"], labels["binding"], value]),
        [
          ["exactly-once", "at-least-once", "none", 1]
        ]
      )
    } finally {
      await mirror.dispose()
    }
  })
})
