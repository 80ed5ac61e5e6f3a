/** What tests hold of a cluster, over brokers of any kind: processes (kafka.ts) or containers (containers.ts). */
import type { Broker } from "./broker.ts"
import type { ClusterOptions, KafkaCluster } from "./clusterTypes.ts"
import { aliveBrokers } from "./probe.ts"
import { until } from "./until.ts"

export interface HandleSpec {
  readonly options: ClusterOptions
  readonly clusterId: string
  readonly version: string
  readonly logDir: string
  /** Per node: listener name -> port. */
  readonly nodes: ReadonlyArray<ReadonlyMap<string, number>>
  readonly brokers: ReadonlyArray<Broker>
  /** Ends the brokers and gives back what they had; called once. */
  readonly release: () => Promise<void>
}

const knowsAll = async (broker: Broker, port: number, count: number): Promise<boolean> => {
  if (!broker.running()) return false
  return (await aliveBrokers(port)).length >= count
}

const listenersOf = (nodes: HandleSpec["nodes"]): Record<string, string> => {
  const names = [...(nodes[0] as ReadonlyMap<string, number>).keys()]
  return Object.fromEntries(
    names.map((name) => [name, nodes.map((ports) => `127.0.0.1:${ports.get(name)}`).join(",")])
  )
}

export const makeHandle = (spec: HandleSpec): KafkaCluster => {
  const { brokers, nodes, options } = spec
  const chosen = (id?: number) => id === undefined ? brokers : brokers.filter((_, i) => i + 1 === id)
  const logTail = (lines?: number) =>
    brokers.map((broker, i) => `--- broker ${i + 1} of ${options.name}\n${broker.logTail(lines)}`).join("\n")
  const plainPorts = nodes.map((ports) => ports.get("PLAINTEXT") as number)
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
  const listeners = listenersOf(nodes)
  let stopped = false
  return {
    name: options.name,
    version: spec.version,
    clusterId: spec.clusterId,
    bootstrap: listeners["PLAINTEXT"] as string,
    listeners,
    brokerIds: brokers.map((_, i) => i + 1),
    logDir: spec.logDir,
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
      await spec.release()
    }
  }
}
