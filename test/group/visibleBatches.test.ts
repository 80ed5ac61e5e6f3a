import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { controlType, visibleBatches } from "../../src/group/visibleBatches.ts"
import { BatchView, splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"
import { LogModel } from "./logModel.ts"

type Step =
  | { readonly kind: "plain"; readonly count: number }
  | { readonly kind: "write"; readonly producer: number; readonly count: number }
  | { readonly kind: "commit" | "abort"; readonly producer: number }
  | { readonly kind: "compact"; readonly index: number }

const producer = fc.integer({ min: 1, max: 3 })
const count = fc.integer({ min: 1, max: 4 })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("plain" as const), count }),
  fc.record({ kind: fc.constant("write" as const), producer, count }),
  fc.record({ kind: fc.constantFrom("commit" as const, "abort" as const), producer }),
  fc.record({ kind: fc.constant("compact" as const), index: fc.nat(20) })
)

const build = (steps: ReadonlyArray<Step>): LogModel => {
  const log = new LogModel()
  let n = 0
  const values = (many: number) => Array.from({ length: many }, () => `v${n++}`)
  for (const one of steps) {
    if (one.kind === "plain") log.append(values(one.count))
    else if (one.kind === "write") log.append(values(one.count), one.producer)
    else if (one.kind === "compact") {
      const batch = log.batches[one.index]
      // Markers stay until what they end is gone; a compacted log keeps them for long.
      if (batch !== undefined && !batch.isControl) log.compactAway(one.index)
    } else log.finish(one.producer, one.kind)
  }
  return log
}

/** Reads a log from `from` to where nothing comes any more, in fetches of random sizes. */
const readAll = (log: LogModel, from: number, sizes: ReadonlyArray<number>, readCommitted: boolean) => {
  const seen = new Map<number, string>()
  let position = from
  for (let round = 0; round < 1_000; round++) {
    const { aborted, records } = log.fetch(position, sizes[round % sizes.length] as number, readCommitted)
    if (records.length === 0) return { seen, position }
    const { batches, next } = visibleBatches(splitBatches(records), aborted, position, readCommitted)
    assert.isAbove(next, position, "a fetch with a whole batch moves the position")
    for (const batch of batches) {
      for (const { offset, value } of decodeRecords(batch)) {
        if (offset < position) continue
        assert.isFalse(seen.has(offset), `offset ${offset} twice`)
        seen.set(offset, String(value))
      }
    }
    position = next
  }
  throw new Error("reading does not end")
}

describe("what is visible of a fetched piece of log", () => {
  it("read_committed: exactly the records of committed transactions and of none, from any start, in fetches of any size", () => {
    fc.assert(fc.property(
      fc.array(step, { maxLength: 40, size: "max" }),
      fc.nat(30),
      fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 5 }),
      (steps, from, sizes) => {
        const log = build(steps)
        const start = Math.min(from, log.end)
        const { position, seen } = readAll(log, start, sizes, true)
        const expected = [...log.visible].filter(([offset]) => offset >= start && offset < log.lastStable).sort((
          [a],
          [b]
        ) => a - b)
        assert.deepStrictEqual([...seen], expected)
        assert.isAtMost(position, Math.max(start, log.lastStable))
      }
    ))
  })

  it("read_uncommitted: every record, but no marker", () => {
    const log = build([{ kind: "write", producer: 1, count: 2 }, { kind: "plain", count: 1 }, {
      kind: "abort",
      producer: 1
    }, { kind: "write", producer: 2, count: 1 }])
    const { position, seen } = readAll(log, 0, [10_000], false)
    assert.deepStrictEqual([...seen.keys()], [0, 1, 2, 4])
    assert.strictEqual(position, 5)
  })

  it("a piece of an aborted transaction and its marker alone moves the position and counts what was left out", () => {
    const log = build([{ kind: "write", producer: 1, count: 4 }, { kind: "abort", producer: 1 }])
    const { aborted, records } = log.fetch(0, 10_000, true)
    const visible = visibleBatches(splitBatches(records), aborted, 0, true)
    assert.deepStrictEqual(visible, { batches: [], next: 5, leaderEpoch: 0, abortedRecords: 4 })
  })

  it("the same producer's transaction after the aborted one is kept", () => {
    const log = build([{ kind: "write", producer: 1, count: 1 }, { kind: "abort", producer: 1 }, {
      kind: "write",
      producer: 1,
      count: 1
    }, { kind: "commit", producer: 1 }])
    const { aborted, records } = log.fetch(0, 10_000, true)
    const { batches, next } = visibleBatches(splitBatches(records), aborted, 0, true)
    assert.deepStrictEqual(batches.map(({ baseOffset }) => baseOffset), [2])
    assert.strictEqual(next, 4)
  })

  it("an aborted producer's records that are not transactional are kept", () => {
    const log = new LogModel()
    log.append(["a"], 1)
    log.finish(1, "abort")
    const { batches } = visibleBatches(log.batches, [{ producerId: 1, firstOffset: 0 }], 0, true)
    assert.deepStrictEqual(batches, [])
    const idempotent = Buffer.from((log.batches[0] as BatchView).bytes)
    idempotent.writeUInt16BE(0, 21)
    assert.strictEqual(
      visibleBatches([new BatchView(idempotent, 0)], [{ producerId: 1, firstOffset: 0 }], 0, true).batches.length,
      1
    )
  })

  it("an incomplete batch at the end leaves the position after the last whole one", () => {
    const log = build([{ kind: "plain", count: 2 }, { kind: "plain", count: 2 }])
    const bytes = Buffer.concat(log.batches.map((batch) => batch.bytes))
    const { batches, next } = visibleBatches(splitBatches(bytes.subarray(0, bytes.length - 1)), [], 0, true)
    assert.strictEqual(batches.length, 1)
    assert.strictEqual(next, 2)
  })

  it("the type of a marker is read, and a control record without a key has none", () => {
    const log = build([{ kind: "write", producer: 1, count: 1 }, { kind: "abort", producer: 1 }, {
      kind: "write",
      producer: 1,
      count: 1
    }, { kind: "commit", producer: 1 }])
    assert.deepStrictEqual([log.batches[1], log.batches[3]].map((batch) => controlType(batch as BatchView)), [0, 1])
    assert.strictEqual(controlType(log.batches[0] as BatchView), -1)
  })
})
