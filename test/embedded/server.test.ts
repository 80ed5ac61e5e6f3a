/** Clients that are not ours, or that use sockets, on the embedded cluster's TCP servers. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { connect as connectTcp } from "node:net"
import { type Embedded, type EmbeddedOptions, makeEmbedded } from "../../src/embedded/embedded.ts"
import { serve } from "../../src/embedded/server.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { createTopics } from "../../src/wire/messages/createTopics.ts"
import { produce } from "../../src/wire/messages/produce.ts"
import { identityOf, readTopics } from "../kit/auditor.ts"
import { load, makeRecords, openLoader } from "../kit/loader.ts"
import { connect, type Consumer, disconnect, KafkaConsumer } from "../kit/rdkafka.ts"
import { until } from "../kit/until.ts"

const serving = (options: EmbeddedOptions = {}) =>
  Effect.gen(function*() {
    const embedded = yield* makeEmbedded(options)
    const { bootstrap } = yield* serve(embedded)
    return { embedded, bootstrap }
  })

const using = (
  options: EmbeddedOptions,
  use: (given: { readonly embedded: Embedded; readonly bootstrap: string }) => Promise<void>
) => Effect.scoped(Effect.flatMap(serving(options), (given) => Effect.promise(() => use(given))))

describe("librdkafka on the embedded cluster", () => {
  it.live("reads back in order what its idempotent producer wrote, in every codec", () =>
    using({ brokers: 2 }, async (given) => {
      for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"] as const) {
        given.embedded.createTopic(codec, { partitions: 3 })
        await load(given, makeRecords({ topic: codec, count: 3_000, partitions: 3 }), { codec })
        const read = await readTopics(given, [codec])
        for (let p = 0; p < 3; p++) {
          const ids = read.filter((r) => r.partition === p).map(identityOf)
          assert.deepStrictEqual(ids, Array.from({ length: 1_000 }, (_, n) => `${codec}:${n * 3 + p}`))
        }
      }
    }))

  it.live("sees committed transactions whole and aborted ones not at all", () =>
    using({ brokers: 2, markerDelayMs: 20 }, async (given) => {
      given.embedded.createTopic("t", { partitions: 2 })
      const loader = await openLoader(given, { transactionalId: "tx" })
      for (let round = 0; round < 6; round++) {
        await loader.begin()
        await loader.send(makeRecords({ topic: "t", count: 20, partitions: 2, from: round * 20 }))
        await (round % 3 === 2 ? loader.abort() : loader.commit())
      }
      await until(() => given.embedded.pendingMarkers().length === 0, { what: "the markers" })
      const committed = (await readTopics(given, ["t"])).map((r) => Number(identityOf(r).slice(2))).sort((a, b) =>
        a - b
      )
      assert.deepStrictEqual(
        committed,
        Array.from({ length: 120 }, (_, n) => n).filter((n) => Math.floor(n / 20) % 3 !== 2)
      )
      assert.strictEqual((await readTopics(given, ["t"], { isolation: "read_uncommitted" })).length, 120)
      await loader.close()
    }))

  it.live("fences the older of two producers with one transactional id", () =>
    using({}, async (given) => {
      given.embedded.createTopic("t")
      const older = await openLoader(given, { transactionalId: "tx" })
      await older.begin()
      await older.send(makeRecords({ topic: "t", count: 5, prefix: "old" }))
      const newer = await openLoader(given, { transactionalId: "tx" })
      const refused = await older.commit().then(() => null, (error: Error) => error.message)
      assert.match(refused ?? "committed", /fenced|newer/i)
      await newer.begin()
      await newer.send(makeRecords({ topic: "t", count: 5, prefix: "new" }))
      await newer.commit()
      assert.deepStrictEqual((await readTopics(given, ["t"])).map(identityOf), [
        "new:0",
        "new:1",
        "new:2",
        "new:3",
        "new:4"
      ])
      await Promise.all([older.close(), newer.close()])
    }))

  it.live("shares partitions among the members of a group, and goes on from what was committed", () =>
    using({}, async (given) => {
      given.embedded.createTopic("g", { partitions: 4 })
      await load(given, makeRecords({ topic: "g", count: 40, partitions: 4 }))
      const seen: Array<string> = []
      const join = async (): Promise<Consumer> => {
        const consumer = new KafkaConsumer({
          "bootstrap.servers": given.bootstrap,
          "group.id": "group",
          "enable.auto.commit": false,
          "session.timeout.ms": 6000
        }, { "auto.offset.reset": "earliest" })
        await connect(consumer)
        consumer.on("data", (message) => {
          seen.push(`${message.partition}:${message.offset}`)
          // Not the synchronous call: it would stop the loop that the broker runs in.
          consumer.commitMessage(message)
        })
        consumer.subscribe(["g"])
        consumer.consume()
        return consumer
      }
      const first = await join()
      await until(() => seen.length === 40, { what: "all records with the first member" })
      const second = await join()
      await until(() => first.assignments().length === 2 && second.assignments().length === 2, {
        what: "two partitions each"
      })
      await load(given, makeRecords({ topic: "g", count: 40, partitions: 4, from: 40 }))
      await until(() => seen.length >= 80, { what: "the rest" })
      assert.strictEqual(new Set(seen).size, 80)
      await disconnect(first)
      await until(() => second.assignments().length === 4, { what: "everything with the second member" })
      await disconnect(second)
      assert.strictEqual(given.embedded.state.groups.get("group")!.phase, "Empty")
    }))

  it.live("goes on when its leader stops and another broker leads", () =>
    using({ brokers: 3 }, async (given) => {
      given.embedded.createTopic("t", { partitions: 3, replication: 3 })
      const loader = await openLoader(given)
      await loader.send(makeRecords({ topic: "t", count: 30, partitions: 3 }))
      given.embedded.stopBroker(1)
      await loader.send(makeRecords({ topic: "t", count: 30, partitions: 3, from: 30 }))
      await loader.close()
      assert.strictEqual(new Set((await readTopics(given, ["t"])).map(identityOf)).size, 60)
    }))
})

describe("the embedded cluster's server", () => {
  it.live("serves our own client, and a long poll on one connection does not hold up another", () =>
    Effect.scoped(Effect.gen(function*() {
      const { bootstrap, embedded } = yield* serving()
      const cluster = yield* makeCluster("c", { "bootstrap.servers": bootstrap })
      const made = yield* cluster.request({ kind: "controller" }, createTopics, {
        topics: [{ name: "a", numPartitions: 2, replicationFactor: 1, assignments: [], configs: [] }]
      })
      assert.deepStrictEqual(made.topics.map((t) => [t.name, t.errorCode, t.topicId]), [[
        "a",
        0,
        embedded.state.topics.get("a")!.id
      ]])
      assert.deepStrictEqual([yield* cluster.clusterId, (yield* cluster.features).get("share.version")], [
        "embedded-cluster-000",
        2
      ])
      assert.strictEqual((yield* cluster.topics(["a"])).get("a")!.partitions.length, 2)
    })))

  it.live("closes a connection that sends what is not a request, and serves the others", () =>
    using({}, async ({ bootstrap, embedded }) => {
      embedded.createTopic("t")
      const [host, port] = bootstrap.split(":") as [string, string]
      for (
        const junk of [
          Buffer.from([0x7f, 0xff, 0xff, 0xff]),
          Buffer.from("GET / HTTP/1.1\r\n\r\n"),
          Buffer.from([0, 0, 0, 9, 0, produce.key, 0, 9, 0, 0, 0, 1, 0xff])
        ]
      ) {
        const socket = connectTcp(Number(port), host)
        let closed = false
        socket.on("close", () => closed = true)
        socket.write(junk)
        await until(() => closed, { what: "the connection to be closed" })
      }
      await load({ bootstrap }, makeRecords({ topic: "t", count: 3 }))
      assert.strictEqual(embedded.log("t", 0).endOffset, 3)
    }))
})
