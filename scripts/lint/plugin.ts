/**
 * The lint rules that are ours (oxlint loads this file by itself, see .oxlintrc.json):
 *
 * - onceover/layers: a folder of src imports only folders below it. The table is the architecture; whoever wants an
 *   arrow that is not in it changes the table and says why in docs/decisions.
 * - onceover/edges: time, chance, the console and the environment are touched at the edges only, so that everything
 *   else runs the same under virtual time.
 */
import { dirname, relative, resolve, sep } from "node:path"

const projectRoot = resolve(import.meta.dirname, "../..")

/** Folder of src -> folders it may import from. Itself and the files directly in src are always allowed. */
const below: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  // The library's entry, which nothing in src imports.
  ["", ["config", "mirror", "metrics"]],
  ["cli", ["config", "mirror", "metrics", "wire"]],
  ["mirror", ["config", "metrics", "txn", "share", "group", "wire"]],
  ["config", ["wire"]],
  ["metrics", ["wire"]],
  ["txn", ["wire"]],
  ["share", ["wire"]],
  ["group", ["wire"]],
  ["embedded", ["wire"]],
  ["wire", []]
])

interface Node {
  readonly type: string
  readonly [key: string]: unknown
}

interface Context {
  readonly filename: string
  readonly report: (problem: { readonly node: Node; readonly message: string }) => void
}

/** The folder of src that a file is in; "" directly in src; undefined outside of it. */
const folderOf = (file: string): string | undefined => {
  const parts = relative(projectRoot, file).split(sep)
  if (parts[0] !== "src") return undefined
  return parts.length > 2 ? parts[1] : ""
}

/** Why `from` may not import `to`, or undefined when it may. */
const upward = (from: string, to: string): string | undefined => {
  const here = folderOf(from)
  if (here === undefined) return undefined
  const there = folderOf(to)
  if (there === undefined) return `src may not import ${relative(projectRoot, to)}, which is outside of it.`
  if (there === here || there === "") return undefined
  const allowed = below.get(here)
  if (allowed === undefined) return `src/${here} has no place among the layers: give it one in scripts/lint/plugin.ts.`
  if (allowed.includes(there)) return undefined
  const may = allowed.length === 0 ? "nothing else in src" : allowed.map((name) => `src/${name}`).join(", ")
  return `src/${here} may not import src/${there}: imports go downward only, from here to ${may}.`
}

const layers = {
  create: (context: Context) => {
    const check = (node: Node) => {
      const source = (node["source"] as { readonly value?: unknown } | null)?.value
      if (typeof source !== "string" || !source.startsWith(".")) return
      const message = upward(context.filename, resolve(dirname(context.filename), source))
      if (message !== undefined) context.report({ node, message })
    }
    return {
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: check
    }
  }
}

// Maps: a plain object would know `toString` and `valueOf`, too, and functions may be named so.
const bannedMembers: ReadonlyMap<string, string> = new Map([
  ["Date.now", "take the time from Clock"],
  ["Math.random", "take chance from Random"],
  ["performance.now", "take the time from Clock"],
  ["process.env", "take it as an argument; src/cli reads the environment"]
])

const CONSOLE = "log with Effect.log"
const bannedNames: ReadonlyMap<string, string> = new Map([
  ["setTimeout", "wait with Effect.sleep"],
  ["setInterval", "repeat with a Schedule"],
  ["console", CONSOLE]
])

/** Files that stand at an edge: the socket's, that of tokens whose times are another machine's, and that of users' code. */
const edgeFiles = new Set(["src/wire/connection.ts", "src/wire/oauth.ts", "src/mirror/transforms/module.ts"])

const isEdge = (file: string): boolean => {
  const path = relative(projectRoot, file).split(sep).join("/")
  return !path.startsWith("src/") || path.startsWith("src/cli/") || edgeFiles.has(path)
}

const named = (node: unknown): string | undefined => {
  const { name, type } = node as { readonly type: string; readonly name?: string }
  return type === "Identifier" ? name : undefined
}

const edges = {
  create: (context: Context) => {
    if (isEdge(context.filename)) return {}
    const report = (node: Node, what: string, instead: string) =>
      context.report({ node, message: `${what} is for the edges only: ${instead}.` })
    return {
      MemberExpression: (node: Node) => {
        const object = named(node["object"])
        const what = `${object}.${named(node["property"])}`
        const member = bannedMembers.get(what)
        if (member !== undefined) return report(node, what, member)
        if (object === "console") report(node, "console", CONSOLE)
      },
      CallExpression: (node: Node) => {
        const name = named(node["callee"])
        const instead = name === undefined ? undefined : bannedNames.get(name)
        if (instead !== undefined) report(node, name as string, instead)
      },
      NewExpression: (node: Node) => {
        const now = named(node["callee"]) === "Date" && (node["arguments"] as ReadonlyArray<unknown>).length === 0
        if (now) report(node, "new Date()", "take the time from Clock")
      }
    }
  }
}

export default { meta: { name: "onceover" }, rules: { layers, edges } }
