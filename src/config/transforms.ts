/**
 * Transforms and predicates in Connect's style: `transforms: [a]` with `transforms.a.type` and its parameters, and
 * the same for predicates. Read here into a list; src/mirror/transforms makes them.
 *
 * Connect's class names are taken for those that exist here. A parameter that a type does not have is an error.
 */
import { resolve } from "node:path"
import { nearest } from "./nearest.ts"
import { parsePattern } from "./pattern.ts"
import { type Problem, problem, shown } from "./problems.ts"
import type { Tree, TreeMap } from "./tree.ts"
import type { PredicateSpec, TransformSpec } from "./types.ts"

interface ParamInfo {
  readonly required: boolean
  readonly allowed: string
  readonly pattern?: true
}
export type TypeTable = Readonly<Record<string, Readonly<Record<string, ParamInfo>>>>

const must = (allowed: string): ParamInfo => ({ required: true, allowed })
const may = (allowed: string): ParamInfo => ({ required: false, allowed })

export const TRANSFORM_TYPES: TypeTable = {
  InsertHeader: { header: must("a header key"), "value.literal": must("the header's value") },
  DropHeaders: { headers: must("header keys, separated by commas") },
  RenameHeader: {
    renames: may("old:new pairs, separated by commas"),
    from: may("a header key"),
    to: may("a header key")
  },
  RegexRouter: {
    regex: { ...must("a regular expression"), pattern: true },
    replacement: must("the new topic name, $1 for the first group")
  },
  Filter: {},
  module: { path: must("the path of a JavaScript module that exports transform(record)") }
}
export const PREDICATE_TYPES: TypeTable = {
  TopicNameMatches: { pattern: { ...must("a regular expression"), pattern: true } },
  HasHeaderKey: { name: must("a header key") },
  RecordIsTombstone: {}
}

/** What the keys of a flow's map say of one place, with how numbers were written. */
export interface FlowKeys {
  readonly raw: TreeMap
  readonly pathOf: (key: string) => string
  readonly textOf: (key: string) => string | null
}

interface Block {
  readonly name: string
  readonly type: string | null
  readonly params: ReadonlyMap<string, string>
}

const COMMON = ["type", "predicate", "negate"]

/** "org.apache.kafka.connect.transforms.InsertHeader" and "InsertHeader" are the same; $Key and $Value do not matter for whole records. */
const shortType = (type: string): string => {
  const found = /^org\.apache\.kafka\.connect\.transforms\.(?:predicates\.)?(\w+)(?:\$(?:Key|Value))?$/.exec(type)
  return found?.[1] ?? type
}

const listOf = (keys: FlowKeys, key: string, problems: Array<Problem>): ReadonlyArray<string> => {
  const value = keys.raw[key]
  if (value === undefined) return []
  const items: ReadonlyArray<Tree> = typeof value === "string"
    ? value.split(",").map((item) => item.trim()).filter((item) => item !== "")
    : Array.isArray(value)
    ? value
    : []
  const names = items.filter((item) => typeof item === "string" && item !== "") as ReadonlyArray<string>
  const wrong = (typeof value !== "string" && !Array.isArray(value)) || names.length !== items.length
  if (wrong) {
    problems.push(
      problem(keys.pathOf(key), `is ${shown(value, false)}`, {
        allowed: `a list of names; each has its ${key}.NAME.type`
      })
    )
  }
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) problems.push(problem(keys.pathOf(key), `names "${twice}" twice`))
  return [...new Set(names)]
}

const typeOf = (prefix: string, keys: FlowKeys, table: TypeTable, problems: Array<Problem>): string | null => {
  const key = `${prefix}type`
  const value = keys.raw[key]
  const allowed = Object.keys(table).join(", ")
  if (value === undefined) {
    problems.push(problem(keys.pathOf(key), "is missing", { allowed }))
    return null
  }
  const type = typeof value === "string" ? shortType(value.trim()) : null
  if (type !== null && Object.hasOwn(table, type)) return type
  const java = type?.includes(".") === true ? "; Java classes cannot run here" : ""
  problems.push(
    problem(keys.pathOf(key), `is ${shown(value, false)}${java}`, {
      allowed,
      nearest: type === null ? null : nearest(type.slice(type.lastIndexOf(".") + 1), Object.keys(table))
    })
  )
  return null
}

const readParam = (key: string, info: ParamInfo, keys: FlowKeys, problems: Array<Problem>): string | null => {
  const text = keys.textOf(key)
  if (text === null || text === "") {
    problems.push(problem(keys.pathOf(key), `is ${shown(keys.raw[key], false)}`, { allowed: info.allowed }))
    return null
  }
  if (info.pattern !== true) return text
  const parsed = parsePattern(text)
  if (parsed.ok) return parsed.source
  problems.push(problem(keys.pathOf(key), `${shown(text, false)} ${parsed.why}`, { allowed: info.allowed }))
  return null
}

