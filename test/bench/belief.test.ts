/** The benchmark believes a figure only when both sides hold the same records. */
import { assert, describe, it } from "vitest"
import { differences, makePrinter, type RecordLike } from "../../bench/belief.ts"

type Change = (record: RecordLike, n: number) => ReadonlyArray<RecordLike>

const records = Array.from({ length: 40 }, (_, n): RecordLike => ({
  partition: n % 4,
  key: `k${n}`,
  value: Buffer.from(`value ${n}`),
  timestamp: 1_000 + n,
  header: false
}))

const printed = (all: ReadonlyArray<RecordLike>) => {
  const printer = makePrinter()
  for (const record of all) printer.add(0, record)
  return printer.result()
}

const doubts = (change: Change, headers: "none" | "all" = "none") =>
  differences(printed(records), printed(records.flatMap(change)), headers)

describe("belief", () => {
  it("holds when the same records come in another order", () => {
    assert.deepStrictEqual(differences(printed(records), printed(records.toReversed()), "none"), [])
  })

  const wrong: ReadonlyArray<readonly [what: string, change: Change]> = [
    ["a lost record", (record, n) => n === 17 ? [] : [record]],
    ["a doubled record", (record, n) => n === 17 ? [record, record] : [record]],
    [
      "one lost and another doubled in its partition",
      (record, n) => n === 17 ? [] : n === 21 ? [record, record] : [record]
    ],
    ["another value", (record, n) => [n === 17 ? { ...record, value: Buffer.from("value 71") } : record]],
    ["another key", (record, n) => [n === 17 ? { ...record, key: "k71" } : record]],
    [
      "no key where an empty one was",
      (record, n) => [n === 17 ? { ...record, key: null, value: Buffer.from("k17value 17") } : record]
    ],
    ["another partition", (record, n) => [n === 17 ? { ...record, partition: 3 } : record]],
    ["another timestamp", (record, n) => [n === 17 ? { ...record, timestamp: 5 } : record]],
    ["a header that nobody asked for", (record, n) => [n === 17 ? { ...record, header: true } : record]],
    ["nothing at all", () => []]
  ]
  it.each(wrong)("is lost over %s", (_, change) => {
    assert.isAbove(doubts(change).length, 0)
  })

  it("wants the transform's header on every record", () => {
    assert.deepStrictEqual(doubts((record) => [{ ...record, header: true }], "all"), [])
    assert.isAbove(doubts((record, n) => [{ ...record, header: n !== 17 }], "all").length, 0)
  })

  it("is not gained by two empty sides", () => {
    assert.isAbove(differences({}, {}, "none").length, 0)
  })

  it("keeps topics apart", () => {
    const [a, b] = [makePrinter(), makePrinter()]
    records.forEach((record, n) => {
      a.add(n < 20 ? 0 : 1, record)
      b.add(n < 20 ? 1 : 0, record)
    })
    assert.isAbove(differences(a.result(), b.result(), "none").length, 0)
  })
})
