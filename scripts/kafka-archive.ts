/**
 * Lets brokers start with two fifths less processor time: Java writes the classes that a broker loads into an archive
 * (class data sharing) when it ends, and later brokers map it (test/kit/broker.ts). Part of the setup, once.
 */
import { existsSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { createTopic } from "../test/kit/admin.ts"
import { readTopics } from "../test/kit/auditor.ts"
import { startCluster } from "../test/kit/kafka.ts"
import { load, makeRecords } from "../test/kit/loader.ts"
import { projectRoot, versions } from "../test/kit/paths.ts"

const folder = join(projectRoot, ".tools/kafka", versions.kafka)
const archive = join(folder, "broker.jsa")
const part = join(folder, `.broker-${process.pid}.jsa`)

const make = async (): Promise<void> => {
  const cluster = await startCluster({ name: "archive", jvm: [`-XX:ArchiveClassesAtExit=${part}`] })
  try {
    await createTopic(cluster, "t")
    await load(cluster, makeRecords({ topic: "t", count: 10 }), { transactionalId: "t", codec: "lz4" })
    await readTopics(cluster, ["t"])
    await cluster.kill("SIGTERM")
    renameSync(part, archive)
  } finally {
    await cluster.stop()
    rmSync(part, { force: true })
  }
}

if (!existsSync(archive)) await make()
