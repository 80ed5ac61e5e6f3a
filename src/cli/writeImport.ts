/** Where `onceover import-mm2 --out` puts what it made. */
import { readFileSync, writeFileSync } from "node:fs"
import type { Imported } from "../config/mm2/load.ts"

const existing = (path: string): string | null => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return null
  }
}

/**
 * Writes the file, for its owner's eyes only where a secret is in it. A file that is there and says something else is
 * left alone. Returns what went wrong in a sentence; null: nothing.
 */
export const writeImport = (path: string, { secrets, yaml }: Imported): string | null => {
  const before = existing(path)
  if (before === yaml) return null
  if (before !== null) return `${path} is there already and says something else: remove it, or name another file`
  try {
    writeFileSync(path, yaml, { flag: "wx", mode: secrets ? 0o600 : 0o644 })
    return null
  } catch (error) {
    return `${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`
  }
}
