/**
 * verify on real brokers: what it finds on targets of which we know, to the offset, what is wrong with them, because the
 * test itself has written both sides; and on mirrors that ran, that run, and that keep no order.
 */
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import type { Edge, VerifyOptions } from "../../src/mirror/verify/options.ts"
import type { Difference, VerifiedPartition, VerifyReport } from "../../src/mirror/verify/report.ts"
import { verifyService } from "../../src/mirror/verify/verify.ts"
import { createTopic, deleteRecords } from "../kit/admin.ts"
import { load as loadConfig } from "../kit/configFile.ts"
import { load, type LoadRecord } from "../kit/loader.ts"
import { mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { type Config, mirrorConfig, runOnceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { startFeed } from "./mirrorRun.ts"

const { source, target } = sharedClusters()
const NOW = 1_700_000_000_000

const flow = (topic: string, more: Config = {}): Config => ({
  topics: [topic],
  "group.protocol": "consumer",
  "group.id": unique("g-verify"),
  ...more
})

const verify = async (config: Config, options: Partial<VerifyOptions> = {}): Promise<VerifyReport> => {
  const { config: resolved, lines } = await Effect.runPromise(loadConfig(mirrorConfig(source, target, config)))
  if (resolved === null) throw new Error(lines.join("\n"))
  const all = { flow: null, topics: null, from: null, to: null, sample: null, ...options }
  return Effect.runPromise(verifyService(resolved, all, () => {}))
}

/** The one partition of the one flow. */
const only = (report: VerifyReport): VerifiedPartition => {
  const [found] = report.flows
  assert.isNull(found?.problem)
  assert.lengthOf(found?.partitions ?? [], 1)
  const [partition] = found?.partitions ?? []
  assert.isNull(partition?.problem)
  return partition as VerifiedPartition
}

const record = (topic: string, n: number, over: Partial<LoadRecord> = {}): LoadRecord => ({
  topic,
  partition: 0,
  key: `key-${n}`,
  value: `value-${n}`,
  headers: [["n", String(n)]],
  timestamp: NOW + n,
  ...over
})
const records = (topic: string, from: number, to: number): ReadonlyArray<LoadRecord> =>
  Array.from({ length: to - from }, (_, i) => record(topic, from + i))

/** A topic on both sides. `there` is what the target is given. */
const pair = async (
  ours: (topic: string) => ReadonlyArray<LoadRecord>,
  theirs: (topic: string) => ReadonlyArray<LoadRecord>,
  configs: Readonly<Record<string, string>> = {}
): Promise<{ readonly topic: string; readonly at: ReadonlyArray<number> }> => {
  const topic = unique("verify")
  await createTopic(source, topic, { configs })
  await createTopic(target, `east.${topic}`, { configs })
  await load(source, ours(topic))
  return { topic, at: await load(target, theirs(`east.${topic}`)) }
}

describe("verify, where the test has written both sides,", () => {
  it("names each offset that is lost, doubled, altered in whatever part, or made up", async () => {
    const { at, topic } = await pair((name) => records(name, 0, 3_000), (name) => [
      ...records(name, 0, 500),
      // 500 is lost.
      ...records(name, 501, 1_000),
      record(name, 1_000, { value: "value-1000!" }),
      record(name, 1_001, { key: "other" }),
      record(name, 1_002, { headers: [["n", "1002"], ["more", ""]] }),
      record(name, 1_003, { timestamp: NOW }),
      record(name, 1_004, { key: null }),
      ...records(name, 1_005, 3_000),
      record(name, 7),
      record(name, 7),
      record(name, 99_999)
    ])
    const found = only(await verify(flow(topic)))
    assert.isFalse(found.equal)
    assert.deepStrictEqual([found.lost, found.doubled, found.altered, found.foreign], [1, 2, 5, 1])
    const there = (back: number): number => at[at.length - back] as number
    const altered = (sourceOffset: number, part: string): Difference => ({
      kind: "altered",
      sourceOffset,
      targetOffset: sourceOffset - 1,
      parts: [part]
    })
    assert.deepStrictEqual(found.differences, [
      { kind: "lost", sourceOffset: 500, targetOffset: null, parts: [] },
      { kind: "doubled", sourceOffset: null, targetOffset: there(3), parts: [] },
      { kind: "doubled", sourceOffset: null, targetOffset: there(2), parts: [] },
      altered(1_000, "value"),
      altered(1_001, "key"),
      altered(1_002, "headers"),
      altered(1_003, "timestamp"),
      altered(1_004, "key"),
      { kind: "foreign", sourceOffset: null, targetOffset: there(1), parts: [] }
    ])
  })

  it("does not mind another order, and minds copies of records with the same content", async () => {
    const twin = (name: string) => record(name, 1, { key: null })
    const shuffled = await pair(
      (name) => [...records(name, 0, 1_000), twin(name), twin(name)],
      (name) => [twin(name), ...records(name, 0, 1_000).toReversed(), twin(name)]
    )
    assert.isTrue(only(await verify(flow(shuffled.topic))).equal)
    const fewer = await pair((name) => [twin(name), twin(name)], (name) => [twin(name)])
    assert.deepInclude(only(await verify(flow(fewer.topic))), { lost: 1, doubled: 0, foreign: 0 })
  })

  it("keeps apart what either side has removed at its beginning", async () => {
    const expired = await pair((name) => records(name, 0, 500), (name) => records(name, 0, 500))
    await deleteRecords(source, expired.topic, 0, 200)
    assert.deepInclude(only(await verify(flow(expired.topic))), { equal: true })
    await deleteRecords(target, `east.${expired.topic}`, 0, 300)
    const both = only(await verify(flow(expired.topic)))
    assert.deepInclude(both, { equal: true, lost: 0, foreign: 0 })
    assert.deepStrictEqual([both.source.from, both.source.records, both.target.records], [300, 200, 200])
    const lossy = await pair((name) => records(name, 0, 500), (name) => [
      ...records(name, 0, 400),
      ...records(name, 401, 500)
    ])
    await deleteRecords(target, `east.${lossy.topic}`, 0, 300)
    const found = only(await verify(flow(lossy.topic)))
    assert.deepStrictEqual(found.differences.map(({ kind, sourceOffset }) => [kind, sourceOffset]), [["lost", 400]])
  })

  it("takes what compaction may have removed for no loss, and the last record of a key for one", async () => {
    const keyed = (name: string, key: string, n: number) => record(name, n, { key })
    const { topic } = await pair(
      (name) => [keyed(name, "a", 1), keyed(name, "a", 2), keyed(name, "b", 3), keyed(name, "c", 4)],
      (name) => [keyed(name, "a", 2), keyed(name, "c", 4)],
      { "cleanup.policy": "compact" }
    )
    const found = only(await verify(flow(topic)))
    assert.deepStrictEqual(found.differences.map(({ kind, sourceOffset }) => [kind, sourceOffset]), [["lost", 2]])
    assert.strictEqual(found.explained.removedOnTarget, 1)
  })

  it("compares between two offsets or two times only", async () => {
    const { topic } = await pair((name) => records(name, 0, 1_000), (name) => [
      ...records(name, 0, 100),
      ...records(name, 101, 500),
      ...records(name, 501, 900),
      ...records(name, 901, 1_000)
    ])
    const lostBetween = async (from: Edge | null, to: Edge | null): Promise<ReadonlyArray<number | null>> =>
      only(await verify(flow(topic), { from, to })).differences.map(({ sourceOffset }) => sourceOffset)
    assert.deepStrictEqual(await lostBetween(null, null), [100, 500, 900])
    assert.deepStrictEqual(await lostBetween({ offset: 200 }, null), [500, 900])
    assert.deepStrictEqual(await lostBetween({ offset: 200 }, { offset: 800 }), [500])
    assert.deepStrictEqual(await lostBetween({ timeMs: NOW + 600 }, null), [900])
    assert.deepStrictEqual(await lostBetween(null, { timeMs: NOW + 400 }), [100])
    assert.deepStrictEqual(await lostBetween({ offset: 200 }, { offset: 400 }), [])
    // The source has no record as late as that.
    const after = only(await verify(flow(topic), { from: { timeMs: NOW + 5_000 } }))
    assert.deepInclude(after, { equal: true, foreign: 0 })
  })

  it("applies the flow's transforms to the source's records before it compares", async () => {
    const marked = (name: string, n: number) => record(name, n, { headers: [["n", String(n)], ["origin", "east"]] })
    const { topic } = await pair(
      (name) => [...records(name, 0, 100), record(name, 100, { value: null })],
      (name) => Array.from({ length: 100 }, (_, n) => marked(name, n))
    )
    const found = only(
      await verify(flow(topic, {
        transforms: ["mark", "cut"],
        "transforms.mark.type": "InsertHeader",
        "transforms.mark.header": "origin",
        "transforms.mark.value.literal": "east",
        "transforms.cut.type": "Filter",
        "transforms.cut.predicate": "tombstones",
        predicates: ["tombstones"],
        "predicates.tombstones.type": "RecordIsTombstone"
      }))
    )
    assert.isTrue(found.equal, JSON.stringify(found))
    assert.strictEqual(found.explained.filtered, 1)
  })

  it("counts everything as lost where the target has no such topic", async () => {
    const topic = unique("verify")
    await createTopic(source, topic)
    await load(source, records(topic, 0, 10))
    const found = only(await verify(flow(topic)))
    assert.deepInclude(found, { equal: false, lost: 10 })
    assert.include(found.notes.join(), "no such partition")
  })
})

describe("verify, where a mirror has written the target,", () => {
  it("finds a share group's mirror equal, exits with 0, and with 1 when a record is doubled", async () => {
    const topic = unique("verify")
    await createTopic(source, topic, { partitions: 3 })
    const all = records(topic, 0, 3_000).map((one, n) => ({ ...one, partition: n % 3 }))
    await load(source, all, { codec: "lz4" })
    const settings = flow(topic, { "group.protocol": "share" })
    await mirrorUntilCaughtUp(source, target, settings)
    const run = (...args: ReadonlyArray<string>) =>
      runOnceover({ config: mirrorConfig(source, target, settings), args: ["verify", ...args] })
    const equal = await run()
    assert.strictEqual(equal.code, 0, equal.output)
    assert.match(equal.output, /^Equal\. 3,000 records: 0 lost, 0 doubled, 0 altered/m)
    await load(target, [record(`east.${topic}`, 4, { partition: 1 })])
    const doubled = await run("--json")
    assert.strictEqual(doubled.code, 1, doubled.output)
    const report = JSON.parse(doubled.output.slice(doubled.output.indexOf("{"))) as VerifyReport
    assert.deepStrictEqual(
      report.flows.flatMap(({ partitions }) => partitions.map(({ equal: is, partition }) => [partition, is])),
      [[0, true], [1, false], [2, true]]
    )
    assert.strictEqual(report.flows[0]?.partitions[1]?.doubled, 1)
  })

  it("judges a flow that runs by what the source held when it began", async () => {
    const topic = unique("verify")
    await createTopic(source, topic, { partitions: 2 })
    const settings = flow(topic, { "tasks.max": 1 })
    const mirror = await startOnceover({ config: mirrorConfig(source, target, settings) })
    try {
      await mirror.untilRunning()
      const feed = await startFeed(source, target, { topic, targetTopic: `east.${topic}`, partitions: 2, ahead: 500 })
      // Some of them are mirrored: the flow is in its group. Nothing else says that what is not there yet will come.
      await feed.more(700)
      const report = await verify(settings)
      await feed.more(100)
      await feed.stop()
      assert.isTrue(report.equal, JSON.stringify(report, null, 1))
      const seen = report.flows[0]?.partitions.reduce((sum, partition) => sum + partition.source.records, 0) ?? 0
      assert.isAtLeast(seen, 500)
    } finally {
      await mirror.dispose()
    }
  })
})
