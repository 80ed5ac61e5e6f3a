/** The runs of a partition against a table with one row a record. */
import { assert, describe, it } from "vitest"
import fc from "fast-check"
import { exactRun, looseRun, type Run, Runs } from "../../../src/mirror/offsets/runs.ts"

const runs = (...list: ReadonlyArray<Run>): Runs => {
  const made = new Runs()
  for (const run of list) made.add(run)
  return made
}

/** What a table of (source offset, target offset) says, later places winning. */
class Table {
  readonly #places = new Map<number, number>()

  add(run: Run): void {
    for (let n = 0; n < run.count; n++) {
      this.#places.set(run.source + n, Math.max(run.target + n, this.#places.get(run.source + n) ?? 0))
    }
  }
  from(source: number): number | null {
    const places = [...this.#places].filter(([at]) => at >= source).map(([, target]) => target)
    return places.length === 0 ? null : Math.min(...places)
  }
  back(target: number): number | null {
    const places = [...this.#places].filter(([, at]) => at >= target).map(([source]) => source)
    return places.length === 0 ? null : Math.min(...places)
  }
  get entries(): ReadonlyArray<readonly [number, number]> {
    return [...this.#places].sort(([a], [b]) => a - b)
  }
}

const exact = fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 12 }), fc.nat(80)).map(([source, count, target]) =>
  exactRun(source, count, target)
)
const OFFSETS = Array.from({ length: 100 }, (_, n) => n)

/** A mirror's way: each source record once, in runs that are shuffled and put behind each other with holes. */
const mirrored = fc.array(
  fc.record({
    count: fc.integer({ min: 1, max: 9 }),
    sourceHole: fc.nat(2),
    targetHole: fc.nat(2),
    order: fc.nat(1_000)
  }),
  { maxLength: 25 }
).map((pieces) => {
  let source = 0
  const placed = pieces.map(({ count, order, sourceHole, targetHole }) => {
    const at = source + sourceHole
    source = at + count
    return { source: at, count, targetHole, order }
  })
  let target = 0
  return placed.toSorted((a, b) => a.order - b.order).map((piece) => {
    const at = target
    target += piece.count + piece.targetHole
    return exactRun(piece.source, piece.count, at)
  })
})

describe("the runs of a partition", () => {
  it("answer as a table of every record does, whatever the order and however often they are added", () => {
    fc.assert(fc.property(fc.array(exact, { maxLength: 20 }), (added) => {
      const made = runs(...added)
      const table = new Table()
      for (const run of added) table.add(run)
      for (const at of OFFSETS) {
        const place = made.from(at)
        assert.deepStrictEqual(place === null ? null : place.offset, table.from(at))
        assert.isTrue(place === null || place.exact)
      }
      assert.deepStrictEqual(made.all, runs(...added.toReversed(), ...added).all)
      const spelled = made.all.flatMap((run) =>
        Array.from({ length: run.count }, (_, n) => [run.source + n, run.target + n] as const)
      )
      assert.deepStrictEqual(spelled, [...table.entries])
    }))
  })

  it("answer the other way round too, where each record has one place", () => {
    fc.assert(fc.property(mirrored, (added) => {
      const table = new Table()
      for (const run of added) table.add(run)
      const { inverse } = runs(...added)
      for (let at = 0; at < 300; at++) assert.strictEqual(inverse.from(at)?.offset ?? null, table.back(at))
    }))
  })

  it("that follow each other on both sides are one, in whatever order they came", () => {
    assert.deepStrictEqual(runs(exactRun(10, 5, 20), exactRun(0, 5, 10), exactRun(5, 5, 15)).all, [exactRun(0, 15, 10)])
    assert.strictEqual(runs(exactRun(0, 5, 0), exactRun(5, 5, 6)).size, 2)
  })

  it("are never above the truth when they are thinned out, and exact where they were not", () => {
    fc.assert(
      fc.property(mirrored, fc.integer({ min: 1, max: 10 }), fc.integer({ min: 2, max: 5 }), (added, limit, each) => {
        const made = runs(...added)
        const truth = runs(...added)
        made.thin(limit, each)
        const firstExact = made.all.find((run) => !run.loose)?.source ?? Infinity
        for (let at = 0; at < 300; at++) {
          const thin = made.from(at)
          const full = truth.from(at)
          if (full !== null) assert.isAtMost(thin?.offset ?? Infinity, full.offset)
          if (at >= firstExact) assert.deepStrictEqual(thin, full)
        }
        for (let at = 0; at < 300; at++) {
          const thin = made.inverse.from(at)
          const full = truth.inverse.from(at)
          if (full !== null) assert.isAtMost(thin?.offset ?? Infinity, full.offset)
        }
        assert.isAtMost(made.size, Math.max(limit, Math.ceil(truth.size / each)))
      })
    )
  })

  it("give way to what is exact, and fill only its holes", () => {
    const made = runs(exactRun(10, 10, 100), looseRun(0, 30, 0, 50))
    assert.deepStrictEqual(made.all, [looseRun(0, 10, 0, 50), exactRun(10, 10, 100), looseRun(20, 10, 0, 50)])
    assert.deepStrictEqual(made.from(5), { offset: 0, exact: false })
    assert.deepStrictEqual(made.from(30), null)
    made.add(exactRun(0, 10, 60))
    made.add(exactRun(20, 10, 110))
    assert.deepStrictEqual(made.all, [exactRun(0, 10, 60), exactRun(10, 20, 100)])
  })

  it("of what is gone are forgotten, to the record", () => {
    fc.assert(fc.property(mirrored, fc.nat(150), (added, below) => {
      const made = runs(...added)
      made.forgetBelow(below)
      const truth = runs(...added)
      for (let at = 0; at < 300; at++) assert.deepStrictEqual(made.from(at), truth.from(Math.max(at, below)))
      assert.isTrue(made.all.every((run) => run.source >= below))
    }))
  })
})
