/**
 * Regular expressions as users of MirrorMaker 2 write them: Java's dialect, run by JavaScript's engine.
 *
 * Guarantee: a pattern that would mean something else here than in Java is refused in words, never run. A leading
 * (?i) is translated.
 */

export type ParsedPattern = { readonly ok: true; readonly source: string } | {
  readonly ok: false
  readonly why: string
}

/** What Java knows and JavaScript reads in silence as something else. */
const JAVA_ONLY: ReadonlyArray<readonly [RegExp, string]> = [
  [/\\[pP]\{/, "\\p{...} classes"],
  [/\\Q|\\E/, "\\Q...\\E quoting"],
  [/\\[AzZGhHvVRX]/, "the escapes \\A, \\z, \\Z, \\G, \\h, \\H, \\R and \\X"],
  [/\[[^\]]*&&/, "intersections of classes (&&)"]
]

const compile = (source: string): string | null => {
  try {
    new RegExp(`^(?:${source})$`)
    return null
  } catch (error) {
    return error instanceof Error
      ? error.message.replace(/^Invalid regular expression: \/.*\/\w*: /, "")
      : String(error)
  }
}

/** Checks a pattern; `source` is what `new RegExp` takes, not anchored. */
export const parsePattern = (pattern: string): ParsedPattern => {
  if (pattern === "") return { ok: false, why: "is an empty pattern, which matches nothing" }
  // An escaped backslash is a plain character: what follows it is not an escape.
  const escapesOnly = pattern.replaceAll("\\\\", "")
  const foreign = JAVA_ONLY.find(([form]) => form.test(escapesOnly))
  if (foreign !== undefined) {
    return { ok: false, why: `uses ${foreign[1]}, which JavaScript's regular expressions do not have` }
  }
  const source = pattern.startsWith("(?i)") ? `(?i:${pattern.slice(4)})` : pattern
  const why = compile(source)
  if (why === null) return { ok: true, source }
  // As names are matched in a shell.
  const meant = /^[*?+]/.test(source) ? `; .${source} is meant, where anything may stand there` : ""
  return { ok: false, why: `is not a regular expression (${why}${meant})` }
}
