/**
 * Translates positions of a flow's source into positions on its target: the map, and the floors under what the map
 * does not know (floors.ts), kept up to date together.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { reachableEnds, reachableStarts } from "../control/logOffsets.ts"
import { partitionName, shareProgress } from "../control/offsets.ts"
import type { MirroredTopic } from "../control/topics.ts"
import { type FloorRule, Floors } from "./floors.ts"
import { topicIdOf } from "./laneNotes.ts"
import {
  firstUncovered,
  type PlaceOffsets,
  type SlotOffsets,
  translate,
  translateBack,
  type Translation
} from "./offsetMap.ts"
import type { OffsetsTopic } from "./offsetsTopic.ts"

export interface TranslatorOptions {
  readonly source: Cluster
  readonly target: Cluster
  readonly offsets: OffsetsTopic
  readonly rule: FloorRule
  /** Exactly-once is in force: notes are part of the transactions. */
  readonly transactional: boolean
  /** The flow's own group on the source. */
  readonly groupId: string
  readonly topics: () => ReadonlyArray<MirroredTopic>
  /** Whether a source topic is fed from the target, too, by other flows (returning.ts). */
  readonly bothWays: (source: string) => boolean
}

/** Where a source partition goes, and a position there. */
export interface Translated {
  readonly topic: string
  readonly partition: number
  readonly translation: Translation
}

type Ends = ReadonlyMap<string, number>
const unknown = (reason: string): Translation => ({ kind: "unknown", reason })

/**
 * Records that came from the target lie there already, at places that this flow does not note, and more of them may be
 * on their way: a position by this flow's records alone would skip those of them that the reader has not consumed.
 */
const ofOneWayOnly = (found: Translation): Translation =>
  found.kind === "unknown" ? found : unknown(
    `the topic is mirrored both ways, and where a reader is in the records of the other side is not known (by those of this side alone it would be ${found.offset})`
  )

const asTopics = (counts: ReadonlyMap<string, number>): ReadonlyArray<MirroredTopic> =>
  [...counts].map(([name, partitions]) => ({ source: name, sourceId: "", target: name, partitions }))

export class Translator {
  readonly #options: TranslatorOptions
  readonly #floors = new Floors()
  /** Ends of target partitions at the last look. */
  #ends: Ends = new Map()
  /** The target ends before what was mirrored there: it is another topic than it was. */
  #stale: ReadonlySet<string> = new Set()
  #starts: Ends = new Map()
  #targetStarts: Ends = new Map()

  constructor(options: TranslatorOptions) {
    this.#options = options
  }

