/**
 * A MirrorMaker 2 file to a configuration of ours: every setting of it becomes an entry, a note that says why it has no
 * place, or a problem. Nothing is left out in silence.
 *
 * Guarantee: pure. Prefix rules are MirrorMaker's (MirrorMakerConfig of Kafka 4.3); where it ignores a setting because of
 * the place it stands in, that is said and nothing else happens.
 */
import { flowSettings } from "../flowSettings.ts"
import { KAFKA_SETTINGS } from "../kafkaSettings.ts"
import { nearest } from "../nearest.ts"
import { type Problem, problem } from "../problems.ts"
import { topSettings } from "../topSettings.ts"
import { judged, secretComment } from "./clientRules.ts"
import { type Part, setDefaults, setHeartbeatsBack } from "./defaults.ts"
import { type Draft, type FlowDraft, Section } from "./draft.ts"
import { draftFlow, isClientName, type Named, OTHER_CLIENTS } from "./flowDraft.ts"
import { placeInConnector, placeOf } from "./places.ts"
import { isProviderSetting, type Providers, readProviders, translateReferences } from "./providers.ts"
import { isSecurity, MM2_SETTINGS, treatmentOf, WORKER_SETTINGS } from "./settings.ts"
import type { Mm2File, Written } from "./written.ts"

const TOP_NAMES = new Set([...Object.keys(topSettings), "http.listen", "log.level", "log.format"])
const IGNORED_AT_TOP =
  "MirrorMaker reads it only behind a cluster's alias or a flow's, and ignores it here; so does onceover"
const IGNORED_AT_CLUSTER =
  "MirrorMaker ignores it behind a cluster's alias: it goes behind a flow's (A->B), or stands alone"

interface Sorted {
  readonly all: Array<Named>
  readonly clusters: Map<string, Array<Named>>
  readonly flows: Map<string, Array<Named>>
}

interface World {
  readonly top: Section
  readonly aliases: ReadonlyArray<string>
  readonly sorted: Sorted
  readonly sections: ReadonlyMap<string, Section>
}

const pairKey = (source: string, target: string): string => `${source}->${target}`
const listOf = (
  value: string
): ReadonlyArray<string> => [...new Set(value.split(",").map((part) => part.trim()).filter((part) => part !== ""))]

/** References in our providers' names; one that needs another class is a problem. */
const translated = (settings: ReadonlyArray<Written>, top: Section): ReadonlyArray<Written> => {
  const providers: Providers = readProviders(settings)
  for (const setting of settings.filter(({ key }) => isProviderSetting(key))) {
    top.note(setting, "${env:NAME} and ${file:PATH:KEY} are always understood")
  }
  return settings.filter(({ key }) => !isProviderSetting(key)).map((setting) => {
    const { foreign, value } = translateReferences(setting.value, providers)
    if (foreign !== null) {
      top.refuse(
        setting,
        `needs the configuration provider "${foreign.name}" (${foreign.type}); no Java class is loaded`,
        {
          allowed: "${env:NAME}, ${file:PATH:KEY}"
        }
      )
    }
    return { ...setting, value }
  })
}

const unknownSetting = (section: Section, { from, name }: Named, aliases: ReadonlyArray<string>): void => {
  const [word = "", ...rest] = name.split(".")
  const alias = nearest(word, aliases)
  const behind = rest.join(".")
  const meant = alias !== null && (KAFKA_SETTINGS.has(behind) || isClientName(behind)) ? `${alias}.${behind}` : null
  section.refuse(from, "is not a setting of MirrorMaker 2 or of a Kafka client", {
    nearest: meant ?? nearest(name, [...MM2_SETTINGS.keys(), ...KAFKA_SETTINGS.keys(), ...Object.keys(flowSettings)])
  })
}

/** Names that a flow takes from the top of the file. */
const forEveryFlow = (name: string): boolean =>
  Object.hasOwn(flowSettings, name) || /^(consumer|producer|admin)\.override\./.test(name) ||
  (treatmentOf(name) !== undefined && !WORKER_SETTINGS.has(name))

