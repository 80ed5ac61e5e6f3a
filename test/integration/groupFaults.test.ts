/** Consumer groups while brokers die, move leaders, or are old. Clusters of their own. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { MembershipError } from "../../src/group/errors.ts"
import { chooseProtocol } from "../../src/group/groupConsumer.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { createTopic, deleteRecords } from "../kit/admin.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { load, makeRecords, openLoader } from "../kit/loader.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until, within } from "../kit/until.ts"
import { assertInOrder, committedOffsets, joinGroup, type SeenRecord } from "./groupMember.ts"

const values = (seen: ReadonlyArray<SeenRecord>): ReadonlySet<string> => new Set(seen.map(({ value }) => value))
const using = async (
  options: Parameters<typeof startCluster>[0],
  use: (cluster: KafkaCluster) => Promise<void>
): Promise<void> => {
  const cluster = await startCluster(options)
  try {
    await use(cluster)
  } finally {
    await cluster.stop()
  }
}
const protocolOf = (bootstrap: string) =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(makeCluster("c", { "bootstrap.servers": bootstrap }), chooseProtocol)))

describe("a source that is older than KIP-848", () => {
  it("is read with the classic protocol, eager and incremental, with transactions and gaps", () =>
    using({ name: "group-old", version: "3.9.2" }, async (cluster) => {
      assert.strictEqual(await protocolOf(cluster.bootstrap), "classic")
      const topic = "t"
      await createTopic(cluster, topic, { partitions: 2 })
      const loader = await openLoader(cluster, { transactionalId: "loader" })
      await loader.begin()
      await loader.send(makeRecords({ topic, count: 20, partitions: 2, prefix: "aborted" }))
      await loader.abort()
      await loader.begin()
      await loader.send(makeRecords({ topic, count: 200, partitions: 2, prefix: "kept" }))
      await loader.commit()
      await loader.close()
      for (const strategy of ["range", "cooperative-sticky"]) {
        const group = `group-${strategy}`
        const settings = { "partition.assignment.strategy": strategy, "heartbeat.interval.ms": 300 }
        const one = await joinGroup(cluster, { group, topics: [topic], settings })
        await one.sees(200)
        const two = await joinGroup(cluster, { group, topics: [topic], settings })
        await two.owns(1)
        await one.owns(1)
        await one.close()
        await two.owns(2)
        assert.isTrue([...values([...one.seen, ...two.seen])].every((value) => value.startsWith("kept:")))
        assert.strictEqual(one.seen.length + two.seen.length, 200)
        await two.close()
        assert.deepStrictEqual(await committedOffsets(cluster, group, topic, 2), [112, 112])
      }
      await deleteRecords(cluster, topic, 0, 50)
      const stopped = await joinGroup(cluster, {
        group: "late",
        topics: [topic],
        settings: { "auto.offset.reset": "earliest" }
      })
      // Offsets 50 to 110 of partition 0 and all of partition 1.
      await stopped.sees(161)
      await stopped.close()
    }))
})

describe("a source of today", () => {
  it("is read with KIP-848 where the choice is left to us", async () => {
    assert.strictEqual(await protocolOf(sharedClusters().source.bootstrap), "consumer")
  })

  it("gives batches far above max.partition.fetch.bytes whole, beside small ones", async () => {
    const { source } = sharedClusters()
    const topic = unique("group-large")
    await createTopic(source, topic, { partitions: 3, configs: { "max.message.bytes": "5000000" } })
    await load(source, makeRecords({ topic, count: 6, partitions: 2, valueBytes: 900_000, prefix: "large" }))
    await load(
      source,
      [...makeRecords({ topic, count: 500, prefix: "small" })].map((record) => ({ ...record, partition: 2 }))
    )
    const member = await joinGroup(source, {
      group: unique("group"),
      topics: [topic],
      settings: { "max.partition.fetch.bytes": 1_000, "fetch.max.bytes": 1_000 }
    })
    await member.sees(506)
    assertInOrder(member.seen)
    assert.strictEqual(values(member.seen).size, 506)
    await member.close()
  })
})

describe("brokers that die", () => {
  it("one broker killed and back while it is read: every record once, in order, and the commits go on", () =>
    using({ name: "group-restart" }, async (cluster) => {
      const topic = "t"
      await createTopic(cluster, topic, { partitions: 2 })
      await load(cluster, makeRecords({ topic, count: 2_000, partitions: 2 }))
      const member = await joinGroup(cluster, { group: "g", topics: [topic] })
      await member.sees(2_000)
      await cluster.kill("SIGKILL")
      await cluster.restart()
      await load(cluster, makeRecords({ topic, count: 2_000, partitions: 2, from: 2_000 }))
      await until(() => values(member.seen).size === 4_000, {
        what: () => `4000 records, has ${values(member.seen).size} ${String(member.failure())}`
      })
      assertInOrder(member.seen)
      await until(async () => (await committedOffsets(cluster, "g", topic, 2)).every((offset) => offset === 2_000), {
        what: "the commits"
      })
      await member.close()
    }))

  it("leaders that move between three brokers, one killed after the other: nothing lost, nothing doubled", () =>
    using({ name: "group-leaders", brokers: 3 }, async (cluster) => {
      const topic = "t"
      await createTopic(cluster, topic, { partitions: 3, replicas: 3 })
      const member = await joinGroup(cluster, {
        group: "g",
        topics: [topic],
        settings: { "session.timeout.ms": 30_000 }
      })
      let sent = 0
      const send = async () => {
        await load(cluster, makeRecords({ topic, count: 300, partitions: 3, from: sent }))
        sent += 300
        await until(() => values(member.seen).size === sent, {
          what: () => `${sent} records, has ${values(member.seen).size} ${String(member.failure())}`,
          timeoutMs: 120_000
        })
      }
      await send()
      for (const broker of [1, 2]) {
        await cluster.kill("SIGKILL", broker)
        await send()
        await cluster.restart(broker)
        await send()
      }
      assertInOrder(member.seen)
      await member.close()
    }))

  it("closing ends within its bound while nobody answers", () =>
    using({ name: "group-frozen" }, async (cluster) => {
      await createTopic(cluster, "t")
      await load(cluster, makeRecords({ topic: "t", count: 10 }))
      const member = await joinGroup(cluster, { group: "g", topics: ["t"] })
      await member.sees(10)
      await cluster.kill("SIGSTOP")
      await within(member.close(), { what: "the member to close", timeoutMs: 60_000 })
      await cluster.kill("SIGCONT")
    }))
})

describe("a source that wants to know who we are", () => {
  it("lets the member in with the right password, and says in one line what is wrong with the other", () =>
    using({
      name: "group-sasl",
      listeners: [{ name: "SASL", protocol: "SASL_PLAINTEXT" }],
      properties: {
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config":
          "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=\"secret\";"
      }
    }, async (cluster) => {
      await createTopic(cluster, "t")
      await load(cluster, makeRecords({ topic: "t", count: 10 }))
      const listener = { bootstrap: cluster.listeners["SASL"] as string }
      const settings = (password: string) => ({
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config":
          `org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="${password}";`
      })
      const member = await joinGroup(listener, { group: "g", topics: ["t"], settings: settings("secret") })
      await member.sees(10)
      await member.close()
      const error = await joinGroup(listener, { group: "g", topics: ["t"], settings: settings("wrong-one") }).then(
        () => null,
        (cause: unknown) => cause as MembershipError
      )
      assert.strictEqual(error?._tag, "MembershipError")
      assert.match(error?.message ?? "", /group g: .*[Aa]uthentication/)
      assert.notInclude(error?.message ?? "", "wrong-one")
      assert.isFalse(error?.retriable)
    }))
})
