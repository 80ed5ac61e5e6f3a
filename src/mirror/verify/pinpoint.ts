/**
 * From "this place differs" to the offsets: the second pass narrows the buckets, the third collects the records of those
 * that differ, and only those are in memory.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { Rec } from "../../wire/batch/records.ts"
import type { WireError } from "../../wire/errors.ts"
import { bucketOf, hashName, leafOf, LEAVES, RecordHasher, Sums } from "./digest.ts"
import { expect } from "./expected.ts"
import { type Candidate, type Matched, matchRecords, type Parts } from "./match.ts"
import type { Place, Sides } from "./places.ts"
import { lengthOf, readRange } from "./rangeReader.ts"

/** Records in memory at once, both sides together. */
const MAX_CANDIDATES = 200_000

export interface Pinpointed extends Matched {
  /** Not all that differ fitted into memory: the counts are of a part. */
  readonly partial: boolean
}

type Each = (record: Rec, words: Uint32Array, optional: boolean) => void

const eachExpected = (sides: Sides, place: Place, withOptional: boolean, use: Each): Effect.Effect<void, WireError> =>
  Effect.gen(function*() {
    const hasher = new RecordHasher(place.target.compared)
    for (const part of place.parts) {
      const to = withOptional ? part.optionalTo : part.to
      const onExpected = (topic: string, record: Rec) => {
        if (topic !== place.targetTopic) return
        hasher.hash(record)
        use(record, hasher.words, record.offset >= part.to)
      }
      yield* readRange(sides.source, { ...part, to }, (records) => {
        const done = expect(part.chain, part, records, { filtered: 0, failed: 0 }, onExpected)
        return done instanceof Promise ? done.then(() => true) : true
      })
    }
  })

const eachThere = (sides: Sides, place: Place, use: Each): Effect.Effect<void, WireError> => {
  const hasher = new RecordHasher(place.target.compared)
  return readRange(sides.target, place.target, (records) => {
    for (const record of records) {
      hasher.hash(record)
      use(record, hasher.words, false)
    }
    return true
  })
}

const short = (bytes: Buffer | null): string | null =>
  bytes === null ? null : createHash("sha256").update(bytes).digest("base64").slice(0, 22)

const headersOf = (record: Rec): string => {
  if (record.headers.length === 0) return ""
  const all = createHash("sha256")
  for (const { key, value } of record.headers) {
    all.update(`${key.length}:${value?.length ?? -1}:`).update(key).update(value ?? "")
  }
  return all.digest("base64").slice(0, 22)
}

const partsOf = (record: Rec, timestamps: boolean): Parts => ({
  key: short(record.key),
  value: short(record.value),
  headers: headersOf(record),
  timestamp: timestamps ? record.timestamp : 0n
})

/** As many of the differing leaves as fit into memory. */
const chosen = (source: Sums, target: Sums): { readonly leaves: Uint8Array; readonly partial: boolean } => {
  const leaves = new Uint8Array(LEAVES)
  let room = MAX_CANDIDATES
  let partial = false
  for (const leaf of source.differing(target)) {
    const size = source.countOf(leaf) + target.countOf(leaf)
    if (size > room) partial = true
    else {
      room -= size
      leaves[leaf] = 1
    }
  }
  return { leaves, partial }
}

/** `buckets`: those of the first pass that differ. */
export const pinpoint = (
  sides: Sides,
  place: Place,
  buckets: ReadonlyArray<number>
): Effect.Effect<Pinpointed, WireError> =>
  Effect.gen(function*() {
    const wanted = new Set(buckets)
    sides.onMore(2 * (lengthOf(place.parts) + lengthOf([place.target])))
    const ours = new Sums(LEAVES)
    const theirs = new Sums(LEAVES)
    const into = (sums: Sums): Each => (_, words) => {
      if (wanted.has(bucketOf(words))) sums.add(leafOf(words), words)
    }
    yield* eachExpected(sides, place, false, into(ours))
    yield* eachThere(sides, place, into(theirs))
    const { leaves, partial } = chosen(ours, theirs)
    // Records behind the bounds of the comparison were not counted.
    let overflow = false
    const source: Array<Candidate> = []
    const target: Array<Candidate> = []
    const collect = (list: Array<Candidate>): Each => (record, words, optional) => {
      if (!wanted.has(bucketOf(words)) || leaves[leafOf(words)] === 0) return
      if (list.length >= MAX_CANDIDATES) {
        overflow = true
        return
      }
      const parts = partsOf(record, place.target.compared.timestamps)
      list.push({ hash: hashName(words), offset: record.offset, parts, optional })
    }
    yield* eachExpected(sides, place, true, collect(source))
    yield* eachThere(sides, place, collect(target))
    return { ...matchRecords(source, target), partial: partial || overflow }
  })

/** For compacted topics: the last offset of each of these keys (digests as in Parts), on one side. */
export const lastOfKeys = (
  sides: Sides,
  place: Place,
  side: "source" | "target",
  keys: ReadonlySet<string>
): Effect.Effect<ReadonlyMap<string, number>, WireError> =>
  Effect.gen(function*() {
    const last = new Map<string, number>()
    const see: Each = (record) => {
      const key = short(record.key)
      if (key !== null && keys.has(key)) last.set(key, Math.max(record.offset, last.get(key) ?? -1))
    }
    if (side === "source") yield* eachExpected(sides, place, true, see)
    else yield* eachThere(sides, place, see)
    return last
  })
