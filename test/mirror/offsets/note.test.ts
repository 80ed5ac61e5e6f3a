/** The notes of the offsets topic: their bytes are for ever, and what is not known is refused in words. */
import { assert, describe, it } from "vitest"
import fc from "fast-check"
import { decodeNote, encodeNote, type Note } from "../../../src/mirror/offsets/note.ts"
import { foldedNotes } from "../../../src/mirror/offsets/offsetsTopic.ts"
import { OffsetMap } from "../../../src/mirror/offsets/offsetMap.ts"
import { exactRun, looseRun, Runs } from "../../../src/mirror/offsets/runs.ts"
import { rangeSet } from "../../../src/wire/ranges.ts"

const ID = "AAECAwQFBgcICQoLDA0ODw"

const note: Note = {
  clusterId: "c",
  slots: [{
    topicId: ID,
    partition: 3,
    covered: [{ first: 10, last: 299 }],
    places: [{ topic: "east.t", partition: 3, runs: [looseRun(10, 5, 2, 9), exactRun(20, 280, 400)] }]
  }]
}

const arbitrary: fc.Arbitrary<Note> = fc.record({
  clusterId: fc.string({ maxLength: 10 }),
  slots: fc.array(
    fc.record({
      topicId: fc.constantFrom(ID, "orders"),
      partition: fc.nat(1_000),
      covered: fc.array(fc.tuple(fc.nat(1e9), fc.nat(100))).map((list) =>
        rangeSet(list.map(([first, size]) => ({ first, last: first + size })))
      ),
      places: fc.array(
        fc.record({
          topic: fc.string({ minLength: 1, maxLength: 20 }),
          partition: fc.nat(1_000),
          runs: fc.array(
            fc.tuple(fc.nat(2 ** 40), fc.integer({ min: 1, max: 1_000 }), fc.nat(2 ** 40), fc.nat(50), fc.boolean())
          )
            .map((list) => {
              const runs = new Runs()
              for (const [at, count, to, more, loose] of list) {
                runs.add(loose ? looseRun(at, count, to, to + more) : exactRun(at, count, to))
              }
              return runs.all
            })
        }),
        { maxLength: 3 }
      )
    }),
    { maxLength: 3 }
  )
})

describe("an offset note", () => {
  it("has the bytes that version 1 has", () => {
    assert.strictEqual(
      encodeNote(note).toString("hex"),
      "01" + "0163" + "01" + "00000102030405060708090a0b0c0d0e0f" + "03" + "01" + "0aa102" + "01" + "06" +
        Buffer.from("east.t").toString("hex") + "03" + "02" + "0a" + "0b" + "04" + "07" + "05" + "b004" + "8c06"
    )
    assert.deepStrictEqual(decodeNote(encodeNote(note)), note)
  })

  it("is read as it was written", () => {
    fc.assert(fc.property(arbitrary, (any) => assert.deepStrictEqual(decodeNote(encodeNote(any)), any)))
  })

  it("of a newer version, or of somebody else, is refused in words", () => {
    assert.throws(() => decodeNote(Buffer.from([9, 0, 0])), /a newer onceover has written it/)
    assert.throws(() => decodeNote(Buffer.from([0, 0, 0])), /only onceover may write there/)
    assert.throws(() => decodeNote(Buffer.concat([encodeNote(note), Buffer.from([1])])), /1 bytes follow/)
    assert.throws(() => decodeNote(encodeNote(note).subarray(0, 20)))
  })

  it("is in the fold of a map with all the others, also when it is folded again and again", () => {
    fc.assert(fc.property(fc.array(arbitrary, { maxLength: 5 }), (notes) => {
      const map = new OffsetMap("c")
      for (const one of notes) map.add({ ...one, clusterId: "c" })
      const again = new OffsetMap("c")
      for (const one of [...foldedNotes(map), ...foldedNotes(map)]) again.add(decodeNote(encodeNote(one)))
      assert.deepStrictEqual(again.notes, map.notes)
    }))
  })

  it("of another source cluster says nothing", () => {
    const map = new OffsetMap("other")
    map.add(note)
    assert.deepStrictEqual([...map.slots], [])
  })
})
