/**
 * The process: arguments in, exit code out, signals and crashes in between.
 *
 * Guarantees: SIGINT and SIGTERM stop the service in order (what is in flight is finished or released), exit 0; a
 * second signal ends the process at once with 1; what nobody caught is one line and exit 1. The exit is explicit,
 * because native clients may keep the event loop alive.
 */
import { Cause, Effect, Exit, Fiber } from "effect"
import { parseCommandLine } from "./commandLine.ts"
import { FAILED, processEdges, program } from "./program.ts"

const complain = (what: string, error: unknown): void => {
  const words = error instanceof Error ? error.message : String(error)
  process.stderr.write(`onceover: ${what}: ${words.split("\n")[0]}\n`)
}

/** A reader that has gone away (`onceover status | head`) is no failure. */
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : FAILED))
process.on("uncaughtException", (error) => {
  complain("internal error", error)
  process.exit(FAILED)
})
process.on("unhandledRejection", (error) => {
  complain("internal error", error)
  process.exit(FAILED)
})

/** Beyond shutdown.timeout.ms: what connections and native clients take to close. */
const CLOSING_MS = 20_000
let stopMs = 0
const edges = processEdges(process.env, (ms) => {
  stopMs = ms
})
const fiber = Effect.runFork(program(parseCommandLine(process.argv.slice(2)), edges))

let stopping = false
const stop = (): void => {
  if (stopping) {
    process.stderr.write("onceover: stopped by a second signal; what was read and not acknowledged is delivered again\n")
    process.exit(FAILED)
  }
  stopping = true
  // Every finalizer has a bound of its own; this is for the one that has not.
  setTimeout(() => {
    process.stderr.write("onceover: the stop took too long; what was read and not acknowledged is delivered again\n")
    process.exit(FAILED)
  }, stopMs + CLOSING_MS).unref()
  Effect.runFork(Fiber.interrupt(fiber))
}
process.on("SIGINT", stop)
process.on("SIGTERM", stop)

fiber.addObserver((exit) => {
  if (Exit.isSuccess(exit)) process.exit(exit.value)
  if (Cause.hasInterruptsOnly(exit.cause)) process.exit(0)
  complain("internal error", Cause.squash(exit.cause))
  process.exit(FAILED)
})
