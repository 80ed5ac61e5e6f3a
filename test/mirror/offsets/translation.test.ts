/**
 * Translation against a mirror in which the place of every record is known: a reader that is sent to the translated
 * offset sees every record that it had not consumed; and where all is known and order was kept, no other.
 */
import { assert, describe, it } from "vitest"
import fc from "fast-check"
import type { Output } from "../../../src/mirror/copyUnit.ts"
import { type FloorRule, Floors } from "../../../src/mirror/offsets/floors.ts"
import { noteOf, type Written } from "../../../src/mirror/offsets/laneNotes.ts"
import { decodeNote, encodeNote, type Note } from "../../../src/mirror/offsets/note.ts"
import { firstUncovered, OffsetMap, translate, translateBack } from "../../../src/mirror/offsets/offsetMap.ts"

const CLUSTER = "cluster-a"
const SOURCE = { topic: "t", topicId: "AAAAAAAAAAAAAAAAAAAAAQ", partition: 0 }

/** What one lane does at once: source offsets that become records, dropped ones among them, and how it ends. */
interface Step {
  readonly size: number
  /** Offsets without a record behind it. */
  readonly hole: number
  /** Every so many records one is left out on purpose; 0: none is. */
  readonly dropEvery: number
  /** Its outputs are on the target, and the transaction is aborted: it is done again at the end. */
  readonly aborted: boolean
  /** The broker has not said where it is. */
  readonly silent: boolean
  /** When it is written. */
  readonly order: number
  /** When it is decided: two lanes' transactions are open at the same time. */
  readonly decided: number
}

const step: fc.Arbitrary<Step> = fc.record({
  size: fc.integer({ min: 1, max: 6 }),
  hole: fc.nat(2),
  dropEvery: fc.constantFrom(0, 0, 2, 3),
  aborted: fc.boolean(),
  silent: fc.constantFrom(false, false, false, true),
  order: fc.nat(100),
  decided: fc.nat(100)
})

interface World {
  /** Source offset to target offset, of what readers in read_committed see. */
  readonly places: Map<number, number>
  /** Records that the source has, but for those left out on purpose. */
  readonly wanted: ReadonlyArray<number>
  readonly notes: ReadonlyArray<Note>
  /** What is decided on the target (its last stable offset) before each note, and after the last. */
  readonly ends: ReadonlyArray<number>
  readonly sourceEnd: number
}

const mirror = (steps: ReadonlyArray<Step>, ordered: boolean, markers: boolean): World => {
  let source = 0
  const planned = steps.map((one) => {
    const first = source
    source = first + one.size + one.hole
    return { ...one, first }
  })
  const inOrder = ordered ? planned : planned.toSorted((a, b) => a.order - b.order)
  const again = ordered ? [] : inOrder.filter((one) => one.aborted)
  const told: Array<{ readonly note: Note; readonly base: number; readonly decided: number }> = []
  const places = new Map<number, number>()
  const known = new Map<string, number>()
  let target = 0
  const write = (one: typeof planned[number], aborted: boolean): void => {
    const kept = Array.from({ length: one.size }, (_, n) => one.first + n).filter((_, n) =>
      one.dropEvery === 0 || n % one.dropEvery !== one.dropEvery - 1
    )
    const base = target
    target += kept.length + (markers ? 1 : 0)
    if (aborted) return
    kept.forEach((offset, n) => places.set(offset, base + n))
    const output: Output = {
      source: SOURCE,
      topic: "east.t",
      partition: 0,
      bytes: Buffer.alloc(0),
      recordCount: kept.length,
      offsets: kept
    }
    const written: ReadonlyArray<Written> = kept.length === 0 ? [] : [{ output, baseOffset: one.silent ? -1 : base }]
    const range = { ...SOURCE, first: one.first, last: one.first + one.size + one.hole - 1 }
    const note = noteOf(CLUSTER, [range], written, known)
    if (note !== null) told.push({ note: decodeNote(encodeNote(note)), base, decided: one.decided })
  }
  for (const one of inOrder) {
    // Where order is kept, an aborted transaction is done again before anything else.
    if (one.aborted) write(one, true)
    if (ordered || !one.aborted) write(one, false)
  }
  for (const one of again) write(one, false)
  const wanted = planned.flatMap((one) => Array.from({ length: one.size }, (_, n) => one.first + n)).filter((o) =>
    places.has(o)
  )
  const seen = ordered ? told : told.toSorted((a, b) => a.decided - b.decided)
  const ends = seen.map((_, n) => Math.min(...seen.slice(n).map(({ base }) => base)))
  return { places, wanted, notes: seen.map(({ note }) => note), ends: [...ends, target], sourceEnd: source }
}

const mapOf = (notes: ReadonlyArray<Note>): OffsetMap => {
  const map = new OffsetMap(CLUSTER)
  for (const note of notes) map.add(note)
  return map
}
const placeOf = (map: OffsetMap) => map.slot(SOURCE.topicId, 0)?.places.get("east.t/0") ?? null

