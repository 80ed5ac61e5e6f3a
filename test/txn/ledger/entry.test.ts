import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  decodeEntry,
  encodeEntry,
  type LedgerEntry,
  type Slot,
  type SnapshotEntry,
  slotKey
} from "../../../src/txn/ledger/entry.ts"
import { ledgerTopicName } from "../../../src/txn/ledger/ledgerTopic.ts"
import { ProtocolError } from "../../../src/wire/bytes.ts"
import { rangeSet } from "../../../src/wire/ranges.ts"

const offset = fc.oneof(fc.nat(1_000), fc.integer({ min: 0, max: 2 ** 52 }))
const ranges = fc.array(fc.record({ first: offset, size: fc.nat(500) }), { maxLength: 8 }).map((list) =>
  rangeSet(list.map(({ first, size }) => ({ first, last: first + size })))
)
const text = fc.string({ unit: "grapheme", maxLength: 20 })
const uuid = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString("base64url"))
const slot: fc.Arbitrary<Slot> = fc.record({
  clusterId: text,
  topicId: fc.oneof(uuid, text),
  partition: fc.nat(2 ** 31 - 1)
})
const place = fc.oneof(fc.constant(-1), offset)
const entry: fc.Arbitrary<LedgerEntry> = fc.oneof(
  fc.record({
    kind: fc.constant("done" as const),
    slot,
    ranges,
    transactionalId: text,
    transactionVersion: fc.constantFrom(1 as const, 2 as const),
    targets: fc.array(fc.record({ topic: text, partition: fc.nat(10_000), baseOffset: place, sourceOffset: place }), {
      maxLength: 4
    })
  }),
  fc.record({
    kind: fc.constant("snapshot" as const),
    decidedBelow: offset,
    slots: fc.array(fc.record({ slot, done: ranges }), { maxLength: 5 })
  }),
  fc.record({
    kind: fc.constant("away" as const),
    binding: text,
    slots: fc.array(fc.record({ slot, done: ranges }), { maxLength: 5 })
  }),
  fc.record({ kind: fc.constant("back" as const), after: offset }),
  fc.record({ kind: fc.constant("member" as const), id: text })
)

const refused = (bytes: Buffer): string => {
  try {
    decodeEntry(bytes)
  } catch (error) {
    if (error instanceof ProtocolError) return error.what
    throw error
  }
  return "accepted"
}

const DONE: LedgerEntry = {
  kind: "done",
  slot: { clusterId: "MkU3OEVBNTcwNTJENDM2Qg", topicId: "AAECAwQFBgcICQoLDA0ODw", partition: 3 },
  ranges: [{ first: 300, last: 310 }, { first: 312, last: 5_000_000_000 }],
  transactionalId: "onceover.f.0",
  transactionVersion: 2,
  targets: [{ topic: "east.t", partition: 3, baseOffset: 128, sourceOffset: -1 }]
}
const SNAPSHOT: SnapshotEntry = {
  kind: "snapshot",
  decidedBelow: 9_000,
  slots: [
    { slot: { clusterId: "c", topicId: "old-topic", partition: 0 }, done: [{ first: 0, last: 41 }] },
    { slot: { clusterId: "c", topicId: "AAECAwQFBgcICQoLDA0ODw", partition: 1 }, done: [] }
  ]
}
/** What version 1 has written for ever. A change here means that old ledgers cannot be read any more. */
const GOLDEN = {
  done: "0101" + "02" + "0c6f6e63656f7665722e662e30" + // transactions of version 2, "onceover.f.0"
    "164d6b55334f4556424e5463774e544a454e444d325167" + "00000102030405060708090a0b0c0d0e0f" + "03" + // the slot
    "02" + "ac020a" + "01c8e197d012" + // two ranges: 300 and 10 more, 1 further and 4999999688 more
    "01" + "06656173742e74" + "03" + "8101" + "00", // one target: "east.t", 3, 128, unknown
  snapshot: "0102" + "a846" + "02" + // below 9000, two slots
    "0163" + "01096f6c642d746f706963" + "00" + "010029" +
    "0163" + "00000102030405060708090a0b0c0d0e0f" + "01" + "00",
  away: "0103" + "036b6970" + "01" + // "kip", one slot
    "0163" + "01096f6c642d746f706963" + "00" + "010029",
  back: "0104" + "8001", // the AWAY at 128
  member: "0105" + "016d" // "m"
}
const NOTES = {
  away: { kind: "away", binding: "kip", slots: SNAPSHOT.slots.slice(0, 1) },
  back: { kind: "back", after: 128 },
  member: { kind: "member", id: "m" }
} as const

