/**
 * What a flow knows of offsets on both sides: the union of its notes, and the translation of positions. Pure.
 *
 * A position is the next offset that a reader wants; everything before it is consumed. Its translation is the lowest
 * target offset of any record that is not: so nothing is ever skipped, whatever order the records were written in.
 * Records whose place is not known yet (not mirrored, or the note is not read) count with the lowest offset that they
 * can have, the floor.
 */
import { add, EMPTY, type RangeSet, subtract, union } from "../../wire/ranges.ts"
import type { Note, NotedSlot } from "./note.ts"
import { Runs } from "./runs.ts"

export interface SlotOffsets {
  readonly topicId: string
  readonly partition: number
  /** Source offsets that are dealt with. */
  covered: RangeSet
  /** By target partition, "topic/partition". */
  readonly places: Map<string, PlaceOffsets>
}

export interface PlaceOffsets {
  readonly topic: string
  readonly partition: number
  readonly runs: Runs
}

const slotName = (topicId: string, partition: number): string => `${topicId}/${partition}`
const placeName = (topic: string, partition: number): string => `${topic}/${partition}`

/** The first offset from `from` on that is not in the set. */
export const firstUncovered = (covered: RangeSet, from: number): number => {
  let at = from
  for (const range of covered) {
    if (range.first > at) break
    if (range.last >= at) at = range.last + 1
  }
  return at
}

export type Translation =
  | {
    readonly kind: "at"
    readonly offset: number
    /** "record": the place of a record; "floor": no record behind the position is mirrored yet, the next will be there or behind. */
    readonly by: "record" | "floor"
  }
  /** The places of some records behind the position are not known to the record (before the map began, or thinned out). */
  | { readonly kind: "about"; readonly offset: number }
  | { readonly kind: "unknown"; readonly reason: string }

export class OffsetMap {
  readonly clusterId: string
  readonly #slots = new Map<string, SlotOffsets>()

  /** `clusterId`: of the source. Notes of another source cluster say nothing here. */
  constructor(clusterId: string) {
    this.clusterId = clusterId
  }

  get slots(): Iterable<SlotOffsets> {
    return this.#slots.values()
  }

  /** How many runs it holds. */
  get runs(): number {
    let runs = 0
    for (const slot of this.#slots.values()) for (const place of slot.places.values()) runs += place.runs.size
    return runs
  }

  slot(topicId: string, partition: number): SlotOffsets | null {
    return this.#slots.get(slotName(topicId, partition)) ?? null
  }

  add(note: Note): void {
    if (note.clusterId !== this.clusterId) return
    for (const noted of note.slots) {
      const slot = this.#slotOf(noted)
      const [only] = noted.covered
      slot.covered = noted.covered.length === 1 && only !== undefined
        ? add(slot.covered, only)
        : union(slot.covered, noted.covered)
      for (const { partition, runs, topic } of noted.places) {
        if (runs.length === 0) continue
        const name = placeName(topic, partition)
        const place = slot.places.get(name) ?? { topic, partition, runs: new Runs() }
        slot.places.set(name, place)
        for (const run of runs) place.runs.add(run)
      }
    }
  }

  #slotOf({ partition, topicId }: NotedSlot): SlotOffsets {
    const name = slotName(topicId, partition)
    const known = this.#slots.get(name)
    if (known !== undefined) return known
    const slot = { topicId, partition, covered: EMPTY, places: new Map() }
    this.#slots.set(name, slot)
    return slot
  }

  /** The whole map as a note a slot: what is folded into the topic. */
  get notes(): ReadonlyArray<Note> {
    return [...this.#slots.values()].map(({ covered, partition, places, topicId }) => ({
      clusterId: this.clusterId,
      slots: [{
        topicId,
        partition,
        covered,
        places: [...places.values()].map((place) => ({
          topic: place.topic,
          partition: place.partition,
          runs: place.runs.all
        }))
      }]
    }))
  }

  /** Forgets what lies below an offset that the source does not have any more. What is covered is kept. */
  forgetBelow(topicId: string, partition: number, source: number): void {
    for (const place of this.slot(topicId, partition)?.places.values() ?? []) place.runs.forgetBelow(source)
  }

  /** No more than `limit` runs in a target partition: the oldest are made loose. */
  thin(limit: number): void {
    for (const slot of this.#slots.values()) for (const place of slot.places.values()) place.runs.thin(limit)
  }
}

export interface Question {
  /** The next source offset that the reader wants. */
  readonly position: number
  /** No record that is not in the map has, or will get, a target offset below this. */
  readonly floor: number
}

/** From the source to a target partition. */
export const translate = (place: PlaceOffsets | null, { floor, position }: Question): Translation => {
  const found = place?.runs.from(position) ?? null
  if (found === null || floor < found.offset) return { kind: "at", offset: floor, by: "floor" }
  return found.exact ? { kind: "at", offset: found.offset, by: "record" } : { kind: "about", offset: found.offset }
}

/**
 * From a target partition back to the source: the lowest source offset of a record that lies at `position` on the
 * target or behind it; what is not mirrored yet is not consumed either.
 */
export const translateBack = (
  slot: SlotOffsets,
  place: PlaceOffsets,
  position: number,
  logStart: number
): Translation => {
  const open = firstUncovered(slot.covered, logStart)
  const found = place.runs.inverse.from(position)
  if (found === null || open <= found.offset) return { kind: "at", offset: open, by: "floor" }
  return found.exact ? { kind: "at", offset: found.offset, by: "record" } : { kind: "about", offset: found.offset }
}

/** Offsets from `from` to before `to` that are not dealt with. */
export const missing = (covered: RangeSet, from: number, to: number): RangeSet =>
  from >= to ? EMPTY : subtract([{ first: from, last: to - 1 }], covered)
