/**
 * Pure: the records of both sides that are in question, to what happened to them. Records are the same when their hashes
 * are; what is left over on both sides and agrees in most of its parts is one record that was altered.
 *
 * Gotcha: of records with the same content nobody can say which one is missing or which one is the copy: the later one.
 */

/** Short digests of a record's parts, to tell what differs. */
export interface Parts {
  /** null: there is no key. */
  readonly key: string | null
  readonly value: string | null
  /** "" without headers. */
  readonly headers: string
  readonly timestamp: bigint
}

export interface Candidate {
  readonly hash: string
  readonly offset: number
  readonly parts: Parts
  /** Source only: it may be on the target or not (behind the bounds of the comparison). */
  readonly optional: boolean
}

export interface Altered {
  readonly source: Candidate
  readonly target: Candidate
  readonly what: ReadonlyArray<"key" | "value" | "headers" | "timestamp">
}

export interface Matched {
  /** On the source only. */
  readonly lost: ReadonlyArray<Candidate>
  /** More often on the target than on the source: the surplus. */
  readonly doubled: ReadonlyArray<Candidate>
  readonly altered: ReadonlyArray<Altered>
  /** On the target only. */
  readonly foreign: ReadonlyArray<Candidate>
}

const byHash = (candidates: ReadonlyArray<Candidate>): Map<string, Array<Candidate>> => {
  const map = new Map<string, Array<Candidate>>()
  for (const candidate of candidates) {
    const list = map.get(candidate.hash)
    if (list === undefined) map.set(candidate.hash, [candidate])
    else list.push(candidate)
  }
  return map
}

/** What two records must have in common to be one: the more, the earlier they are tried. Nothing alone is enough. */
const ALIKE: ReadonlyArray<(parts: Parts) => string | null> = [
  ({ headers, key, value }) => `${key} ${value} ${headers}`,
  ({ key, timestamp, value }) => `${key} ${value} ${timestamp}`,
  ({ headers, key, timestamp }) => `${key} ${headers} ${timestamp}`,
  ({ headers, timestamp, value }) => `${value} ${headers} ${timestamp}`,
  ({ key, value }) => key === null || value === null ? null : `${key} ${value}`,
  ({ key, timestamp }) => key === null ? null : `${key} ${timestamp}`,
  ({ timestamp, value }) => value === null ? null : `${value} ${timestamp}`,
  ({ headers, key }) => key === null || headers === "" ? null : `${key} ${headers}`,
  ({ headers, timestamp }) => headers === "" ? null : `${headers} ${timestamp}`
]

const differing = (a: Parts, b: Parts): Altered["what"] => {
  const what: Array<Altered["what"][number]> = []
  if (a.key !== b.key) what.push("key")
  if (a.value !== b.value) what.push("value")
  if (a.headers !== b.headers) what.push("headers")
  if (a.timestamp !== b.timestamp) what.push("timestamp")
  return what
}

const pairAltered = (
  missing: ReadonlyArray<Candidate>,
  extra: ReadonlyArray<Candidate>
): { readonly altered: ReadonlyArray<Altered>; readonly paired: ReadonlySet<Candidate> } => {
  const altered: Array<Altered> = []
  const paired = new Set<Candidate>()
  for (const alike of ALIKE) {
    const open = new Map<string, Array<Candidate>>()
    for (const candidate of missing) {
      const name = paired.has(candidate) ? null : alike(candidate.parts)
      if (name === null) continue
      const list = open.get(name)
      if (list === undefined) open.set(name, [candidate])
      else list.push(candidate)
    }
    // Both lists are in order: the first of one is the first of the other.
    const taken = new Map<string, number>()
    for (const target of extra) {
      const name = paired.has(target) ? null : alike(target.parts)
      const at = name === null ? 0 : taken.get(name) ?? 0
      const source = name === null ? undefined : open.get(name)?.[at]
      if (name === null || source === undefined) continue
      taken.set(name, at + 1)
      paired.add(source).add(target)
      altered.push({ source, target, what: differing(source.parts, target.parts) })
    }
  }
  return { altered, paired }
}

const inOrder = (list: ReadonlyArray<Candidate>): ReadonlyArray<Candidate> =>
  list.toSorted((a, b) => a.offset - b.offset)

export const matchRecords = (source: ReadonlyArray<Candidate>, target: ReadonlyArray<Candidate>): Matched => {
  const ours = byHash(source)
  const theirs = byHash(target)
  const lost: Array<Candidate> = []
  const doubled: Array<Candidate> = []
  const foreign: Array<Candidate> = []
  for (const [hash, list] of ours) {
    const there = theirs.get(hash)?.length ?? 0
    const required = inOrder(list.filter(({ optional }) => !optional))
    lost.push(...required.slice(there))
  }
  for (const [hash, list] of theirs) {
    const here = ours.get(hash)?.length ?? 0
    const surplus = inOrder(list).slice(here)
    if (here > 0) doubled.push(...surplus)
    else foreign.push(...surplus)
  }
  const { altered, paired } = pairAltered(inOrder(lost), inOrder(foreign))
  const left = (list: ReadonlyArray<Candidate>) => inOrder(list.filter((candidate) => !paired.has(candidate)))
  return {
    lost: left(lost),
    doubled: inOrder(doubled),
    altered: altered.toSorted((a, b) => a.source.offset - b.source.offset),
    foreign: left(foreign)
  }
}
