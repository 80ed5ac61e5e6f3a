/**
 * A read and reference-free file to a ResolvedConfig: top level, clusters, flows, and what must hold between flows.
 *
 * Guarantee: pure; all problems of the file come in one list, in the file's order where lines are known.
 */
import { checkClientSettings, type WrittenSetting } from "./clientSettings.ts"
import { decodeMap, unknownKey } from "./decode.ts"
import { type ReadFlow, readFlow } from "./flow.ts"
import { flowSettings, SHUTDOWN_TIMEOUT_MS } from "./flowSettings.ts"
import { type Problem, problem, shown } from "./problems.ts"
import { parseListen, type Settings } from "./setting.ts"
import { httpSettings, logSettings, topSettings } from "./topSettings.ts"
import { isTreeMap, renderPath, type SourceTree, type Tree, type TreeMap } from "./tree.ts"
import type { ResolvedCluster, ResolvedConfig } from "./types.ts"
import { notSupported } from "./unsupported.ts"

export interface FileToResolve {
  readonly path: string
  readonly folder: string
  readonly source: SourceTree
  /** The source's root with references replaced. */
  readonly root: Tree
}
export interface Resolution {
  /** null when there is any problem. */
  readonly config: ResolvedConfig | null
  readonly problems: ReadonlyArray<Problem>
  /** Also where there are problems: the wire's own checks run on these. */
  readonly clusters: ReadonlyArray<ResolvedCluster>
}

const SECTIONS = ["clusters", "flows", "http", "log"]
const TOP_NAMES = [...SECTIONS, ...Object.keys(topSettings)]
/** Kafka's Topic characters, because the alias becomes the prefix of topic names. */
const ALIAS = /^[a-zA-Z0-9._-]{1,100}$/

const strangeTopKey = (key: string, value: Tree): Problem | null => {
  if (SECTIONS.includes(key)) return null
  for (const [section, settings] of [["http", httpSettings], ["log", logSettings]] as const) {
    const inner = key.startsWith(`${section}.`) ? key.slice(section.length + 1) : null
    if (inner !== null && Object.hasOwn(settings, inner)) {
      return problem(key, `is written as a map: ${section}: { ${inner}: ... }`)
    }
  }
  if (Object.hasOwn(flowSettings, key)) return problem(key, "is a setting of a flow: write it under flows")
  const sentence = notSupported(key)
  return sentence === null ? unknownKey(key, key, value, TOP_NAMES) : problem(key, sentence)
}

const readSection = <F extends Settings>(fields: F, root: TreeMap, name: string) => {
  const raw = root[name]
  if (raw === undefined || isTreeMap(raw)) {
    return decodeMap(
      fields,
      raw ?? {},
      [name],
      (key, value) => unknownKey(`${name}.${key}`, key, value, Object.keys(fields))
    )
  }
  return {
    value: null,
    partial: {},
    problems: [problem(name, `is ${shown(raw, false)}`, { allowed: `a map of ${Object.keys(fields).join(", ")}` })]
  }
}

interface Clusters {
  readonly clusters: ReadonlyArray<ResolvedCluster>
  readonly aliases: ReadonlyArray<string>
  readonly problems: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<string>
}

const readCluster = (
  alias: string,
  raw: Tree,
  source: SourceTree
): {
  readonly cluster: ResolvedCluster
  readonly problems: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<string>
} => {
  const at = `clusters.${alias}`
  const early = ALIAS.test(alias)
    ? []
    : [problem(at, "is not an alias", { allowed: "letters, digits, dots, underscores and hyphens" })]
  if (!isTreeMap(raw)) {
    const wrong = problem(at, `is ${shown(raw, false)}`, {
      allowed: "a map with bootstrap.servers and other Kafka client settings"
    })
    return { cluster: { alias, settings: {} }, problems: [...early, wrong], warnings: [] }
  }
  const written = Object.entries(raw).map(([name, value]): WrittenSetting => {
    const path = renderPath(["clusters", alias, name])
    return { name, path, value, written: source.written(path) }
  })
  const checked = checkClientSettings(written, null)
  const tried = checked.values["bootstrap.servers"] !== undefined ||
    checked.problems.some((p) => /bootstrap|broker\.list/.test(p.path))
  const missing = tried
    ? []
    : [problem(`${at}.bootstrap.servers`, "is missing", { allowed: "host:port, several with commas between them" })]
  return {
    cluster: { alias, settings: checked.values },
    problems: [...early, ...checked.problems, ...missing],
    warnings: checked.warnings
  }
}

