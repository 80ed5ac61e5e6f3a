/**
 * The runbook of docs/failover.md with its commands, from one end to the other: drain, prove, promote, go on over there;
 * reverse; home again by the same map of offsets. And the same where east is lost for good. Judged by librdkafka: each
 * group reads what it had not consumed.
 */
import { assert, describe, it } from "vitest"
import { createTopic, listTopics } from "../kit/admin.ts"
import { type AuditRecord, identityOf, readTopics } from "../kit/auditor.ts"
import { committedOffsets, commitOffsets, readAsGroup } from "../kit/groups.ts"
import { startCluster } from "../kit/kafka.ts"
import { type Bootstrap, load, makeRecords } from "../kit/loader.ts"
import { type Config, mirrorConfig, type Onceover, runOnceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"

const { source: east, target: west } = sharedClusters()
const PARTITIONS = 2

interface Names {
  readonly topic: string
  readonly app: string
  readonly there: string
  readonly home: string
}
const names = (): Names => ({
  topic: unique("orders"),
  app: unique("app"),
  there: unique("east-to-west"),
  home: unique("west-to-east")
})
/** The flows of the page, both ways. */
const flowsOf = ({ app, home, there, topic }: Names) => {
  const flow = { topics: [topic], "group.protocol": "consumer", "tasks.max": 1, groups: [`${app}.*`] }
  return {
    forth: { ...flow, name: there, source: "east", target: "west", "group.id": there },
    back: { ...flow, name: home, source: "west", target: "east", "group.id": home }
  }
}

/** One line of the runbook. */
const command = async (line: string, file: Config): Promise<string> => {
  const args = line.split(" ")
  const [first = "", second = ""] = args
  const words = first === "offsets" ? [`${first} ${second}`, ...args.slice(2)] : args
  const end = await runOnceover({ config: file, args: words })
  assert.strictEqual(end.code, 0, `${line}\n${end.output}`)
  return end.output
}
const translated = async (line: string, file: Config): Promise<ReadonlyArray<string>> => {
  const rows = JSON.parse(await command(line, file)) as ReadonlyArray<
    { readonly state: string; readonly exact: boolean }
  >
  return rows.map(({ exact, state }) => `${state} ${exact}`)
}

const consumedUpTo = (records: ReadonlyArray<AuditRecord>, partition: number, count: number): number => {
  const of = records.filter((record) => record.partition === partition)
  return of[count]?.offset ?? (of.at(-1)?.offset ?? -1) + 1
}
const behind = (records: ReadonlyArray<AuditRecord>, counts: ReadonlyArray<number>): ReadonlyArray<string> =>
  records.filter((record) => record.offset >= consumedUpTo(records, record.partition, counts[record.partition] ?? 0))
    .map(identityOf).toSorted()
const stand = async (cluster: Bootstrap, group: string, at: string, counts: readonly [number, number]) => {
  const records = await readTopics(cluster, [at])
  await commitOffsets(
    cluster,
    group,
    counts.map((count, partition) => ({ topic: at, partition, offset: consumedUpTo(records, partition, count) }))
  )
}
const read = async (cluster: Bootstrap, group: string, at: string) =>
  (await readAsGroup(cluster, group, at, PARTITIONS)).map(identityOf).toSorted()

const counted = async (cluster: Bootstrap, at: string): Promise<number> => (await readTopics(cluster, [at])).length

describe("the runbook of a failover", () => {
  it("moves groups over and home again, and each reads what it had not consumed", async () => {
    const own = names()
    const { app, home, there, topic } = own
    const [copy, back] = [`east.${topic}`, `west.${topic}`]
    const flows = flowsOf(own)
    const forth = { ...mirrorConfig(east, west, {}), flows: [flows.forth] }
    const both = { ...forth, flows: [flows.forth, flows.back] }
    for (const cluster of [east, west]) await createTopic(cluster, topic, { partitions: PARTITIONS })
    await load(east, makeRecords({ topic, count: 100, partitions: PARTITIONS, prefix: "e" }))
    await stand(east, app, topic, [30, 7])

    // A planned change: drain, prove, promote.
    await command("run --until-caught-up", forth)
    assert.match(await command("verify", forth), /equal/)
    const promote = `offsets translate --flow ${there} --group ${app} --commit --json`
    assert.deepStrictEqual(await translated(promote, both), ["synced true", "synced true"])
    assert.deepStrictEqual(await read(west, app, copy), behind(await readTopics(east, [topic]), [30, 7]))

    // Life goes on over there: producers write to west's own topic, the group reads both and comes further.
    await load(west, makeRecords({ topic, count: 40, partitions: PARTITIONS, prefix: "w" }))
    await stand(west, app, copy, [41, 50])
    await stand(west, `${app}-own`, topic, [11, 3])
    // And what east had held back.
    await load(east, makeRecords({ topic, count: 10, partitions: PARTITIONS, from: 100, prefix: "e" }))

    // Reverse: both ways, no record twice and none round.
    await command("run --until-caught-up", both)
    assert.match(await command("verify", both), /equal/)
    assert.deepStrictEqual([await counted(west, copy), await counted(east, back)], [110, 40])

    // Home: what was read of east's topic by the map of the way there, what was read of west's own by that of the way back.
    await command(`offsets translate --flow ${there} --group ${app} --reverse --commit`, both)
    await command(`offsets translate --flow ${home} --group ${app}-own --commit`, both)
    const places = [0, 1].map((partition) => ({ topic, partition }))
    const originals = await readTopics(east, [topic])
    assert.deepStrictEqual([...await committedOffsets(east, app, places)], [
      [`${topic}-0`, consumedUpTo(originals, 0, 41)],
      [`${topic}-1`, consumedUpTo(originals, 1, 50)]
    ])
    assert.deepStrictEqual(await read(east, app, topic), behind(originals, [41, 50]))
    assert.deepStrictEqual(await read(east, `${app}-own`, back), behind(await readTopics(west, [topic]), [11, 3]))
  })

  it("promotes west when east is lost for good, and brings all home to a new east", async () => {
    const all = names()
    const { app, home, topic } = all
    const [copy, back] = [`east.${topic}`, `west.${topic}`]
    const flows = flowsOf(all)
    const gone = await startCluster({ name: "failover-gone" })
    const mirrors: Array<Onceover> = []
    try {
      await createTopic(gone, topic, { partitions: PARTITIONS })
      await createTopic(west, topic, { partitions: PARTITIONS })
      await load(gone, makeRecords({ topic, count: 100, partitions: PARTITIONS, prefix: "e" }))
      await stand(gone, app, topic, [30, 7])
      const held = await readTopics(gone, [topic])
      const unread = behind(held, [30, 7])
      const mirror = await startOnceover({
        config: {
          ...mirrorConfig(gone, west, {}),
          flows: [{
            ...flows.forth,
            "refresh.topics.interval.seconds": 1,
            "refresh.groups.interval.seconds": 1,
            "sync.group.offsets.interval.seconds": 1
          }]
        }
      })
      mirrors.push(mirror)
      const tail = () => mirror.output().slice(-3_000)
      const places = [0, 1].map((partition) => ({ topic: copy, partition }))
      const synced = async () => {
        if (!(await listTopics(west)).has(copy)) return false
        const [there, at] = [await readTopics(west, [copy]), await committedOffsets(west, app, places)]
        return [30, 7].every((count, partition) =>
          there.length === 100 && at.get(`${copy}-${partition}`) === consumedUpTo(there, partition, count)
        )
      }
      await until(synced, { timeoutMs: 60_000, what: () => `the group on west\n${tail()}` })
      // It goes in the middle of the work.
      for (let from = 100; from < 250; from += 50) {
        await load(gone, makeRecords({ topic, count: 50, partitions: PARTITIONS, from, prefix: "e" }))
      }
      await gone.kill("SIGKILL")

      // East is gone: stop what runs, start over there.
      await mirror.kill("SIGTERM")
      assert.strictEqual((await mirror.exit()).code, 0, tail())
      const kept = (await readTopics(west, [copy])).map(identityOf)
      assert.strictEqual(new Set(kept).size, kept.length, "a record is there twice")
      assert.deepStrictEqual(held.map(identityOf).filter((id) => !kept.includes(id)), [])
      const consumed = new Set(held.map(identityOf).filter((id) => !unread.includes(id)))
      assert.deepStrictEqual(await read(west, app, copy), kept.filter((id) => !consumed.has(id)).toSorted())
      await load(west, makeRecords({ topic, count: 40, partitions: PARTITIONS, prefix: "w" }))
      await stand(west, app, copy, [41, 45])

      // A new east: first what west has kept, once, to a topic of its own.
      const saved = unique("orders-before")
      const { topics: _, ...flow } = flows.back
      const rescue = {
        ...mirrorConfig(east, west, {}),
        flows: [{
          ...flow,
          name: `${home}-rescue`,
          "group.id": `${home}-rescue`,
          topics: [copy.replace(".", "\\.")],
          "topic.mapping": { [copy]: saved }
        }]
      }
      await command("run --until-caught-up", rescue)
      assert.match(await command("verify", rescue), /equal/)
      const exact = ["synced true", "synced true"]
      assert.deepStrictEqual(await translated(`offsets translate --group ${app} --commit --json`, rescue), exact)
      assert.deepStrictEqual(await read(east, app, saved), behind(await readTopics(west, [copy]), [41, 45]))

      // Then the flows of the page, with a topic of the same name that begins anew.
      await createTopic(east, topic, { partitions: PARTITIONS })
      await load(east, makeRecords({ topic, count: 10, partitions: PARTITIONS, prefix: "n" }))
      const both = { ...mirrorConfig(east, west, {}), flows: [flows.forth, flows.back] }
      await command("run --until-caught-up", both)
      const counts = [await counted(east, saved), await counted(east, back), await counted(west, copy)]
      assert.deepStrictEqual(counts, [kept.length, 40, kept.length + 10])
    } finally {
      for (const mirror of mirrors) await mirror.dispose()
      await gone.stop()
    }
  })
})