describe("ledger entries", () => {
  it("come back as they were written, whatever they hold", () => {
    fc.assert(fc.property(entry, (value) => {
      assert.deepStrictEqual(decodeEntry(encodeEntry(value)), value)
    }))
  })

  it("have the bytes that version 1 has always had", () => {
    assert.strictEqual(encodeEntry(DONE).toString("hex"), GOLDEN.done)
    assert.strictEqual(encodeEntry(SNAPSHOT).toString("hex"), GOLDEN.snapshot)
    assert.deepStrictEqual(decodeEntry(Buffer.from(GOLDEN.done, "hex")), DONE)
    assert.deepStrictEqual(decodeEntry(Buffer.from(GOLDEN.snapshot, "hex")), SNAPSHOT)
    for (const [kind, note] of Object.entries(NOTES)) {
      assert.strictEqual(encodeEntry(note).toString("hex"), GOLDEN[kind as keyof typeof NOTES])
    }
  })

  it("of a newer version are refused, and the words say to upgrade", () => {
    const bytes = encodeEntry(DONE)
    bytes[0] = 2
    assert.match(
      refused(bytes),
      /format 2, this version of onceover reads 1: a newer onceover has written it, and this one must be upgraded/
    )
  })

  it("that are not ours are refused as such", () => {
    assert.match(refused(Buffer.from("\u0000{}")), /only onceover may write there/)
    assert.match(refused(Buffer.from([1, 7])), /unknown kind 7/)
    assert.match(refused(Buffer.concat([encodeEntry(DONE), Buffer.from([0])])), /1 bytes follow/)
  })

  it("cut anywhere are refused, never read as less", () => {
    fc.assert(fc.property(entry, fc.double({ min: 0, max: 0.999, noNaN: true }), (value, share) => {
      const bytes = encodeEntry(value)
      assert.notStrictEqual(refused(bytes.subarray(0, Math.floor(bytes.length * share))), "accepted")
    }))
  })

  it("made of any bytes are an entry or a ProtocolError, and nothing else", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, framed) => {
      const buffer = Buffer.from(bytes)
      if (framed && buffer.length > 1) buffer.set([1, 1 + (buffer[1] as number) % 2])
      refused(buffer)
    }))
  })

  it("refuse to write what is no offset", () => {
    assert.throws(
      () => encodeEntry({ ...DONE, ranges: [{ first: -1, last: 3 }] } as LedgerEntry),
      /cannot stand in a ledger entry/
    )
  })

  it("of different slots have different keys", () => {
    fc.assert(fc.property(uuid, uuid, fc.nat(20), fc.nat(20), (a, b, p, q) => {
      fc.pre(a !== b || p !== q)
      assert.notStrictEqual(
        slotKey({ clusterId: "c", topicId: a, partition: p }),
        slotKey({ clusterId: "c", topicId: b, partition: q })
      )
    }))
  })
})

describe("the ledger topic's name", () => {
  const LEGAL = /^[a-zA-Z0-9._-]{1,249}$/

  it("is legal and different for every flow name", () => {
    const seen = new Map<string, string>()
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          fc.string({ minLength: 200, maxLength: 400 }),
          fc.constantFrom("a.b", "a_b", "a_2Eb", "a-b", "east->west")
        ),
        (flow) => {
          const name = ledgerTopicName(flow)
          assert.match(name, LEGAL)
          const other = seen.get(name)
          assert.isTrue(other === undefined || other === flow, `${flow} and ${other} share ${name}`)
          seen.set(name, flow)
        }
      )
    )
  })

  it("can be read", () => {
    assert.strictEqual(ledgerTopicName("east-to-west"), "__onceover_ledger_east-to-west")
    assert.strictEqual(ledgerTopicName("east->west"), "__onceover_ledger_east-_3Ewest")
  })

  it("never collides in Kafka's metrics, where a dot is an underscore", () => {
    fc.assert(fc.property(text, text, (a, b) => {
      fc.pre(a !== b)
      assert.notStrictEqual(ledgerTopicName(a).replaceAll(".", "_"), ledgerTopicName(b).replaceAll(".", "_"))
    }))
  })
})
