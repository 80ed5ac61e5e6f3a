/**
 * What a record of the ledger topic says, and its bytes. The ledger outlives the program that wrote it, so the format
 * is versioned from its first byte and its golden bytes are a test; what this version does not know is refused in
 * words, never skipped: a DONE that is not understood would be a duplicate.
 *
 *   entry    := version(1 byte: 1) kind(1 byte: 1 DONE, 2 SNAPSHOT, 3 AWAY, 4 BACK, 5 MEMBER) body
 *   DONE     := transactionVersion(1 byte: 1 or 2) text(transactional id) slot ranges count { target }
 *   SNAPSHOT := number(decided below) count { slot ranges }
 *   AWAY     := text(binding) count { slot ranges }
 *   BACK     := number(offset of the AWAY it answers)
 *   MEMBER   := text(member id)
 *   slot     := text(cluster id) topic number(partition)
 *   topic    := 0 uuid(16 bytes) | 1 text
 *   ranges   := count { number(first - end of the one before) number(last - first) }
 *   target   := text(topic) number(partition) number(base offset + 1, 0: unknown) number(first source offset + 1, 0: unknown)
 *   text     := count bytes (UTF-8);  count, number := unsigned varint, 7 bits a byte, low ones first, below 2^53
 */
import { ByteReader, ByteWriter, ProtocolError } from "../../wire/bytes.ts"
import type { OffsetRange, RangeSet } from "../../wire/ranges.ts"

/** One partition of one source topic, for good: a topic that was deleted and created again has another id. */
export interface Slot {
  readonly clusterId: string
  /** 22 characters of base64url; the name of the topic where the source's brokers have no topic ids. */
  readonly topicId: string
  readonly partition: number
}

/** Two slots are the same when their keys are. */
export const slotKey = (slot: Slot): string => `${slot.clusterId}/${slot.topicId}/${slot.partition}`

/** Where an output went. */
export interface Target {
  readonly topic: string
  readonly partition: number
  /** -1: written, offset not known. */
  readonly baseOffset: number
  /** The source offset of its first record; -1: not known. */
  readonly sourceOffset: number
}

/** "The transaction that this record is part of has mirrored these source offsets." */
export interface DoneEntry {
  readonly kind: "done"
  readonly slot: Slot
  /** Gaps inside acquired ranges included, so that done sets grow together. */
  readonly ranges: RangeSet
  readonly transactionalId: string
  /** The version of transactions it was written under: it decides which markers count (tail.ts). */
  readonly transactionVersion: 1 | 2
  readonly targets: ReadonlyArray<Target>
}

/** What was done when everything below an offset of this log was decided. Adds to what is known, replaces nothing. */
export interface SnapshotEntry {
  readonly kind: "snapshot"
  readonly decidedBelow: number
  readonly slots: ReadonlyArray<{ readonly slot: Slot; readonly done: RangeSet }>
}

/** "From here on records of the source are dealt with without this ledger"; what was decided for the group until then. */
export interface AwayEntry {
  readonly kind: "away"
  /** What is in force instead, for people. */
  readonly binding: string
  readonly slots: ReadonlyArray<{ readonly slot: Slot; readonly done: RangeSet }>
}

/** "From here on by the ledger alone again." Holds only while `after` is the newest AWAY. */
export interface BackEntry {
  readonly kind: "back"
  readonly after: number
}

/** While away: this member of the source's group works by the ledger. */
export interface MemberEntry {
  readonly kind: "member"
  readonly id: string
}

export type NoteEntry = AwayEntry | BackEntry | MemberEntry
export type LedgerEntry = DoneEntry | SnapshotEntry | NoteEntry

const VERSION = 1
const KINDS = { done: 1, snapshot: 2, away: 3, back: 4, member: 5 } as const
const TOPIC_ID = 0
const TOPIC_NAME = 1
const UUID = /^[A-Za-z0-9_-]{22}$/

const isUuid = (id: string): boolean => UUID.test(id) && Buffer.from(id, "base64url").toString("base64url") === id

export const writeNumber = (out: ByteWriter, value: number): void => {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new ProtocolError({ what: `${value} cannot stand in a ledger entry` })
  }
  out.uvarint(value)
}

export const writeText = (out: ByteWriter, text: string): void => {
  const bytes = Buffer.from(text, "utf8")
  writeNumber(out, bytes.length)
  out.raw(bytes)
}

export const writeTopicId = (out: ByteWriter, topicId: string): void => {
  if (isUuid(topicId)) {
    out.int8(TOPIC_ID)
    out.uuid(topicId)
  } else {
    out.int8(TOPIC_NAME)
    writeText(out, topicId)
  }
}

const writeSlot = (out: ByteWriter, slot: Slot): void => {
  writeText(out, slot.clusterId)
  writeTopicId(out, slot.topicId)
  writeNumber(out, slot.partition)
}

export const writeRanges = (out: ByteWriter, ranges: RangeSet): void => {
  writeNumber(out, ranges.length)
  let end = 0
  for (const { first, last } of ranges) {
    writeNumber(out, first - end)
    writeNumber(out, last - first)
    end = last + 1
  }
}

const writeDone = (out: ByteWriter, entry: DoneEntry): void => {
  out.int8(entry.transactionVersion)
  writeText(out, entry.transactionalId)
  writeSlot(out, entry.slot)
  writeRanges(out, entry.ranges)
  writeNumber(out, entry.targets.length)
  for (const target of entry.targets) {
    writeText(out, target.topic)
    writeNumber(out, target.partition)
    writeNumber(out, target.baseOffset + 1)
    writeNumber(out, target.sourceOffset + 1)
  }
}

