/**
 * The same clusters as containers: image apache/kafka, one broker each, all on the network that
 * `npm run test:containers` has made. `startCluster` (kafka.ts) comes here when ONCEOVER_TEST_KAFKA=containers.
 *
 * - Settings, ports and waiting are those of the processes; SIGSTOP and SIGCONT pause and unpause the container.
 * - What only a container can do: `disconnect` takes the broker off its network. This machine is refused and its
 *   connections end, other containers get no answer; the broker itself goes on, over its own loopback.
 * - Containers carry a label with the number of the run's process: scripts/testContainers.ts removes what is left of
 *   a run that was killed. Ryuk, the container that does so elsewhere, is an image more to pull, and is not used.
 * - No log folder: `logDir` is empty, so segments.ts and what reads a broker's files need processes.
 */
import { execFileSync } from "node:child_process"
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from "testcontainers"
import type { Broker } from "./broker.ts"
import { brokerSettings } from "./brokerProperties.ts"
import { makeHandle } from "./clusterHandle.ts"
import { type ClusterOptions, type KafkaCluster, uuid } from "./clusterTypes.ts"
import { versions } from "./paths.ts"
import { portLock, releasePorts, takePorts } from "./ports.ts"
import { startReaper } from "./reaper.ts"

export interface ContainerCluster extends KafkaCluster {
  /** Takes the broker off the network, for the other brokers as for us. */
  readonly disconnect: () => Promise<void>
  /** Puts it back, on the same port, and waits until it answers. */
  readonly reconnect: () => Promise<void>
}

/** What `npm run test:containers` has made for all of a run; its label marks what is the run's. */
interface Run {
  readonly network: string
  readonly label: readonly [name: string, value: string]
}

const thisRun = (): Run => {
  const network = process.env["ONCEOVER_TEST_NETWORK"]
  const run = process.env["ONCEOVER_TEST_RUN"]
  if (network === undefined || run === undefined) throw new Error("containers are for npm run test:containers")
  return { network, label: ["onceover.run", run] }
}

/** As the image wants Kafka's names: "a.b-c_d" is KAFKA_A_B___C__D. */
const variable = (name: string): string =>
  `KAFKA_${name.replaceAll("_", "__").replaceAll("-", "___").replaceAll(".", "_").toUpperCase()}`

/**
 * One node that is broker and controller. Its port is the same inside and outside, so that the one address that it
 * advertises is right for itself and for us.
 */
const environment = (options: ClusterOptions, clusterId: string, port: number): Record<string, string> => {
  const controller = port === 9093 ? 9094 : 9093
  const settings = brokerSettings({
    nodeId: 1,
    dataFolder: "/tmp/onceover-data",
    controllerPorts: [controller],
    ports: new Map([["PLAINTEXT", port]]),
    listeners: [],
    old: false,
    overrides: {
      "listeners": `PLAINTEXT://0.0.0.0:${port},CONTROLLER://127.0.0.1:${controller}`,
      ...options.properties
    }
  })
  return {
    ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [variable(name), value])),
    CLUSTER_ID: clusterId,
    KAFKA_HEAP_OPTS: "-Xmx512m",
    // As the processes: a quick start on a small machine.
    KAFKA_JVM_PERFORMANCE_OPTS: ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", ...options.jvm ?? []].join(" ")
  }
}

const started = Wait.forLogMessage(/Kafka Server started/)

const runContainer = (options: ClusterOptions, clusterId: string, port: number): Promise<StartedTestContainer> => {
  const { label: [name, value], network } = thisRun()
  return new GenericContainer(`apache/kafka:${versions.kafka}`)
    .withEnvironment(environment(options, clusterId, port))
    .withLabels({ [name]: value, "onceover.cluster": options.name })
    // Docker gives a port of its own choice anew at each start, and the broker has told its clients the old one.
    .withExposedPorts({ container: port, host: port })
    .withNetworkMode(network)
    .withWaitStrategy(started)
    .withStartupTimeout(options.timeoutMs ?? 90_000)
    .start()
}

const logTail = (id: string, lines: number): string => {
  try {
    return execFileSync("docker", ["logs", "--tail", String(lines), id], { encoding: "utf8", timeout: 10_000 })
  } catch (error) {
    return `no log: ${String(error)}`
  }
}

type Container = ReturnType<Awaited<ReturnType<typeof getContainerRuntimeClient>>["container"]["getById"]>

/** A container that runs, as a broker: what a signal does to a process is done to it. */
const asBroker = (container: Container): Broker => {
  let up = true
  let problem = ""
  // Answers when the container does not run, whoever ended it.
  const untilDown = () =>
    container.wait().then(() => undefined, (error: unknown) => void (problem = String(error))).then(() => {
      up = false
    })
  let ended = untilDown()
  const signals = {
    SIGSTOP: () => container.pause(),
    SIGCONT: () => container.unpause(),
    SIGKILL: () => container.kill({ signal: "SIGKILL" }),
    SIGTERM: () => container.kill({ signal: "SIGTERM" })
  }
  return {
    pid: () => undefined,
    running: () => up,
    start: () => {
      if (up) return
      up = true
      ended = container.start().then(untilDown, (error: unknown) => {
        problem = String(error)
        up = false
      })
    },
    signal: async (signal) => {
      if (!up) return
      const send = signals[signal as keyof typeof signals]
      if (send === undefined) throw new Error(`containers know ${Object.keys(signals).join(", ")}, not ${signal}`)
      await send()
      if (signal === "SIGKILL" || signal === "SIGTERM") await ended
    },
    logTail: (lines = 40) => `${logTail(container.id, lines)}${problem}`
  }
}

const refuse = (options: ClusterOptions): void => {
  const { brokers = 1, listeners = [], name, version = versions.kafka } = options
  const reason = brokers > 1
    ? "more than one broker"
    : listeners.length > 0
    ? "listeners beside the plain one"
    : version !== versions.kafka
    ? `Kafka ${version}`
    : undefined
  if (reason !== undefined) throw new Error(`cluster ${name} wants ${reason}, which is for processes only`)
}

export const startContainerCluster = async (options: ClusterOptions): Promise<ContainerCluster> => {
  refuse(options)
  const { network: networkName } = thisRun()
  const clusterId = uuid()
  const [port] = await takePorts(1) as [number]
  const reaper = startReaper([portLock(port)])
  const giveBack = () => {
    releasePorts([port])
    reaper.end()
  }
  try {
    const { container: containers, network: networks } = await getContainerRuntimeClient()
    const container = containers.getById((await runContainer(options, clusterId, port)).getId())
    const network = networks.getById(networkName)
    const handle = makeHandle({
      options,
      clusterId,
      version: versions.kafka,
      logDir: "",
      nodes: [new Map([["PLAINTEXT", port]])],
      brokers: [asBroker(container)],
      release: async () => {
        await container.remove({ force: true, v: true })
        giveBack()
      }
    })
    await handle.ready()
    return {
      ...handle,
      disconnect: () => network.disconnect({ Container: container.id, Force: true }),
      reconnect: async () => {
        await network.connect({ Container: container.id })
        await handle.ready()
      }
    }
  } catch (error) {
    giveBack()
    throw error
  }
}
