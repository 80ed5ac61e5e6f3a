/** What the figures were measured on. No names of machines or folders. */
import { execFileSync } from "node:child_process"
import { cpus, loadavg, release, totalmem, type } from "node:os"
import { projectRoot, versions } from "../test/kit/paths.ts"
import { VERSION as onceover } from "../src/version.ts"
import { javaCommand } from "./peers/mirrorMaker.ts"
import { librdkafka } from "./peers/librdkafka.ts"

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly os: string
  readonly versions: Readonly<Record<string, string>>
}

/** With a plus where files have been changed since. */
const commit = (): string => {
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", [...args], { cwd: projectRoot, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()
  try {
    return `${git("rev-parse", "--short", "HEAD")}${git("status", "--porcelain", "--", "src") === "" ? "" : "+"}`
  } catch {
    return "unknown"
  }
}

const javaVersion = (): string => {
  try {
    const [first = ""] = execFileSync(javaCommand(), ["--version"], { encoding: "utf8" }).split("\n")
    return /\d[\w.+-]*/.exec(first)?.[0] ?? "unknown"
  } catch {
    return "unknown"
  }
}

export const describeMachine = (): Machine => ({
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  memoryGb: Math.round(totalmem() / 1e9),
  os: `${type()} ${/^[\d.]*\d/.exec(release())?.[0] ?? ""}`.trim(),
  versions: {
    onceover,
    commit: commit(),
    node: process.version,
    java: javaVersion(),
    kafka: versions.kafka,
    mirrorMaker: versions.mirrorMaker,
    librdkafka
  }
})

export const load = (): number => loadavg()[0] ?? 0
