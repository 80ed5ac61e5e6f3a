/**
 * A record of the offsets topic: where records of source partitions have come to be on the target. Lanes write one
 * with each transaction; what is known is the union of all notes, so notes may be folded into few, repeated and read
 * in any order. The topic outlives the program that wrote it: the format is versioned from its first byte, its golden
 * bytes are a test.
 *
 *   note    := version(1 byte: 1) text(source cluster id) count { slot }
 *   slot    := topic number(partition) ranges count { place }
 *   place   := text(target topic) number(partition) count { run }
 *   run     := number(source - end of the run before) number(2 x count, + 1: loose) signed(target - end of the target of
 *              the run before) [loose: number(high - target)]
 *   signed  := number(zigzag)
 *
 * topic, ranges, text, count and number are those of the ledger's entries (src/txn/ledger/entry.ts). The ranges are
 * all offsets that are dealt with: mirrored, left out on purpose, and those that hold no record.
 */
import {
  readCount,
  readNumber,
  readRanges,
  readText,
  readTopicId,
  writeNumber,
  writeRanges,
  writeText,
  writeTopicId
} from "../../txn/ledger/entry.ts"
import { ByteReader, ByteWriter, ProtocolError } from "../../wire/bytes.ts"
import type { RangeSet } from "../../wire/ranges.ts"
import { exactRun, looseRun, type Run } from "./runs.ts"

/** Runs in one target partition. */
export interface NotedPlace {
  readonly topic: string
  readonly partition: number
  /** Ascending by source offset, disjoint. */
  readonly runs: ReadonlyArray<Run>
}

export interface NotedSlot {
  /** As in the ledger: the topic's id, or its name where brokers have no ids. */
  readonly topicId: string
  readonly partition: number
  readonly covered: RangeSet
  readonly places: ReadonlyArray<NotedPlace>
}

export interface Note {
  /** The source cluster's. */
  readonly clusterId: string
  readonly slots: ReadonlyArray<NotedSlot>
}

const VERSION = 1

const writeSigned = (out: ByteWriter, value: number): void => writeNumber(out, value >= 0 ? 2 * value : -2 * value - 1)

const readSigned = (reader: ByteReader): number => {
  const value = readNumber(reader)
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2
}

const writeRuns = (out: ByteWriter, runs: ReadonlyArray<Run>): void => {
  writeNumber(out, runs.length)
  let source = 0
  let target = 0
  for (const run of runs) {
    writeNumber(out, run.source - source)
    writeNumber(out, 2 * run.count + (run.loose ? 1 : 0))
    writeSigned(out, run.target - target)
    if (run.loose) writeNumber(out, run.high - run.target)
    source = run.source + run.count
    target = run.high + 1
  }
}

const readRuns = (reader: ByteReader): ReadonlyArray<Run> => {
  const runs: Array<Run> = []
  let source = 0
  let target = 0
  for (let left = readCount(reader, 3); left > 0; left--) {
    const first = source + readNumber(reader)
    const size = readNumber(reader)
    const count = Math.floor(size / 2)
    const at = target + readSigned(reader)
    if (count === 0 || at < 0) throw new ProtocolError({ what: "an offset note holds a run that cannot be" })
    const run = size % 2 === 1 ? looseRun(first, count, at, at + readNumber(reader)) : exactRun(first, count, at)
    runs.push(run)
    source = first + count
    target = run.high + 1
  }
  return runs
}

/** Throws ProtocolError on numbers that are no offsets. */
export const encodeNote = (note: Note): Buffer => {
  const out = new ByteWriter()
  out.int8(VERSION)
  writeText(out, note.clusterId)
  writeNumber(out, note.slots.length)
  for (const slot of note.slots) {
    writeTopicId(out, slot.topicId)
    writeNumber(out, slot.partition)
    writeRanges(out, slot.covered)
    writeNumber(out, slot.places.length)
    for (const place of slot.places) {
      writeText(out, place.topic)
      writeNumber(out, place.partition)
      writeRuns(out, place.runs)
    }
  }
  return Buffer.concat(out.chunks())
}

/** Throws ProtocolError, in words, on what is not a note of this version. */
export const decodeNote = (bytes: Buffer): Note => {
  const reader = new ByteReader(bytes)
  const version = reader.int8()
  if (version !== VERSION) {
    throw new ProtocolError({
      what: version > VERSION
        ? `an offset note has format ${version}, this version of onceover reads ${VERSION}: a newer onceover has written it, and this one must be upgraded`
        : `a record of the offsets topic is not an offset note (it begins with ${version}): only onceover may write there`
    })
  }
  const clusterId = readText(reader)
  const slots: Array<NotedSlot> = []
  for (let left = readCount(reader, 4); left > 0; left--) {
    const topicId = readTopicId(reader)
    const partition = readNumber(reader)
    const covered = readRanges(reader)
    const places: Array<NotedPlace> = []
    for (let more = readCount(reader, 3); more > 0; more--) {
      places.push({ topic: readText(reader), partition: readNumber(reader), runs: readRuns(reader) })
    }
    slots.push({ topicId, partition, covered, places })
  }
  if (reader.remaining > 0) throw new ProtocolError({ what: `${reader.remaining} bytes follow an offset note` })
  return { clusterId, slots }
}
