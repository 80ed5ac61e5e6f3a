/**
 * Real Kafka clusters for tests, the demo and the benchmark: Kafka's own broker from Maven's jars, on loopback, in a
 * folder of its own that is gone afterwards.
 *
 * - `startCluster` answers when each broker says that all of them are alive (a Metadata answer, not a time).
 * - Each cluster has a cluster id of its own. Nothing is created in it.
 * - Every broker dies with the process that started it, also when that is killed with SIGKILL (reaper.ts).
 *
 *   const cluster = await startCluster({ name: "source" })
 *   cluster.bootstrap                      // "127.0.0.1:20123"
 *   await cluster.kill("SIGKILL")          // all brokers; or kill("SIGSTOP", 2) for one
 *   await cluster.restart()                // those that are dead, on the same ports and data
 *   await cluster.stop()
 */
import { Effect, type Scope } from "effect"
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { type Broker, makeBroker } from "./broker.ts"
import { brokerProperties } from "./brokerProperties.ts"
import { makeHandle } from "./clusterHandle.ts"
import { type ClusterOptions, type KafkaCluster, uuid } from "./clusterTypes.ts"
import { makeWorkFolder, projectRoot, versions } from "./paths.ts"
import { portLock, releasePorts, takePorts } from "./ports.ts"
import { startReaper } from "./reaper.ts"

export type { ClusterOptions, KafkaCluster } from "./clusterTypes.ts"

const exec = promisify(execFile)

const jarsOf = async (version: string): Promise<string> => {
  const { stdout } = await exec(join(projectRoot, "scripts/kafka-jars.sh"), [version], { timeout: 600_000 })
  return stdout.trim()
}

/** What `kafka-storage format` does, from the folder that the jars' script has formatted once. */
const format = (kafka: string, dataFolder: string, clusterId: string, nodeId: number): void => {
  cpSync(join(kafka, "formatted"), dataFolder, { recursive: true })
  const meta = `node.id=${nodeId}\ndirectory.id=${uuid()}\nversion=1\ncluster.id=${clusterId}\n`
  writeFileSync(join(dataFolder, "meta.properties"), meta)
}

interface Laid {
  readonly folder: string
  readonly ports: ReadonlyArray<number>
  /** Per node: listener name -> port. */
  readonly nodes: ReadonlyArray<ReadonlyMap<string, number>>
}

const layOut = async (kafka: string, clusterId: string, options: ClusterOptions, old: boolean): Promise<Laid> => {
  const count = options.brokers ?? 1
  const extra = options.listeners ?? []
  const names = ["PLAINTEXT", ...extra.map((listener) => listener.name)]
  const ports = await takePorts(count * (names.length + 1))
  const controllerPorts = ports.slice(0, count)
  const folder = makeWorkFolder(`cluster-${options.name}`)
  const nodes = controllerPorts.map((_, i) =>
    new Map(names.map((name, j) => [name, ports[count + i * names.length + j] as number] as const))
  )
  nodes.forEach((own, i) => {
    const dataFolder = join(folder, `data-${i + 1}`)
    mkdirSync(dataFolder)
    format(kafka, dataFolder, clusterId, i + 1)
    const spec = { nodeId: i + 1, dataFolder, controllerPorts, ports: own, listeners: extra, old }
    writeFileSync(
      join(folder, `broker-${i + 1}.properties`),
      brokerProperties({ ...spec, overrides: options.properties ?? {} })
    )
  })
  return { folder, ports, nodes }
}

const startProcesses = async (options: ClusterOptions): Promise<KafkaCluster> => {
  const version = options.version ?? versions.kafka
  const old = /^[0-3]\./.test(version)
  const kafka = await jarsOf(version)
  const clusterId = uuid()
  const laid = await layOut(kafka, clusterId, options, old)
  const reaper = startReaper([laid.folder, ...laid.ports.map(portLock)])
  const brokers: ReadonlyArray<Broker> = laid.nodes.map((_, i) =>
    makeBroker({
      kafka,
      jvm: options.jvm ?? [],
      propertiesFile: join(laid.folder, `broker-${i + 1}.properties`),
      logFile: join(laid.folder, `broker-${i + 1}.log`),
      old
    }, () => reaper.watch(brokers.flatMap((broker) => broker.pid() ?? [])))
  )
  const release = async () => {
    await Promise.all(brokers.map((broker) => broker.signal("SIGKILL")))
    rmSync(laid.folder, { recursive: true, force: true })
    releasePorts(laid.ports)
    reaper.end()
  }
  const { folder: logDir, nodes } = laid
  const cluster = makeHandle({ options, clusterId, version, logDir, nodes, brokers, release })
  try {
    await cluster.restart()
    return cluster
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

/** `npm run test:containers` runs the same tests on containers: where the brokers are is not the tests' matter. */
export const startCluster = async (options: ClusterOptions): Promise<KafkaCluster> => {
  if (process.env["ONCEOVER_TEST_KAFKA"] !== "containers") return startProcesses(options)
  const { startContainerCluster } = await import("./containers.ts")
  return startContainerCluster(options)
}

/** Several at once; when one fails, the others are stopped. */
export const startClusters = async (all: ReadonlyArray<ClusterOptions>): Promise<ReadonlyArray<KafkaCluster>> => {
  const results = await Promise.allSettled(all.map(startCluster))
  const started = results.flatMap((result) => result.status === "fulfilled" ? [result.value] : [])
  const failed = results.find((result) => result.status === "rejected")
  if (failed === undefined) return started
  await Promise.all(started.map((cluster) => cluster.stop()))
  throw failed.reason
}

/** The same for Effect: stopped when the scope closes. */
export const cluster = (options: ClusterOptions): Effect.Effect<KafkaCluster, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => startCluster(options)),
    (started) => Effect.promise(() => started.stop())
  )
