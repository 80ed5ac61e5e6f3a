/**
 * The runbook of docs/failover.md with its commands, from one end to the other: drain, prove, promote, go on over there;
 * reverse; home again by the same map of offsets. Judged by librdkafka: each group reads what it had not consumed.
 */
import { assert, describe, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { type AuditRecord, identityOf, readTopics } from "../kit/auditor.ts"
import { committedOffsets, commitOffsets, readAsGroup } from "../kit/groups.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { mirrorConfig, runOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"

const { source: east, target: west } = sharedClusters()
const PARTITIONS = 2

const topic = unique("orders")
const [copy, back] = [`east.${topic}`, `west.${topic}`]
const [there, home] = [unique("east-to-west"), unique("west-to-east")]
const app = unique("app")
const flow = { topics: [topic], "group.protocol": "consumer", "tasks.max": 1, groups: [`${app}.*`] }
const config = {
  ...mirrorConfig(east, west, {}),
  flows: [
    { ...flow, name: there, source: "east", target: "west", "group.id": there },
    { ...flow, name: home, source: "west", target: "east", "group.id": home }
  ]
}

/** One line of the runbook; the flow back runs only where it says so. */
const command = async (
  line: string,
  { flows = config.flows, code = 0 }: { readonly flows?: typeof config.flows; readonly code?: number } = {}
): Promise<string> => {
  const [args, file] = [line.split(" "), { ...config, flows }]
  const [first = "", second = ""] = args
  const words = first === "offsets" ? [`${first} ${second}`, ...args.slice(2)] : args
  const end = await runOnceover({ config: file, args: words })
  assert.strictEqual(end.code, code, `${line}\n${end.output}`)
  return end.output
}
const forth = { flows: config.flows.slice(0, 1) }

const consumedUpTo = (records: ReadonlyArray<AuditRecord>, partition: number, count: number): number => {
  const of = records.filter((record) => record.partition === partition)
  return of[count]?.offset ?? (of.at(-1)?.offset ?? -1) + 1
}
const behind = (records: ReadonlyArray<AuditRecord>, counts: ReadonlyArray<number>): ReadonlyArray<string> =>
  records.filter((record) => record.offset >= consumedUpTo(records, record.partition, counts[record.partition] ?? 0))
    .map(identityOf).toSorted()
const stand = async (cluster: typeof east, group: string, at: string, counts: readonly [number, number]) => {
  const records = await readTopics(cluster, [at])
  await commitOffsets(
    cluster,
    group,
    counts.map((count, partition) => ({ topic: at, partition, offset: consumedUpTo(records, partition, count) }))
  )
}
const read = async (cluster: typeof east, group: string, at: string) =>
  (await readAsGroup(cluster, group, at, PARTITIONS)).map(identityOf).toSorted()

describe("the runbook of a failover", () => {
  it("moves groups over and home again, and each reads what it had not consumed", async () => {
    for (const cluster of [east, west]) await createTopic(cluster, topic, { partitions: PARTITIONS })
    await load(east, makeRecords({ topic, count: 100, partitions: PARTITIONS, prefix: "e" }))
    await stand(east, app, topic, [30, 7])

    // A planned change: drain, prove, promote.
    await command("run --until-caught-up", forth)
    assert.match(await command("verify", forth), /equal/)
    const promoted = await command(`offsets translate --flow ${there} --group ${app} --commit --json`)
    const states = (JSON.parse(promoted) as ReadonlyArray<{ readonly state: string; readonly exact: boolean }>)
      .map(({ exact, state }) => `${state} ${exact}`)
    assert.deepStrictEqual(states, ["synced true", "synced true"])
    assert.deepStrictEqual(await read(west, app, copy), behind(await readTopics(east, [topic]), [30, 7]))

    // Life goes on over there: producers write to west's own topic, the group reads both and comes further.
    await load(west, makeRecords({ topic, count: 40, partitions: PARTITIONS, prefix: "w" }))
    await stand(west, app, copy, [41, 50])
    await stand(west, `${app}-own`, topic, [11, 3])
    // And what east had held back.
    await load(east, makeRecords({ topic, count: 10, partitions: PARTITIONS, from: 100, prefix: "e" }))

    // Reverse: both ways, no record twice and none round.
    await command("run --until-caught-up")
    assert.match(await command("verify"), /equal/)
    const counts = async (cluster: typeof east, at: string) => (await readTopics(cluster, [at])).length
    assert.deepStrictEqual([await counts(west, copy), await counts(east, back)], [110, 40])

    // Home: what was read of east's topic by the map of the way there, what was read of west's own by that of the way back.
    await command(`offsets translate --flow ${there} --group ${app} --reverse --commit`)
    await command(`offsets translate --flow ${home} --group ${app}-own --commit`)
    const places = [0, 1].map((partition) => ({ topic, partition }))
    const originals = await readTopics(east, [topic])
    assert.deepStrictEqual([...await committedOffsets(east, app, places)], [
      [`${topic}-0`, consumedUpTo(originals, 0, 41)],
      [`${topic}-1`, consumedUpTo(originals, 1, 50)]
    ])
    assert.deepStrictEqual(await read(east, app, topic), behind(originals, [41, 50]))
    assert.deepStrictEqual(await read(east, `${app}-own`, back), behind(await readTopics(west, [topic]), [11, 3]))
  })
})
