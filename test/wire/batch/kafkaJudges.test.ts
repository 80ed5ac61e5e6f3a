import { assert, beforeAll, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { passThroughVerdict } from "../../../src/wire/batch/passThrough.ts"
import { at, codecs, splitBatches } from "../../../src/wire/batch/recordBatch.ts"
import { encodeBatch, type Rec } from "../../../src/wire/batch/records.ts"
import { rewriteForProduce } from "../../../src/wire/batch/rewrite.ts"
import { makeWorkFolder } from "../../kit/paths.ts"
import {
  type DescribedBatch,
  described,
  describedRecord,
  expectedFixtures,
  fixtureFolder,
  judgedByKafka,
  type JudgedBatch,
  reading
} from "./described.ts"
import { anyRecords, view } from "./generate.ts"

const producer = { producerId: 9_007_199_254_740_991, producerEpoch: 12, baseSequence: 345, transactional: true }

/** Header names as Java shows them: it decodes UTF-8, so other bytes become the replacement character. */
const javaNames = (record: Rec): Rec => ({
  ...record,
  headers: record.headers.map((header) => ({ key: Buffer.from(header.key.toString("utf8")), value: header.value }))
})

interface Passed {
  readonly before: DescribedBatch
  readonly rewritten: Buffer
}

/** Each kind of batch by a name that is also its file's. */
const encoded = new Map<string, { readonly records: ReadonlyArray<Rec>; readonly bytes: Buffer }>()
const passed = new Map<string, Passed>()
const damaged = new Map<string, Buffer>()
const refused = new Map<string, { readonly reason: string; readonly before: DescribedBatch; readonly bytes: Buffer }>()
let judged: ReadonlyMap<string, JudgedBatch> = new Map()

const encodeOurs = (): void => {
  for (const codec of codecs) {
    fc.sample(anyRecords, { numRuns: 25, seed: 932 }).forEach((records, i) => {
      encoded.set(`ours-${codec}-${i}`, { records, bytes: encodeBatch(records, { codec }) })
    })
    // Several blocks of every codec's framing, and incompressible as well as compressible.
    const large = [
      Buffer.alloc(300_000, "onceover "),
      Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * i * 31 >> 5) & 0xff))
    ]
    const records = large.map((value, offset): Rec => ({ offset, timestamp: 1n, key: null, value, headers: [] }))
    encoded.set(`ours-${codec}-large`, { records, bytes: encodeBatch(records, { codec }) })
  }
}

const rewriteFixtures = (): void => {
  for (const { file } of expectedFixtures()) {
    if (file.startsWith("java-format-")) continue
    splitBatches(readFileSync(join(fixtureFolder, file))).forEach((batch, i) => {
      const name = `${file}-${i}`
      const before = described(batch)
      const verdict = passThroughVerdict(batch)
      const bytes = Buffer.from(batch.bytes)
      if (!verdict.ok) {
        // The base offset is not under the checksum: all else stays as it came.
        bytes.writeBigInt64BE(0n, at.baseOffset)
        refused.set(`refused-${name}`, { reason: verdict.reason, before, bytes })
        return
      }
      rewriteForProduce(view(bytes), producer)
      passed.set(`passed-${name}`, { before, rewritten: bytes })
      const broken = Buffer.from(batch.bytes)
      const middle = (at.records + broken.length) >> 1
      broken[middle] = (broken[middle] as number) ^ 0x10
      rewriteForProduce(view(broken), producer)
      damaged.set(`damaged-${name}`, broken)
    })
  }
}

beforeAll(() => {
  encodeOurs()
  rewriteFixtures()
  const folder = makeWorkFolder("batches")
  try {
    const files: Array<string> = []
    const put = (name: string, bytes: Buffer): void => {
      const path = join(folder, name)
      writeFileSync(path, bytes)
      files.push(path)
    }
    for (const [name, { bytes }] of encoded) put(name, bytes)
    for (const [name, { rewritten }] of passed) put(name, rewritten)
    for (const [name, bytes] of damaged) put(name, bytes)
    for (const [name, { bytes }] of refused) put(name, bytes)
    judged = new Map(
      judgedByKafka(files).map(({ batches, file }) => {
        assert.lengthOf(batches, 1, file)
        return [file, batches[0] as JudgedBatch]
      })
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}, 180_000)

const judgement = (name: string): JudgedBatch => {
  const found = judged.get(name)
  assert.isDefined(found, name)
  return found
}

describe("Kafka's own classes", () => {
  it("read what we encode, with every codec, exactly, and would append it", () => {
    for (const [name, { bytes, records }] of encoded) {
      const kafka = judgement(name)
      assert.isNull(kafka.problem, name)
      assert.strictEqual(kafka.produce, "ok", name)
      assert.deepStrictEqual(
        kafka.records,
        records.map((record, offset) => describedRecord(javaNames({ ...record, offset }))),
        name
      )
      const { records: _, ...header } = described(view(bytes))
      const { records: __, ...seen } = reading(kafka)
      assert.deepStrictEqual(seen, header, name)
      assert.deepStrictEqual(kafka.appendedTimes, records.map((record) => String(record.timestamp)), name)
    }
  })

  it("would append every batch that may pass through after its rewrite, with the records that were in it", () => {
    assert.isAbove(passed.size, 15)
    for (const [name, { before }] of passed) {
      const kafka = judgement(name)
      assert.isNull(kafka.problem, name)
      assert.strictEqual(kafka.produce, "ok", name)
      assert.deepStrictEqual(
        kafka.records,
        before.records.map((record) => ({ ...record, offset: record.offset - before.baseOffset })),
        name
      )
      assert.deepStrictEqual(kafka.appendedTimes, before.records.map((record) => record.timestamp), name)
      assert.include(kafka, { ...producer, baseOffset: 0, leaderEpoch: -1, codec: before.codec, deleteHorizon: false })
    }
  })

  it("refuse a batch with one bit flipped in its records before the rewrite", () => {
    assert.strictEqual(damaged.size, passed.size)
    for (const name of damaged.keys()) {
      assert.include(judgement(name).problem ?? "", "Record is corrupt (stored crc", name)
      assert.include(judgement(name).produce, "Record is corrupt (stored crc", name)
    }
  })

  it("bear out each reason not to pass a batch through", () => {
    const said: Readonly<Record<string, string>> = {
      empty: "Invalid reported count for record batch: 0",
      control: "Clients are not allowed to write control records",
      gaps: "Inconsistent batch offset range",
      // A broker takes it and drops the mark, so that readers see the producers' times: silently altered.
      "log-append-time": "ok"
    }
    assert.deepStrictEqual(new Set([...refused.values()].map(({ reason }) => reason)), new Set(Object.keys(said)))
    for (const [name, { before, reason }] of refused) {
      const kafka = judgement(name)
      assert.include(kafka.produce, said[reason] as string, name)
      if (reason === "log-append-time") {
        assert.notDeepEqual(
          kafka.appendedTimes,
          before.records.map((record) => record.timestamp),
          name
        )
      }
    }
  })
})