const takeAll = (world: World): ReadonlyArray<Named> => {
  const { aliases, sections, sorted, top } = world
  const forFlows: Array<Named> = []
  for (const named of sorted.all) {
    const { from, name } = named
    if (TOP_NAMES.has(name)) top.set(name, from.value, from)
    else if (name === "clusters" || name === "enabled") continue
    else if (WORKER_SETTINGS.has(name)) top.note(from, whyUnneeded(name))
    else if (isSecurity(name)) {
      if (!judged(top, null, name, from)) continue
      for (const section of sections.values()) {
        if (!section.has(name)) section.set(name, from.value, from, secretComment(name, from.value))
      }
    } else if (forEveryFlow(name)) forFlows.push(named)
    else if (isClientName(name) || KAFKA_SETTINGS.has(name)) top.note(from, IGNORED_AT_TOP)
    else unknownSetting(top, named, aliases)
  }
  return forFlows
}

const whyUnneeded = (name: string): string => {
  const treatment = treatmentOf(name)
  return treatment?.kind === "unneeded" ? treatment.why : IGNORED_AT_CLUSTER
}

/** A client's setting behind an alias: the flows of the cluster take it; here it is said where none does. */
const clusterClient = (section: Section, alias: string, { from, name }: Named, ends: Ends): void => {
  const [, scope, inner] = /^(consumer|producer|admin)\.(.+)$/.exec(name) as unknown as [
    string,
    "consumer" | "producer" | "admin",
    string
  ]
  if (!judged(section, scope, inner, from)) return
  const { source, target } = ends(alias)
  if (scope === "consumer" && !source) section.note(from, target ? OTHER_CLIENTS["target.consumer"] : "no flow uses it")
  if (scope === "producer" && !target) section.note(from, source ? OTHER_CLIENTS["source.producer"] : "no flow uses it")
  if (scope === "admin" && !target) section.note(from, source ? OTHER_CLIENTS["source.admin"] : "no flow uses it")
}

/** Whether a cluster is the source, the target of any flow that there is. */
type Ends = (alias: string) => { readonly source: boolean; readonly target: boolean }

const takeClusters = (world: World, ends: Ends): void => {
  for (const [alias, settings] of world.sorted.clusters) {
    const section = world.sections.get(alias) as Section
    for (const named of settings) {
      const { from, name } = named
      if (/^(consumer|producer|admin)\./.test(name) && !MM2_SETTINGS.has(name)) {
        clusterClient(section, alias, named, ends)
      } else if (name === "exactly.once.source.support") {
        if (!ends(alias).target) section.note(from, "it is the target's: no flow has this cluster as its target")
      } else if (WORKER_SETTINGS.has(name)) section.note(from, whyUnneeded(name))
      else if (KAFKA_SETTINGS.has(name)) {
        if (judged(section, null, name, from)) section.set(name, from.value, from, secretComment(name, from.value))
      } else if (treatmentOf(name) !== undefined || Object.hasOwn(flowSettings, name)) {
        section.note(from, IGNORED_AT_CLUSTER)
      } else unknownSetting(section, named, world.aliases)
    }
  }
}

const isTrue = (named: Named | undefined): boolean => named?.from.value.toLowerCase() === "true"
const STRUCTURE = new Set(["enabled", "source.cluster.alias", "target.cluster.alias", "connector.class"])

/** Pairs that are switched on, or about which the file says anything. */
const pairsOf = (
  world: World
): ReadonlyArray<{ readonly source: string; readonly target: string; readonly on: boolean }> => {
  const everywhere = isTrue(world.sorted.all.find(({ name }) => name === "enabled"))
  return world.aliases.flatMap((source) =>
    world.aliases.filter((target) => target !== source).flatMap((target) => {
      const own = world.sorted.flows.get(pairKey(source, target))
      const enabled = own?.find(({ name }) => name === "enabled")
      const on = enabled === undefined ? everywhere : isTrue(enabled)
      return on || own !== undefined ? [{ source, target, on }] : []
    })
  )
}

/** What is said for all flows and has no place is said once, at the top. */
const lift = (section: Section, top: Section, shared: ReadonlySet<Written>): void => {
  const own = section.notes.splice(0)
  for (const note of own) {
    if (!shared.has(note.from)) section.notes.push(note)
    else if (!top.notes.some((other) => other.from === note.from && other.why === note.why)) top.notes.push(note)
  }
}

