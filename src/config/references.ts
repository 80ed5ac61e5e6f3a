/**
 * `${env:NAME}` and `${file:PATH:KEY}` in values, as Kafka's configuration providers write them.
 *
 * Rules: the first colon ends the provider, the next one the path (Kafka's pattern), so a key may hold colons and a
 * path may not. A relative path is relative to the folder of the configuration file. What was put in is not looked
 * at again. `$${` stands for a plain `${`. `${` without a provider and a colon stays: transforms write `${name}`.
 * Unlike Kafka, what cannot be found is an error and never passes as literal text.
 */
import type { Problem } from "./problems.ts"
import { problem } from "./problems.ts"
import type { PropertiesFile } from "./properties.ts"
import { type Path, renderPath, type Tree } from "./tree.ts"

const REFERENCE = /\$?\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}/g

export type Environment = Readonly<Record<string, string | undefined>>
/** What a properties file holds, or why it cannot be read, in words. */
export type LoadedFile = { readonly ok: true; readonly file: PropertiesFile } | {
  readonly ok: false
  readonly why: string
}

export interface ReferenceSources {
  readonly env: Environment
  /** By the path as written. */
  readonly files: ReadonlyMap<string, LoadedFile>
}

const strings = (tree: Tree): ReadonlyArray<string> => {
  if (typeof tree === "string") return [tree]
  if (typeof tree !== "object" || tree === null) return []
  return Object.values(tree).flatMap(strings)
}

/** Paths of the properties files that a tree refers to, as written. */
export const referencedFiles = (tree: Tree): ReadonlySet<string> => {
  const paths = new Set<string>()
  for (const text of strings(tree)) {
    for (const [all, provider, path] of text.matchAll(REFERENCE)) {
      if (provider === "file" && path !== undefined && path !== "" && !all.startsWith("$$")) paths.add(path)
    }
  }
  return paths
}

type Found = { readonly ok: true; readonly text: string } | {
  readonly ok: false
  readonly what: string
  readonly allowed?: string
}

const fromEnv = (path: string | undefined, name: string, env: Environment): Found => {
  if (path !== undefined || name === "") {
    return { ok: false, what: "holds an incomplete reference", allowed: "${env:NAME}" }
  }
  const value = env[name]
  return value === undefined
    ? { ok: false, what: `needs the environment variable ${name}, which is not set` }
    : { ok: true, text: value }
}

const fromFile = (path: string | undefined, key: string, files: ReadonlyMap<string, LoadedFile>): Found => {
  if (path === undefined || path === "" || key === "") {
    return { ok: false, what: "holds an incomplete reference", allowed: "${file:PATH:KEY}" }
  }
  const loaded = files.get(path)
  if (loaded === undefined || !loaded.ok) {
    return {
      ok: false,
      what: `needs the file ${path}, which cannot be read${loaded === undefined ? "" : ` (${loaded.why})`}`
    }
  }
  const value = loaded.file.entries.get(key)
  return value === undefined
    ? { ok: false, what: `needs the key ${key} of ${path}, which has no such key` }
    : { ok: true, text: value }
}

const find = (provider: string, path: string | undefined, key: string, sources: ReferenceSources): Found => {
  if (provider === "env") return fromEnv(path, key, sources.env)
  if (provider === "file") return fromFile(path, key, sources.files)
  return {
    ok: false,
    what: `refers to a provider named ${JSON.stringify(provider)}`,
    allowed: "${env:NAME}, ${file:PATH:KEY}, or $${ for a plain ${"
  }
}

const replaceText = (text: string, at: Path, sources: ReferenceSources, problems: Array<Problem>): string =>
  text.replace(REFERENCE, (all: string, provider: string, path: string | undefined, key: string) => {
    if (all.startsWith("$$")) return all.slice(1)
    const found = find(provider, path, key, sources)
    if (found.ok) return found.text
    problems.push(problem(renderPath(at), found.what, { allowed: found.allowed }))
    return all
  })

const replaceAt = (tree: Tree, at: Path, sources: ReferenceSources, problems: Array<Problem>): Tree => {
  if (typeof tree === "string") return replaceText(tree, at, sources, problems)
  if (Array.isArray(tree)) return tree.map((item: Tree, i) => replaceAt(item, [...at, i], sources, problems))
  if (typeof tree !== "object" || tree === null) return tree
  return Object.fromEntries(
    Object.entries(tree).map(([key, value]) => [key, replaceAt(value as Tree, [...at, key], sources, problems)])
  )
}

/** The tree with every reference replaced; what cannot be found is a problem and stays as written. */
export const replaceReferences = (
  tree: Tree,
  sources: ReferenceSources
): { readonly tree: Tree; readonly problems: ReadonlyArray<Problem> } => {
  const problems: Array<Problem> = []
  return { tree: replaceAt(tree, [], sources, problems), problems }
}
