/**
 * Reads a map of the file by a table of settings: the value by Effect's Schema, the errors in our words.
 *
 * Guarantee: every wrong, missing or unknown key of the map is a problem, all at once; what could be read is in
 * `partial` even so, which lets the checks between settings report in the same run.
 */
import { Result, Schema, type SchemaIssue } from "effect"
import { nearest } from "./nearest.ts"
import { type Problem, problem, shown } from "./problems.ts"
import type { Setting, SettingInfo, Settings, StructOf } from "./setting.ts"
import { structOf } from "./setting.ts"
import { type Path, renderPath, type Tree, type TreeMap } from "./tree.ts"

export type Decoded<F extends Settings> = StructOf<F>["Type"]

export interface DecodedMap<F extends Settings> {
  /** null when there is any problem. */
  readonly value: Decoded<F> | null
  readonly partial: Partial<Decoded<F>>
  readonly problems: ReadonlyArray<Problem>
}

interface Leaf {
  readonly path: Path
  readonly kind: "missing" | "wrong"
  /** A filter's own words, if it has any. */
  readonly message: string | null
}

/** The issues at the ends of the tree. Below a union (AnyOf) there is nothing that helps: the union is the value. */
const leaves = (issue: SchemaIssue.Issue, path: Path): ReadonlyArray<Leaf> => {
  switch (issue._tag) {
    case "Pointer":
      return leaves(issue.issue, [...path, ...issue.path.map((part) => typeof part === "number" ? part : String(part))])
    case "Composite":
      return issue.issues.flatMap((inner) => leaves(inner, path))
    case "Filter":
    case "Encoding":
      return leaves(issue.issue, path)
    case "MissingKey":
      return [{ path, kind: "missing", message: null }]
    case "InvalidValue":
      return [{
        path,
        kind: "wrong",
        message: typeof issue.annotations?.message === "string" ? issue.annotations.message : null
      }]
    default:
      return [{ path, kind: "wrong", message: null }]
  }
}

const valueAt = (tree: Tree | undefined, path: Path): Tree | undefined =>
  path.reduce<Tree | undefined>(
    (at, part) =>
      typeof at === "object" && at !== null ? (at as Readonly<Record<string | number, Tree>>)[part] : undefined,
    tree
  )

const wrong = (leaf: Leaf, raw: TreeMap, info: SettingInfo, at: Path): Problem => {
  const path = renderPath([...at, ...leaf.path])
  if (leaf.kind === "missing") return problem(path, "is missing", { allowed: info.allowed })
  const value = valueAt(raw, leaf.path)
  if (leaf.message !== null) {
    return problem(path, typeof value === "string" ? `${shown(value, false)} ${leaf.message}` : leaf.message, {
      allowed: info.allowed
    })
  }
  const guess = typeof value === "string" && info.words.length > 0 ? nearest(value, info.words) : null
  return problem(path, `is ${shown(value, false)}`, { allowed: info.allowed, nearest: guess })
}

/** Compiled once for each table and key. */
const cache = new WeakMap<Settings, (raw: unknown) => Result.Result<unknown, Schema.SchemaError>>()
const decoderOf = (fields: Settings): (raw: unknown) => Result.Result<unknown, Schema.SchemaError> => {
  const known = cache.get(fields)
  if (known !== undefined) return known
  const schema = structOf(fields) as unknown as Schema.ConstraintDecoder<unknown>
  const decode = Schema.decodeUnknownResult(schema)
  const made = (raw: unknown) => decode(raw, { errors: "all", onExcessProperty: "ignore" })
  cache.set(fields, made)
  return made
}

const partialOf = (fields: Settings, raw: TreeMap, bad: ReadonlySet<string>): Record<string, unknown> => {
  const good = Object.fromEntries(Object.entries(fields).filter(([key]) => !bad.has(key)))
  const result = decoderOf(good)(raw)
  return Result.isSuccess(result) ? result.success as Record<string, unknown> : {}
}

/**
 * Decodes the keys of `fields`; every other key of `raw` is handed to `unknown`, which says what is wrong with it
 * (null: nothing, it is read elsewhere).
 */
export const decodeMap = <F extends Settings>(
  fields: F,
  raw: TreeMap,
  at: Path,
  unknown: (key: string, value: Tree) => Problem | null
): DecodedMap<F> => {
  const strange = Object.entries(raw).filter(([key]) => !Object.hasOwn(fields, key)).map(([key, value]) =>
    unknown(key, value)
  ).filter((p) => p !== null)
  const result = decoderOf(fields)(raw)
  if (Result.isSuccess(result)) {
    const value = result.success as Decoded<F>
    return { value: strange.length === 0 ? value : null, partial: value, problems: strange }
  }
  const found = leaves(result.failure.issue, [])
  const problems = found.map((leaf) => wrong(leaf, raw, (fields[String(leaf.path[0])] as Setting<Schema.Top>).info, at))
  const bad = new Set(found.map((leaf) => String(leaf.path[0])))
  return {
    value: null,
    partial: partialOf(fields, raw, bad) as Partial<Decoded<F>>,
    problems: [...strange, ...problems]
  }
}

/** For a key that is not in a table: the nearest name, or the dotted key that a nested map was meant to be. */
export const unknownKey = (path: string, key: string, value: Tree, known: ReadonlyArray<string>): Problem => {
  const dotted = dottedKeys(key, value).find((name) => known.includes(name))
  if (dotted !== undefined) return problem(path, `is a map; write it as one dotted key: ${dotted}`)
  return problem(path, "is not a setting", { nearest: nearest(key, known) })
}

/** { replication: { policy: { separator: _ } } } as "replication.policy", "replication.policy.separator". */
export const dottedKeys = (key: string, value: Tree): ReadonlyArray<string> => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return []
  return Object.entries(value).flatMap((
    [below, inner]
  ) => [`${key}.${below}`, ...dottedKeys(`${key}.${below}`, inner as Tree)])
}
