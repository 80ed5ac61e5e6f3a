/**
 * The life of the process: arguments in, exit code out, signals and crashes in between.
 *
 * Guarantees: SIGINT and SIGTERM stop the service in order (what is in flight is finished or released), exit 0; a
 * second signal ends the process at once with 1, and so does a stop that takes longer than it may; what nobody
 * caught is one line and exit 1. The exit is explicit, because native clients may keep the event loop alive.
 */
import { Cause, Effect, Exit, Fiber } from "effect"
import type { Environment } from "../config/references.ts"
import { parseCommandLine } from "./commandLine.ts"
import type { Pipeline } from "./ports.ts"
import { type Edges, FAILED, program } from "./program.ts"

/** Beyond shutdown.timeout.ms: what connections and native clients take to close. */
const CLOSING_MS = 20_000
const KEEP_ALIVE_MS = 0x7fff_ffff
const AGAIN = "what was read and not acknowledged is delivered again"

const say = (what: string): void => void process.stderr.write(`onceover: ${what}\n`)

/** Node writes a profile when a process ends by itself only. */
const isProfiled = (): boolean => process.execArgv.some((flag) => /^--(?:cpu|heap)-prof/.test(flag))

/**
 * Ends the process although a native client may still be at work: a member of a group that cannot be left blocks its
 * thread for a session time-out, and process.exit waits for all threads. So, behind everybody who has to write a last
 * line, the process becomes another one that only has the exit code.
 */
const endAtOnce = (code: number): never => {
  if (!isProfiled()) {
    process.once("exit", () => {
      try {
        process.execve?.(process.execPath, [process.execPath, "-e", `process.exit(${code})`], {})
      } catch {
        // Not where programs may not be started (Node's permissions): then threads are waited for.
      }
    })
  }
  return process.exit(code)
}

const crash = (error: unknown): never => {
  const words = error instanceof Error ? error.message : String(error)
  say(`internal error: ${words.split("\n")[0]}`)
  return endAtOnce(FAILED)
}

const watchForCrashes = (): void => {
  // A reader that has gone away (`onceover status | head`) is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => error.code === "EPIPE" ? process.exit(0) : crash(error))
  process.on("uncaughtException", crash)
  process.on("unhandledRejection", crash)
}

/** The first signal interrupts; `stopMs` is asked then, because a service says how long its stop may take. */
const watchForSignals = (fiber: Fiber.Fiber<number>, stopMs: () => number): void => {
  let stopping = false
  const stop = (): void => {
    if (stopping) {
      say(`stopped by a second signal; ${AGAIN}`)
      endAtOnce(FAILED)
    }
    stopping = true
    // Every finalizer has a bound of its own; this is for the one that has not.
    setTimeout(() => {
      say(`the stop took too long; ${AGAIN}`)
      endAtOnce(FAILED)
    }, stopMs() + CLOSING_MS).unref()
    Effect.runFork(Fiber.interrupt(fiber))
  }
  process.on("SIGINT", stop)
  process.on("SIGTERM", stop)
}

/** Runs a command line to the end of the process. `pipeline` is what run and check need; tests give their own. */
export const runProcess = (args: ReadonlyArray<string>, env: Environment, pipeline: Effect.Effect<Pipeline>): void => {
  watchForCrashes()
  /** null: no service runs, so no native client does. */
  let stopMs: number | null = null
  const edges: Edges = {
    env,
    pipeline,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    screen: process.stdout.isTTY === true
      ? {
        rows: () => process.stdout.rows,
        columns: () => process.stdout.columns,
        colours: env["NO_COLOR"] === undefined || env["NO_COLOR"] === ""
      }
      : null,
    terminals: { out: process.stdout.isTTY === true, err: process.stderr.isTTY === true },
    stopsWithin: (ms) => {
      stopMs = ms
    }
  }
  const fiber = Effect.runFork(program(parseCommandLine(args), edges))
  watchForSignals(fiber, () => stopMs ?? 0)
  // A service that only waits must not end because nothing is left to do for the event loop.
  setInterval(() => {}, KEEP_ALIVE_MS)
  fiber.addObserver((exit) => {
    const end = stopMs === null ? process.exit : endAtOnce
    if (Exit.isSuccess(exit)) end(exit.value)
    else if (Cause.hasInterruptsOnly(exit.cause)) end(0)
    else crash(Cause.squash(exit.cause))
  })
}