const writeSlots = (out: ByteWriter, slots: SnapshotEntry["slots"]): void => {
  writeNumber(out, slots.length)
  for (const { done, slot } of slots) {
    writeSlot(out, slot)
    writeRanges(out, done)
  }
}

const writeBody = (out: ByteWriter, entry: LedgerEntry): void => {
  switch (entry.kind) {
    case "done":
      return writeDone(out, entry)
    case "snapshot":
      writeNumber(out, entry.decidedBelow)
      return writeSlots(out, entry.slots)
    case "away":
      writeText(out, entry.binding)
      return writeSlots(out, entry.slots)
    case "back":
      return writeNumber(out, entry.after)
    case "member":
      return writeText(out, entry.id)
  }
}

/** Throws ProtocolError on numbers that are no offsets. */
export const encodeEntry = (entry: LedgerEntry): Buffer => {
  const out = new ByteWriter()
  out.int8(VERSION)
  out.int8(KINDS[entry.kind])
  writeBody(out, entry)
  return Buffer.concat(out.chunks())
}

export const readNumber = (reader: ByteReader): number => {
  let value = 0
  for (let scale = 1; scale < 2 ** 53; scale *= 128) {
    const byte = reader.int8() & 0xff
    value += (byte & 0x7f) * scale
    if (byte < 0x80) {
      if (Number.isSafeInteger(value)) return value
      break
    }
  }
  throw new ProtocolError({ what: "a number in the ledger entry is beyond 2^53" })
}

/** A count of things that take `size` bytes each at least. */
export const readCount = (reader: ByteReader, size: number): number => {
  const count = readNumber(reader)
  if (count * size > reader.remaining) {
    throw new ProtocolError({ what: `the ledger entry announces ${count} items, ${reader.remaining} bytes are left` })
  }
  return count
}

export const readText = (reader: ByteReader): string => reader.text(readCount(reader, 1))

export const readTopicId = (reader: ByteReader): string => {
  const kind = reader.int8()
  if (kind !== TOPIC_ID && kind !== TOPIC_NAME) {
    throw new ProtocolError({ what: `the ledger entry names its topic in an unknown way (${kind})` })
  }
  return kind === TOPIC_ID ? reader.uuid() : readText(reader)
}

const readSlot = (reader: ByteReader): Slot => {
  const clusterId = readText(reader)
  const topicId = readTopicId(reader)
  return { clusterId, topicId, partition: readNumber(reader) }
}

export const readRanges = (reader: ByteReader): RangeSet => {
  const count = readCount(reader, 2)
  const ranges: Array<OffsetRange> = []
  let end = 0
  // They ascend by construction; one that begins where the one before ends is the same range.
  for (let i = 0; i < count; i++) {
    const hole = readNumber(reader)
    const first = end + hole
    const last = first + readNumber(reader)
    if (!Number.isSafeInteger(last)) throw new ProtocolError({ what: "a range in the ledger entry ends beyond 2^53" })
    const before = hole === 0 ? ranges.pop() : undefined
    ranges.push({ first: before?.first ?? first, last })
    end = last + 1
  }
  return ranges
}

const readDone = (reader: ByteReader): DoneEntry => {
  const version = reader.int8()
  if (version !== 1 && version !== 2) {
    throw new ProtocolError({
      what: `the ledger entry was written under version ${version} of transactions; 1 and 2 are known`
    })
  }
  const transactionalId = readText(reader)
  const slot = readSlot(reader)
  const ranges = readRanges(reader)
  const count = readCount(reader, 4)
  const targets: Array<Target> = []
  for (let i = 0; i < count; i++) {
    targets.push({
      topic: readText(reader),
      partition: readNumber(reader),
      baseOffset: readNumber(reader) - 1,
      sourceOffset: readNumber(reader) - 1
    })
  }
  return { kind: "done", slot, ranges, transactionalId, transactionVersion: version, targets }
}

const readSlots = (reader: ByteReader): SnapshotEntry["slots"] => {
  const count = readCount(reader, 4)
  const slots: Array<{ slot: Slot; done: RangeSet }> = []
  for (let i = 0; i < count; i++) slots.push({ slot: readSlot(reader), done: readRanges(reader) })
  return slots
}

/** Null: no kind that this version knows. */
const readBody = (kind: number, reader: ByteReader): LedgerEntry | null => {
  switch (kind) {
    case KINDS.done:
      return readDone(reader)
    case KINDS.snapshot:
      return { kind: "snapshot", decidedBelow: readNumber(reader), slots: readSlots(reader) }
    case KINDS.away:
      return { kind: "away", binding: readText(reader), slots: readSlots(reader) }
    case KINDS.back:
      return { kind: "back", after: readNumber(reader) }
    case KINDS.member:
      return { kind: "member", id: readText(reader) }
    default:
      return null
  }
}

/** Throws ProtocolError, in words, on what is not an entry of this version. */
export const decodeEntry = (bytes: Buffer): LedgerEntry => {
  const reader = new ByteReader(bytes)
  const version = reader.int8()
  if (version !== VERSION) {
    throw new ProtocolError({
      what: version > VERSION
        ? `a ledger entry has format ${version}, this version of onceover reads ${VERSION}: a newer onceover has written it, and this one must be upgraded`
        : `a record of the ledger topic is not a ledger entry (it begins with ${version}): only onceover may write there`
    })
  }
  const kind = reader.int8()
  const entry = readBody(kind, reader)
  if (entry === null) throw new ProtocolError({ what: `a ledger entry is of the unknown kind ${kind}` })
  if (reader.remaining > 0) throw new ProtocolError({ what: `${reader.remaining} bytes follow a ledger entry` })
  return entry
}
