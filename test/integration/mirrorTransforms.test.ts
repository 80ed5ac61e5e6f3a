/** Transforms in a running mirror: what arrives, what goes to the dead-letter topic, what stops the flow. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { createTopic, createTopics, listTopics } from "../kit/admin.ts"
import { type AuditRecord, identityOf, readTopics } from "../kit/auditor.ts"
import { endOfRun } from "../kit/failures.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { mirrorUntilCaughtUp } from "../kit/mirror.ts"
import { type Config, mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"

const { source, target } = sharedClusters()

/** Marks each record; cannot do with every seventh; wants to see offset 3 again twice. */
const MODULE = `
let again = 2
export const transform = (record) => {
  if (record.offset % 7 === 6) throw new TypeError("no seventh record, please")
  if (record.offset === 3 && again-- > 0) throw Object.assign(new Error("not yet"), { retriable: true })
  return { ...record, headers: [...record.headers, { key: "seen", value: Buffer.from(String(record.offset)) }] }
}
`

let folder: string
let path: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "onceover-transform-"))
  path = join(folder, "strict.mjs")
  writeFileSync(path, MODULE)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const strict = (): Config => ({
  transforms: "strict",
  "transforms.strict.type": "module",
  "transforms.strict.path": path
})
const textOf = (record: AuditRecord, header: string): string | undefined =>
  record.headers.find(([name]) => name === header)?.[1].toString()
const ids = (records: ReadonlyArray<AuditRecord>): ReadonlyArray<string> => records.map(identityOf).toSorted()

const twenty = async (): Promise<string> => {
  const topic = unique("strict")
  await createTopic(source, topic)
  await load(source, makeRecords({ topic, count: 20 }))
  return topic
}

for (const mode of ["share", "consumer"] as const) {
  const flow = (topic: string, more: Config): Config => ({
    topics: [topic],
    "group.protocol": mode,
    "group.id": unique(`g-${mode}`),
    "tasks.max": 1,
    ...strict(),
    ...more
  })

  describe(`a module that takes not every record (${mode})`, () => {
    it("dead letters are the records as they came, with Connect's headers; the rest arrives transformed", async () => {
      const topic = await twenty()
      const letters = unique("letters")
      const settings = flow(topic, {
        name: "orders-flow",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.context.headers.enable": true
      })
      await mirrorUntilCaughtUp(source, target, settings)
      const originals = await readTopics(source, [topic])
      const bad = originals.filter(({ offset }) => offset % 7 === 6)
      const dead = await readTopics(target, [letters])
      assert.deepStrictEqual(ids(dead), ids(bad))
      for (const letter of dead) {
        const original = bad.find((record) => identityOf(record) === identityOf(letter)) as AuditRecord
        assert.deepStrictEqual([letter.key, letter.value, letter.timestamp], [
          original.key,
          original.value,
          original.timestamp
        ])
        const connect = Object.fromEntries(
          letter.headers.filter(([name]) => name.startsWith("__connect.errors.")).map(([name, value]) => [
            name.slice("__connect.errors.".length),
            value.toString()
          ])
        )
        const { "exception.stacktrace": stack, ...rest } = connect
        assert.deepStrictEqual(rest, {
          topic,
          partition: "0",
          offset: String(original.offset),
          "connector.name": "orders-flow",
          "task.id": "0",
          stage: "TRANSFORMATION",
          "class.name": "strict",
          "exception.class.name": "TypeError",
          "exception.message": "no seventh record, please"
        })
        assert.match(stack ?? "", /TypeError: no seventh record, please\n\s+at /)
      }
      const arrived = await readTopics(target, [`east.${topic}`])
      assert.deepStrictEqual(ids(arrived), ids(originals.filter(({ offset }) => offset % 7 !== 6)))
      for (const record of arrived) assert.match(textOf(record, "seen") ?? "", /^\d+$/)
    })

    it("errors.tolerance none: the flow stops with transform, place and reason, exit code 1", async () => {
      const topic = await twenty()
      const { code, output, said } = await endOfRun(mirrorConfig(source, target, flow(topic, {})))
      assert.strictEqual(code, 1, output)
      assert.strictEqual(said.length, 1, output)
      assert.match(
        said[0] as string,
        new RegExp(
          `transform "strict" failed on ${topic}-0 offset 6: no seventh record, please .*errors\\.tolerance is none`
        )
      )
    })

    it("errors.tolerance all: they are skipped, named and counted, the rest arrives", async () => {
      const topic = await twenty()
      const config = mirrorConfig(source, target, flow(topic, { "errors.tolerance": "all" }))
      const mirror: Onceover = await startOnceover({ config })
      try {
        await until(async () => {
          const samples = (await mirror.metrics().catch(() => new Map())).get("onceover_records_skipped_total") ?? []
          const skipped = samples.find(({ labels }: { labels: Record<string, string> }) => labels["reason"] === "error")
          const there = (await listTopics(target)).has(`east.${topic}`)
          return skipped?.value === 2 && there && (await readTopics(target, [`east.${topic}`])).length === 18
        }, { timeoutMs: 60_000, what: () => `18 records, 2 skipped; ${mirror.output().slice(-2_000)}` })
        for (const offset of [6, 13]) {
          assert.match(mirror.output(), new RegExp(`${topic}-0 offset ${offset} is skipped`))
        }
      } finally {
        await mirror.dispose()
      }
    })
  })
}

describe("the transforms that come with it", () => {
  it("RegexRouter to a topic that is not there creates it with the source's partition count", async () => {
    const topic = unique("routed")
    const name = unique("elsewhere")
    await createTopics(source, [{ topic, partitions: 3 }])
    await load(source, makeRecords({ topic, count: 60, partitions: 3 }))
    await mirrorUntilCaughtUp(source, target, {
      topics: [topic],
      "group.id": unique("g"),
      transforms: "route",
      "transforms.route.type": "RegexRouter",
      "transforms.route.regex": `east\\.${topic}`,
      "transforms.route.replacement": name
    })
    assert.strictEqual((await listTopics(target)).get(name), 3)
    const place = (records: ReadonlyArray<AuditRecord>) =>
      records.map((r) => `${r.partition} ${identityOf(r)}`).toSorted()
    assert.deepStrictEqual(place(await readTopics(target, [name])), place(await readTopics(source, [topic])))
  })

  it("a filter with a predicate drops what it says, and what is dropped is done: nothing waits for it", async () => {
    const topic = unique("filtered")
    await createTopic(source, topic)
    await load(source, [
      ...makeRecords({ topic, count: 5 }),
      { topic, partition: 0, key: "gone", value: null, headers: [["kit-id", "tombstone"]] },
      ...makeRecords({ topic, count: 5, prefix: "behind" })
    ])
    await mirrorUntilCaughtUp(source, target, {
      topics: [topic],
      "group.id": unique("g"),
      transforms: "cut",
      "transforms.cut.type": "Filter",
      "transforms.cut.predicate": "tombstones",
      predicates: "tombstones",
      "predicates.tombstones.type": "RecordIsTombstone"
    })
    const arrived = await readTopics(target, [`east.${topic}`])
    assert.strictEqual(arrived.length, 10)
    assert.notInclude(ids(arrived), "tombstone")
  })
})