const readClusters = (root: TreeMap, source: SourceTree): Clusters => {
  const raw = root["clusters"]
  const allowed = "a map of aliases to Kafka client settings"
  if (!isTreeMap(raw) || Object.keys(raw).length === 0) {
    const what = raw === undefined ? "is missing" : `is ${isTreeMap(raw) ? "an empty map" : shown(raw, false)}`
    return { clusters: [], aliases: [], problems: [problem("clusters", what, { allowed })], warnings: [] }
  }
  const read = Object.entries(raw).map(([alias, settings]) => readCluster(alias, settings, source))
  return {
    clusters: read.map((r) => r.cluster),
    aliases: Object.keys(raw),
    problems: read.flatMap((r) => r.problems),
    warnings: read.flatMap((r) => r.warnings)
  }
}

/** Names are unique, and no two flows that run share a group on one source. */
const checkBetweenFlows = (
  flows: ReadonlyArray<ReadFlow>,
  clusters: ReadonlyArray<ResolvedCluster>
): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const names = new Map<string, string>()
  const groups = new Map<string, string>()
  for (const { known } of flows) {
    const twin = known.name === undefined ? undefined : names.get(known.name)
    if (twin !== undefined) {
      problems.push(
        problem(
          `${known.at}.name`,
          `${known.named ? "" : "is not given and its default "}is ${
            shown(known.name, false)
          }, the name of ${twin} too; names are unique`
        )
      )
    } else if (known.name !== undefined) names.set(known.name, known.at)
    if (!known.enabled || known.groupId === undefined || known.source === undefined) continue
    // Two aliases may be the same cluster.
    const servers = clusters.find((c) => c.alias === known.source)?.settings["bootstrap.servers"] ?? known.source
    const key = JSON.stringify([servers, known.groupId])
    const sharer = groups.get(key)
    if (sharer === undefined) groups.set(key, known.at)
    else {problems.push(
        problem(
          `${known.at}.group.id`,
          `${known.groupNamed ? "" : "is not given and its default "}is ${
            shown(known.groupId, false)
          }, the group of ${sharer} on the same source; each would miss what the other reads`
        )
      )}
  }
  return problems
}

const readFlows = (
  root: TreeMap
): { readonly list: ReadonlyArray<Tree>; readonly problems: ReadonlyArray<Problem> } => {
  const raw = root["flows"]
  if (Array.isArray(raw) && raw.length > 0) return { list: raw, problems: [] }
  const what = raw === undefined ? "is missing" : `is ${shown(raw, false)}`
  return {
    list: [],
    problems: [problem("flows", what, { allowed: "a list of flows, each a map with source and target" })]
  }
}

/** The root must be a map. */
export const resolveFile = ({ path, folder, source, root }: FileToResolve): Resolution => {
  if (!isTreeMap(root)) {
    const what = root === null ? "is empty" : `is ${shown(root, false)}, not a map`
    return {
      config: null,
      problems: [problem("", what, { allowed: `a map of ${TOP_NAMES.join(", ")}` })],
      clusters: []
    }
  }
  // consumer.group.protocol is read with its levels, flow by flow; without flows nobody needs it.
  const { "consumer.group.protocol": workerProtocol, ...rest } = root
  const top = decodeMap(topSettings, rest, [], strangeTopKey)
  const http = readSection(httpSettings, root, "http")
  const log = readSection(logSettings, root, "log")
  const clusters = readClusters(root, source)
  const list = readFlows(root)
  const shutdownTimeoutMs = top.partial["shutdown.timeout.ms"] ?? SHUTDOWN_TIMEOUT_MS
  const flows = list.list.map((raw, index) =>
    readFlow(raw, index, {
      source,
      folder,
      aliases: clusters.aliases,
      workerProtocol: {
        path: "consumer.group.protocol",
        level: "the worker's consumer.group.protocol",
        value: workerProtocol
      },
      shutdownTimeoutMs
    })
  )
  const between = checkBetweenFlows(flows, clusters.clusters)
  const found = [
    ...top.problems,
    ...http.problems,
    ...log.problems,
    ...clusters.problems,
    ...list.problems,
    ...flows.flatMap((f) => f.problems),
    ...between
  ]
  // A wrong worker-level protocol is found by every flow.
  const problems = found.filter((p, i) =>
    i === found.findIndex((other) => other.path === p.path && other.what === p.what)
  )
  if (problems.length > 0 || http.value === null || log.value === null) {
    return { config: null, problems, clusters: clusters.clusters }
  }
  const resolved = flows.map((f) => f.flow).filter((flow) => flow !== null)
  const config: ResolvedConfig = {
    path,
    clusters: new Map(clusters.clusters.map((cluster) => [cluster.alias, cluster])),
    flows: resolved,
    http: http.value.listen === false ? null : parseListen(http.value.listen),
    log: log.value,
    instanceId: top.partial["instance.id"] ?? null,
    shutdownTimeoutMs: Math.max(0, ...resolved.filter((flow) => flow.enabled).map((flow) => flow.shutdownTimeoutMs)),
    warnings: [...clusters.warnings, ...flows.flatMap((f) => f.warnings)]
  }
  return { config, problems: [], clusters: clusters.clusters }
}
