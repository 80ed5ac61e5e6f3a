/**
 * The transforms that come with onceover: those of Connect that a mirror's users set. Each takes the parameters
 * that Connect's has, in Connect's names, so a block of MirrorMaker 2 configuration works as it is.
 */
import type { Header, MirrorRecord, Transform } from "./transform.ts"

/** A parameter that is missing or wrong: what, and what is allowed. */
export interface ParameterProblem {
  readonly parameter: string
  readonly value: string | null
  readonly allowed: string
}
export type Built<T> = { readonly ok: true; readonly value: T } | {
  readonly ok: false
  readonly problem: ParameterProblem
}
export type Parameters = ReadonlyMap<string, string>

const bad = (
  parameter: string,
  value: string | undefined,
  allowed: string
): { readonly ok: false; readonly problem: ParameterProblem } => ({
  ok: false,
  problem: { parameter, value: value ?? null, allowed }
})
const built = <T>(value: T): Built<T> => ({ ok: true, value })

const withHeaders = (record: MirrorRecord, headers: ReadonlyArray<Header>): MirrorRecord => ({ ...record, headers })

/** Connect's InsertHeader: adds one header with a literal value; an existing header of that key stays. */
const insertHeader = (name: string, parameters: Parameters): Built<Transform> => {
  const header = parameters.get("header")
  const literal = parameters.get("value.literal")
  if (header === undefined || header === "") return bad("header", header, "a header key")
  if (literal === undefined) return bad("value.literal", literal, "the header's value")
  const added: Header = { key: Buffer.from(header), value: Buffer.from(literal) }
  return built({ name, apply: (record) => withHeaders(record, [...record.headers, added]) })
}

const list = (text: string | undefined): ReadonlyArray<string> =>
  (text ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "")

/** Connect's DropHeaders: removes every header with one of the keys. */
const dropHeaders = (name: string, parameters: Parameters): Built<Transform> => {
  const keys = list(parameters.get("headers")).map((key) => Buffer.from(key))
  if (keys.length === 0) return bad("headers", parameters.get("headers"), "header keys, separated by commas")
  return built({
    name,
    apply: (record) => withHeaders(record, record.headers.filter((h) => !keys.some((key) => key.equals(h.key))))
  })
}

/** Renames every header `from` to `to`, in place: the order of headers stays. `headers` pairs as "old:new,old2:new2" are taken too. */
const renameHeader = (name: string, parameters: Parameters): Built<Transform> => {
  const pairs = list(parameters.get("renames")).map((pair) => pair.split(":"))
  const from = parameters.get("from")
  const to = parameters.get("to")
  if (from !== undefined && to !== undefined) pairs.push([from, to])
  if (pairs.length === 0 || pairs.some((pair) => pair.length !== 2 || pair.includes(""))) {
    return bad(
      "renames",
      parameters.get("renames"),
      "old:new pairs, separated by commas (or the parameters from and to)"
    )
  }
  const renames = pairs.map(([old, now]) => ({ old: Buffer.from(old as string), now: Buffer.from(now as string) }))
  return built({
    name,
    apply: (record) =>
      withHeaders(
        record,
        record.headers.map((h) => {
          const rename = renames.find((r) => r.old.equals(h.key))
          return rename === undefined ? h : { key: rename.now, value: h.value }
        })
      )
  })
}

/** Connect's RegexRouter: the topic is renamed when the whole name matches. `$1` and `${name}` as in Java. */
const regexRouter = (name: string, parameters: Parameters): Built<Transform> => {
  const pattern = parameters.get("regex")
  const replacement = parameters.get("replacement")
  if (pattern === undefined) return bad("regex", pattern, "a regular expression")
  if (replacement === undefined) {
    return bad("replacement", replacement, "the new topic name, $1 standing for the first group")
  }
  let regex: RegExp
  try {
    regex = new RegExp(`^(?:${pattern})$`)
  } catch {
    return bad("regex", pattern, "a regular expression")
  }
  const template = replacement.replace(/\$\{([A-Za-z][A-Za-z0-9]*)\}/g, "$<$1>")
  // Record after record has the same topic: the rename is worked out once for each.
  const renamed = new Map<string, string>()
  return built({
    name,
    apply: (record) => {
      let topic = renamed.get(record.topic)
      if (topic === undefined) {
        topic = record.topic.replace(regex, template)
        renamed.set(record.topic, topic)
      }
      return topic === record.topic ? record : { ...record, topic }
    }
  })
}

/** Connect's Filter: drops each record; with a predicate (chain of the flow) only those it holds for. */
const filter = (name: string): Built<Transform> => built({ name, apply: () => null })

const makers: Readonly<Record<string, (name: string, parameters: Parameters) => Built<Transform>>> = {
  InsertHeader: insertHeader,
  DropHeaders: dropHeaders,
  RenameHeader: renameHeader,
  RegexRouter: regexRouter,
  Filter: filter
}

export const builtinTypes: ReadonlyArray<string> = Object.keys(makers)

/** The last part of a Connect class name: "org.apache.kafka.connect.transforms.RegexRouter" and "RegexRouter" are the same. */
export const shortType = (type: string): string => type.slice(type.lastIndexOf(".") + 1).replace(/\$(?:Key|Value)$/, "")

/** Builds a built-in transform, or says which parameter is wrong; null when no built-in has that type. */
export const makeBuiltin = (name: string, type: string, parameters: Parameters): Built<Transform> | null => {
  const make = makers[shortType(type)]
  return make === undefined ? null : make(name, parameters)
}
