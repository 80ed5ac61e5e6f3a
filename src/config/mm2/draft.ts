/**
 * The configuration that an import makes, before it is text: entries that remember where they come from, and notes on
 * what has no entry. One of them becomes YAML with comments (yaml.ts) or the tree that the loader reads (asTree.ts).
 */
import { type Problem, problem } from "../problems.ts"
import type { Written } from "./written.ts"

export interface Entry {
  readonly key: string
  readonly value: string | ReadonlyArray<string>
  /** null: MirrorMaker's file does not say it, its rules do. */
  readonly from: Written | null
  /** What changed and why, in sentences. */
  readonly comment: string | null
}

/** `unneeded` loses nothing; `lost` is something that MirrorMaker did and this version does not. */
export interface Note {
  readonly kind: "unneeded" | "lost"
  readonly from: Written
  readonly why: string
}

/** One map of the file: the top, a cluster, a flow. Mutable while the import runs. */
export class Section {
  readonly #entries = new Map<string, Entry>()
  readonly notes: Array<Note> = []
  readonly problems: Array<Problem> = []

  /** The last one of a key wins: call in rising order of weight. */
  set(key: string, value: Entry["value"], from: Written | null, comment: string | null = null): void {
    this.#entries.delete(key)
    this.#entries.set(key, { key, value, from, comment })
  }
  get(key: string): Entry | undefined {
    return this.#entries.get(key)
  }
  has(key: string): boolean {
    return this.#entries.has(key)
  }
  get entries(): ReadonlyArray<Entry> {
    return [...this.#entries.values()]
  }
  note(from: Written, why: string, kind: Note["kind"] = "unneeded"): void {
    this.notes.push({ kind, from, why })
  }
  refuse(
    from: Written,
    what: string,
    more: { readonly allowed?: string; readonly nearest?: string | null } = {}
  ): void {
    this.problems.push(problem(from.key, what, { ...more, ...(from.line === null ? {} : { line: from.line }) }))
  }
}

export interface FlowDraft {
  readonly source: string
  readonly target: string
  readonly section: Section
}

export interface Draft {
  readonly style: "driver" | "connector"
  readonly top: Section
  readonly clusters: ReadonlyMap<string, Section>
  readonly flows: ReadonlyArray<FlowDraft>
  /** Also of the sections. */
  readonly problems: ReadonlyArray<Problem>
}
