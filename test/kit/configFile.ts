/** Configuration files for tests: written to a folder that is gone afterwards, and loaded from there. */
import { Effect, Result, type Scope } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { stringify } from "yaml"
import { loadConfig } from "../../src/config/load.ts"
import { renderProblem } from "../../src/config/problems.ts"
import type { Problem } from "../../src/config/problems.ts"
import type { ResolvedConfig, ResolvedFlow } from "../../src/config/types.ts"

export interface Loaded {
  readonly config: ResolvedConfig | null
  readonly problems: ReadonlyArray<Problem>
  /** "flows[0].topics is ...", without file and line. */
  readonly lines: ReadonlyArray<string>
}

export interface LoadOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Files beside the configuration, by name. */
  readonly files?: Readonly<Record<string, string>>
  readonly name?: string
}

const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "onceover-config-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Loads a text as a configuration file. */
export const loadText = (text: string, options: LoadOptions = {}): Effect.Effect<Loaded> =>
  Effect.scoped(Effect.gen(function*() {
    const where = yield* folder
    const path = join(where, options.name ?? "mirror.yaml")
    writeFileSync(path, text)
    for (const [name, content] of Object.entries(options.files ?? {})) writeFileSync(join(where, name), content)
    const result = yield* Effect.result(loadConfig(path, options.env ?? {}))
    if (Result.isSuccess(result)) return { config: result.success, problems: [], lines: [] }
    return { config: null, problems: result.failure.problems, lines: result.failure.problems.map(renderProblem) }
  }))

export type Plain = Readonly<Record<string, unknown>>

export const CLUSTERS = {
  east: { "bootstrap.servers": "127.0.0.1:19092" },
  west: { "bootstrap.servers": "127.0.0.1:29092" }
}

/** The smallest configuration, with these keys over it; `flow` goes over its one flow. */
export const minimal = (over: Plain = {}, flow: Plain = {}): Plain => ({
  clusters: CLUSTERS,
  flows: [{ source: "east", target: "west", ...flow }],
  ...over
})

export const load = (value: unknown, options: LoadOptions = {}): Effect.Effect<Loaded> =>
  loadText(stringify(value), options)

/** One flow with these keys. */
export const loadFlow = (flow: Plain, over: Plain = {}): Effect.Effect<Loaded> => load(minimal(over, flow))

/** The flow of a configuration that is right. Dies with the problems when it is not. */
export const flowOf = (loaded: Loaded): ResolvedFlow => {
  const flow = loaded.config?.flows[0]
  if (flow === undefined) throw new Error(`refused: ${loaded.lines.join("\n")}`)
  return flow
}
