/** What the figures were measured on. No names of machines or folders. */
import { execFileSync } from "node:child_process"
import { cpus, loadavg, release, totalmem, type } from "node:os"
import { versions } from "../test/kit/paths.ts"
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

const javaVersion = (): string => {
  try {
    return /version "?([^"\s]+)/.exec(execFileSync(javaCommand(), ["--version"], { encoding: "utf8" }))?.[1] ??
      execFileSync(javaCommand(), ["--version"], { encoding: "utf8" }).split("\n")[0]?.trim() ?? "unknown"
  } catch {
    return "unknown"
  }
}

export const describeMachine = (): Machine => ({
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  memoryGb: Math.round(totalmem() / 1e9),
  os: `${type()} ${release()}`,
  versions: {
    onceover,
    node: process.version,
    java: javaVersion(),
    kafka: versions.kafka,
    mirrorMaker: versions.mirrorMaker,
    librdkafka
  }
})

export const load = (): number => loadavg()[0] ?? 0