/** Whether the driver writes heartbeats for a direction that is off: emit.heartbeats.enabled of it, true by default. */
const beatsAlone = (world: World, pairs: ReturnType<typeof pairsOf>, source: string, target: string): boolean => {
  if (pairs.some((pair) => pair.source === source && pair.target === target && pair.on)) return false
  const said = [world.sorted.flows.get(pairKey(source, target)) ?? [], world.sorted.all]
    .flatMap((named) => named.filter(({ name }) => name === "emit.heartbeats.enabled"))
  return said[0]?.from.value.toLowerCase() !== "false"
}

const draftFlows = (
  world: World,
  pairs: ReturnType<typeof pairsOf>,
  all: ReadonlyArray<Named>,
  parts: ReadonlyArray<Part>,
  connector: boolean
): ReadonlyArray<FlowDraft> =>
  pairs.map(({ on, source, target }) => {
    const own = world.sorted.flows.get(pairKey(source, target)) ?? []
    const { section, unknown } = draftFlow({
      all,
      own: own.filter(({ name }) => !STRUCTURE.has(name) && !(connector && name === "name")),
      source: world.sorted.clusters.get(source) ?? [],
      target: world.sorted.clusters.get(target) ?? [],
      protocolAtTop: world.top.has("consumer.group.protocol") ||
        [...all, ...own].some(({ name }) => name === "group.protocol")
    })
    setDefaults(section, parts)
    if (!connector) setHeartbeatsBack(section, beatsAlone(world, pairs, target, source))
    if (!on) {
      section.set(
        "enabled",
        "false",
        own.find(({ name }) => name === "enabled")?.from ?? null,
        "Not enabled there."
      )
    }
    for (const named of unknown) {
      if (KAFKA_SETTINGS.has(named.name)) {
        section.note(named.from, "MirrorMaker ignores it here: it wants consumer. or producer. before it")
      } else unknownSetting(section, named, world.aliases)
    }
    lift(
      section,
      world.top,
      new Set(all.map(({ from }) => from))
    )
    return { source, target, section }
  })

const sortDriver = (
  settings: ReadonlyArray<Written>,
  aliases: ReadonlyArray<string>,
  problems: Array<Problem>
): Sorted => {
  const sorted: Sorted = { all: [], clusters: new Map(aliases.map((alias) => [alias, []])), flows: new Map() }
  for (const from of settings) {
    const place = placeOf(from, aliases)
    if (!("of" in place)) problems.push(place)
    else if (place.of === "all") sorted.all.push({ name: place.name, from })
    else if (place.of === "cluster") sorted.clusters.get(place.alias)?.push({ name: place.name, from })
    else addTo(sorted.flows, pairKey(place.source, place.target), { name: place.name, from })
  }
  return sorted
}

const addTo = (map: Map<string, Array<Named>>, key: string, named: Named): void => {
  const list = map.get(key)
  if (list === undefined) map.set(key, [named])
  else list.push(named)
}

const finish = (
  world: World,
  file: Mm2File,
  pairs: ReturnType<typeof pairsOf>,
  problems: Array<Problem>,
  parts: ReadonlyArray<Part>
): Draft => {
  const ends: Ends = (alias) => ({
    source: pairs.some((pair) => pair.source === alias),
    target: pairs.some((pair) => pair.target === alias)
  })
  takeClusters(world, ends)
  const all = takeAll(world)
  const flows = draftFlows(world, pairs, all, parts, file.style === "connector")
  const found = [world.top, ...world.sections.values(), ...flows.map(({ section }) => section)].flatMap((section) =>
    section.problems
  )
  const unique = [...problems, ...found].filter((p, i, list) =>
    i === list.findIndex((o) => o.path === p.path && o.what === p.what)
  )
  return { style: file.style, top: world.top, clusters: world.sections, flows, problems: [...file.problems, ...unique] }
}

const empty = (file: Mm2File, top: Section, wrong: Problem): Draft => ({
  style: file.style,
  top,
  clusters: new Map(),
  flows: [],
  problems: [...file.problems, ...top.problems, wrong]
})

