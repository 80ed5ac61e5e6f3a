/**
 * What is wrong with a configuration, as data and in words. All problems of a file are reported together.
 *
 * Guarantee: no secret is in a problem's text: `shown` replaces the value of a secret key, and long values are cut.
 */
import { Effect, Schema } from "effect"

export const ProblemSchema = Schema.Struct({
  /** "flows[0].topics"; "" for the file as a whole. */
  path: Schema.String,
  /** 1-based line in the file, or null where there is none. */
  line: Schema.NullOr(Schema.Int),
  /** What is wrong, after the path: `is "shar"`, `is missing`. */
  what: Schema.String,
  /** What is allowed: "share, consumer". */
  allowed: Schema.NullOr(Schema.String),
  /** The nearest valid name or value. */
  nearest: Schema.NullOr(Schema.String)
})
export interface Problem extends Schema.Schema.Type<typeof ProblemSchema> {}

/** A problem, with what is not known left out. */
export const problem = (
  path: string,
  what: string,
  more: {
    readonly allowed?: string | undefined
    readonly nearest?: string | null | undefined
    readonly line?: number
  } = {}
): Problem => ({
  path,
  what,
  line: more.line ?? null,
  allowed: more.allowed ?? null,
  nearest: more.nearest ?? null
})

const MAX_SHOWN = 80

/** A value as it may be shown. */
export const shown = (value: unknown, secret: boolean): string => {
  if (secret) return "<redacted>"
  if (value === null || value === undefined) return "empty"
  if (typeof value === "bigint") return String(value)
  if (typeof value === "object") {
    return Array.isArray(value)
      ? (value.length === 0 ? "an empty list" : "a list")
      : "a map"
  }
  const text = JSON.stringify(value)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…"` : text
}

/** One problem as one line, without the file's name. */
export const renderProblem = (p: Problem): string => {
  const allowed = p.allowed === null ? "" : `; allowed: ${p.allowed}`
  const guess = p.nearest === null ? "" : `; did you mean "${p.nearest}"?`
  return `${p.path === "" ? "" : `${p.path} `}${p.what}${allowed}${guess}`
}

/** The file cannot be used. Exit code 2. */
export class ConfigError extends Schema.TaggedError<ConfigError>()("ConfigError", {
  file: Schema.String,
  problems: Schema.NonEmptyArray(ProblemSchema)
}) {
  /** One line for each problem: "mirror.yaml:12: flows[0].topicz is not a setting; did you mean "topics"?" */
  get lines(): ReadonlyArray<string> {
    return this.problems.map((p) => `${this.file}${p.line === null ? "" : `:${p.line}`}: ${renderProblem(p)}`)
  }
  override get message(): string {
    return this.lines.join("\n")
  }
}

/** Fails with all of them. None at all is a bug of the caller. */
export const failWith = (file: string, problems: ReadonlyArray<Problem>): Effect.Effect<never, ConfigError> => {
  const [first, ...others] = problems
  return first === undefined
    ? Effect.die(new Error("a configuration was refused without a problem"))
    : Effect.fail(new ConfigError({ file, problems: [first, ...others] }))
}
