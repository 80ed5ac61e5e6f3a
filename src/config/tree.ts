/**
 * YAML (and JSON, which YAML contains) as a plain tree that remembers where each value stood and how it was written.
 *
 * Guarantees: a syntax error or a duplicate key is one sentence with line and column; the text of a number is kept,
 * because a password written 0123 must not become 123 and YAML parsers round what is above 2^53; input that expands
 * without end through aliases is refused.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Pair, parseDocument, type YAMLMap } from "yaml"
import { type Problem, problem } from "./problems.ts"

export type Tree = string | number | bigint | boolean | null | ReadonlyArray<Tree> | TreeMap
export interface TreeMap {
  readonly [key: string]: Tree
}
export type Path = ReadonlyArray<string | number>

export interface SourceTree {
  readonly root: Tree
  /** 1-based line of a rendered path ("flows[0].topics"), or of the nearest thing around it; null for neither. */
  readonly line: (path: string) => number | null
  /** How the number or the boolean at a rendered path was written, else null. */
  readonly written: (path: string) => string | null
}

export const isTreeMap = (tree: Tree | undefined): tree is TreeMap =>
  typeof tree === "object" && tree !== null && !Array.isArray(tree)

/** ["flows", 0, "group.id"] as "flows[0].group.id". */
export const renderPath = (path: Path): string =>
  path.reduce<string>(
    (text, part) => typeof part === "number" ? `${text}[${part}]` : text === "" ? part : `${text}.${part}`,
    ""
  )

const MAX_NODES = 100_000
const MAX_DEPTH = 50

/** What the walk gathers; thrown by nobody, read at the end. */
interface Walk {
  readonly lines: Map<string, number>
  readonly texts: Map<string, string>
  readonly problems: Array<Problem>
  readonly lineOf: (offset: number) => number
  readonly resolve: (node: unknown) => unknown
  readonly syntaxAt: (offset: number, words: string) => Problem
  nodes: number
}

const walkScalar = (node: { readonly value: unknown; readonly source?: string }, path: Path, walk: Walk): Tree => {
  const value = node.value
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") {
    walk.texts.set(renderPath(path), node.source ?? String(value))
    if (typeof value === "bigint" && Number.isSafeInteger(Number(value))) return Number(value)
    return value
  }
  return typeof value === "string" || value === null ? value : String(value)
}

const keyText = (pair: Pair<unknown, unknown>): string => {
  const key = pair.key
  if (!isScalar(key)) return String(key)
  return typeof key.value === "string" ? key.value : key.source ?? String(key.value)
}

/** `<<: *base`: what the map does not say itself comes from the merged one. */
const mergedEntries = (value: unknown, path: Path, walk: Walk): ReadonlyArray<readonly [string, Tree]> => {
  const node = walk.resolve(value)
  const maps = isSeq(node) ? node.items.map((item) => walk.resolve(item)) : [node]
  return maps.flatMap((map) => isMap(map) ? Object.entries(walkMap(map, path, walk)) : [])
}

const walkMap = (map: YAMLMap<unknown, unknown>, path: Path, walk: Walk): TreeMap => {
  const own: Array<readonly [string, Tree]> = []
  const merged: Array<readonly [string, Tree]> = []
  for (const pair of map.items) {
    const key = keyText(pair)
    if (key === "<<") {
      merged.push(...mergedEntries(pair.value, path, walk))
      continue
    }
    const at = [...path, key]
    const start = isScalar(pair.key) ? pair.key.range?.[0] : undefined
    if (start !== undefined) walk.lines.set(renderPath(at), walk.lineOf(start))
    own.push([key, walkNode(pair.value, at, walk)])
  }
  // fromEntries defines even "__proto__" as an own property.
  return Object.fromEntries([...merged.toReversed(), ...own])
}

const walkNode = (given: unknown, path: Path, walk: Walk): Tree => {
  const node = walk.resolve(given)
  if (node === undefined && isAlias(given)) {
    walk.problems.push(walk.syntaxAt(given.range?.[0] ?? 0, "Unresolved alias (no such anchor stands before it)"))
    return null
  }
  walk.nodes += 1
  if (walk.nodes > MAX_NODES || path.length > MAX_DEPTH) {
    if (walk.problems.length === 0) {
      walk.problems.push(problem("", "is too large or too deeply nested (aliases that contain themselves?)"))
    }
    return null
  }
  if (isMap(node)) return walkMap(node, path, walk)
  if (isSeq(node)) {
    return node.items.map((item, i) => {
      const start = (item as { readonly range?: readonly [number, ...ReadonlyArray<number>] | null }).range?.[0]
      if (start !== undefined) walk.lines.set(renderPath([...path, i]), walk.lineOf(start))
      return walkNode(item, [...path, i], walk)
    })
  }
  return isScalar(node) ? walkScalar(node as { readonly value: unknown; readonly source?: string }, path, walk) : null
}

/** The line of a path, or of the longest known path that it lies in. */
const lineAround = (lines: ReadonlyMap<string, number>, path: string): number | null => {
  let best = ""
  for (const known of lines.keys()) {
    if (
      known.length > best.length && (path === known || path.startsWith(`${known}.`) || path.startsWith(`${known}[`))
    ) best = known
  }
  return lines.get(best) ?? null
}

/** The parser's words without what it quotes: that may be a piece of a password. */
const syntaxWords = (message: string): string => {
  const first = message.split("\n")[0] ?? ""
  return first.replace(/^(Unresolved|Block scalar|Aliased|Expected|Invalid escape)(.*?)(: | sequence ).*$/, "$1$2$3")
    .replace(/[.:\s]+$/, "")
}

/** Reads the text; problems instead of a tree when it is not valid YAML. Never throws. */
export const readTree = (text: string): { readonly tree: SourceTree; readonly problems: ReadonlyArray<Problem> } => {
  const counter = new LineCounter()
  const document = parseDocument(text.replace(/^\uFEFF/, ""), {
    intAsBigInt: true,
    lineCounter: counter,
    prettyErrors: false,
    strict: true
  })
  const syntaxAt = (offset: number, words: string): Problem => {
    const { line, col } = counter.linePos(offset)
    return problem("", `is not valid YAML at line ${line}, column ${col}: ${words}`, { line })
  }
  const syntax = [...document.errors, ...document.warnings].map((error) =>
    syntaxAt(error.pos[0], syntaxWords(error.message))
  )
  const walk: Walk = {
    lines: new Map(),
    texts: new Map(),
    problems: [],
    nodes: 0,
    syntaxAt,
    lineOf: (offset) => counter.linePos(offset).line,
    resolve: (node) => isAlias(node) ? node.resolve(document) : node
  }
  const root = syntax.length > 0 ? null : walkNode(document.contents, [], walk)
  const tree: SourceTree = {
    root,
    line: (path) => lineAround(walk.lines, path),
    written: (path) => walk.texts.get(path) ?? null
  }
  return { tree, problems: [...syntax, ...walk.problems] }
}
