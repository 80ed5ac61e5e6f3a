/**
 * A command line to its effect: what is printed, and the exit code.
 *
 * Guarantees: 0 done (also when stopped by a signal), 1 failed at run time, 2 the command line or the configuration
 * is wrong; each failure is one line (a configuration's problems one line each) on standard error, never a stack.
 */
import { Cause, Effect, Exit, Option } from "effect"
import type { Logger as Pino } from "pino"
import { loadConfig } from "../config/load.ts"
import { importFile } from "../config/mm2/load.ts"
import { mm2Origins, type Origin } from "../config/mm2/origins.ts"
import { nearest } from "../config/nearest.ts"
import type { ConfigError } from "../config/problems.ts"
import type { Environment } from "../config/references.ts"
import type { ResolvedConfig } from "../config/types.ts"
import { VERSION } from "../version.ts"
import { renderCheck } from "./checkCommand.ts"
import { type CommandLine, UsageError } from "./commandLine.ts"
import { helpText } from "./commands.ts"
import { layerLogging, makePino } from "./logging.ts"
import { offsetsOk, renderOffsets } from "./offsetsCommand.ts"
import type { OffsetsLine } from "./offsetsLine.ts"
import type { Failure, Pipeline } from "./ports.ts"
import { fetchStatus, renderStatus } from "./statusCommand.ts"
import { type Screen, watchStatus } from "./watchCommand.ts"
import { renderVerify } from "./verifyCommand.ts"
import { openScreen } from "./verifyScreen.ts"
import { writeImport } from "./writeImport.ts"

/** The edges of the process, so that tests can put others in their place. */
export interface Edges {
  readonly env: Environment
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Standard output and standard error are terminals. */
  readonly terminals: { readonly out: boolean; readonly err: boolean }
  /** The terminal that standard output is; null: it is none. */
  readonly screen: Screen | null
  readonly pipeline: Effect.Effect<Pipeline>
  /** How long a stop of what runs now may take, milliseconds. */
  readonly stopsWithin: (ms: number) => void
}

export const DONE = 0
export const FAILED = 1
export const WRONG_USAGE = 2

/** One line, whatever the message holds. */
const oneLine = (text: string): string =>
  text.split("\n").map((line) => line.trim()).filter((line) => line !== "").join("; ")

const load = (file: string, edges: Edges): Effect.Effect<ResolvedConfig | null> =>
  loadConfig(file, edges.env).pipe(
    Effect.catch((error: ConfigError) => {
      for (const line of error.lines) edges.err(`${line}\n`)
      return Effect.succeed(null)
    })
  )

const messageOf = (error: unknown): string =>
  error instanceof Error
    ? error.message
    : typeof error === "object" && error !== null && "message" in error
    ? String(error.message)
    : String(error)

/** The end of a command as an exit code; a failure is said once, in words. */
const ended = <A>(
  exit: Exit.Exit<A, { readonly message: string }>,
  log: Pino | null,
  edges: Edges,
  code: (value: A) => number
): number => {
  if (Exit.isSuccess(exit)) return code(exit.value)
  // A signal interrupts this fiber too and never comes here: this is an interruption from within.
  const failure = Cause.findErrorOption(exit.cause)
  const words = Option.isSome(failure)
    ? failure.value.message
    : `internal error: ${messageOf(Cause.squash(exit.cause))}`
  const lines = Option.isSome(failure) ? words.split("\n").filter((line) => line.trim() !== "") : [oneLine(words)]
  for (const line of lines) {
    if (log === null) edges.err(`onceover: ${line}\n`)
    else log.fatal(line)
  }
  if (Option.isNone(failure)) log?.debug({ cause: Cause.pretty(exit.cause) }, "where the internal error happened")
  return FAILED
}

/** From a file of MirrorMaker 2: before anything is mirrored, the groups go on where it stopped. */
const takeOver = (
  pipeline: Pipeline,
  config: ResolvedConfig,
  origins: ReadonlyArray<Origin>,
  say: (line: string) => void
): Effect.Effect<void, Failure> =>
  origins.length === 0
    ? Effect.void
    : Effect.map(pipeline.takeMm2Positions(config, origins), (all) => {
      for (const { flow, offsetsTopic, partitions, reason } of all) {
        say(
          reason === null
            ? `flow ${flow} goes on where MirrorMaker 2 stopped: ${partitions} partitions by ${offsetsTopic}`
            : `flow ${flow}: nothing to take over from MirrorMaker 2: ${reason}`
        )
      }
    })

const run = (file: string, untilCaughtUp: boolean, edges: Edges): Effect.Effect<number> =>
  Effect.gen(function*() {
    const config = yield* load(file, edges)
    if (config === null) return WRONG_USAGE
    const log = makePino({ ...config.log, fd: 1, isTerminal: edges.terminals.out })
    for (const warning of config.warnings) log.warn(warning)
    edges.stopsWithin(config.shutdownTimeoutMs)
    const origins = yield* mm2Origins(file)
    const service = Effect.flatMap(edges.pipeline, (pipeline) =>
      Effect.andThen(
        takeOver(pipeline, config, origins, log.info.bind(log)),
        pipeline.runService(config, { untilCaughtUp })
      ))
    const exit = yield* Effect.exit(service.pipe(Effect.provide(layerLogging(log, config.log.level))))
    return ended(exit, log, edges, () => DONE)
  })