/** The answer of a process that has read the first `seen` notes; null: none that may be acted on. */
const answer = (world: World, rule: FloorRule, seen: number, position: number, markers: boolean): number | null => {
  const map = mapOf(world.notes.slice(0, seen))
  const place = placeOf(map)
  const floors = new Floors()
  // What was committed when the last of the notes was read has its note among them.
  if (markers) floors.stable("p", world.ends[seen] as number)
  const open = firstUncovered(map.slot(SOURCE.topicId, 0)?.covered ?? [], position)
  const floor = floors.of(rule, "p", open, place?.runs.targetEnd ?? 0)
  if (floor === null) return null
  const found = translate(place, { position, floor })
  return found.kind === "unknown" ? null : found.offset
}

describe("a translated position", () => {
  const skipped = (world: World, position: number, offset: number): ReadonlyArray<number> =>
    world.wanted.filter((record) => record >= position && (world.places.get(record) ?? Infinity) < offset)
  const again = (world: World, position: number, offset: number): ReadonlyArray<number> =>
    [...world.places].filter(([record, at]) => record < position && at >= offset).map(([record]) => record)

  it("skips no record, whatever order they were written in and however much of the notes was read", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 14 }), fc.boolean(), fc.nat(14), (steps, ordered, cut) => {
        const world = mirror(steps, ordered, true)
        const seen = Math.min(cut, world.notes.length)
        for (let position = 0; position <= world.sourceEnd + 1; position++) {
          const offset = answer(world, ordered ? "order" : "transactions", seen, position, true)
          if (offset !== null) assert.deepStrictEqual(skipped(world, position, offset), [], `position ${position}`)
        }
      }),
      { numRuns: 400 }
    )
  })

  it("skips none without transactions either, where order is kept", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 14 }), fc.nat(14), (steps, cut) => {
        const world = mirror(steps, true, false)
        for (let position = 0; position <= world.sourceEnd + 1; position++) {
          const offset = answer(world, "order", Math.min(cut, world.notes.length), position, false)
          if (offset !== null) assert.deepStrictEqual(skipped(world, position, offset), [], `position ${position}`)
        }
      }),
      { numRuns: 200 }
    )
  })

  it("is exact where order is kept and the brokers have said where all is: nothing is read again", () => {
    const steps = fc.array(
      fc.record({
        ...{
          size: fc.integer({ min: 1, max: 6 }),
          hole: fc.nat(2),
          dropEvery: fc.constantFrom(0, 2),
          order: fc.nat(9),
          decided: fc.nat(9)
        },
        aborted: fc.boolean(),
        silent: fc.constant(false)
      }),
      { maxLength: 14 }
    )
    fc.assert(
      fc.property(steps, fc.boolean(), (made, markers) => {
        const world = mirror(made, true, markers)
        for (let position = 0; position <= world.sourceEnd + 1; position++) {
          const offset = answer(world, "order", world.notes.length, position, markers)
          assert.isNotNull(offset)
          assert.deepStrictEqual(skipped(world, position, offset as number), [])
          assert.deepStrictEqual(again(world, position, offset as number), [])
        }
      }),
      { numRuns: 300 }
    )
  })

  it("leads back to a source offset that skips no record either", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.boolean(), fc.nat(12), (steps, ordered, cut) => {
        const world = mirror(steps, ordered, true)
        const map = mapOf(world.notes.slice(0, Math.min(cut, world.notes.length)))
        const slot = map.slot(SOURCE.topicId, 0)
        const place = placeOf(map)
        if (slot === null || place === null) return
        for (let position = 0; position <= (world.ends.at(-1) ?? 0); position++) {
          const found = translateBack(slot, place, position, 0)
          assert.notStrictEqual(found.kind, "unknown")
          if (found.kind === "unknown") continue
          // Consumed on the target is what lies there before the position; the rest must not be before the answer.
          const lost = world.wanted.filter((record) =>
            (world.places.get(record) ?? 0) >= position && record < found.offset
          )
          assert.deepStrictEqual(lost, [], `back from ${position}`)
        }
      }),
      { numRuns: 300 }
    )
  })
})

describe("looks at both ends, at-least-once through a share group", () => {
  it("give a floor under records that are on the target while their notes are not", () => {
    const floors = new Floors()
    floors.look("p", { source: 100, target: 40 })
    floors.look("p", { source: 200, target: 150 })
    floors.look("p", { source: 300, target: 260 })
    assert.strictEqual(floors.of("looks", "p", 250, 0), 150)
    assert.strictEqual(floors.of("looks", "p", 300, 0), 260)
    assert.isNull(floors.of("looks", "p", 99, 0))
    floors.look("p", { source: 0, target: 300 })
    assert.strictEqual(floors.of("looks", "p", 5, 0), 300)
  })
})
