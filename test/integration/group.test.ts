/** Consumer groups on real brokers: what is read, in which order, and what is committed. */
import { assert, describe, it } from "@effect/vitest"
import { createTopic } from "../kit/admin.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { joinGroup } from "./groupMember.ts"

const { source } = sharedClusters()

/** Offsets ascend within each partition, as they were given out. */
export const assertInOrder = (seen: ReadonlyArray<{ readonly partition: number; readonly offset: number }>): void => {
  const last = new Map<number, number>()
  for (const { offset, partition } of seen) {
    assert.isAbove(offset, last.get(partition) ?? -1, `partition ${partition}`)
    last.set(partition, offset)
  }
}

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
      assert.strictEqual(new Set(first.seen.map(({ value }) => value)).size, 3_000)
      await first.close()
      await load(source, makeRecords({ topic, count: 30, partitions: 3, prefix: "second" }))
      const second = await joinGroup(source, { group, topics: [topic], protocol })
      await second.sees(30)
      assert.isTrue(second.seen.every(({ value }) => value.startsWith("second:")))
      await second.close()
    })
  })
}
