/** One unit: a first pass over both sides, and where they differ, what exactly. */
import { Effect } from "effect"
import type { WireError } from "../../wire/errors.ts"
import { bucketOf, BUCKETS, RecordHasher, Sums } from "./digest.ts"
import { expect, type Tally } from "./expected.ts"
import { explain, type Judged } from "./explain.ts"
import { locate } from "./locate.ts"
import { pinpoint } from "./pinpoint.ts"
import type { Place, Sides, SourcePart, TargetPart, Unit } from "./places.ts"
import { lengthOf, readRange } from "./rangeReader.ts"
import { type Difference, LISTED, type VerifiedPartition } from "./report.ts"

interface FirstPass {
  /** By target topic. */
  readonly expected: Map<string, Sums>
  readonly tally: Tally
}

const sumsOf = (map: Map<string, Sums>, topic: string): Sums => {
  const known = map.get(topic)
  if (known !== undefined) return known
  const made = new Sums(BUCKETS)
  map.set(topic, made)
  return made
}

const sumSource = (
  sides: Sides,
  parts: ReadonlyArray<SourcePart>,
  hasherOf: (topic: string) => RecordHasher
): Effect.Effect<FirstPass, WireError> =>
  Effect.gen(function*() {
    const pass: FirstPass = { expected: new Map(), tally: { filtered: 0, failed: 0 } }
    for (const part of parts) {
      yield* readRange(sides.source, part, (records) => {
        const done = expect(part.chain, part, records, pass.tally, (topic, record) => {
          const hasher = hasherOf(topic)
          hasher.hash(record)
          sumsOf(pass.expected, topic).add(bucketOf(hasher.words), hasher.words)
        })
        return done instanceof Promise ? done.then(() => true) : true
      })
    }
    return pass
  })

const sumTarget = (sides: Sides, target: TargetPart): Effect.Effect<Sums, WireError> =>
  Effect.gen(function*() {
    const sums = new Sums(BUCKETS)
    const hasher = new RecordHasher(target.compared)
    yield* readRange(sides.target, target, (records) => {
      for (const record of records) {
        hasher.hash(record)
        sums.add(bucketOf(hasher.words), hasher.words)
      }
      return true
    })
    return sums
  })

const listed = ({ altered, doubled, foreign, lost }: Judged): ReadonlyArray<Difference> => [
  ...lost.slice(0, LISTED).map(({ offset }): Difference => ({
    kind: "lost",
    sourceOffset: offset,
    targetOffset: null,
    parts: []
  })),
  ...doubled.slice(0, LISTED).map(({ offset }): Difference => ({
    kind: "doubled",
    sourceOffset: null,
    targetOffset: offset,
    parts: []
  })),
  ...altered.slice(0, LISTED).map(({ source, target, what }): Difference => ({
    kind: "altered",
    sourceOffset: source.offset,
    targetOffset: target.offset,
    parts: what
  })),
  ...foreign.slice(0, LISTED).map(({ offset }): Difference => ({
    kind: "foreign",
    sourceOffset: null,
    targetOffset: offset,
    parts: []
  }))
]

const NOTHING: Judged = {
  lost: [],
  doubled: [],
  altered: [],
  foreign: [],
  partial: false,
  removedOnSource: 0,
  removedOnTarget: 0
}

const PARTIAL = "more records differ than are looked at one by one: the counts are of a part of them"

/** What is known of a place when both sides have been summed. */
interface Summed {
  readonly place: Place
  readonly ours: Sums
  readonly theirs: Sums
  readonly tally: Tally
}

