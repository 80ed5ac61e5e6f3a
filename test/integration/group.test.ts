/** Consumer groups on real brokers: what is read, in which order, and what is committed. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createTopic, growTopic } from "../kit/admin.ts"
import { load, makeRecords, openLoader } from "../kit/loader.ts"
import { call, connect, disconnect, KafkaConsumer } from "../kit/rdkafka.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"
import {
  assertInOrder,
  committedOffsets,
  confirmPieces,
  joinGroup,
  memberCount,
  type SeenRecord
} from "./groupMember.ts"

const { source } = sharedClusters()

const values = (seen: ReadonlyArray<SeenRecord>): ReadonlySet<string> => new Set(seen.map(({ value }) => value))
const starting = (seen: ReadonlyArray<SeenRecord>, prefix: string): number =>
  seen.filter(({ value }) => value.startsWith(`${prefix}:`)).length

for (const protocol of ["classic", "consumer"] as const) {
  describe(`a consumer group, ${protocol} protocol`, () => {
    it("reads every record of every partition in order, and starts after what it committed", async () => {
      const topic = unique("group-read")
      const group = unique("group")
      await createTopic(source, topic, { partitions: 3 })
      await load(source, makeRecords({ topic, count: 3_000, partitions: 3 }))
      const first = await joinGroup(source, { group, topics: [topic], protocol })
      await first.sees(3_000)
      assertInOrder(first.seen)
      assert.strictEqual(values(first.seen).size, 3_000)
      await first.close()
      assert.deepStrictEqual(await committedOffsets(source, group, topic, 3), [1_000, 1_000, 1_000])
      await load(source, makeRecords({ topic, count: 30, partitions: 3, prefix: "second" }))
      const second = await joinGroup(source, { group, topics: [topic], protocol })
      await second.sees(30)
      assert.isTrue(second.seen.every(({ value }) => value.startsWith("second:")))
      await second.close()
    })

    it("hands partitions over in the middle: nothing lost, order kept, nothing read twice that was confirmed in time", async () => {
      const topic = unique("group-rebalance")
      const group = unique("group")
      await createTopic(source, topic, { partitions: 4 })
      const loader = await openLoader(source)
      await loader.send(makeRecords({ topic, count: 2_000, partitions: 4, prefix: "one" }))
      const one = await joinGroup(source, { group, topics: [topic], protocol })
      await one.sees(2_000)
      const two = await joinGroup(source, { group, topics: [topic], protocol })
      let sent = 2_000
      await until(async () => {
        await loader.send(makeRecords({ topic, count: 40, partitions: 4, from: sent, prefix: "one" }))
        sent += 40
        return (await two.partitions()).length === 2 && (await one.partitions()).length === 2
      }, { what: "the partitions to be shared" })
      await loader.send(makeRecords({ topic, count: 400, partitions: 4, from: sent, prefix: "one" }))
      sent += 400
      await until(() => values([...one.seen, ...two.seen]).size === sent, {
        what: () => `${sent} records, have ${values([...one.seen, ...two.seen]).size}`
      })
      assertInOrder(one.seen)
      assertInOrder(two.seen)
      // Everything was confirmed as it was read and committed before the hand-over.
      assert.strictEqual(one.seen.length + two.seen.length, sent)
      await one.close()
      await two.owns(4)
      await loader.send(makeRecords({ topic, count: 40, partitions: 4, from: sent, prefix: "one" }))
      sent += 40
      await until(() => values([...one.seen, ...two.seen]).size === sent, { what: "the records after one has left" })
      assert.strictEqual(one.seen.length + two.seen.length, sent)
      await two.close()
      await loader.close()
      assert.deepStrictEqual(await committedOffsets(source, group, topic, 4), [0, 1, 2, 3].map(() => sent / 4))
    })

    it("gives what was read and not confirmed to the new owner", async () => {
      const topic = unique("group-unconfirmed")
      const group = unique("group")
      await createTopic(source, topic)
      await load(source, makeRecords({ topic, count: 100 }))
      const one = await joinGroup(source, { group, topics: [topic], protocol, confirm: false })
      await one.sees(100)
      await one.close()
      assert.deepStrictEqual(await committedOffsets(source, group, topic, 1), [-1])
      const two = await joinGroup(source, { group, topics: [topic], protocol })
      await two.sees(100)
      await two.close()
    })

    it("lets what is in flight end before a partition is given up, and commits it", async () => {
      const topic = unique("group-hook")
      const group = unique("group")
      await createTopic(source, topic, { partitions: 2 })
      await load(source, makeRecords({ topic, count: 200, partitions: 2 }))
      const one = await joinGroup(source, {
        group,
        topics: [topic],
        protocol,
        confirm: false,
        onRevoke: (member, partitions) =>
          confirmPieces(
            member,
            member.pieces.filter((piece) => partitions.some((p) => p.partition === piece.partition))
          ).pipe(Effect.asVoid)
      })
      await one.sees(200)
      const two = await joinGroup(source, { group, topics: [topic], protocol })
      const [mine] = await two.owns(1)
      assert.strictEqual(mine?.position, 100)
      assert.strictEqual(two.seen.length, 0)
      await one.close()
      await two.close()
    })

    it("drops confirmations that come after the partition was given up", async () => {
      const topic = unique("group-late")
      const group = unique("group")
      await createTopic(source, topic, { partitions: 2 })
      await load(source, makeRecords({ topic, count: 200, partitions: 2 }))
      const one = await joinGroup(source, { group, topics: [topic], protocol, confirm: false })
      await one.sees(200)
      const two = await joinGroup(source, { group, topics: [topic], protocol, confirm: false })
      const [taken] = await two.owns(1)
      await two.sees(100)
      const late = one.pieces.filter(({ partition }) => partition === taken?.partition)
      const dropped = await one.run(confirmPieces(one, late))
      assert.strictEqual(dropped, late.length)
      await one.close()
      await two.close()
      assert.deepStrictEqual((await committedOffsets(source, group, topic, 2))[taken?.partition as number], -1)
    })

    it("takes up topics that are added while it runs, without disturbing the others, and partitions that are added", async () => {
      const first = unique("group-first")
      const second = unique("group-second")
      await createTopic(source, first, { partitions: 2 })
      await createTopic(source, second)
      await load(source, [
        ...makeRecords({ topic: first, count: 20, partitions: 2 }),
        ...makeRecords({ topic: second, count: 10 })
      ])
      const member = await joinGroup(source, { group: unique("group"), topics: [first], protocol })
      await member.sees(20)
      const before = await member.partitions()
      await member.run(member.consumer.subscribe([first, second]))
      await member.sees(30)
      const after = await member.owns(3)
      for (const { generation, partition } of before) {
        assert.strictEqual(after.find((p) => p.topic === first && p.partition === partition)?.generation, generation)
      }
      await growTopic(source, first, 3)
      await member.owns(4)
      await load(source, makeRecords({ topic: first, count: 3, partitions: 3, prefix: "grown" }))
      await until(() => starting(member.seen, "grown") === 3, { what: "the records of the new partition too" })
      await member.run(member.consumer.subscribe([second]))
      await until(async () => (await member.partitions()).every(({ topic }) => topic === second), {
        what: "the first topic to be gone"
      })
      await member.close()
    })

    it("stays a member while nobody polls it, when a client that is not served is thrown out", async () => {
      const topic = unique("group-slow")
      const [group, controlGroup] = [unique("group"), unique("group")]
      await createTopic(source, topic)
      const times = {
        "max.poll.interval.ms": 3_000,
        ...(protocol === "classic" ? { "session.timeout.ms": 2_000, "heartbeat.interval.ms": 500 } : {})
      }
      const member = await joinGroup(source, { group, topics: [topic], protocol, settings: times })
      await member.owns(1)
      await member.stopReading()
      const control = new KafkaConsumer(
        {
          "bootstrap.servers": source.bootstrap,
          "group.id": controlGroup,
          "group.protocol": protocol,
          ...times
        } as never,
        {}
      )
      await connect(control)
      control.subscribe([topic])
      // Served until the group knows it, then never again.
      await until(async () => {
        await call("consume", (done) => control.consume(1, done as never))
        return await memberCount(source, controlGroup) === 1
      }, { what: "the control to be a member" })
      const [before] = await member.partitions()
      await until(async () => await memberCount(source, controlGroup) === 0, { what: "the control to be thrown out" })
      await load(source, makeRecords({ topic, count: 5 }))
      const pieces = await until(async () => {
        const polled = await member.run(member.consumer.poll({ maxWaitMs: 1_000, maxBytes: 1_000_000 }))
        return polled.length > 0 ? polled : null
      }, { what: "the records" })
      assert.strictEqual(await member.run(confirmPieces(member, pieces)), 0)
      const outcome = await member.run(member.consumer.flush)
      assert.strictEqual(outcome.kind, "committed")
      assert.strictEqual((await member.partitions())[0]?.generation, before?.generation)
      await disconnect(control)
      await member.close()
    })
  })
}
