/**
 * `onceover status --watch`: the state again and again. On a terminal it is drawn in place, cut to the screen, and
 * the terminal is given back as it was; elsewhere each state follows the one before. A service that does not answer
 * is said and asked again: it may be restarting.
 */
import { Effect, Exit } from "effect"
import type { StatusDocument } from "../metrics/status.ts"
import { renderStatus, type StatusError } from "./statusCommand.ts"

export interface Screen {
  readonly rows: () => number
  readonly columns: () => number
  readonly colours: boolean
}

interface Outputs {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** null: standard output is no terminal. */
  readonly screen: Screen | null
}

const EVERY = "2 seconds"

const ENTER = "\u001b[?1049h\u001b[?25l"
const LEAVE = "\u001b[?25h\u001b[?1049l"
const HOME = "\u001b[H"
const END_OF_LINE = "\u001b[K"
const END_OF_SCREEN = "\u001b[J"

const painted = (colour: number, text: string): string => `\u001b[${colour}m${text}\u001b[0m`
const COLOURS: Readonly<Record<string, number>> = { running: 32, blocked: 31, failed: 31, problem: 31 }
const colourOf = (state: string): number => COLOURS[state] ?? 33

/** The words that say how it stands, in the colour that says it too. The text is cut before. */
const paint = (line: string): string =>
  line
    .replace(/^( {2}state {6})(\w+)/, (_, head: string, state: string) => head + painted(colourOf(state), state))
    .replace(/^( {2}.* {2})(blocked|failed)(: |$)/, (_, head: string, state: string, tail: string) =>
      head + painted(colourOf(state), state) + tail)

/** One picture of the whole screen, without a line that would scroll it. */
export const frame = (text: string, screen: Screen): string => {
  const lines = text.trimEnd().split("\n")
  const rows = Math.max(2, screen.rows()) - 1
  const over = lines.length - rows
  const shown = over <= 0
    ? lines
    : [...lines.slice(0, rows - 1), `... ${over + 1} more lines; onceover status shows all`]
  const drawn = shown.map((line) => {
    const cut = line.slice(0, screen.columns())
    return (screen.colours ? paint(cut) : cut) + END_OF_LINE
  })
  return `${HOME}${drawn.join("\r\n")}\r\n${END_OF_SCREEN}`
}

/** Never ends by itself. */
export const watchStatus = (
  fetch: Effect.Effect<{ readonly text: string; readonly status: StatusDocument }, StatusError>,
  json: boolean,
  { err, out, screen }: Outputs
): Effect.Effect<never> => {
  const drawn = json ? null : screen
  const look = Effect.gen(function*() {
    const exit = yield* Effect.exit(fetch)
    if (Exit.isSuccess(exit)) {
      const { status } = exit.value
      if (json) out(`${JSON.stringify(JSON.parse(exit.value.text))}\n`)
      else out(drawn === null ? `${renderStatus(status)}\n` : frame(renderStatus(status), drawn))
    } else {
      const words = exit.cause.reasons.flatMap((reason) => reason._tag === "Fail" ? [reason.error.message] : []).join(
        "; "
      )
      if (drawn === null) err(`onceover: ${words}\n`)
      else out(frame(words, drawn))
    }
    yield* Effect.sleep(EVERY)
  })
  return drawn === null ? Effect.forever(look) : Effect.acquireUseRelease(
    Effect.sync(() => out(ENTER)),
    () => Effect.forever(look),
    () => Effect.sync(() => out(LEAVE))
  )
}
