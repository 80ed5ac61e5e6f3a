/**
 * Effect's log through pino: one JSON object a line, or a line for people on a terminal.
 *
 * Guarantees: written before the call returns (a crash loses no line); a field whose name is that of a secret
 * setting is never written; an error is its message, without Effect's inner keys.
 */
import { Cause, Layer, Logger, type LogLevel as EffectLevel, References } from "effect"
import { type DestinationStream, type Logger as Pino, pino } from "pino"
import { PinoPretty } from "pino-pretty"
import type { LogFormat, LogLevel } from "../config/types.ts"
import { isSecretSetting } from "../wire/settings.ts"

const METHOD = { Fatal: "fatal", Error: "error", Warn: "warn", Info: "info", Debug: "debug", Trace: "trace" } as const
const MINIMUM = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error",
  fatal: "Fatal"
} as const satisfies Record<LogLevel, EffectLevel.LogLevel>

const MAX_DEPTH = 5

/** What may be written of a field. */
const safe = (value: unknown, depth: number): unknown => {
  if (value instanceof Error) return value.message
  if (typeof value === "bigint") return value.toString()
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return value
  if (value instanceof Map) return safe(Object.fromEntries(value), depth)
  if (Array.isArray(value)) return value.map((item: unknown) => safe(item, depth + 1))
  if (Object.getPrototypeOf(value) !== Object.prototype && Object.getPrototypeOf(value) !== null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, isSecretSetting(key) ? "<redacted>" : safe(inner, depth + 1)])
  )
}

/** Effect's messages as pino's: text is the message, plain objects are fields. */
export const toPino = (log: Pino): Logger.Logger<unknown, void> =>
  Logger.make(({ cause, fiber, logLevel, message }) => {
    if (logLevel === "All" || logLevel === "None") return
    const parts: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
    const isFields = (part: unknown): part is object =>
      typeof part === "object" && part !== null && !(part instanceof Error)
    const fields = {
      ...fiber.getRef(References.CurrentLogAnnotations),
      ...Object.assign({}, ...parts.filter(isFields)) as object
    }
    const why = cause.reasons.length > 0 ? { cause: Cause.pretty(cause) } : {}
    const text = parts.filter((part) => !isFields(part)).map((part) =>
      part instanceof Error ? part.message : String(part)
    ).join(" ")
    log[METHOD[logLevel]]({ ...safe(fields, 0) as object, ...why }, text)
  })

export interface LogOptions {
  readonly level: LogLevel
  readonly format: LogFormat
  /** 1: standard output, 2: standard error (where standard output is for a document). */
  readonly fd: 1 | 2
  readonly isTerminal: boolean
}

const destination = ({ format, fd, isTerminal }: LogOptions): DestinationStream => {
  const wantsPretty = format === "pretty" || (format === "auto" && isTerminal)
  if (!wantsPretty) return pino.destination({ dest: fd, sync: true })
  return PinoPretty({
    destination: fd,
    sync: true,
    colorize: isTerminal,
    ignore: "pid,hostname",
    translateTime: "SYS:HH:MM:ss.l",
    singleLine: true
  })
}

export const makePino = (options: LogOptions): Pino =>
  pino({ level: options.level, base: { pid: process.pid } }, destination(options))

/** Sends every log of the program to `log`, in place of Effect's own logger. */
export const layerLogging = (log: Pino, level: LogLevel): Layer.Layer<never> =>
  Layer.merge(Logger.layer([toPino(log)]), Layer.succeed(References.MinimumLogLevel, MINIMUM[level]))