const readBlock = (
  kind: "transforms" | "predicates",
  name: string,
  keys: FlowKeys,
  table: TypeTable,
  problems: Array<Problem>
): Block => {
  const prefix = `${kind}.${name}.`
  const type = typeOf(prefix, keys, table, problems)
  const params = new Map<string, string>()
  const infos = type === null ? null : table[type] as Readonly<Record<string, ParamInfo>>
  const common = kind === "transforms" ? COMMON : ["type"]
  for (const key of Object.keys(keys.raw)) {
    if (!key.startsWith(prefix)) continue
    const param = key.slice(prefix.length)
    if (common.includes(param) || infos === null) continue
    const info = Object.hasOwn(infos, param) ? infos[param] as ParamInfo : undefined
    if (info === undefined) {
      const known = [...Object.keys(infos), ...common]
      problems.push(
        problem(keys.pathOf(key), `is not a parameter of ${type}`, {
          allowed: Object.keys(infos).join(", ") || "none",
          nearest: nearest(param, known)
        })
      )
      continue
    }
    const value = readParam(key, info, keys, problems)
    if (value !== null) params.set(param, value)
  }
  for (const [param, info] of Object.entries(infos ?? {})) {
    if (info.required && !Object.hasOwn(keys.raw, `${prefix}${param}`)) {
      problems.push(problem(keys.pathOf(`${prefix}${param}`), "is missing", { allowed: info.allowed }))
    }
  }
  return { name, type, params }
}

/** Keys of blocks that no list names: a transform that silently does not run is worse than an error. */
const strays = (
  kind: "transforms" | "predicates",
  names: ReadonlyArray<string>,
  keys: FlowKeys
): ReadonlyArray<Problem> =>
  Object.keys(keys.raw)
    .filter((key) => key.startsWith(`${kind}.`) && !names.some((name) => key.startsWith(`${kind}.${name}.`)))
    .map((key) =>
      problem(keys.pathOf(key), `belongs to nothing that ${kind} names`, {
        allowed: names.join(", ") || null || undefined,
        nearest: nearest(key.slice(kind.length + 1).split(".")[0] ?? "", names)
      })
    )

const booleanOf = (key: string, keys: FlowKeys, problems: Array<Problem>): boolean => {
  const text = keys.textOf(key)?.toLowerCase()
  if (keys.raw[key] === undefined || text === "false") return false
  if (text !== "true") {
    problems.push(problem(keys.pathOf(key), `is ${shown(keys.raw[key], false)}`, { allowed: "true, false" }))
  }
  return text === "true"
}

const checkTransform = (
  spec: TransformSpec,
  keys: FlowKeys,
  hasPredicateKey: boolean,
  problems: Array<Problem>
): void => {
  const prefix = `transforms.${spec.name}.`
  const pairs = spec.params.has("from") === spec.params.has("to")
  if (spec.type === "RenameHeader" && (!pairs || (!spec.params.has("from") && !spec.params.has("renames")))) {
    problems.push(
      problem(keys.pathOf(`${prefix}renames`), "is missing", {
        allowed: "old:new pairs, separated by commas (or the parameters from and to)"
      })
    )
  }
  if (spec.type === "Filter" && !hasPredicateKey) {
    problems.push(problem(keys.pathOf(`${prefix}predicate`), "is missing: a Filter without one drops every record"))
  }
  if (!hasPredicateKey && keys.raw[`${prefix}negate`] !== undefined) {
    problems.push(problem(keys.pathOf(`${prefix}negate`), "has no predicate to negate"))
  }
}

/** The flow's transforms in their order. `folder` is what a module's relative path is relative to. */
export const readTransforms = (
  keys: FlowKeys,
  folder: string
): { readonly transforms: ReadonlyArray<TransformSpec>; readonly problems: ReadonlyArray<Problem> } => {
  const problems: Array<Problem> = []
  const predicateNames = listOf(keys, "predicates", problems)
  const names = listOf(keys, "transforms", problems)
  problems.push(...strays("predicates", predicateNames, keys), ...strays("transforms", names, keys))
  const predicates = new Map<string, PredicateSpec>()
  for (const name of predicateNames) {
    const block = readBlock("predicates", name, keys, PREDICATE_TYPES, problems)
    if (block.type !== null) predicates.set(name, { name, type: block.type, params: block.params })
  }
  const transforms: Array<TransformSpec> = []
  for (const name of names) {
    const block = readBlock("transforms", name, keys, TRANSFORM_TYPES, problems)
    const predicateKey = `transforms.${name}.predicate`
    const wanted = keys.raw[predicateKey]
    const predicate = typeof wanted === "string" ? predicates.get(wanted) ?? null : null
    if (wanted !== undefined && (typeof wanted !== "string" || !predicateNames.includes(wanted))) {
      problems.push(
        problem(keys.pathOf(predicateKey), `is ${shown(wanted, false)}`, {
          allowed: predicateNames.join(", ") || "a name in predicates",
          nearest: typeof wanted === "string" ? nearest(wanted, predicateNames) : null
        })
      )
    }
    const negate = booleanOf(`transforms.${name}.negate`, keys, problems)
    if (block.type === null) continue
    const path = block.params.get("path")
    const params = block.type === "module" && path !== undefined
      ? new Map([["path", resolve(folder, path)]])
      : block.params
    const spec: TransformSpec = { name, type: block.type, params, predicate, negate }
    checkTransform(spec, keys, wanted !== undefined, problems)
    transforms.push(spec)
  }
  return { transforms, problems }
}