const judge = (sides: Sides, { ours, place, tally, theirs }: Summed): Effect.Effect<VerifiedPartition, WireError> =>
  Effect.gen(function*() {
    const buckets = ours.differing(theirs)
    const found = buckets.length === 0 ? NOTHING : yield* explain(sides, place, yield* pinpoint(sides, place, buckets))
    const [first] = place.parts
    const bounds = { from: first?.from ?? 0, to: first?.to ?? 0 }
    const count = found.lost.length + found.doubled.length + found.altered.length + found.foreign.length
    return {
      sourceTopics: place.parts.map(({ topic }) => topic),
      targetTopic: place.targetTopic,
      partition: place.partition,
      source: { ...bounds, records: ours.total },
      target: { from: place.target.from, to: place.target.to, records: theirs.total },
      equal: count === 0 && !found.partial,
      lost: found.lost.length,
      doubled: found.doubled.length,
      altered: found.altered.length,
      foreign: found.foreign.length,
      explained: {
        removedOnSource: found.removedOnSource,
        removedOnTarget: found.removedOnTarget,
        notYetMirrored: place.parts.reduce((sum, part) => sum + (sides.endsEarly ? 0 : part.optionalTo - part.to), 0),
        filtered: tally.filtered
      },
      differences: listed(found),
      notes: [
        ...new Set(place.parts.flatMap(({ notes }) => notes)),
        ...(place.target.compared.timestamps ? [] : ["the target writes its own timestamps: they are not compared"]),
        ...(tally.failed === 0
          ? []
          : [`transforms failed on ${tally.failed} records, which are not expected on the target`]),
        ...(found.partial ? [PARTIAL] : [])
      ],
      problem: null
    }
  })

/** A place that the target does not have: whatever is expected there is lost. */
const absent = (topic: string, partition: number): TargetPart => ({
  topic,
  topicId: "",
  partition,
  from: 0,
  to: 0,
  compared: { timestamps: true },
  compacted: false
})

const compareOne = (sides: Sides, part: SourcePart): Effect.Effect<VerifiedPartition, WireError> =>
  Effect.gen(function*() {
    const there = yield* sides.targetPart(part.targetTopic, part.partition)
    const located = there === null
      ? { part, target: absent(part.targetTopic, part.partition), zone: { source: 0, target: 0 } }
      : yield* locate(sides, part, there)
    const place: Place = {
      targetTopic: part.targetTopic,
      partition: part.partition,
      parts: [there === null ? { ...part, notes: [...part.notes, "the target has no such partition"] } : located.part],
      target: located.target,
      zone: located.zone
    }
    const hasher = new RecordHasher(place.target.compared)
    sides.onMore(lengthOf(place.parts) + lengthOf([place.target]))
    const [pass, theirs] = yield* Effect.all([
      sumSource(sides, place.parts, () => hasher),
      sumTarget(sides, place.target)
    ], { concurrency: 2 })
    const ours = sumsOf(pass.expected, part.targetTopic)
    return yield* judge(sides, { place, ours, theirs, tally: pass.tally })
  })

/** Transforms name the topics: the source is read first and says which there are. */
const compareRouted = (sides: Sides, unit: Unit): Effect.Effect<ReadonlyArray<VerifiedPartition>, WireError> =>
  Effect.gen(function*() {
    const hasher = new RecordHasher({ timestamps: true })
    sides.onMore(lengthOf(unit.parts))
    const pass = yield* sumSource(sides, unit.parts, () => hasher)
    const all: Array<VerifiedPartition> = []
    for (const [targetTopic, ours] of pass.expected) {
      const target = (yield* sides.targetPart(targetTopic, unit.partition)) ?? absent(targetTopic, unit.partition)
      const place: Place = {
        targetTopic,
        partition: unit.partition,
        parts: unit.parts,
        target,
        zone: { source: 0, target: 0 }
      }
      sides.onMore(lengthOf([target]))
      const theirs = yield* sumTarget(sides, { ...target, compared: { timestamps: true } })
      all.push(yield* judge(sides, { place, ours, theirs, tally: pass.tally }))
    }
    return all
  })

/** Compares a unit. */
export const compareUnit = (sides: Sides, unit: Unit): Effect.Effect<ReadonlyArray<VerifiedPartition>, WireError> => {
  const [only] = unit.parts
  return unit.routed || only === undefined
    ? compareRouted(sides, unit)
    : Effect.map(compareOne(sides, only), (one) => [one])
}