  #slot(topic: MirroredTopic, partition: number): SlotOffsets | null {
    return this.#options.offsets.map.slot(topicIdOf(topic.source, topic.sourceId), partition)
  }

  /** Target topics that are there, with the partitions that matter. */
  get #targets(): Effect.Effect<ReadonlyMap<string, number>, WireError> {
    const { offsets, target, topics } = this.#options
    const names = new Set(topics().map((topic) => topic.target))
    for (const slot of offsets.map.slots) for (const place of slot.places.values()) names.add(place.topic)
    return Effect.map(
      target.retrying(target.topics([...names])),
      (found) => new Map([...found].map(([name, { partitions }]) => [name, partitions.length]))
    )
  }

  /** Brings all up to date. What was mirrored before it was called is known afterwards, but for open transactions. */
  get refresh(): Effect.Effect<void, WireError> {
    return Effect.gen({ self: this }, function*() {
      const { offsets, rule, source, target, topics, transactional } = this.#options
      // The order matters (floors.ts): the target's ends, then the source's, then the notes.
      const counts = yield* this.#targets
      this.#ends = (yield* reachableEnds(target, asTopics(counts), transactional)).found
      if (rule === "looks") yield* this.#look(topics(), source)
      const complete = yield* offsets.read
      if (complete && transactional) { for (const [place, end] of this.#ends) this.#floors.stable(place, end) }
      this.#starts = (yield* reachableStarts(source, topics())).found
      this.#targetStarts = (yield* reachableStarts(target, asTopics(counts))).found
      yield* this.#findStale(counts)
    })
  }

  #look(topics: ReadonlyArray<MirroredTopic>, source: Cluster): Effect.Effect<void, WireError> {
    return Effect.gen({ self: this }, function*() {
      const progress = yield* shareProgress(source, this.#options.groupId, topics)
      const ends = (yield* reachableEnds(source, topics, false)).found
      for (const topic of topics) {
        for (let partition = 0; partition < topic.partitions; partition++) {
          const name = partitionName(topic.source, partition)
          const end = progress.get(name)?.left === 0 ? 0 : ends.get(name)
          const place = partitionName(topic.target, partition)
          if (end !== undefined) this.#floors.look(place, { source: end, target: this.#ends.get(place) ?? 0 })
        }
      }
    })
  }

  #findStale(counts: ReadonlyMap<string, number>): Effect.Effect<void, WireError> {
    return Effect.gen({ self: this }, function*() {
      const beyond = new Map<string, number>()
      for (const slot of this.#options.offsets.map.slots) {
        for (const { partition, runs, topic } of slot.places.values()) {
          const name = partitionName(topic, partition)
          const exactEnd = runs.all.findLast((run) => !run.loose)?.high ?? -1
          if (exactEnd >= (this.#ends.get(name) ?? 0)) beyond.set(name, Math.max(exactEnd, beyond.get(name) ?? 0))
        }
      }
      const suspected = [...counts].filter(([topic]) => [...beyond.keys()].some((name) => name.startsWith(`${topic}-`)))
      const high = suspected.length === 0
        ? new Map<string, number>()
        : (yield* reachableEnds(this.#options.target, asTopics(new Map(suspected)), false)).found
      this.#stale = new Set([...beyond].filter(([name, end]) => end >= (high.get(name) ?? 0)).map(([name]) => name))
    })
  }

  /** Places that records of more than one partition of the source go to now. */
  #isMixed(place: PlaceOffsets): boolean {
    const { offsets, topics } = this.#options
    const current = new Set(topics().map((topic) => topicIdOf(topic.source, topic.sourceId)))
    let sources = 0
    for (const slot of offsets.map.slots) {
      if (current.has(slot.topicId) && slot.places.has(`${place.topic}/${place.partition}`)) sources++
    }
    return sources > 1
  }

  #translate(slot: SlotOffsets | null, place: PlaceOffsets | null, target: string, position: number, logStart: number) {
    const name = target
    if (!this.#ends.has(name)) return unknown("the target has no such partition yet")
    if (this.#stale.has(name)) {
      return unknown("the target partition ends before what was mirrored into it: it is not the one that it was")
    }
    if (place !== null && this.#isMixed(place)) return unknown("records of several partitions of the source are in it")
    const open = firstUncovered(slot?.covered ?? [], Math.max(position, logStart))
    const floor = this.#floors.of(this.#options.rule, name, open, place?.runs.targetEnd ?? 0)
    if (floor === null) return unknown("records behind the position are on their way and may still be anywhere")
    const found = translate(place, { position, floor })
    // What the target has deleted by itself cannot be read: a reader that begins there would be sent anywhere.
    const start = this.#targetStarts.get(name) ?? 0
    return found.kind === "unknown" || found.offset >= start ? found : { ...found, offset: start }
  }

  /** What a position in a source partition is on the target: of the flow's target topic, and of any that transforms named. */
  translate(topic: MirroredTopic, partition: number, position: number): ReadonlyArray<Translated> {
    const slot = this.#slot(topic, partition)
    const logStart = this.#starts.get(partitionName(topic.source, partition)) ?? 0
    const main = slot?.places.get(`${topic.target}/${partition}`) ?? null
    const others = [...slot?.places.values() ?? []].filter((place) => place !== main)
    // Where transforms rename all, nothing is in the topic of the flow's own naming.
    const places = main === null && others.length > 0 ? others : [main, ...others]
    const bothWays = this.#options.bothWays(topic.source)
    return places.map((place) => {
      const at = place ?? { topic: topic.target, partition }
      const name = partitionName(at.topic, at.partition)
      const found = this.#translate(slot, place, name, position, logStart)
      return { topic: at.topic, partition: at.partition, translation: bothWays ? ofOneWayOnly(found) : found }
    })
  }

  /** The source partition that a target partition is made of, and the position there; null: none that is mirrored now. */
  translateBack(target: string, partition: number, position: number): Translated | null {
    for (const topic of this.#options.topics()) {
      for (let n = 0; n < topic.partitions; n++) {
        const slot = this.#slot(topic, n)
        const place = slot?.places.get(`${target}/${partition}`)
        if (slot === null || place === undefined) continue
        const name = partitionName(target, partition)
        const logStart = this.#starts.get(partitionName(topic.source, n)) ?? 0
        const translation = this.#stale.has(name)
          ? unknown("the target partition ends before what was mirrored into it: it is not the one that it was")
          : this.#isMixed(place)
          ? unknown("records of several partitions of the source are in it")
          : translateBack(slot, place, position, logStart)
        const bothWays = this.#options.bothWays(topic.source)
        return { topic: topic.source, partition: n, translation: bothWays ? ofOneWayOnly(translation) : translation }
      }
    }
    return null
  }

  /** No record that is not in the map has, or will get, a lower target offset in the flow's own topic; 0: not known. */
  floorOf(topic: MirroredTopic, partition: number): number {
    const slot = this.#slot(topic, partition)
    const place = slot?.places.get(`${topic.target}/${partition}`)
    const open = firstUncovered(slot?.covered ?? [], this.#starts.get(partitionName(topic.source, partition)) ?? 0)
    const name = partitionName(topic.target, partition)
    return this.#floors.of(this.#options.rule, name, open, place?.runs.targetEnd ?? 0) ?? 0
  }

  /** The first offsets of the source's partitions, as last seen. */
  get starts(): Ends {
    return this.#starts
  }
}
