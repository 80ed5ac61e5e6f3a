/** Connect's predicates: which records a transform is for. */
import type { Built, Parameters } from "./builtin.ts"
import { shortType } from "./builtin.ts"
import type { MirrorRecord, Transform } from "./transform.ts"

export type Predicate = (record: MirrorRecord) => boolean

const makers: Readonly<Record<string, (parameters: Parameters) => Built<Predicate>>> = {
  TopicNameMatches: (parameters) => {
    const pattern = parameters.get("pattern")
    try {
      const regex = new RegExp(`^(?:${pattern ?? ""})$`)
      if (pattern !== undefined) return { ok: true, value: (record) => regex.test(record.topic) }
    } catch {
      // said below
    }
    return { ok: false, problem: { parameter: "pattern", value: pattern ?? null, allowed: "a regular expression" } }
  },
  HasHeaderKey: (parameters) => {
    const header = parameters.get("name")
    if (header === undefined || header === "") {
      return { ok: false, problem: { parameter: "name", value: header ?? null, allowed: "a header key" } }
    }
    const key = Buffer.from(header)
    return { ok: true, value: (record) => record.headers.some((h) => h.key.equals(key)) }
  },
  RecordIsTombstone: () => ({ ok: true, value: (record) => record.value === null })
}

export const predicateTypes: ReadonlyArray<string> = Object.keys(makers)

/** Builds a predicate, or says which parameter is wrong; null when there is none of that type. */
export const makePredicate = (type: string, parameters: Parameters): Built<Predicate> | null => {
  const make = makers[shortType(type)]
  return make === undefined ? null : make(parameters)
}

/** The transform for the records the predicate holds for (or, negated, does not hold for); the others pass. */
export const onlyWhere = (transform: Transform, predicate: Predicate, negate: boolean): Transform => ({
  name: transform.name,
  apply: (record) => (predicate(record) === negate ? record : transform.apply(record))
})
