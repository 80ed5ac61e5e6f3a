/**
 * Offsets of groups on the target, judged by librdkafka: a member of the group that begins where onceover has put it
 * reads what the group had not consumed on the source; in consumer mode nothing else.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Effect } from "effect"
import { positionsOf } from "../../src/mirror/control/groupPositions.ts"
import { moveGroup } from "../../src/mirror/control/groups.ts"
import { offsetsOf, type ResolvedConfig } from "../../src/index.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { createTopic } from "../kit/admin.ts"
import { type AuditRecord, identityOf, readTopics } from "../kit/auditor.ts"
import { load as loadConfig } from "../kit/configFile.ts"
import { committedOffsets, commitOffsets, joinGroup, readAsGroup } from "../kit/groups.ts"
import { type Bootstrap, load, makeRecords, openLoader } from "../kit/loader.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { mirrorConfig, type Onceover, runOnceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"

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

interface Case {
  readonly mode: "share" | "consumer"
  readonly guarantee: string
  readonly topic: string
}

const cases: ReadonlyArray<Case> = (["consumer", "share"] as const).flatMap((mode) =>
  ["exactly-once", "at-least-once"].map((guarantee) => ({ mode, guarantee, topic: unique(`offsets-${mode}`) }))
)
const prefix = unique("app")
const idOf = ({ guarantee, mode }: Case, name: string): string => `${prefix}-${mode}-${guarantee}-${name}`
const flowOf = ({ guarantee, mode, topic }: Case) => ({
  source: "east",
  target: "west",
  name: topic,
  topics: [topic],
  "group.protocol": mode,
  "group.id": unique("g"),
  "delivery.guarantee": guarantee,
  "tasks.max": 1,
  groups: [`${prefix}-.*`],
  "sync.group.offsets.interval.seconds": 1,
  "refresh.groups.interval.seconds": 1
})

const withCluster = <A>(at: Bootstrap, use: (cluster: Cluster) => Effect.Effect<A, unknown>): Promise<A> =>
  Effect.runPromise(Effect.scoped(
    Effect.flatMap(makeCluster("test", { "bootstrap.servers": at.bootstrap }), use)
  ) as Effect.Effect<A>)

const flows = cases.map(flowOf)
const records = (one: Case) => readTopics(source, [one.topic])

describe("the offsets of groups on the target", () => {
  let mirror: Onceover | undefined
  const [first] = cases as readonly [Case]
  const place = { topic: `east.${first.topic}`, partition: 1 }
  const name = `${place.topic}-1`
  const [active, ahead] = [idOf(first, "active"), idOf(first, "ahead")]
  const offsetOf = async (group: string) => (await committedOffsets(target, group, [place])).get(name)
  let leave = async () => {}

  beforeAll(async () => {
    for (const one of cases) {
      await filled(one.topic)
      for (const [group, positions] of Object.entries(GROUPS)) {
        const offsets = positions.map((offset, partition) => ({ topic: one.topic, partition, offset }))
        await commitOffsets(source, idOf(one, group), offsets)
      }
    }
    await createTopic(target, place.topic, { partitions: PARTITIONS })
    for (const group of [active, ahead]) {
      await commitOffsets(source, group, [{ topic: first.topic, partition: 1, offset: 70 }])
    }
    await commitOffsets(target, active, [{ ...place, offset: 20 }])
    await commitOffsets(target, ahead, [{ ...place, offset: 90 }])
    leave = (await joinGroup(target, active, place.topic)).leave
    mirror = await startOnceover({ config: { ...mirrorConfig(source, target, {}), flows } })
    await mirror.untilRunning()
  }, 180_000)
  afterAll(async () => {
    await leave()
    await mirror?.dispose()
  })

  it.for(cases)("let a member read what the group had not consumed ($mode, $guarantee)", async (one) => {
    const all = await records(one)
    const at = Array.from({ length: PARTITIONS }, (_, partition) => ({ topic: `east.${one.topic}`, partition }))
    await until(async () => (await readTopics(target, [`east.${one.topic}`])).length >= all.length, {
      everyMs: 300,
      what: () => `all records on the target\n${(mirror?.output() ?? "").slice(-3_000)}`
    })
    for (const [group, positions] of Object.entries(GROUPS)) {
      const id = idOf(one, group)
      await until(async () => (await committedOffsets(target, id, at)).size === PARTITIONS, {
        what: () => `offsets of ${id} on the target\n${(mirror?.output() ?? "").slice(-3_000)}`
      })
      const wanted = all.filter((record) => record.offset >= (positions[record.partition] ?? 0)).map(identityOf)
        .sort()
      const read = async () => (await readAsGroup(target, id, `east.${one.topic}`, PARTITIONS)).map(identityOf).sort()
      let got = await read()
      assert.deepStrictEqual(wanted.filter((record) => !got.includes(record)), [], `${id} would never see these`)
      if (one.mode === "share") continue
      // Where the mirror was behind the group when it looked first, the place is corrected when it has come there.
      await until(async () => got.length === wanted.length || (got = await read()).length === wanted.length, {
        timeoutMs: 20_000,
        what: `${id} to begin behind what it has consumed`
      })
      assert.deepStrictEqual(got, wanted)
    }
  })

  it("are left alone where the group has members on the target, until these have left", async () => {
    await until(() => (mirror?.output() ?? "").includes(`group ${active} is not touched on the target`), {
      what: "a word about it"
    })
    assert.strictEqual(await offsetOf(active), 20)
    const told = async (metric: string) =>
      (await mirror?.metrics())?.get(metric)?.find(({ labels }) => labels["group"] === active)
    assert.strictEqual((await told("onceover_group_partitions"))?.labels["state"], "active")
    assert.strictEqual((await told("onceover_group_behind_records"))?.value, 50)
    await leave()
    await until(async () => (await offsetOf(active)) === 70, { what: "the group to be moved when it has no members" })
  })

  it("are never set back", async () => {
    // A group that was committed later is on the target: so passes were made over all of them.
    await commitOffsets(source, idOf(first, "later"), [{ topic: first.topic, partition: 1, offset: 33 }])
    await until(async () => (await offsetOf(idOf(first, "later"))) === 33, { what: "a new group to be found" })
    assert.strictEqual(await offsetOf(ahead), 90)
  })

  it("of share groups are where no record is skipped", async () => {
    const group = idOf(first, "share")
    await withCluster(
      source,
      (cluster) => moveGroup(cluster, group, "share", [{ topic: first.topic, partition: 1, offset: 123, metadata: "" }])
    )
    const position = () =>
      withCluster(
        target,
        (cluster) => Effect.map(positionsOf(cluster, group, "share"), (found) => found.get(name)?.offset)
      )
    await until(async () => (await position()) === 123, {
      what: () => `the share group on the target\n${(mirror?.output() ?? "").slice(-3_000)}`
    })
  })

  it("are told by the command, and lead back to the source for those that go home", async () => {
    const home = idOf(first, "home")
    const positions = records(first).then((all) => all.filter((record) => record.partition === 0))
    const there = (await readTopics(target, [place.topic])).filter((record) => record.partition === 0)
    const command = async (action: string, ...args: ReadonlyArray<string>) => {
      const config = { ...mirrorConfig(source, target, {}), flows: [flows[0]] }
      const { code, output } = await runOnceover({ config, args: [`offsets ${action}`, ...args] })
      assert.strictEqual(code, 0, output)
      return output
    }
    // Everything before the seventh record of partition 0 is consumed on the target.
    const wanted = identityOf(there[6] as AuditRecord)
    const offset = (await positions).find((record) => identityOf(record) === wanted)?.offset
    await commitOffsets(target, home, [{ topic: place.topic, partition: 0, offset: (there[6] as AuditRecord).offset }])
    const back = await command("translate", "--group", home, "--reverse", "--commit")
    assert.match(back, new RegExp(`${first.topic}-0 +${offset} `))
    const committed = await committedOffsets(source, home, [{ topic: first.topic, partition: 0 }])
    assert.deepStrictEqual([...committed], [[`${first.topic}-0`, offset]])
    const forth = await command("translate", "--topic", first.topic, "--offset", String(offset))
    assert.include(forth, `${(there[6] as AuditRecord).offset}`)
    const listed = JSON.parse(await command("list", "--json")) as ReadonlyArray<{ group: string; state: string }>
    assert.isTrue(listed.some(({ group, state }) => group === idOf(first, "end") && state === "synced"))
    assert.isFalse(listed.some(({ group }) => group === flows[0]?.["group.id"]))
    // The same for programs.
    const { config } = await Effect.runPromise(loadConfig({ ...mirrorConfig(source, target, {}), flows: [flows[0]] }))
    const asked = { kind: "position", topic: first.topic, partition: 0, offset: offset ?? -1, reverse: false } as const
    const rows = await Effect.runPromise(offsetsOf(config as ResolvedConfig, { flow: null, question: asked }))
    assert.deepStrictEqual(rows.map(({ exact, targetOffset }) => [targetOffset, exact]), [[
      (there[6] as AuditRecord).offset,
      true
    ]])
  })
})
