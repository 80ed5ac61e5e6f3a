/**
 * Reads a configuration file from the disk: the file, the properties files that it refers to, the environment.
 *
 * Guarantee: `loadConfig` either gives a configuration that is consistent in itself, or fails with a ConfigError that
 * lists everything that is wrong (exit code 2). It connects to nothing and changes nothing.
 */
import { Effect, Result } from "effect"
import { dirname, resolve } from "node:path"
import { adminSettings, sourceSettings, targetSettings } from "./clients.ts"
import { isSecretSetting, parseClientConfig, type SettingsError } from "../wire/settings.ts"
import { parseSecurity } from "../wire/security.ts"
import { resolveFile } from "./file.ts"
import { type ConfigError, failWith, type Problem, problem } from "./problems.ts"
import { asTree } from "./mm2/asTree.ts"
import { importMm2, warningsOf } from "./mm2/import.ts"
import { readMm2 } from "./mm2/written.ts"
import { readProperties } from "./properties.ts"
import { readText } from "./readText.ts"
import { type Environment, type LoadedFile, referencedFiles, replaceReferences } from "./references.ts"
import { readTree, type SourceTree } from "./tree.ts"
import type { ClientSettingValues, ResolvedCluster, ResolvedConfig } from "./types.ts"

const loadProperties = (path: string, folder: string): Effect.Effect<LoadedFile> =>
  readText(resolve(folder, path)).pipe(
    Effect.map((text): LoadedFile => {
      const file = readProperties(text)
      return file.malformed.length === 0
        ? { ok: true, file }
        : { ok: false, why: `line ${file.malformed[0]} has a malformed \\u escape` }
    }),
    Effect.catch((why) => Effect.succeed<LoadedFile>({ ok: false, why }))
  )

/** Settings of one place as the connection layer is given them, and where each stands in the file. */
interface ForTheWire {
  readonly settings: ClientSettingValues
  readonly pathOf: (key: string) => string
}

/** What the connection layer says of settings: certificates that are not there, a JAAS line that it cannot read. */
const checkByWire = ({ settings, pathOf }: ForTheWire): Effect.Effect<ReadonlyArray<Problem>> => {
  const asProblem = (error: SettingsError): Problem => {
    const value = isSecretSetting(error.key)
      ? "is not usable"
      : error.value === "" || error.value === "not set"
      ? "is missing"
      : `is ${JSON.stringify(error.value)}`
    return problem(pathOf(error.key), value, { allowed: error.allowed })
  }
  const said = (checked: Effect.Effect<unknown, SettingsError>) =>
    Effect.result(checked).pipe(Effect.map((result) => Result.isSuccess(result) ? [] : [asProblem(result.failure)]))
  if (settings["bootstrap.servers"] === undefined) return Effect.succeed([])
  return Effect.map(Effect.all([said(parseClientConfig(settings)), said(parseSecurity(settings))]), (all) => all.flat())
}

const ofClusters = (clusters: ReadonlyArray<ResolvedCluster>): ReadonlyArray<ForTheWire> =>
  clusters.map(({ alias, settings }) => ({ settings, pathOf: (key) => `clusters.${alias}.${key}` }))

/** The ends of flows that override something; the clusters alone have been checked before. */
const ofFlows = (config: ResolvedConfig): ReadonlyArray<ForTheWire> =>
  config.flows.flatMap((flow, index) => {
    const end = (
      prefix: string,
      overrides: ClientSettingValues,
      settings: ClientSettingValues
    ): ReadonlyArray<ForTheWire> =>
      Object.keys(overrides).length === 0
        ? []
        : [{ settings, pathOf: (key) => `flows[${index}].${prefix}.override.${key}` }]
    return [
      ...end("consumer", flow.consumerOverrides, sourceSettings(config, flow)),
      ...end("producer", flow.producerOverrides, targetSettings(config, flow)),
      ...end("admin", flow.adminOverrides, adminSettings(config, flow, "target"))
    ]
  })

const inOrder = (problems: ReadonlyArray<Problem>): ReadonlyArray<Problem> =>
  problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))

/** A file's text as the tree that is resolved. */
interface Parsed {
  readonly tree: SourceTree
  /** Why there is no tree to go on with. */
  readonly unread: ReadonlyArray<Problem>
  /** What has no effect, for the log. */
  readonly warnings: ReadonlyArray<string>
  /** All that is wrong with the file, given what is wrong with the tree: in the names of the file, with their lines. */
  readonly told: (problems: ReadonlyArray<Problem>) => ReadonlyArray<Problem>
}

const parse = (path: string, text: string): Parsed => {
  const mm2 = readMm2(path, text)
  if (mm2 === null) {
    const { problems, tree } = readTree(text)
    const located = (p: Problem): Problem => p.path === "" ? p : { ...p, line: p.line ?? tree.line(p.path) }
    return { tree, unread: problems, warnings: [], told: (found) => found.map(located) }
  }
  const draft = importMm2(mm2)
  const { together, tree } = asTree(draft)
  const told = (found: ReadonlyArray<Problem>) => together(draft.problems, found)
  return { tree, unread: [], warnings: warningsOf(draft, path), told }
}

/**
 * A configuration from its text, as `loadConfig` takes it from a file. `path` names it in messages, and files that it
 * refers to are found from its folder.
 */
export const parseConfig = Effect.fn("parseConfig")(
  function*(text: string, env: Environment, path: string): Effect.fn.Return<ResolvedConfig, ConfigError> {
    const { told, tree, unread, warnings } = parse(path, text)
    if (unread.length > 0) return yield* failWith(path, unread)
    const folder = dirname(resolve(path))
    const files = new Map<string, LoadedFile>()
    for (const file of referencedFiles(tree.root)) files.set(file, yield* loadProperties(file, folder))
    const replaced = replaceReferences(tree.root, { env, files })
    const resolution = resolveFile({ path, folder, source: tree, root: replaced.tree })
    const wire = (yield* Effect.all(ofClusters(resolution.clusters).map(checkByWire))).flat()
    // A value whose reference was not found is wrong for that reason only.
    const blamed = new Set(replaced.problems.map((p) => p.path))
    const known = new Set(resolution.problems.map((p) => p.path))
    const wrong = told([
      ...replaced.problems,
      ...resolution.problems.filter((p) => !blamed.has(p.path)),
      ...wire.filter((p) => !blamed.has(p.path) && !known.has(p.path))
    ])
    if (wrong.length > 0 || resolution.config === null) return yield* failWith(path, inOrder(wrong))
    const inFlows = (yield* Effect.all(ofFlows(resolution.config).map(checkByWire))).flat()
    if (inFlows.length > 0) return yield* failWith(path, inOrder(told(inFlows)))
    return { ...resolution.config, warnings: [...warnings, ...resolution.config.warnings] }
  }
)

/**
 * Loads the file at `path`. `env` is the environment for `${env:NAME}`.
 *
 * Fails with ConfigError for whatever is wrong: the file, its syntax, a key, a value, a reference.
 */
export const loadConfig = Effect.fn("loadConfig")(
  function*(path: string, env: Environment): Effect.fn.Return<ResolvedConfig, ConfigError> {
    const read = yield* Effect.result(readText(path))
    if (Result.isFailure(read)) return yield* failWith(path, [problem("", `cannot be read: ${read.failure}`)])
    return yield* parseConfig(read.success, env, path)
  }
)
