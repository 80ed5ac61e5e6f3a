/**
 * From what a lane has written to the note that goes with it: where the records of each source partition have come to
 * be, and which source offsets are dealt with. Pure.
 */
import type { StagedRange } from "../../txn/binding.ts"
import type { Outgoing } from "../../txn/produceRun.ts"
import { encodeBatch } from "../../wire/batch/records.ts"
import { rangeSet } from "../../wire/ranges.ts"
import { ZERO_UUID } from "../../wire/schema.ts"
import type { Output } from "../copyUnit.ts"
import { encodeNote, type Note, type NotedSlot } from "./note.ts"
import { exactRun, openRun, type Run, Runs } from "./runs.ts"

/** An output that is on the target. */
export interface Written {
  readonly output: Output
  /** -1: it is there, and the broker has not said where. */
  readonly baseOffset: number
}

export type LaneNotes = (
  ranges: ReadonlyArray<StagedRange>,
  written: ReadonlyArray<Written>
) => ReadonlyArray<Outgoing>

/** As the ledger names a source partition: by the topic's id, or its name where brokers have no ids. */
export const topicIdOf = (topic: string, topicId: string): string =>
  topicId === "" || topicId === ZERO_UUID ? topic : topicId

/** Without a time: the broker puts its own. */
const NO_TIMESTAMP = -1n
const runsOf = ({ offsets, recordCount }: Output, baseOffset: number): ReadonlyArray<Run> => {
  if (typeof offsets === "number") return [exactRun(offsets, recordCount, baseOffset)]
  const runs: Array<Run> = []
  for (let n = 0; n < offsets.length;) {
    const first = offsets[n] as number
    let count = 1
    while (offsets[n + count] === first + count) count++
    runs.push(exactRun(first, count, baseOffset + n))
    n += count
  }
  return runs
}

interface Draft {
  readonly topicId: string
  readonly partition: number
  readonly ranges: Array<{ readonly first: number; readonly last: number }>
  readonly places: Map<string, { readonly topic: string; readonly partition: number; readonly runs: Runs }>
}

/** What is on the target behind the newest batch of each partition that a lane has written: the least a later one can be. */
export type Ends = Map<string, number>

export const noteOf = (
  clusterId: string,
  ranges: ReadonlyArray<StagedRange>,
  written: ReadonlyArray<Written>,
  ends: Ends
): Note | null => {
  const drafts = new Map<string, Draft>()
  const draft = (topic: string, id: string, partition: number): Draft => {
    const topicId = topicIdOf(topic, id)
    const key = `${topicId}/${partition}`
    const known = drafts.get(key) ?? { topicId, partition, ranges: [], places: new Map() }
    drafts.set(key, known)
    return known
  }
  for (const range of ranges) draft(range.topic, range.topicId, range.partition).ranges.push(range)
  for (const { baseOffset, output } of written) {
    if (output.source === undefined) continue
    const { partition, topic, topicId } = output.source
    const slot = draft(topic, topicId, partition)
    const key = `${output.topic}/${output.partition}`
    const place = slot.places.get(key) ?? { topic: output.topic, partition: output.partition, runs: new Runs() }
    slot.places.set(key, place)
    const least = ends.get(key) ?? 0
    if (baseOffset >= 0) ends.set(key, Math.max(least, baseOffset + output.recordCount))
    for (const run of runsOf(output, baseOffset)) {
      place.runs.add(baseOffset >= 0 ? run : openRun(run.source, run.count, least))
      slot.ranges.push({ first: run.source, last: run.source + run.count - 1 })
    }
  }
  if (drafts.size === 0) return null
  const slots = [...drafts.values()].map((slot): NotedSlot => ({
    topicId: slot.topicId,
    partition: slot.partition,
    covered: rangeSet(slot.ranges),
    places: [...slot.places.values()].map(({ partition, runs, topic }) => ({ topic, partition, runs: runs.all }))
  }))
  return { clusterId, slots }
}

/** Notes as one batch of the offsets topic. */
export const noteBatch = (topic: string, notes: ReadonlyArray<Note>): Outgoing => ({
  topic,
  partition: 0,
  bytes: encodeBatch(
    notes.map((note, offset) => ({
      offset,
      timestamp: NO_TIMESTAMP,
      key: null,
      value: encodeNote(note),
      headers: []
    })),
    { codec: "none" }
  )
})

/** One lane's notes for the offsets topic. */
export const makeLaneNotes = (topic: string, clusterId: string): LaneNotes => {
  const ends: Ends = new Map()
  return (ranges, written) => {
    const note = noteOf(clusterId, ranges, written, ends)
    return note === null ? [] : [noteBatch(topic, [note])]
  }
}
