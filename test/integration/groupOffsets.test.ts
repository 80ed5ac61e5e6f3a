/**
 * Offsets of groups on the target, judged by librdkafka: a member of the group that begins where onceover has put it
 * reads what the group had not consumed on the source; in consumer mode nothing else.
 */
import { assert, describe, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { identityOf, readTopics } from "../kit/auditor.ts"
import { committedOffsets, commitOffsets, joinGroup, readAsGroup } from "../kit/groups.ts"
import { load, makeRecords, openLoader } from "../kit/loader.ts"
import { mirrorUntilCaughtUp } from "../kit/mirror.ts"
import type { Config } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"

const { source, target } = sharedClusters()
const PARTITIONS = 4

/**
 * Partition 0: transactions of one record, every third aborted, so that offsets have holes; 1: many records in many
 * batches; 2: nothing; 3: a few records.
 */
const filled = async (topic: string): Promise<void> => {
  await createTopic(source, topic, { partitions: PARTITIONS })
  const loader = await openLoader(source, { transactionalId: unique("t") })
  for (let n = 0; n < 30; n++) {
    await loader.begin()
    await loader.send(
      [...makeRecords({ topic, count: 1, from: n, prefix: `${topic}/0` })].map((r) => ({ ...r, partition: 0 }))
    )
    await (n % 3 === 2 ? loader.abort() : loader.commit())
  }
  await loader.close()
  for (let part = 0; part < 4; part++) {
    const records = makeRecords({ topic, count: 150, from: part * 150, prefix: `${topic}/1` })
    await load(source, [...records].map((record) => ({ ...record, partition: 1 })), {
      properties: { "batch.num.messages": 40 }
    })
  }
  await load(source, [...makeRecords({ topic, count: 5, prefix: `${topic}/3` })].map((r) => ({ ...r, partition: 3 })))
}

/** Positions of groups by name, one offset a partition. Partition 0 has offsets 0 to 59: record, marker, record, ... */
const GROUPS: Readonly<Record<string, readonly [number, number, number, number]>> = {
  begin: [0, 0, 0, 0],
  gaps: [5, 1, 0, 1],
  behind: [11, 17, 0, 4],
  middle: [30, 299, 0, 3],
  late: [58, 599, 0, 5],
  end: [60, 600, 0, 5]
}

const cases: ReadonlyArray<{ readonly mode: "share" | "consumer"; readonly guarantee: string }> = [
  { mode: "consumer", guarantee: "exactly-once" },
  { mode: "consumer", guarantee: "at-least-once" },
  { mode: "share", guarantee: "exactly-once" },
  { mode: "share", guarantee: "at-least-once" }
]

const flow = (topic: string, mode: string, guarantee: string, groups: string, more: Config = {}): Config => ({
  name: unique("flow"),
  topics: [topic],
  "group.protocol": mode,
  "group.id": unique("g"),
  "delivery.guarantee": guarantee,
  groups: [groups],
  ...more
})

describe("the offsets of groups on the target", () => {
  it.for(cases)(
    "let a member read what the group had not consumed ($mode, $guarantee)",
    async ({ guarantee, mode }) => {
      const topic = unique("offsets")
      await filled(topic)
      const prefix = unique("app")
      const records = await readTopics(source, [topic])
      const groups = Object.entries(GROUPS).map(([name, positions]) => ({ id: `${prefix}-${name}`, positions }))
      for (const { id, positions } of groups) {
        await commitOffsets(source, id, positions.map((offset, partition) => ({ topic, partition, offset })))
      }
      const output = await mirrorUntilCaughtUp(source, target, flow(topic, mode, guarantee, `${prefix}-.*`))
      for (const { id, positions } of groups) {
        const wanted = records.filter((record) => record.offset >= (positions[record.partition] ?? 0)).map(identityOf)
          .sort()
        const got = (await readAsGroup(target, id, `east.${topic}`, PARTITIONS)).map(identityOf).sort()
        const missing = wanted.filter((record) => !got.includes(record))
        assert.deepStrictEqual(missing, [], `${id} would never see these\n${output}`)
        if (mode === "consumer") assert.deepStrictEqual(got, wanted, `${id} reads what it has consumed`)
      }
    }
  )

  it("are left alone where the group has members on the target, and where it is further already", async () => {
    const topic = unique("offsets")
    await createTopic(source, topic)
    await load(source, makeRecords({ topic, count: 100 }))
    const prefix = unique("app")
    const [active, ahead] = [`${prefix}-active`, `${prefix}-ahead`]
    const settings = flow(topic, "consumer", "at-least-once", `${prefix}-.*`)
    await mirrorUntilCaughtUp(source, target, settings)
    const place = { topic: `east.${topic}`, partition: 0 }
    await commitOffsets(source, active, [{ topic, partition: 0, offset: 70 }])
    await commitOffsets(source, ahead, [{ topic, partition: 0, offset: 70 }])
    await commitOffsets(target, active, [{ ...place, offset: 20 }])
    await commitOffsets(target, ahead, [{ ...place, offset: 90 }])
    const member = await joinGroup(target, active, place.topic)
    await load(source, makeRecords({ topic, count: 1, from: 100 }))
    const output = await mirrorUntilCaughtUp(source, target, settings)
    assert.include(output, `group ${active} is not touched on the target: the group has members on the target`)
    assert.deepStrictEqual([...await committedOffsets(target, active, [place])], [[`${place.topic}-0`, 20]])
    assert.deepStrictEqual([...await committedOffsets(target, ahead, [place])], [[`${place.topic}-0`, 90]])
    await member.leave()
    await load(source, makeRecords({ topic, count: 1, from: 101 }))
    await mirrorUntilCaughtUp(source, target, settings)
    assert.deepStrictEqual([...await committedOffsets(target, active, [place])], [[`${place.topic}-0`, 70]])
  })
})
