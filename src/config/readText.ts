/** Text files of a configuration, and why one cannot be read, in words. */
import { Effect } from "effect"
import { readFile } from "node:fs/promises"

/** A configuration is text; this is far above any. */
const MAX_BYTES = 10_000_000

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EACCES: "permission denied",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of its path is not a folder",
  ELOOP: "its symbolic links go in circles"
}

/** The text of a file, or why it cannot be read, in words. */
export const readText = (path: string): Effect.Effect<string, string> =>
  Effect.tryPromise({
    try: async () => {
      const bytes = await readFile(path)
      return { tooLarge: bytes.length > MAX_BYTES, text: bytes.length > MAX_BYTES ? "" : bytes.toString("utf8") }
    },
    catch: (cause) => {
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
      return REASONS[code] ?? code
    }
  }).pipe(Effect.flatMap(({ tooLarge, text }) =>
    tooLarge ? Effect.fail(`it is larger than ${MAX_BYTES} bytes`) : Effect.succeed(text)
  ))
