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
import { randomBytes } from "node:crypto"
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { type Broker, makeBroker } from "./broker.ts"
import { brokerProperties, type ListenerSpec } from "./brokerProperties.ts"
import { makeWorkFolder, projectRoot, versions } from "./paths.ts"
import { portLock, releasePorts, takePorts } from "./ports.ts"
import { aliveBrokers } from "./probe.ts"
import { type Reaper, startReaper } from "./reaper.ts"
import { until } from "./until.ts"

export interface ClusterOptions {
  /** For messages and folder names: "source", "target". */
  readonly name: string
  /** Kafka's version; its jars are fetched when they are not there. Default: the pinned one. */
  readonly version?: string
  readonly brokers?: 1 | 2 | 3
  /** Broker settings that win over the kit's. */
  readonly properties?: Readonly<Record<string, string>>
  /** Listeners beside the plain one, each on a port of its own; their security settings go into `properties`. */
  readonly listeners?: ReadonlyArray<ListenerSpec>
  /** Further options for the brokers' Java. */
  readonly jvm?: ReadonlyArray<string>
  /** The most to wait until it is up, milliseconds. Default 90 000. */
  readonly timeoutMs?: number
}

export interface KafkaCluster {
  readonly name: string
  readonly version: string
  readonly clusterId: string
  /** Of the plain listener, all brokers: "127.0.0.1:20001,127.0.0.1:20002". */
  readonly bootstrap: string
  /** Bootstrap string per listener name; PLAINTEXT is always there. */
  readonly listeners: Readonly<Record<string, string>>
  readonly brokerIds: ReadonlyArray<number>
  /** Where broker N has its log (broker-N.log) and data (data-N). */
  readonly logDir: string
  /** Signals one broker (by id) or all. SIGKILL and SIGTERM answer when the process has ended; SIGSTOP freezes it, SIGCONT thaws it. */
  readonly kill: (signal?: "SIGKILL" | "SIGTERM" | "SIGSTOP" | "SIGCONT", brokerId?: number) => Promise<void>
  /** Starts the dead ones again (or the one with this id), on the same ports and data, and waits until all are alive. */
  readonly restart: (brokerId?: number) => Promise<void>
  /** The same without the wait. */
  readonly startDead: (brokerId?: number) => void
  /** Waits until every broker that runs says that `count` brokers (default: all) are alive. */
  readonly ready: (count?: number) => Promise<void>
  readonly logTail: (lines?: number) => string
  /** Kills all and removes the folder. Safe to repeat. */
  readonly stop: () => Promise<void>
}

const exec = promisify(execFile)

/** 16 random bytes as Kafka writes them; one that starts with "-" would read as an option of its tools. */
const uuid = (): string => {
  const text = randomBytes(16).toString("base64url")
  return text.startsWith("-") ? uuid() : text
}

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

const knowsAll = async (broker: Broker, port: number, count: number): Promise<boolean> => {
  if (!broker.running()) return false
  return (await aliveBrokers(port)).length >= count
}

const makeHandle = (
  options: ClusterOptions,
  clusterId: string,
  version: string,
  laid: Laid,
  brokers: ReadonlyArray<Broker>,
  reaper: Reaper
): KafkaCluster => {
  const chosen = (id?: number) => id === undefined ? brokers : brokers.filter((_, i) => i + 1 === id)
  const logTail = (lines?: number) =>
    brokers.map((broker, i) => `--- broker ${i + 1} of ${options.name}\n${broker.logTail(lines)}`).join("\n")
  const plainPorts = laid.nodes.map((ports) => ports.get("PLAINTEXT") as number)
  const ready = async (count = brokers.length) => {
    const timeoutMs = options.timeoutMs ?? 90_000
    const mustRun = brokers.map((broker) => broker.running())
    await until(async () => {
      if (brokers.some((broker, i) => mustRun[i] && !broker.running())) return "died"
      const answers = brokers.map((broker, i) => !mustRun[i] || knowsAll(broker, plainPorts[i] as number, count))
      return (await Promise.all(answers)).every(Boolean)
    }, { timeoutMs, what: () => `cluster ${options.name} to be up; its log ends with\n${logTail()}` })
    if (brokers.some((broker, i) => mustRun[i] && !broker.running())) {
      throw new Error(`a broker of cluster ${options.name} ended by itself; its log ends with\n${logTail()}`)
    }
  }
  const startDead = (id?: number) => {
    for (const broker of chosen(id)) broker.start()
  }
  const listenerNames = [...(laid.nodes[0] as ReadonlyMap<string, number>).keys()]
  const listeners = Object.fromEntries(
    listenerNames.map((name) => [name, laid.nodes.map((ports) => `127.0.0.1:${ports.get(name)}`).join(",")])
  )
  let stopped = false
  return {
    name: options.name,
    version,
    clusterId,
    bootstrap: listeners["PLAINTEXT"] as string,
    listeners,
    brokerIds: brokers.map((_, i) => i + 1),
    logDir: laid.folder,
    kill: async (signal = "SIGKILL", id) => {
      await Promise.all(chosen(id).map((broker) => broker.signal(signal)))
    },
    restart: async (id) => {
      startDead(id)
      await ready(brokers.filter((broker) => broker.running()).length)
    },
    startDead,
    ready,
    logTail,
    stop: async () => {
      if (stopped) return
      stopped = true
      await Promise.all(brokers.map((broker) => broker.signal("SIGKILL")))
      rmSync(laid.folder, { recursive: true, force: true })
      releasePorts(laid.ports)
      reaper.end()
    }
  }
}

export const startCluster = async (options: ClusterOptions): Promise<KafkaCluster> => {
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
  const cluster = makeHandle(options, clusterId, version, laid, brokers, reaper)
  try {
    await cluster.restart()
    return cluster
  } catch (error) {
    await cluster.stop()
    throw error
  }
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
