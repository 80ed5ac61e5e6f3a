import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { BUCKETS, bucketOf, hashName, leafOf, LEAVES, RecordHasher, Sums } from "../../../src/mirror/verify/digest.ts"

const bytes = fc.option(fc.uint8Array({ maxLength: 4 }).map((b) => Buffer.from(b)), { nil: null })
const record = fc.record({
  timestamp: fc.bigInt({ min: -1n, max: 3n }),
  key: bytes,
  value: bytes,
  headers: fc.array(fc.record({ key: fc.uint8Array({ maxLength: 2 }).map((b) => Buffer.from(b)), value: bytes }), {
    maxLength: 2
  })
})
type Plain = Parameters<RecordHasher["hash"]>[0]

const nameOf = (one: Plain, timestamps = true): string => {
  const hasher = new RecordHasher({ timestamps })
  hasher.hash(one)
  return hashName(hasher.words)
}
const sumOf = (list: ReadonlyArray<Plain>, buckets = BUCKETS): Sums => {
  const sums = new Sums(buckets)
  const hasher = new RecordHasher({ timestamps: true })
  for (const one of list) {
    hasher.hash(one)
    sums.add(buckets === BUCKETS ? bucketOf(hasher.words) : leafOf(hasher.words), hasher.words)
  }
  return sums
}
const text = (one: Plain): string =>
  JSON.stringify([
    String(one.timestamp),
    one.key?.toString("hex") ?? null,
    one.value?.toString("hex") ?? null,
    one.headers.map(({ key, value }) => [key.toString("hex"), value?.toString("hex") ?? null])
  ])

describe("the hash of a record", () => {
  it("is the same for the same record only: parts are not run together, null is not empty", () =>
    fc.assert(
      fc.property(record, record, (a, b) => {
        assert.strictEqual(nameOf(a) === nameOf(b), text(a) === text(b))
      }),
      { numRuns: 2_000 }
    ))

  it("leaves the time out where it is not compared", () =>
    fc.assert(fc.property(record, (one) => {
      assert.strictEqual(nameOf(one, false), nameOf({ ...one, timestamp: one.timestamp + 1n }, false))
    })))

  it("of a record that is larger than what came before is of all of it", () => {
    const hasher = new RecordHasher({ timestamps: true })
    const large = (last: number) => ({
      timestamp: 0n,
      key: null,
      value: Buffer.concat([Buffer.alloc(300_000), Buffer.from([last])]),
      headers: []
    })
    hasher.hash(large(1))
    const one = hashName(hasher.words)
    hasher.hash(large(2))
    assert.notStrictEqual(hashName(hasher.words), one)
  })
})

describe("sums of hashes", () => {
  it("do not depend on the order", () =>
    fc.assert(
      fc.property(fc.array(record), (list) => {
        for (const buckets of [BUCKETS, LEAVES]) {
          assert.deepStrictEqual(sumOf(list, buckets).differing(sumOf(list.toReversed(), buckets)), [])
        }
      }),
      { numRuns: 50 }
    ))

  it("differ in the one bucket where one record more or another record is", () =>
    fc.assert(fc.property(fc.array(record), record, (list, more) => {
      const hasher = new RecordHasher({ timestamps: true })
      hasher.hash(more)
      assert.deepStrictEqual(sumOf(list).differing(sumOf([...list, more])), [bucketOf(hasher.words)])
      assert.isAbove(sumOf([more, more]).differing(sumOf([more])).length, 0)
    })))

  it("carry from one limb into the next, and wrap around at 2^128", () => {
    const words = (...list: ReadonlyArray<number>) => Uint32Array.from(list)
    const half = words(0, 0, 0, 0x8000_0000)
    const wrapped = new Sums(1)
    wrapped.add(0, half)
    wrapped.add(0, half)
    const zero = new Sums(1)
    zero.add(0, words(0, 0, 0, 0))
    zero.add(0, words(0, 0, 0, 0))
    assert.deepStrictEqual(wrapped.differing(zero), [])
    const carried = new Sums(1)
    carried.add(0, words(0xffff_ffff, 0xffff_ffff, 0, 0))
    carried.add(0, words(1, 0, 0, 0))
    const plain = new Sums(1)
    plain.add(0, words(0, 0, 1, 0))
    plain.add(0, words(0, 0, 0, 0))
    assert.deepStrictEqual(carried.differing(plain), [])
  })
})
