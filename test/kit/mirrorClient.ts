/** MirrorMaker 2's own client and formatters as readers of what onceover writes for them. Costs a few seconds of Java. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Bootstrap } from "./loader.ts"
import { projectRoot, versions } from "./paths.ts"

const run = promisify(execFile)

/** The lines that MirrorRead.java prints. */
export const readWithMirrorClient = async (
  target: Bootstrap,
  asked: { readonly source: string; readonly group: string; readonly offsetSyncs: string }
): Promise<ReadonlyArray<string>> => {
  const { stdout: folder } = await run(join(projectRoot, "scripts/mirror-jars.sh"), [], { timeout: 300_000 })
  const libs = [join(folder.trim(), "*"), join(projectRoot, ".tools/kafka", versions.kafka, "libs/*")].join(":")
  const java = process.env["JAVA_HOME"] ? join(process.env["JAVA_HOME"], "bin/java") : "java"
  const { stdout } = await run(java, [
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-cp",
    libs,
    join(projectRoot, "test/kit/java/MirrorRead.java"),
    target.bootstrap,
    asked.source,
    asked.group,
    asked.offsetSyncs
  ], { timeout: 120_000, maxBuffer: 64 * 1024 * 1024 })
  return stdout.split("\n").filter((line) => line !== "")
}
