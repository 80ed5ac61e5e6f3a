/**
 * Where two partitions begin to hold the same records, found by content: a log whose beginning was removed, and
 * `--from` and `--to`, name an offset on one side; the record that stands there tells the offset on the other.
 *
 * A share group does not keep the order, so there it is a zone: what lies in it and is on one side only cannot be
 * told from what was removed, and counts as removed.
 */
import { Effect } from "effect"
import type { WireError } from "../../wire/errors.ts"
import { type Compared, hashName, RecordHasher } from "./digest.ts"
import { expect } from "./expected.ts"
import type { Place, Sides, SourcePart, TargetPart } from "./places.ts"
import { type OnRecords, type PartitionRange, type Reading, readRange } from "./rangeReader.ts"

/** Records that are looked for. In order, the first that is found tells; out of order, all of them do. */
const WATCHED_IN_ORDER = 100
const WATCHED = 2_000

interface Zone {
  readonly first: number
  readonly last: number
}

const hasher = (compared: Compared) => {
  const made = new RecordHasher(compared)
  return (record: Parameters<RecordHasher["hash"]>[0]): string => {
    made.hash(record)
    return hashName(made.words)
  }
}

type Hashes = (records: Parameters<OnRecords>[0], use: (hash: string, offset: number) => void) => void | Promise<void>

/** Hashes as the target is to have them. */
const ofSource = (part: SourcePart, compared: Compared): Hashes => {
  const hash = hasher(compared)
  return (records, use) =>
    expect(part.chain, part, records, { filtered: 0, failed: 0 }, (topic, record) => {
      if (topic === part.targetTopic) use(hash(record), record.offset)
    })
}
const ofTarget = (compared: Compared): Hashes => {
  const hash = hasher(compared)
  return (records, use) => {
    for (const record of records) use(hash(record), record.offset)
  }
}

const after = (done: void | Promise<void>, then: () => boolean): boolean | Promise<boolean> =>
  done instanceof Promise ? done.then(then) : then()

/** The first, or the last, `count` records of a range, by hash. */
const watch = (
  reading: Reading,
  range: PartitionRange,
  hashes: Hashes,
  count: number,
  which: "first" | "last"
): Effect.Effect<ReadonlyArray<string>, WireError> =>
  Effect.gen(function*() {
    let found: Array<string> = []
    const from = which === "first" ? range.from : Math.max(range.from, range.to - count)
    yield* readRange({ ...reading, onPassed: () => {} }, { ...range, from }, (records) =>
      after(
        hashes(records, (hash) => void found.push(hash)),
        () => which === "last" || found.length < count
      ))
    found = which === "first" ? found.slice(0, count) : found.slice(-count).toReversed()
    return found
  })

/** Where the watched records are, on the other side. Null: none of them is there. */
const find = (
  reading: Reading,
  range: PartitionRange,
  hashes: Hashes,
  watched: ReadonlyArray<string>,
  ordered: boolean
): Effect.Effect<Zone | null, WireError> =>
  Effect.gen(function*() {
    const open = new Set(watched)
    const [foremost] = watched
    let first = Infinity
    let last = -1
    yield* readRange({ ...reading, onPassed: () => {} }, range, (records) =>
      after(
        hashes(records, (hash, offset) => {
          if (!open.delete(hash)) return
          first = Math.min(first, offset)
          last = Math.max(last, offset)
        }),
        () => open.size > 0 && !(ordered && foremost !== undefined && !open.has(foremost))
      ))
    return last < 0 ? null : { first, last }
  })

/** Behind the last copy of any of them. Null: none of them is there. */
const findEnd = (
  reading: Reading,
  range: PartitionRange,
  hashes: Hashes,
  watched: ReadonlyArray<string>
): Effect.Effect<number | null, WireError> =>
  Effect.gen(function*() {
    const known = new Set(watched)
    let end = -1
    yield* readRange({ ...reading, onPassed: () => {} }, range, (records) =>
      after(
        hashes(records, (hash, offset) => {
          if (known.has(hash)) end = offset + 1
        }),
        () => true
      ))
    return end < 0 ? null : end
  })

