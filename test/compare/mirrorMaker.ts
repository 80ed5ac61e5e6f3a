/** A real MirrorMaker 2 in its dedicated mode, for comparison. */
import { execFile, spawn } from "node:child_process"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Bootstrap } from "../kit/loader.ts"
import { makeWorkFolder, projectRoot } from "../kit/paths.ts"
import { startReaper } from "../kit/reaper.ts"

export interface MirrorMaker {
  readonly output: () => string
  readonly stop: () => Promise<void>
}

const MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"

/** Mirrors east to west with these settings beside what a single broker needs. */
export const startMirrorMaker = async (
  east: Bootstrap,
  west: Bootstrap,
  settings: Readonly<Record<string, string>>
): Promise<MirrorMaker> => {
  const jars = await promisify(execFile)(join(projectRoot, "scripts/mirror-maker-jars.sh"), [], { timeout: 600_000 })
  const folder = makeWorkFolder("mirror-maker")
  const file = join(folder, "mm2.properties")
  const all = {
    clusters: "east, west",
    "east.bootstrap.servers": east.bootstrap,
    "west.bootstrap.servers": west.bootstrap,
    "east->west.enabled": "true",
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    ...settings
  }
  writeFileSync(file, Object.entries(all).map(([name, value]) => `${name} = ${value}\n`).join(""))
  const java = process.env["JAVA_HOME"] ? join(process.env["JAVA_HOME"], "bin/java") : "java"
  const reaper = startReaper([folder])
  const child = spawn(
    java,
    ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", join(jars.stdout.trim(), "*"), MAIN, file],
    { stdio: ["ignore", "pipe", "pipe"] }
  )
  if (child.pid !== undefined) reaper.watch([child.pid])
  const chunks: Array<string> = []
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => chunks.push(chunk.toString()))
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()))
  return {
    output: () => chunks.join(""),
    stop: async () => {
      child.kill("SIGKILL")
      await ended
      rmSync(folder, { recursive: true, force: true })
      reaper.end()
    }
  }
}
