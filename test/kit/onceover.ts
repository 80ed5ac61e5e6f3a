/**
 * The program as its users run it: `bin/onceover` as a process of its own, with a configuration file, judged by its
 * exit code, its log, its HTTP answers and what other clients see on the clusters.
 *
 *   const mirror = await startOnceover({ config: mirrorConfig(source, target, { topics: ["orders"] }) })
 *   await mirror.untilRunning()
 *   await mirror.kill("SIGKILL")
 *   const { code } = await mirror.exited
 *   await mirror.dispose()               // kills what still runs, removes the folder
 */
import { type ChildProcess, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Bootstrap } from "./loader.ts"
import { makeWorkFolder, projectRoot } from "./paths.ts"
import { releasePorts, takePorts } from "./ports.ts"
import { startReaper } from "./reaper.ts"
import { until, within } from "./until.ts"

export type Config = Readonly<Record<string, unknown>>

export interface Exit {
  /** null: ended by a signal. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A line of its log. */
export interface LogLine {
  readonly level?: number
  readonly msg?: string
  readonly [key: string]: unknown
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface FlowState {
  readonly name: string
  readonly state: string
  readonly reason: string | null
  readonly guarantee: {
    readonly wanted: string
    readonly effective: string | null
    readonly binding: string | null
    readonly reasons: ReadonlyArray<string>
  }
  readonly totals: Readonly<Record<string, number>>
  /** The control tasks of the flow; those that are on. */
  readonly control?: ReadonlyArray<{
    readonly task: string
    readonly state: string
    readonly reasons: ReadonlyArray<string>
  }>
  readonly partitions: ReadonlyArray<{
    readonly topic: string
    readonly partition: number
    readonly position: number | null
    readonly lag: number | null
    readonly state: string
    readonly reason: string | null
  }>
}

export interface Onceover {
  readonly pid: number
  /** "http://127.0.0.1:PORT". */
  readonly url: string
  readonly configFile: string
  readonly exited: Promise<Exit>
  /** Standard output and error so far, as they came. */
  readonly output: () => string
  /** The lines that are JSON. */
  readonly logs: () => ReadonlyArray<LogLine>
  readonly kill: (signal: NodeJS.Signals) => Promise<void>
  /** Waits for the end; fails with the output when it does not come. */
  readonly exit: (timeoutMs?: number) => Promise<Exit>
  /** The document of /status; undefined while there is none. */
  readonly status: () => Promise<{ readonly flows: ReadonlyArray<FlowState> } | undefined>
  readonly get: (path: string) => Promise<{ readonly status: number; readonly body: string }>
  /** Metrics by name, each with its label sets. */
  readonly metrics: () => Promise<ReadonlyMap<string, ReadonlyArray<Sample>>>
  /** Waits until every flow says that it runs. */
  readonly untilRunning: (timeoutMs?: number) => Promise<void>
  readonly dispose: () => Promise<void>
}

export interface StartOptions {
  /** Written as JSON, which YAML contains; http.listen is filled in when it is not there. A string is taken as it is. */
  readonly config: Config | string
  /** Default "flows.yaml"; "mm2.properties" for a file of MirrorMaker 2. */
  readonly file?: string
  /** Default ["run", FILE]; FILE is put behind the first word. */
  readonly args?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
}

const parseLine = (line: string): ReadonlyArray<LogLine> => {
  if (!line.startsWith("{")) return []
  try {
    return [JSON.parse(line) as LogLine]
  } catch {
    return []
  }
}

const parseLabels = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value])
  )

/** The lines of an output that are JSON. */
export const parseLogs = (output: string): ReadonlyArray<LogLine> => output.split("\n").flatMap(parseLine)

/** Prometheus text; histograms come as their _bucket, _sum and _count. */
export const parseMetrics = (text: string): ReadonlyMap<string, ReadonlyArray<Sample>> => {
  const found = new Map<string, Array<Sample>>()
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)/.exec(line)
    if (match === null) continue
    const [, name, labels = "", value] = match as unknown as [string, string, string | undefined, string]
    const samples = found.get(name) ?? []
    samples.push({ labels: parseLabels(labels), value: Number(value) })
    found.set(name, samples)
  }
  return found
}