/** The last records before the part that are to be on the target, from as far back as there are any. */
const watchBefore = (
  reading: Reading,
  part: SourcePart,
  hashes: Hashes,
  count: number
): Effect.Effect<ReadonlyArray<string>, WireError> =>
  Effect.gen(function*() {
    let to = part.from
    for (let span = count; to > part.logStart; span *= 10) {
      const from = Math.max(part.logStart, to - span)
      const found = yield* watch(reading, { ...part, from, to }, hashes, to - from, "last")
      if (found.length > 0) return found.slice(0, count)
      to = from
    }
    return []
  })

export interface Located {
  readonly part: SourcePart
  readonly target: TargetPart
  readonly zone: Place["zone"]
}

/** Brings both beginnings to where they hold the same, and the target's end to the source's where that was moved. */
export const locate = (sides: Sides, part: SourcePart, target: TargetPart): Effect.Effect<Located, WireError> =>
  Effect.gen(function*() {
    const { compared } = target
    const { ordered } = sides
    const count = ordered ? WATCHED_IN_ORDER : WATCHED
    const source = ofSource(part, compared)
    const theirs = ofTarget(compared)
    const edge = (zone: Zone): number => ordered ? zone.first : zone.last
    const whole = { ...part, to: part.optionalTo }
    if (target.from > 0 || !sides.fromBeginning) {
      const watched = yield* watch(sides.target, target, theirs, count, "first")
      const zone = watched.length === 0 ? null : yield* find(sides.source, whole, source, watched, ordered)
      if (zone !== null && zone.first > part.from) {
        const note = `the target begins with the source's offset ${zone.first}: what lies before is not compared`
        const moved = { ...part, from: Math.min(zone.first, part.to), notes: [...part.notes, note] }
        return yield* locateEnd(sides, moved, target, { source: edge(zone), target: 0 })
      }
    }
    if (part.from > 0) {
      const watched = yield* watch(sides.source, part, source, count, "first")
      const zone = watched.length === 0 ? null : yield* find(sides.target, target, theirs, watched, ordered)
      if (zone !== null) {
        return yield* locateEnd(sides, part, { ...target, from: zone.first }, { source: 0, target: edge(zone) })
      }
      return yield* locateBehind(sides, part, target, watched.length === 0)
    }
    return yield* locateEnd(sides, part, target, { source: 0, target: 0 })
  })

/**
 * Nothing of the part tells where it begins on the target: that is behind what lies before it.
 *
 * Where the order is not kept, what is expected may stand before that, too.
 */
const locateBehind = (sides: Sides, part: SourcePart, target: TargetPart, nothingExpected: boolean) =>
  Effect.gen(function*() {
    const count = sides.ordered ? WATCHED_IN_ORDER : WATCHED
    const watched = yield* watchBefore(sides.source, part, ofSource(part, target.compared), count)
    const end = watched.length === 0
      ? null
      : yield* findEnd(sides.target, target, ofTarget(target.compared), watched)
    if (end !== null) {
      const from = sides.ordered || nothingExpected ? end : target.from
      return yield* locateEnd(sides, part, { ...target, from }, { source: 0, target: end })
    }
    if (!nothingExpected || target.from >= target.to) {
      return yield* locateEnd(sides, part, target, { source: 0, target: 0 })
    }
    const note =
      `nothing that is mirrored stands at the source's offset ${part.from} or behind it, nor is what stood before it to be found on the target: what the target holds is not compared`
    const located: Located = {
      part: { ...part, notes: [...part.notes, note] },
      target: { ...target, from: target.to },
      zone: { source: 0, target: 0 }
    }
    return located
  })

const locateEnd = (sides: Sides, part: SourcePart, target: TargetPart, zone: Place["zone"]) =>
  Effect.gen(function*() {
    const none: Located = { part, target, zone }
    if (!sides.endsEarly || part.to >= part.optionalTo || part.from >= part.to) return none
    const count = sides.ordered ? WATCHED_IN_ORDER : WATCHED
    const watched = yield* watch(sides.source, part, ofSource(part, target.compared), count, "last")
    // Not ordered: all of them are waited for, so that the furthest is known.
    const found = yield* find(sides.target, target, ofTarget(target.compared), watched, false)
    return found === null ? none : { part, target: { ...target, to: found.last + 1 }, zone }
  })
