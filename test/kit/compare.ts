/** What a mirror did to the records, in numbers and examples: lost, doubled, altered, misplaced, out of order, foreign. */
import { type AuditRecord, identityOf } from "./auditor.ts"

export interface Comparison {
  /** Records of the source. */
  readonly source: number
  /** Records of the target. */
  readonly target: number
  /** Identities of the source that the target lacks. */
  readonly lost: ReadonlyArray<string>
  /** Identities that the target has more often than the source, once per surplus record. */
  readonly doubled: ReadonlyArray<string>
  /** Identities whose key, value, headers or timestamp are not the source's, with what differs. */
  readonly altered: ReadonlyArray<string>
  /** Identities that are in another topic or partition than they should be. */
  readonly misplaced: ReadonlyArray<string>
  /** Identities whose first appearance on the target comes after that of a later record of the same partition. */
  readonly outOfOrder: ReadonlyArray<string>
  /** Identities of the target that the source does not show (aborted there, or never there). */
  readonly foreign: ReadonlyArray<string>
}

export interface CompareOptions {
  /** The target topic of a source topic. Default the same name. */
  readonly topic?: (source: string) => string
  readonly identify?: (record: AuditRecord) => string
  /** Timestamps differ by design (LogAppendTime on the target). Default false. */
  readonly ignoreTimestamps?: boolean
  /** Headers that the mirror may add. */
  readonly ignoreHeaders?: ReadonlyArray<string>
}

const same = (a: Buffer | null, b: Buffer | null): boolean => a === null || b === null ? a === b : a.equals(b)

const differences = (a: AuditRecord, b: AuditRecord, options: CompareOptions): ReadonlyArray<string> => {
  const ignored = new Set(options.ignoreHeaders)
  const headers = (record: AuditRecord) => record.headers.filter(([name]) => !ignored.has(name))
  const ours = headers(a)
  const theirs = headers(b)
  const sameHeaders = ours.length === theirs.length &&
    ours.every(([name, value], i) => theirs[i]?.[0] === name && theirs[i][1].equals(value))
  return [
    ...(same(a.key, b.key) ? [] : ["key"]),
    ...(same(a.value, b.value) ? [] : ["value"]),
    ...(sameHeaders ? [] : ["headers"]),
    ...(options.ignoreTimestamps === true || a.timestamp === b.timestamp ? [] : ["timestamp"])
  ]
}

const grouped = <K>(
  records: ReadonlyArray<AuditRecord>,
  by: (record: AuditRecord) => K
): ReadonlyMap<K, ReadonlyArray<AuditRecord>> => {
  const groups = new Map<K, Array<AuditRecord>>()
  for (const record of records) {
    const key = by(record)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [record])
    else group.push(record)
  }
  return groups
}

const place = (topic: string, partition: number): string => `${topic}-${partition}`

const disorder = (
  source: ReadonlyArray<AuditRecord>,
  target: ReadonlyArray<AuditRecord>,
  identify: (record: AuditRecord) => string
): ReadonlyArray<string> => {
  const positions = new Map<string, number>()
  const byOffset = (records: ReadonlyArray<AuditRecord>) => records.toSorted((a, b) => a.offset - b.offset)
  byOffset(source).forEach((record, i) => {
    const id = identify(record)
    if (!positions.has(id)) positions.set(id, i)
  })
  const seen = new Set<string>()
  const out: Array<string> = []
  let highest = -1
  for (const record of byOffset(target)) {
    const id = identify(record)
    const position = positions.get(id)
    if (position === undefined || seen.has(id)) continue
    seen.add(id)
    if (position < highest) out.push(id)
    highest = Math.max(highest, position)
  }
  return out
}

export const compare = (
  source: ReadonlyArray<AuditRecord>,
  target: ReadonlyArray<AuditRecord>,
  options: CompareOptions = {}
): Comparison => {
  const identify = options.identify ?? identityOf
  const topicOf = options.topic ?? ((name: string) => name)
  const wanted = grouped(source, identify)
  const got = grouped(target, identify)
  const lost: Array<string> = []
  const doubled: Array<string> = []
  const altered: Array<string> = []
  const misplaced: Array<string> = []
  for (const [id, originals] of wanted) {
    const copies = got.get(id) ?? []
    for (let i = copies.length; i < originals.length; i++) lost.push(id)
    for (let i = originals.length; i < copies.length; i++) doubled.push(id)
    for (const copy of copies) {
      const nearest = originals.map((original) =>
        differences(original, copy, options)
      ).toSorted((a, b) => a.length - b.length)[0]
      if (nearest !== undefined && nearest.length > 0) altered.push(`${id} (${nearest.join(", ")})`)
      if (!originals.some((o) => topicOf(o.topic) === copy.topic && o.partition === copy.partition)) misplaced.push(id)
    }
  }
  const targetByPlace = grouped(target, (record) => place(record.topic, record.partition))
  const outOfOrder = [...grouped(source, (record) => place(topicOf(record.topic), record.partition))]
    .flatMap(([where, records]) => disorder(records, targetByPlace.get(where) ?? [], identify))
  const foreign = [...got].flatMap(([id, records]) => wanted.has(id) ? [] : records.map(() => id))
  return { source: source.length, target: target.length, lost, doubled, altered, misplaced, outOfOrder, foreign }
}

/** One line for a failed assertion: the counts and a few examples of each. */
export const describeComparison = (c: Comparison): string => {
  const part = (name: string, ids: ReadonlyArray<string>) =>
    ids.length === 0 ? [] : [`${name} ${ids.length} (${ids.slice(0, 5).join(", ")}${ids.length > 5 ? ", ..." : ""})`]
  const { altered, doubled, foreign, lost, misplaced, outOfOrder } = c
  return [
    `source ${c.source}, target ${c.target}`,
    ...part("lost", lost),
    ...part("doubled", doubled),
    ...part("altered", altered),
    ...part("misplaced", misplaced),
    ...part("out of order", outOfOrder),
    ...part("foreign", foreign)
  ].join("; ")
}
