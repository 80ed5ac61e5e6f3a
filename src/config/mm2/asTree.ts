/**
 * A draft as the tree that the loader reads, so that `run mm2.properties` needs no file in between; what is wrong with it
 * is then told in the names and lines of the MirrorMaker file.
 */
import type { Problem } from "../problems.ts"
import { renderPath, type SourceTree, type Tree } from "../tree.ts"
import type { Draft, Entry, Section } from "./draft.ts"
import type { Written } from "./written.ts"

export interface ImportedTree {
  readonly tree: SourceTree
  /** All that is wrong, in the words of the file: `early` is the draft's, `later` what the loader says of the tree. */
  readonly together: (early: ReadonlyArray<Problem>, later: ReadonlyArray<Problem>) => ReadonlyArray<Problem>
}

type Sources = Map<string, Written>

const mapOf = (section: Section, at: ReadonlyArray<string | number>, sources: Sources): Record<string, Tree> => {
  const map: Record<string, Tree> = {}
  for (const { from, key, value } of section.entries) {
    if (from !== null) sources.set(renderPath([...at, key]), from)
    map[key] = value
  }
  return map
}

/** `http.listen` and the like are maps at the top of our files. */
export const topEntries = (section: Section): {
  readonly plain: ReadonlyArray<Entry>
  readonly nested: ReadonlyMap<string, ReadonlyArray<Entry>>
} => {
  const nested = new Map<string, Array<Entry>>()
  const plain: Array<Entry> = []
  for (const entry of section.entries) {
    const found = /^(http|log)\.(.+)$/.exec(entry.key)
    if (found !== null) {
      const list = nested.get(found[1] as string) ?? []
      list.push({ ...entry, key: found[2] as string })
      nested.set(found[1] as string, list)
      // Security that stands at the top was handed to every cluster.
    } else plain.push(entry)
  }
  return { plain, nested }
}

/** What a path of ours is called in a MirrorMaker file, where no setting of it stands behind it. */
const spoken = (path: string, draft: Draft): string => {
  const cluster = /^clusters\.(.+)$/.exec(path)
  if (cluster !== null) return draft.style === "driver" ? cluster[1] as string : path
  const flow = /^flows\[(\d+)\]\.?(.*)$/.exec(path)
  const drafted = flow === null ? undefined : draft.flows[Number(flow[1])]
  if (drafted === undefined || flow === null) return path
  if (draft.style === "connector") return flow[2] as string
  return [`${drafted.source}->${drafted.target}`, flow[2]].filter((part) => part !== "").join(".")
}

export const asTree = (draft: Draft): ImportedTree => {
  const sources: Sources = new Map()
  const { nested, plain } = topEntries(draft.top)
  const root: Record<string, Tree> = {}
  for (const { from, key, value } of plain) {
    if (from !== null) sources.set(key, from)
    root[key] = value
  }
  for (const [name, entries] of nested) {
    root[name] = Object.fromEntries(entries.map(({ from, key, value }) => {
      if (from !== null) sources.set(`${name}.${key}`, from)
      return [key, value]
    }))
  }
  root["clusters"] = Object.fromEntries(
    [...draft.clusters].map(([alias, section]) => [alias, mapOf(section, ["clusters", alias], sources)])
  )
  root["flows"] = draft.flows.map(({ section, source, target }, i) => ({
    source,
    target,
    ...mapOf(section, ["flows", i], sources)
  }))
  const around = (path: string): Written | undefined => {
    const known = [...sources.keys()].filter((at) =>
      path === at || path.startsWith(`${at}.`) || path.startsWith(`${at}[`)
    )
    return sources.get(known.toSorted((a, b) => b.length - a.length)[0] ?? "")
  }
  const translate = (problem: Problem): Problem => {
    const from = around(problem.path)
    return { ...problem, path: from?.key ?? spoken(problem.path, draft), line: problem.line ?? from?.line ?? null }
  }
  // Beside another problem, what is missing may be missing because of it.
  const stands = ({ path }: Problem) => around(path) !== undefined
  return {
    tree: { root, line: (path) => around(path)?.line ?? null, written: () => null },
    together: (early, later) => {
      const told = later.filter((p) => early.length === 0 || stands(p)).map(translate)
      return [...early, ...told.filter((p) => !early.some(({ path }) => path === p.path))]
    }
  }
}
