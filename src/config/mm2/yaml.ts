/**
 * A draft as a YAML file for people: the settings, and as comments what changed, what has no place and why. The same
 * draft always gives the same text.
 */
import { Document, type Scalar, YAMLMap } from "yaml"
import { flowSettings } from "../flowSettings.ts"
import { isSecretSetting } from "../../wire/settings.ts"
import { topEntries } from "./asTree.ts"
import type { Draft, Entry, Note, Section } from "./draft.ts"

const WIDTH = 100

const folded = (text: string, hanging = "  "): string => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > WIDTH) {
      lines.push(line)
      line = `${hanging}${word}`
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line].join("\n")
}

/** A comment as `yaml` wants it: without "#", each line with a space before it. */
const comment = (text: string): string => text.split("\n").map((line) => line === "" ? "" : ` ${line}`).join("\n")

/** `4` and not "4" where nothing is lost by it; text that a person chose stays text. */
const scalar = (key: string, text: string): string | number | boolean => {
  if (isSecretSetting(key)) return text
  if (text === "true" || text === "false") return text === "true"
  const name = key.replace(/^(consumer|producer|admin)\.override\./, "")
  const isText = Object.hasOwn(flowSettings, name) &&
    flowSettings[name as keyof typeof flowSettings].info.type === "text"
  return !isText && /^(0|-?[1-9]\d{0,14})$/.test(text) ? Number(text) : text
}

const was = (entry: Entry): string | null =>
  entry.from === null || entry.from.key === entry.key || entry.from.key.endsWith(`.${entry.key}`)
    ? null
    : `${entry.from.key}${entry.comment === null ? "" : ":"}`

const commentOf = (entry: Entry): string | null => {
  const text = [was(entry), entry.comment].filter((part) => part !== null).join(" ")
  return text === "" ? null : comment(folded(text, ""))
}

const place = (note: Note): string =>
  note.from.line === null ? note.from.key : `${note.from.key} (line ${note.from.line})`

/** Notes with one reason become one paragraph. */
const notesText = (notes: ReadonlyArray<Note>, kind: Note["kind"], head: string): string => {
  const groups = Map.groupBy(notes.filter((note) => note.kind === kind), ({ why }) => why)
  if (groups.size === 0) return ""
  return [head, ...[...groups].map(([why, list]) => folded(`- ${list.map(place).join(", ")}: ${why}.`))].join("\n")
}

const sectionComment = (section: Section, of: string): string =>
  [
    notesText(section.notes, "lost", `Not done by this version${of}:`),
    notesText(section.notes, "unneeded", `Not needed or without effect${of}:`)
  ].filter((text) => text !== "").join("\n")

const mapOf = (document: Document, entries: ReadonlyArray<Entry>): YAMLMap => {
  const map = new YAMLMap(document.schema)
  for (const entry of entries) {
    const key = document.createNode(entry.key) as Scalar
    const about = commentOf(entry)
    if (about !== null) key.commentBefore = about
    const value = typeof entry.value === "string" ? scalar(entry.key, entry.value) : [...entry.value]
    map.add({ key, value: document.createNode(value, { flow: true }) })
  }
  return map
}

const withComment = (map: YAMLMap, text: string): YAMLMap => {
  if (text !== "") map.comment = comment(text)
  return map
}

/** What a flow is about comes first, as a person would write it. */
const FIRST = ["name", "enabled", "topics", "topics.exclude", "topic.mapping"]
const inOrder = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => [
  ...FIRST.flatMap((key) => entries.filter((entry) => entry.key === key)),
  ...entries.filter(({ key }) => !FIRST.includes(key))
]

const plain = (key: string, value: string): Entry => ({ key, value, from: null, comment: null })

const HEAD = `What is different from MirrorMaker 2 with this file:
- Records are mirrored exactly once (delivery.guarantee), and those of aborted transactions stay behind.
- New topics, partitions and groups are found within refresh.topics.interval.seconds and refresh.groups.interval.seconds,
  5 unless they are set (there: 600); settings and rights of topics are compared every 60 seconds (there: 600), offsets of
  groups every 5 (there: 60), and tasks.max is 2 (there: 1).
- New topics have as many replicas as default.replication.factor of the target says, unless replication.factor is set
  (there: 2).
- What MirrorMaker does by default and onceover does not is written out below (heartbeats, checkpoints, offset syncs): a
  line that nobody needs can go.
- Whole batches pass through: codec, headers and timestamps stay as they are on the source.`

/** `name` is the file's name as a person knows it. */
export const asYaml = (draft: Draft, name: string): string => {
  const document = new Document(new YAMLMap())
  const root = document.contents as unknown as YAMLMap
  const { nested, plain: top } = topEntries(draft.top)
  const about = sectionComment(draft.top, "")
  document.commentBefore = comment(
    [`Made by onceover import-mm2 from ${name}, a configuration of MirrorMaker 2.`, HEAD, about].filter((t) => t !== "")
      .join("\n\n")
  )
  const clusters = new YAMLMap(document.schema)
  for (const [alias, section] of draft.clusters) {
    clusters.add({
      key: document.createNode(alias),
      value: withComment(mapOf(document, section.entries), sectionComment(section, ` behind ${alias}`))
    })
  }
  const flows = document.createNode([]) as unknown as { add: (item: unknown) => void }
  for (const { section, source, target } of draft.flows) {
    const entries = [plain("source", source), plain("target", target), ...inOrder(section.entries)]
    flows.add(withComment(mapOf(document, entries), sectionComment(section, ` in ${source}->${target}`)))
  }
  root.add({ key: document.createNode("clusters"), value: clusters })
  root.add({ key: document.createNode("flows"), value: flows })
  for (const entry of mapOf(document, top).items) root.add(entry)
  for (const [key, entries] of nested) root.add({ key: document.createNode(key), value: mapOf(document, entries) })
  return document.toString({
    lineWidth: 0,
    commentString: (text) => text.replaceAll(/^(?=.)/gm, "#").replaceAll(/^$/gm, "#")
  })
}