const check = (file: string, json: boolean, edges: Edges): Effect.Effect<number> =>
  Effect.gen(function*() {
    const config = yield* load(file, edges)
    if (config === null) return WRONG_USAGE
    // Standard output is for the report.
    const level = config.log.level === "info" ? "warn" : config.log.level
    const log = makePino({ ...config.log, level, fd: 2, isTerminal: edges.terminals.err })
    for (const warning of config.warnings) log.warn(warning)
    const service = Effect.flatMap(edges.pipeline, (pipeline) => pipeline.checkService(config))
    const exit = yield* Effect.exit(service.pipe(Effect.provide(layerLogging(log, level))))
    return ended(exit, null, edges, (report) => {
      edges.out(json ? `${JSON.stringify(report, null, 2)}\n` : renderCheck(report))
      return report.ok ? DONE : FAILED
    })
  })

const status = (url: URL, { json, watch }: { readonly json: boolean; readonly watch: boolean }, edges: Edges) =>
  watch
    ? watchStatus(fetchStatus(url), json, { out: edges.out, err: edges.err, screen: edges.screen })
    : Effect.map(Effect.exit(fetchStatus(url)), (exit) =>
      ended(exit, null, edges, ({ text, status: document }) => {
        edges.out(json ? text : renderStatus(document))
        return DONE
      }))

type VerifyLine = Extract<CommandLine, { readonly command: "verify" }>

const verify = ({ file, json, options }: VerifyLine, edges: Edges): Effect.Effect<number> =>
  Effect.gen(function*() {
    const config = yield* load(file, edges)
    if (config === null) return WRONG_USAGE
    const names = config.flows.map(({ name }) => name)
    if (options.flow !== null && !names.includes(options.flow)) {
      const guess = nearest(options.flow, names)
      const meant = guess === null ? "" : `; did you mean "${guess}"?`
      edges.err(`onceover: --flow is "${options.flow}"; allowed: ${names.join(", ")}${meant}\n`)
      return WRONG_USAGE
    }
    const level = config.log.level === "info" ? "warn" : config.log.level
    const log = makePino({ ...config.log, level, fd: 2, isTerminal: edges.terminals.err })
    const screen = yield* Effect.promise(() => openScreen(edges.terminals.err, edges.err))
    const service = Effect.flatMap(
      edges.pipeline,
      (pipeline) => pipeline.verifyService(config, options, screen.show)
    )
    const exit = yield* Effect.exit(service.pipe(
      Effect.provide(layerLogging(log, level)),
      Effect.ensuring(Effect.sync(screen.end))
    ))
    return ended(exit, null, edges, (report) => {
      edges.out(json ? `${JSON.stringify(report, null, 2)}\n` : renderVerify(report))
      return report.equal ? DONE : FAILED
    })
  })

const importMm2 = (file: string, out: string | null, edges: Edges): Effect.Effect<number> =>
  importFile(file).pipe(
    Effect.map((imported) => {
      const wrong = out === null ? null : writeImport(out, imported)
      if (out === null) edges.out(imported.yaml)
      if (wrong !== null) edges.err(`onceover: ${wrong}\n`)
      return wrong === null ? DONE : FAILED
    }),
    Effect.catch((error) => {
      for (const line of error.lines) edges.err(`${line}\n`)
      return Effect.succeed(WRONG_USAGE)
    })
  )

/** `--take-over`: what `run` does by itself where it is given the file, for those who run what was made from it. */
const takeOverOnly = (file: string, edges: Edges): Effect.Effect<number> =>
  Effect.gen(function*() {
    const config = yield* load(file, edges)
    if (config === null) return WRONG_USAGE
    const origins = yield* mm2Origins(file)
    const say = (line: string): void => edges.err(`onceover: ${line}\n`)
    const log = makePino({ ...config.log, level: "warn", fd: 2, isTerminal: edges.terminals.err })
    const work = Effect.flatMap(edges.pipeline, (pipeline) => takeOver(pipeline, config, origins, say))
    return ended(yield* Effect.exit(work.pipe(Effect.provide(layerLogging(log, "warn")))), null, edges, () => DONE)
  })

const offsets = ({ file, json, request }: OffsetsLine, edges: Edges): Effect.Effect<number> =>
  Effect.gen(function*() {
    const config = yield* load(file, edges)
    if (config === null) return WRONG_USAGE
    const log = makePino({ ...config.log, level: "warn", fd: 2, isTerminal: edges.terminals.err })
    const asked = Effect.flatMap(edges.pipeline, (pipeline) => pipeline.offsetsOf(config, request))
    const exit = yield* Effect.exit(asked.pipe(Effect.provide(layerLogging(log, "warn"))))
    return ended(exit, null, edges, (rows) => {
      const { question } = request
      const commit = question.kind === "group" && question.commit
      const back = question.kind !== "list" && question.reverse
      edges.out(json ? `${JSON.stringify(rows, null, 2)}\n` : renderOffsets(rows, back))
      return question.kind === "list" || offsetsOk(rows, commit) ? DONE : FAILED
    })
  })

/** Runs a command line; the effect's value is the exit code. Never fails. */
export const program = (line: CommandLine | UsageError, edges: Edges): Effect.Effect<number> =>
  Effect.suspend(() => {
    if (line instanceof UsageError) {
      edges.err(`onceover: ${line.message}\n`)
      return Effect.succeed(WRONG_USAGE)
    }
    switch (line.command) {
      case "help":
        edges.out(helpText(line.of))
        return Effect.succeed(DONE)
      case "version":
        edges.out(`${VERSION}\n`)
        return Effect.succeed(DONE)
      case "run":
        return run(line.file, line.untilCaughtUp, edges)
      case "check":
        return check(line.file, line.json, edges)
      case "verify":
        return verify(line, edges)
      case "import-mm2":
        return Effect.flatMap(
          importMm2(line.file, line.out, edges),
          (code) => code === DONE && line.takeOver ? takeOverOnly(line.file, edges) : Effect.succeed(code)
        )
      case "offsets":
        return offsets(line, edges)
      case "status":
        return status(line.url, line, edges)
    }
  })
