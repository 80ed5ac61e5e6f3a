import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { copyDelivery } from "../../src/mirror/copy.ts"
import { type Copied, type CopyRules, type Output, sourceOffset } from "../../src/mirror/copyUnit.ts"
import type { Delivery } from "../../src/mirror/delivery.ts"
import { splitOutput } from "../../src/mirror/splitOutput.ts"
import { makeChain } from "../../src/mirror/transforms/chain.ts"
import { type BatchView, splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"
import { rewriteForProduce } from "../../src/wire/batch/rewrite.ts"
import { rangeSet, type RangeSet } from "../../src/wire/ranges.ts"
import { delivery, rec, storedBatch } from "./batches.ts"

const plain: CopyRules = { targetTopic: "east.orders", chain: null, ordered: false }
const view = (output: Output): BatchView => splitBatches(output.bytes)[0] as BatchView
const values = (copied: Copied): ReadonlyArray<string | null> =>
  copied.units.flatMap((unit) =>
    unit.outputs.flatMap((output) => decodeRecords(view(output)).map((r) => r.value?.toString() ?? null))
  )
const accepted = (copied: Copied): RangeSet => rangeSet(copied.units.flatMap((unit) => unit.accept))
const gaps = (copied: Copied): RangeSet => rangeSet(copied.units.flatMap((unit) => unit.gaps))
const failing = (offset: number, retriable: boolean) =>
  makeChain([{
    name: "strict",
    apply: (record) => {
      if (record.offset === offset) throw Object.assign(new Error("no"), { retriable })
      return record
    }
  }])

describe("copying a delivery", () => {
  it("passes a batch that is ours whole as the very bytes that came", async () => {
    const bytes = storedBatch([rec(10), rec(11), rec(12)], "zstd")
    const copied = await copyDelivery(delivery([[10, 12]], [bytes]), plain)
    assert.strictEqual(copied.units.length, 1)
    assert.isTrue(copied.units[0]?.outputs[0]?.bytes.equals(bytes))
    assert.deepStrictEqual(accepted(copied), [{ first: 10, last: 12 }])
  })

  it("passes a batch whose offsets were acquired in pieces with different delivery counts", async () => {
    const bytes = storedBatch([rec(10), rec(11), rec(12)])
    const copied = await copyDelivery(delivery([[10, 10, 2], [11, 12, 1]], [bytes]), plain)
    assert.isTrue(copied.units[0]?.outputs[0]?.bytes.equals(bytes))
  })

  it("copies of a batch only what was acquired: the rest is with somebody else", async () => {
    const copied = await copyDelivery(
      delivery([[11, 12], [14, 14]], [storedBatch([rec(10), rec(11), rec(12), rec(13), rec(14)], "lz4")]),
      plain
    )
    assert.deepStrictEqual(values(copied), ["v11", "v12", "v14"])
    assert.deepStrictEqual(accepted(copied), [{ first: 11, last: 12 }, { first: 14, last: 14 }])
    assert.strictEqual(copied.units[0]?.outputs[0] === undefined ? null : view(copied.units[0].outputs[0]).codec, "lz4")
  })

  it("acknowledges as gaps what an acquired range holds no record of", async () => {
    const copied = await copyDelivery(
      delivery([[10, 30]], [storedBatch([rec(12), rec(15)]), storedBatch([rec(20)])]),
      plain
    )
    assert.deepStrictEqual(values(copied), ["v12", "v15", "v20"])
    assert.deepStrictEqual(accepted(copied), [{ first: 12, last: 12 }, { first: 15, last: 15 }, {
      first: 20,
      last: 20
    }])
    assert.deepStrictEqual(gaps(copied), [{ first: 10, last: 11 }, { first: 13, last: 14 }, { first: 16, last: 19 }, {
      first: 21,
      last: 30
    }])
  })

  it("a range without any batch is all gap, so that the group can move on", async () => {
    assert.deepStrictEqual(gaps(await copyDelivery(delivery([[5, 9]], []), plain)), [{ first: 5, last: 9 }])
  })

  it("keeps key, value, headers and timestamps through the slow path, null apart from empty", async () => {
    const odd = {
      ...rec(1),
      key: null,
      value: Buffer.alloc(0),
      headers: [{ key: Buffer.from([0xff, 0xfe]), value: null }, { key: Buffer.from("a"), value: Buffer.from("1") }, {
        key: Buffer.from("a"),
        value: Buffer.from("2")
      }]
    }
    const copied = await copyDelivery(delivery([[1, 1]], [storedBatch([rec(0), odd, rec(2, null)], "gzip")]), plain)
    const [found] = copied.units.flatMap((unit) => unit.outputs.flatMap((output) => decodeRecords(view(output))))
    assert.deepStrictEqual({ ...found, offset: 1 }, odd)
  })

  it("a batch that was produced once can be copied again: its source offsets are not read from the rewritten header", async () => {
    const given = delivery([[10, 12]], [storedBatch([rec(10), rec(11), rec(12)])])
    const first = await copyDelivery(given, plain)
    rewriteForProduce(view(first.units[0]?.outputs[0] as Output), {
      producerId: 7,
      producerEpoch: 1,
      baseSequence: 40,
      transactional: true
    })
    const again = await copyDelivery({ ...given, ranges: [{ first: 11, last: 12, deliveryCount: 1 }] }, plain)
    assert.deepStrictEqual(values(again), ["v11", "v12"])
    assert.deepStrictEqual(accepted(again), [{ first: 11, last: 12 }])
  })

  it("a corrupt batch is refused, not mended", async () => {
    const bytes = storedBatch([rec(0), rec(1)])
    bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 1
    const failed = await copyDelivery(delivery([[0, 0]], [bytes]), plain).then(
      () => null,
      (error: Error) => error.message
    )
    assert.match(failed ?? "", /corrupt/)
  })
})

describe("small batches that follow each other", () => {
  const alone = (offset: number, codec: "none" | "lz4" = "none") => storedBatch([rec(offset)], codec)
  const large = (offset: number) => storedBatch([rec(offset, "x".repeat(9_000))])

  it("go as one, with every record and where it was, over offsets that hold none", async () => {
    const copied = await copyDelivery(delivery([[10, 14]], [alone(10), alone(11), alone(13)]), plain)
    assert.lengthOf(copied.units, 1)
    const output = copied.units[0]?.outputs[0] as Output
    assert.deepStrictEqual(values(copied), ["v10", "v11", "v13"])
    assert.deepStrictEqual([0, 1, 2].map((n) => sourceOffset(output, n)), [10, 11, 13])
    assert.deepStrictEqual(accepted(copied), [{ first: 10, last: 11 }, { first: 13, last: 13 }])
    assert.deepStrictEqual(gaps(copied), [{ first: 12, last: 12 }, { first: 14, last: 14 }])
    assert.deepStrictEqual([copied.units[0]?.oldestTimestamp, copied.units[0]?.newestTimestamp], [
      rec(10).timestamp,
      rec(13).timestamp
    ])
  })

  it("go as one through a transform too, and those of another codec or a large one in between by themselves", async () => {
    const chain = makeChain([{ name: "same", apply: (record) => record }])
    for (const rules of [plain, { ...plain, chain }]) {
      const batches = [alone(0), alone(1), alone(2, "lz4"), alone(3, "lz4"), large(4), alone(5)]
      const copied = await copyDelivery(delivery([[0, 5]], batches), rules)
      assert.deepStrictEqual(copied.units.map(({ records }) => records), [2, 2, 1, 1])
      assert.deepStrictEqual(accepted(copied), [{ first: 0, last: 5 }])
    }
  })

  it("are not made larger than they may be, and not joined where nothing may", async () => {
    const batches = Array.from({ length: 6 }, (_, n) => alone(n))
    const size = batches[0]?.length ?? 0
    const counts = async (joinBytes: number) =>
      (await copyDelivery(delivery([[0, 5]], batches), { ...plain, joinBytes })).units.map(({ records }) => records)
    assert.deepStrictEqual(await counts(61 + 4 * (size - 61)), [4, 2])
    assert.deepStrictEqual(await counts(0), [1, 1, 1, 1, 1, 1])
  })

  it("are several batches where they unfold to much: none of what a reader has to hold is larger for it", async () => {
    const large = "x".repeat(700_000)
    const batches = Array.from({ length: 5 }, (_, n) => storedBatch([rec(n, large)], "zstd"))
    for (const chain of [null, makeChain([{ name: "same", apply: (record) => record }])]) {
      const copied = await copyDelivery(delivery([[0, 5]], batches), { ...plain, chain })
      const sizes = copied.units.flatMap(({ outputs }) => outputs.map(({ recordCount }) => recordCount))
      assert.isAtMost(Math.max(...sizes), 2)
      assert.deepStrictEqual(accepted(copied), [{ first: 0, last: 4 }])
      assert.deepStrictEqual(gaps(copied), [{ first: 5, last: 5 }])
      assert.strictEqual(values(copied).join(), Array.from({ length: 5 }, () => large).join())
    }
  })

  it("go by themselves, as they are, where one of them is damaged: the target is to refuse that one", async () => {
    const damaged = alone(1)
    damaged[damaged.length - 1] = (damaged[damaged.length - 1] as number) ^ 1
    const copied = await copyDelivery(delivery([[0, 2]], [alone(0), damaged, alone(2)]), plain)
    assert.deepStrictEqual(copied.units.map(({ outputs }) => view(outputs[0] as Output).crcIsValid()), [
      true,
      false,
      true
    ])
  })

  it("where order is kept, a stop says nothing of the offsets without records behind it", async () => {
    const batches = [alone(0), alone(2), alone(4)]
    const copied = await copyDelivery(delivery([[0, 4]], batches), { ...plain, chain: failing(2, true), ordered: true })
    assert.strictEqual(copied.stoppedAt, 2)
    assert.deepStrictEqual([accepted(copied), gaps(copied)], [[{ first: 0, last: 0 }], [{ first: 1, last: 1 }]])
  })
})

describe("copying through transforms", () => {
  it("what a transform drops is accepted without output", async () => {
    const chain = makeChain([{ name: "odd", apply: (record) => record.offset % 2 === 0 ? null : record }])
    const copied = await copyDelivery(delivery([[0, 3]], [storedBatch([rec(0), rec(1), rec(2), rec(3)])]), {
      ...plain,
      chain
    })
    assert.deepStrictEqual(values(copied), ["v1", "v3"])
    assert.deepStrictEqual(accepted(copied), [{ first: 0, last: 3 }])
    assert.strictEqual(copied.units[0]?.filtered, 2)
  })

  it("records that go to several topics settle together", async () => {
    const chain = makeChain([{
      name: "route",
      apply: (record) => ({ ...record, topic: record.offset === 1 ? "other" : record.topic })
    }])
    const copied = await copyDelivery(delivery([[0, 2]], [storedBatch([rec(0), rec(1), rec(2)])]), { ...plain, chain })
    assert.strictEqual(copied.units.length, 1)
    assert.deepStrictEqual(copied.units[0]?.outputs.map((o) => [o.topic, o.recordCount]), [["east.orders", 2], [
      "other",
      1
    ]])
  })

  it("a record a transform refuses is a failure of its own; its neighbours are mirrored", async () => {
    const copied = await copyDelivery(delivery([[0, 2, 3]], [storedBatch([rec(0), rec(1), rec(2)])]), {
      ...plain,
      chain: failing(1, false)
    })
    assert.deepStrictEqual(values(copied), ["v0", "v2"])
    assert.deepStrictEqual(copied.failures.map((f) => [f.original.offset, f.transform, f.retriable, f.deliveryCount]), [
      [1, "strict", false, 3]
    ])
    assert.deepStrictEqual(accepted(copied), [{ first: 0, last: 0 }, { first: 2, last: 2 }])
  })

  it("where order is kept, a record that is to be tried again stops the copy there", async () => {
    const batches = [storedBatch([rec(0), rec(1), rec(2)]), storedBatch([rec(3)])]
    const copied = await copyDelivery(delivery([[0, 3]], batches), { ...plain, chain: failing(1, true), ordered: true })
    assert.strictEqual(copied.stoppedAt, 1)
    assert.deepStrictEqual(values(copied), ["v0"])
    assert.deepStrictEqual(accepted(copied), [{ first: 0, last: 0 }])
    assert.deepStrictEqual(gaps(copied), [])
  })

  it("asynchronous transforms keep the order of records", async () => {
    const chain = makeChain([{
      name: "slow",
      apply: async (record) => {
        await (record.offset === 0 ? new Promise((resolve) => setImmediate(resolve)) : null)
        return record
      }
    }])
    assert.deepStrictEqual(
      values(await copyDelivery(delivery([[0, 2]], [storedBatch([rec(0), rec(1), rec(2)])]), { ...plain, chain })),
      ["v0", "v1", "v2"]
    )
  })
})

describe("every acquired offset is accounted for exactly once", () => {
  const model = fc.record({
    batches: fc.array(fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }), { maxLength: 5 }),
    acquired: fc.array(fc.tuple(fc.nat(35), fc.nat(6)), { minLength: 1, maxLength: 6 }),
    failures: fc.array(fc.nat(35), { maxLength: 3 }),
    withChain: fc.boolean()
  })
  it("whatever batches, holes, acquired ranges and failures there are", async () => {
    await fc.assert(
      fc.asyncProperty(model, async ({ acquired, batches, failures, withChain }) => {
        let offset = 0
        const stored: Array<Buffer> = []
        const present = new Set<number>()
        for (const bits of batches) {
          const records = bits.flatMap((there, i) => there ? [rec(offset + i)] : [])
          for (const r of records) present.add(r.offset)
          if (records.length > 0) stored.push(storedBatch(records))
          offset += bits.length
        }
        const ranges = rangeSet(acquired.map(([first, length]) => ({ first, last: first + length })))
        const chain = withChain ?
          makeChain([{
            name: "f",
            apply: (r) => {
              if (failures.includes(r.offset)) throw new Error("no")
              return r
            }
          }]) :
          null
        const given: Delivery = delivery(ranges.map((r) => [r.first, r.last] as const), stored)
        const copied = await copyDelivery(given, { ...plain, chain })
        const counted: Array<number> = []
        for (const unit of copied.units) {
          for (const r of [...unit.accept, ...unit.gaps]) for (let o = r.first; o <= r.last; o++) counted.push(o)
        }
        for (const failure of copied.failures) {
          counted.push(failure.original.offset)
        }
        const wanted: Array<number> = []
        for (const r of ranges) for (let o = r.first; o <= r.last; o++) wanted.push(o)
        assert.deepStrictEqual([...counted].sort((a, b) => a - b), wanted)
        const written = copied.units.flatMap((unit) =>
          unit.outputs.flatMap((output) => decodeRecords(view(output)).map((_, n) => sourceOffset(output, n)))
        )
        assert.deepStrictEqual(written, wanted.filter((o) => present.has(o) && !(withChain && failures.includes(o))))
      }),
      { numRuns: 300, seed: 1302 }
    )
  })
})

describe("taking apart what the target refuses", () => {
  it("halves keep records, order and source offsets, down to single records", async () => {
    const copied = await copyDelivery(
      delivery([[10, 14]], [storedBatch([rec(10), rec(11), rec(12), rec(13), rec(14)], "snappy")]),
      plain
    )
    const leaves = (output: Output): ReadonlyArray<readonly [number, string]> => {
      const halves = splitOutput(output, view(output))
      if (halves === null) return [[sourceOffset(output, 0), decodeRecords(view(output))[0]?.value?.toString() ?? ""]]
      return halves.flatMap(leaves)
    }
    assert.deepStrictEqual(leaves(copied.units[0]?.outputs[0] as Output), [[10, "v10"], [11, "v11"], [12, "v12"], [
      13,
      "v13"
    ], [14, "v14"]])
  })
})
