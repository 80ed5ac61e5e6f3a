/** MirrorMaker 2 files for tests: a base with two clusters and one flow, and what an import makes of more lines. */
import { type Draft, type Entry, type Note, type Section } from "../../src/config/mm2/draft.ts"
import { importMm2 } from "../../src/config/mm2/import.ts"
import { readMm2 } from "../../src/config/mm2/written.ts"
import { renderProblem } from "../../src/config/problems.ts"

export const BASE = `clusters = east, west
east.bootstrap.servers = 127.0.0.1:19092
west.bootstrap.servers = 127.0.0.1:29092
east->west.enabled = true
`

export interface ImportedText {
  readonly draft: Draft
  /** Of the flow east->west: keys to values, without what MirrorMaker's rules and defaults add to every flow. */
  readonly flow: Readonly<Record<string, Entry["value"]>>
  readonly clusters: Readonly<Record<string, Readonly<Record<string, Entry["value"]>>>>
  readonly notes: ReadonlyArray<Note>
  /** "KEY what is wrong". */
  readonly problems: ReadonlyArray<string>
  /** Keys of the file that an entry, a note or a problem names. */
  readonly named: ReadonlySet<string>
}

const valuesOf = (section: Section | undefined): Readonly<Record<string, Entry["value"]>> =>
  Object.fromEntries((section?.entries ?? []).map(({ key, value }) => [key, value]))

export const importText = (text: string, name = "mm2.properties"): ImportedText => {
  const file = readMm2(name, text)
  if (file === null) throw new Error("not taken for a file of MirrorMaker 2")
  const draft = importMm2(file)
  const sections = [draft.top, ...draft.clusters.values(), ...draft.flows.map(({ section }) => section)]
  const notes = sections.flatMap((section) => section.notes)
  const flow = draft.flows.find(({ source, target }) => source === "east" && target === "west")?.section
  const said = (flow?.entries ?? []).filter(({ from }) => from !== null)
  return {
    draft,
    flow: Object.fromEntries(said.map(({ key, value }) => [key, value])),
    clusters: Object.fromEntries([...draft.clusters].map(([alias, section]) => [alias, valuesOf(section)])),
    notes,
    problems: draft.problems.map(renderProblem),
    named: new Set([
      ...sections.flatMap((section) => section.entries.flatMap(({ from }) => from === null ? [] : [from.key])),
      ...notes.map(({ from }) => from.key),
      ...draft.problems.map(({ path }) => path)
    ])
  }
}

/** The base with these lines behind it. */
export const importLines = (...lines: ReadonlyArray<string>): ImportedText => importText(BASE + lines.join("\n") + "\n")
