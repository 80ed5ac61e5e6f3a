/**
 * Repair (R12) on real brokers: a member of the flow's share group that is not ours takes records and gives them up,
 * or says that they are done. The group never delivers them again; the ledger knows that they are missing.
 */
import { Effect } from "effect"
import { afterEach, assert, describe, it } from "vitest"
import { createTopic } from "../kit/admin.ts"
import { load, makeRecords, openLoader } from "../kit/loader.ts"
import { assertExact, mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { type Config, mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"
import { metric, untilMirrored } from "./mirrorRun.ts"
import { acknowledgeAll, acquire, connect, member, offsetsOf } from "./shareMember.ts"

const { source, target } = sharedClusters()
const started: Array<Onceover> = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((mirror) => mirror.dispose()))
})

interface Setting {
  readonly topic: string
  readonly flow: Config
}

const setting = async (what: string, partitions = 1): Promise<Setting> => {
  const topic = unique(what)
  await createTopic(source, topic, { partitions })
  return {
    topic,
    flow: {
      name: topic,
      topics: [topic],
      "group.id": topic,
      "group.protocol": "share",
      "exactly.once.fallback": "fail",
      "tasks.max": 2
    }
  }
}

const running = async ({ flow }: Setting): Promise<Onceover> => {
  const mirror = await startOnceover({ config: mirrorConfig(source, target, flow) })
  started.push(mirror)
  await mirror.untilRunning()
  return mirror
}

/** Somebody else in the flow's group settles this many records, and leaves. Gives their offsets. */
const rogue = ({ topic }: Setting, count: number, type: "accept" | "reject"): Promise<ReadonlyArray<string>> =>
  Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const cluster = yield* connect(source.bootstrap)
    const consumer = yield* member(cluster, topic, [topic])
    const got = yield* acquire(consumer, count)
    const results = yield* acknowledgeAll(consumer, got, type)
    assert.deepStrictEqual(results.filter((result) => result.error !== null), [])
    return offsetsOf(got)
  })))

const places = ({ topic }: Setting) => ({ topic, targetTopic: `east.${topic}` })
const repaired = (mirror: Onceover): Promise<number> => metric(mirror, "onceover_records_repaired_total")

describe("records that somebody else took out of the flow's share group", () => {
  for (const type of ["reject", "accept"] as const) {
    it(`are mirrored once by a flow that starts after (${type}), also when nothing comes behind them`, async () => {
      const of = await setting(`repair-${type}`, 2)
      await load(source, makeRecords({ topic: of.topic, count: 200, partitions: 2 }))
      await mirrorUntilCaughtUp(source, target, of.flow)
      await load(source, makeRecords({ topic: of.topic, count: 100, partitions: 2, from: 200 }))
      const taken = await rogue(of, 100, type)
      assert.lengthOf(taken, 100)
      const mirror = await running(of)
      assertExact(await untilMirrored(source, target, places(of), started), 300)
      await until(async () => (await repaired(mirror)) === 100, { what: "the metric of repaired records" })
      assert.match(mirror.output(), /records that the share group gave up are mirrored now/)
      // Known as done from now on: another start finds nothing.
      await mirror.kill("SIGTERM")
      await mirror.exit()
      const again = await running(of)
      await load(source, makeRecords({ topic: of.topic, count: 20, partitions: 2, from: 300 }))
      assertExact(await untilMirrored(source, target, places(of), started), 320)
      assert.strictEqual(await repaired(again), 0)
    })
  }

  it("are mirrored once by a flow that runs meanwhile", async () => {
    const of = await setting("repair-running", 2)
    await load(source, makeRecords({ topic: of.topic, count: 100, partitions: 2 }))
    const mirror = await running(of)
    assertExact(await untilMirrored(source, target, places(of), started), 100)
    const loader = await openLoader(source)
    let sent = 100
    let stop = false
    const feeding = (async () => {
      while (!stop) {
        await loader.send(makeRecords({ topic: of.topic, count: 20, partitions: 2, from: sent }))
        sent += 20
      }
    })()
    const taken = await rogue(of, 50, "reject").finally(() => {
      stop = true
    })
    await feeding
    await loader.close()
    assertExact(await untilMirrored(source, target, places(of), started), sent)
    assert.isAtLeast(taken.length, 50)
    await until(async () => (await repaired(mirror)) === taken.length, { what: `${taken.length} repaired records` })
  })

  it("were taken before the flow wrote its first note: the empty ledger of a flow that was started once adopts nothing", async () => {
    const of = await setting("repair-first")
    const first = await running(of)
    await first.kill("SIGTERM")
    await first.exit()
    await load(source, makeRecords({ topic: of.topic, count: 60 }))
    assert.lengthOf(await rogue(of, 60, "reject"), 60)
    await running(of)
    assertExact(await untilMirrored(source, target, places(of), started), 60)
  })
})

it("markers and records of aborted transactions are no records that were given up", async () => {
  const of = await setting("repair-markers")
  const loader = await openLoader(source, { transactionalId: unique("t") })
  let n = 0
  for (const end of ["commit", "abort", "abort", "commit", "abort"] as const) {
    await loader.begin()
    await loader.send(makeRecords({ topic: of.topic, count: 10, from: n }))
    n += 10
    await loader[end]()
  }
  await mirrorUntilCaughtUp(source, target, of.flow)
  // Its first look is at all of them.
  const mirror = await running(of)
  await loader.begin()
  await loader.send(makeRecords({ topic: of.topic, count: 10, from: n }))
  await loader.commit()
  await loader.close()
  assertExact(await untilMirrored(source, target, places(of), started), 30)
  assert.strictEqual(await repaired(mirror), 0)
  assert.notMatch(mirror.output(), /gave up/)
})
