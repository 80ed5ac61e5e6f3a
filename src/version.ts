/** The version in package.json, for `--version`, /status and the metrics. */
import { readFileSync } from "node:fs"

const read = (): string => {
  const found: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
  return typeof found === "object" && found !== null && "version" in found ? String(found.version) : "unknown"
}

export const VERSION: string = read()