const collect = (child: ChildProcess): () => string => {
  const chunks: Array<string> = []
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8")
    stream?.on("data", (chunk: string) => chunks.push(chunk))
  }
  return () => chunks.join("")
}

const fetchText = async (url: string): Promise<{ readonly status: number; readonly body: string }> => {
  const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) })
  return { status: answer.status, body: await answer.text() }
}

export const startOnceover = async (options: StartOptions): Promise<Onceover> => {
  const folder = makeWorkFolder("onceover")
  const [port] = await takePorts(1) as [number]
  const url = `http://127.0.0.1:${port}`
  const configFile = join(folder, options.file ?? "flows.yaml")
  const { config } = options
  const text = typeof config === "string"
    ? config
    : JSON.stringify({ http: { listen: `127.0.0.1:${port}` }, ...config }, null, 2)
  writeFileSync(configFile, text)
  const [command = "run", ...rest] = options.args ?? []
  const child = spawn(join(projectRoot, "bin/onceover"), [...command.split(" "), configFile, ...rest], {
    cwd: folder,
    detached: true,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  const reaper = startReaper([folder])
  reaper.watch(child.pid === undefined ? [] : [child.pid])
  const output = collect(child)
  const exited = new Promise<Exit>((resolve) => {
    child.once("error", () => resolve({ code: null, signal: null }))
    child.once("close", (code, signal) => resolve({ code, signal }))
  })
  const running = () => child.exitCode === null && child.signalCode === null
  const get = (path: string) => fetchText(url + path)
  const status = async () => {
    try {
      const { body, status: code } = await get("/status")
      return code === 200 ? JSON.parse(body) as { flows: ReadonlyArray<FlowState> } : undefined
    } catch {
      return undefined
    }
  }
  const tail = () => output().split("\n").slice(-40).join("\n")
  return {
    pid: child.pid ?? -1,
    url,
    configFile,
    exited,
    output,
    logs: () => parseLogs(output()),
    kill: async (signal) => {
      child.kill(signal)
      if (signal === "SIGKILL") await exited
    },
    exit: (timeoutMs = 120_000) =>
      within(exited, { timeoutMs, what: () => `onceover ${command} to end; its output ends with\n${tail()}` }),
    status,
    get,
    metrics: async () => parseMetrics((await get("/metrics")).body),
    untilRunning: async (timeoutMs = 60_000) => {
      await until(async () => {
        if (!running()) return "ended"
        const flows = (await status())?.flows ?? []
        return flows.length > 0 && flows.every(({ state }) => state === "running")
      }, { timeoutMs, what: () => `onceover to run; its output ends with\n${tail()}` })
      if (!running()) throw new Error(`onceover ended before it ran; its output ends with\n${tail()}`)
    },
    dispose: async () => {
      if (running()) {
        child.kill("SIGKILL")
        await exited
      }
      rmSync(folder, { recursive: true, force: true })
      releasePorts([port])
      reaper.end()
    }
  }
}

/** Runs a command to its end: `runOnceover({ config, args: ["check", "--json"] })`. */
export const runOnceover = async (
  options: StartOptions & { readonly timeoutMs?: number }
): Promise<Exit & { readonly output: string }> => {
  const process = await startOnceover(options)
  try {
    const exit = await process.exit(options.timeoutMs)
    return { ...exit, output: process.output() }
  } finally {
    await process.dispose()
  }
}

/** Test files share clusters: flows of one name would share a ledger, a leader and notes. The same topics, the same name. */
const nameOf = (flow: Config): string =>
  `flow-${createHash("sha256").update(JSON.stringify(flow["topics"] ?? null)).digest("hex").slice(0, 10)}`

/** A configuration of one flow between two test clusters, source alias "east", target alias "west". */
export const mirrorConfig = (source: Bootstrap, target: Bootstrap, flow: Config, top: Config = {}): Config => ({
  clusters: {
    east: { "bootstrap.servers": source.bootstrap },
    west: { "bootstrap.servers": target.bootstrap }
  },
  flows: [{ name: nameOf(flow), source: "east", target: "west", "refresh.topics.interval.seconds": 1, ...flow }],
  ...top
})
