/** One flow of a MirrorMaker 2 file: its own settings over those for all, and the clients' settings of its two ends. */
import { clientVerdict, judged, secretComment } from "./clientRules.ts"
import { Section } from "./draft.ts"
import { RULE_ORDER, takeFlowSetting } from "./flowRules.ts"
import type { Scope } from "../kafkaSettings.ts"
import { MM2_SETTINGS } from "./settings.ts"
import type { Written } from "./written.ts"

/** A setting with the prefix of its place taken off. */
export interface Named {
  readonly name: string
  readonly from: Written
}

export interface FlowParts {
  /** Without a prefix: for every flow. */
  readonly all: ReadonlyArray<Named>
  readonly own: ReadonlyArray<Named>
  /** Behind the aliases of its ends. */
  readonly source: ReadonlyArray<Named>
  readonly target: ReadonlyArray<Named>
  /** Settings of ours that every flow has from the top of the file. */
  readonly protocolAtTop: boolean
}

const CLIENT = /^(?:(source|target)\.)?(consumer|producer|admin)\.(?!override\.)(.+)$/
const OVERRIDE = /^(consumer|producer|admin)\.override\.(.+)$/
const END = /^(source|target)\.cluster\.(.+)$/

/** "source.consumer.x" in its parts; `admin.timeout.ms` and the like are MirrorMaker's own and no client's. */
const clientOf = (name: string): RegExpExecArray | null => MM2_SETTINGS.has(name) ? null : CLIENT.exec(name)

/** Whether flowDraft reads a name as a client's setting. */
export const isClientName = (name: string): boolean =>
  clientOf(name) !== null || OVERRIDE.test(name) || (END.test(name) && !MM2_SETTINGS.has(name))

/** What MirrorMaker's own other clients are for, by end and scope: they have no counterpart here. */
export const OTHER_CLIENTS = {
  "target.consumer": "it is for reading MirrorMaker's internal topics on the target",
  "source.producer": "it is for MirrorMaker's offset syncs, not for the records",
  "source.admin": "the connection that reads the source also describes it: write it as a consumer setting",
  producer:
    "in MirrorMaker it is for offset syncs, not for the records: behind the target's alias, or as producer.override, it is for the records"
} as const

const put = (section: Section, scope: Scope, name: string, from: Written): void =>
  section.set(`${scope}.override.${name}`, from.value, from, secretComment(name, from.value))

/** From a cluster's part: what does not fit has been said there. */
const inherit = (section: Section, named: ReadonlyArray<Named>, scope: Scope): void => {
  for (const { from, name } of named) {
    const client = clientOf(name)
    if (client?.[1] !== undefined || client?.[2] !== scope) continue
    const inner = client[3] as string
    if (clientVerdict(scope, inner, from.value).kind === "take") put(section, scope, inner, from)
  }
}

const ofEnd = (section: Section, own: ReadonlyArray<Named>, end: "source" | "target"): void => {
  for (const { from, name } of own) {
    const found = END.exec(name)
    if (found?.[1] !== end || found[2] === "alias") continue
    const inner = found[2] as string
    const scope = end === "source" ? "consumer" : "producer"
    if (!judged(section, null, inner, from)) continue
    put(section, scope, inner, from)
    if (end === "target") put(section, "admin", inner, from)
  }
}

/** `prefix` is "", "source." or "target.". */
const ofClient = (
  section: Section,
  own: ReadonlyArray<Named>,
  prefix: "" | "source." | "target.",
  scope: Scope
): void => {
  for (const { from, name } of own) {
    const found = clientOf(name)
    if (found === null || `${found[1] ?? ""}` !== prefix.replace(".", "") || found[2] !== scope) continue
    const inner = found[3] as string
    if (judged(section, scope, inner, from)) put(section, scope, inner, from)
  }
}

const notes = (section: Section, own: ReadonlyArray<Named>): void => {
  for (const { from, name } of own) {
    const found = clientOf(name)
    if (found === null) continue
    const client = found[1] === undefined ? found[2] : `${found[1]}.${found[2]}`
    const why = client === "target.producer"
      ? OTHER_CLIENTS.producer
      : OTHER_CLIENTS[client as keyof typeof OTHER_CLIENTS] as string | undefined
    if (why !== undefined) section.note(from, why)
  }
}

const overrides = (section: Section, named: ReadonlyArray<Named>): void => {
  for (const { from, name } of named) {
    const found = OVERRIDE.exec(name)
    if (found === null) continue
    const scope = found[1] as Scope
    const inner = found[2] as string
    // Ours, with words of its own: src/config/groupProtocol.ts.
    if (name === "consumer.override.group.protocol") section.set(name, from.value, from)
    else if (judged(section, scope, inner, from)) put(section, scope, inner, from)
  }
}

/** MirrorMaker copies what was aborted unless its consumer is told not to. */
const settleIsolation = (section: Section): void => {
  const key = "consumer.override.isolation.level"
  const isolation = section.get(key)
  if (isolation?.from?.value.toLowerCase() !== "read_uncommitted" || isolation.from === null) return
  if (section.has("delivery.guarantee")) {
    if (section.get("delivery.guarantee")?.value === "at-least-once") return
    section.note(isolation.from, "exactly-once is asked for, and records of aborted transactions are no part of that")
    section.set(key, "read_committed", isolation.from, "read_uncommitted there, which exactly-once rules out.")
  } else {
    section.set(
      "delivery.guarantee",
      "at-least-once",
      isolation.from,
      "read_uncommitted mirrors aborted records too; without it and this line records are mirrored exactly once."
    )
  }
}

const rank = ({ name }: Named): number => {
  const at = RULE_ORDER.indexOf(name)
  return at < 0 ? RULE_ORDER.length : at
}

/** Builds the section. Returns the settings that neither MirrorMaker nor we know. */
export const draftFlow = (
  parts: FlowParts
): { readonly section: Section; readonly unknown: ReadonlyArray<Named> } => {
  const section = new Section()
  const unknown: Array<Named> = []
  const ownNames = new Set(parts.own.map(({ name }) => name))
  const settings = [...parts.all.filter(({ name }) => !ownNames.has(name)), ...parts.own]
  const eos = parts.target.filter(({ name }) => name === "exactly.once.source.support")
  if (!parts.protocolAtTop) {
    section.set(
      "group.protocol",
      "consumer",
      null,
      "As MirrorMaker: the order within a partition is kept. `share` lets any number of workers share a partition, without order."
    )
  }
  for (const named of [...eos, ...settings].toSorted((a, b) => rank(a) - rank(b))) {
    if (isClientName(named.name)) continue
    if (!takeFlowSetting(section, named.name, named.from)) unknown.push(named)
  }
  ofEnd(section, parts.own, "source")
  ofClient(section, parts.own, "", "consumer")
  inherit(section, parts.source, "consumer")
  ofClient(section, parts.own, "source.", "consumer")
  ofEnd(section, parts.own, "target")
  inherit(section, parts.target, "producer")
  ofClient(section, parts.own, "", "admin")
  inherit(section, parts.target, "admin")
  ofClient(section, parts.own, "target.", "admin")
  overrides(section, settings)
  notes(section, parts.own)
  settleIsolation(section)
  return { section, unknown }
}