const importDriver = (file: Mm2File, settings: ReadonlyArray<Written>, top: Section): Draft => {
  const named = settings.find(({ key }) => key === "clusters")
  const aliases = listOf(named?.value ?? "")
  if (aliases.length < 2) {
    const what = named === undefined
      ? "is missing"
      : `names ${aliases.length === 0 ? "no cluster" : "one cluster only"}`
    return empty(
      file,
      top,
      problem("clusters", what, { allowed: "clusters = SOURCE, TARGET", ...(named?.line ? { line: named.line } : {}) })
    )
  }
  const problems: Array<Problem> = []
  const sorted = sortDriver(settings, aliases, problems)
  const world: World = { top, aliases, sorted, sections: new Map(aliases.map((alias) => [alias, new Section()])) }
  const pairs = pairsOf(world)
  if (!pairs.some(({ on }) => on) && problems.length === 0) {
    problems.push(problem("", "switches no flow on", { allowed: `${aliases[0]}->${aliases[1]}.enabled = true` }))
  }
  return finish(world, file, pairs, problems, ["source", "checkpoint", "heartbeat"])
}

const importConnector = (file: Mm2File, settings: ReadonlyArray<Written>, top: Section): Draft => {
  const said = (key: string) => settings.find((setting) => setting.key === key)?.value
  const source = said("source.cluster.alias")
  const target = said("target.cluster.alias") ?? "target"
  const type = settings.find(({ key }) => key === "connector.class")
  if (type !== undefined && !type.value.endsWith("MirrorSourceConnector")) {
    const wrong = problem("connector.class", `is ${type.value}, which mirrors no records`, {
      allowed:
        "MirrorSourceConnector; what the other two do is switched on in its flow: emit.checkpoints.enabled, sync.group.offsets.enabled, emit.heartbeats.enabled",
      ...(type.line === null ? {} : { line: type.line })
    })
    return empty(file, top, wrong)
  }
  if (source === undefined || source === "") return empty(file, top, problem("source.cluster.alias", "is missing"))
  const sorted: Sorted = {
    all: [],
    clusters: new Map([[source, []], [target, []]]),
    flows: new Map([[pairKey(source, target), []]])
  }
  for (const from of settings) {
    const place = placeInConnector(from, { source, target })
    if (place.of === "cluster") sorted.clusters.get(place.alias)?.push({ name: place.name, from })
    else if (TOP_NAMES.has(place.name)) sorted.all.push({ name: place.name, from })
    else addTo(sorted.flows, pairKey(source, target), { name: place.name, from })
  }
  const aliases = [source, target]
  const world: World = { top, aliases, sorted, sections: new Map(aliases.map((alias) => [alias, new Section()])) }
  const off = said("enabled")?.toLowerCase() === "false"
  return finish(world, file, [{ source, target, on: !off }], [], ["source"])
}

/** Imports a file that readMm2 has read. */
export const importMm2 = (file: Mm2File): Draft => {
  const top = new Section()
  const settings = translated(file.settings, top)
  return file.style === "connector" ? importConnector(file, settings, top) : importDriver(file, settings, top)
}

/** The one default of ours that may keep less of what is mirrored than MirrorMaker's: fewer replicas. */
const ownReplicas = (flows: ReadonlyArray<FlowDraft>): ReadonlyArray<string> => {
  const silent = flows.filter(({ section }) =>
    section.get("enabled")?.value !== "false" && !section.has("replication.factor")
  )
  const names = silent.map(({ source, target }) => pairKey(source, target)).join(", ")
  return names === "" ? [] : [
    `${names}: replication.factor is not set: topics are created with the target's default.replication.factor, where MirrorMaker 2 takes 2`
  ]
}

/** For the log of a run that starts from such a file: what is not done, and that the rest has been looked at. */
export const warningsOf = (draft: Draft, path: string): ReadonlyArray<string> => {
  const sections = [draft.top, ...draft.clusters.values(), ...draft.flows.map(({ section }) => section)]
  const notes = sections.flatMap((section) => section.notes)
  const quiet = notes.filter(({ kind }) => kind === "unneeded").length
  return [
    ...notes.filter(({ kind }) => kind === "lost").map(({ from, why }) => `${from.key} is not followed: ${why}`),
    ...ownReplicas(draft.flows),
    ...(quiet === 0
      ? []
      : [`${quiet} settings of MirrorMaker 2 have no place here; onceover import-mm2 ${path} says which and why`])
  ]
}
