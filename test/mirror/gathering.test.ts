/** When a transaction ends: by records, bytes, time and locks, and what it waits for meanwhile. */
import { assert, describe, it } from "vitest"
import { type Cut, Gathering } from "../../src/mirror/gathering.ts"

const cut: Cut = { maxRecords: 1_000, maxBytes: 1_000_000, maxLatencyMs: 100 }

/** A lane that has ended a transaction at 0 and begun one at `startMs`, with so much in it. */
const open = (startMs: number, records = 1, bytes = 100, lockTimeoutMs?: number, of: Cut | null = cut): Gathering => {
  const gathering = new Gathering(of)
  gathering.end(0)
  gathering.begin(startMs)
  gathering.add({ records, bytes, lockTimeoutMs })
  return gathering
}

describe("a transaction of a few records", () => {
  it("is committed at once by a lane that has committed nothing before, or not for long", () => {
    const first = new Gathering(cut)
    first.begin(5)
    first.add({ records: 1, bytes: 100, lockTimeoutMs: undefined })
    assert.isNull(first.waitMs(5))
    assert.isNull(open(100).waitMs(101))
  })

  it("waits for more until so long after the end of the one before", () => {
    assert.strictEqual(open(10).waitMs(30), 70)
    assert.isNull(open(10).waitMs(100))
  })

  it("waits in steps, so that a stop is heard", () => {
    assert.strictEqual(open(10, 1, 100, undefined, { ...cut, maxLatencyMs: 60_000 }).waitMs(20), 100)
  })

  it("ends at half of the shortest lock", () => {
    const long = { ...cut, maxLatencyMs: 60_000 }
    const gathering = open(1_000, 1, 100, 30_000, long)
    gathering.add({ records: 1, bytes: 100, lockTimeoutMs: 10_000 })
    assert.strictEqual(gathering.waitMs(5_990), 10)
    assert.isNull(gathering.waitMs(6_000))
  })
})

describe("a large transaction", () => {
  it("takes what is there, and does not wait", () => {
    assert.strictEqual(open(10, 500).waitMs(20), 0)
    assert.strictEqual(open(10, 1, 300_000).waitMs(20), 0)
  })

  it("ends with its last record or byte", () => {
    assert.isNull(open(10, 1_000).waitMs(20))
    assert.isNull(open(10, 1, 1_000_000).waitMs(20))
  })

  it("waits for whole milliseconds, as requests can: a clock has parts of them", () => {
    assert.strictEqual(open(10.25).waitMs(95.8), 5)
    assert.strictEqual(open(10.25).waitMs(99.999), 1)
  })

  it("leaves nothing of its size to the next one", () => {
    const gathering = open(10, 1_000, 1_000_000, 1)
    gathering.end(20)
    gathering.begin(30)
    gathering.add({ records: 1, bytes: 100, lockTimeoutMs: undefined })
    assert.strictEqual(gathering.waitMs(40), 80)
  })
})

it("each poll is a transaction where nothing may be gathered", () => {
  assert.isNull(open(10, 1, 100, undefined, null).waitMs(20))
})
