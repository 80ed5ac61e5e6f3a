/** The properties of a test broker: one combined KRaft node of a cluster, quick in everything that tests wait for. */

/** A further listener beside the plain one. */
export interface ListenerSpec {
  /** Kafka's listener name, upper case; unique in the cluster. */
  readonly name: string
  readonly protocol: "PLAINTEXT" | "SSL" | "SASL_PLAINTEXT" | "SASL_SSL"
}

export interface NodeSpec {
  readonly nodeId: number
  readonly dataFolder: string
  /** Controller ports of all nodes, by node id - 1. */
  readonly controllerPorts: ReadonlyArray<number>
  /** Listener name -> port of this node; PLAINTEXT is always there. */
  readonly ports: ReadonlyMap<string, number>
  readonly listeners: ReadonlyArray<ListenerSpec>
  /** Settings of the test, which win. */
  readonly overrides: Readonly<Record<string, string>>
  readonly old: boolean
}

const identity = (node: NodeSpec): Record<string, string> => {
  const controller = node.controllerPorts[node.nodeId - 1]
  const own = [...node.ports].map(([name, port]) => `${name}://127.0.0.1:${port}`)
  const protocols = node.listeners.map(({ name, protocol }) => `${name}:${protocol}`)
  return {
    "process.roles": "broker,controller",
    "node.id": String(node.nodeId),
    "controller.quorum.voters": node.controllerPorts.map((port, i) => `${i + 1}@127.0.0.1:${port}`).join(","),
    "listeners": [...own, `CONTROLLER://127.0.0.1:${controller}`].join(","),
    "advertised.listeners": own.join(","),
    "listener.security.protocol.map": ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", ...protocols].join(","),
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "log.dirs": node.dataFolder
  }
}

const replication = (brokers: number): Record<string, string> => {
  const factor = String(Math.min(3, brokers))
  const minIsr = brokers >= 3 ? "2" : "1"
  return {
    "default.replication.factor": factor,
    "min.insync.replicas": minIsr,
    "offsets.topic.replication.factor": factor,
    "transaction.state.log.replication.factor": factor,
    "transaction.state.log.min.isr": minIsr,
    "share.coordinator.state.topic.replication.factor": factor,
    "share.coordinator.state.topic.min.isr": minIsr
  }
}

/** Small and quick: few partitions of internal topics, few threads, short sessions, early cleaning, no retention. */
const quick: Readonly<Record<string, string>> = {
  "auto.create.topics.enable": "false",
  "num.partitions": "1",
  "offsets.topic.num.partitions": "3",
  "transaction.state.log.num.partitions": "3",
  "share.coordinator.state.topic.num.partitions": "3",
  "num.network.threads": "2",
  "num.io.threads": "4",
  "log.cleaner.dedupe.buffer.size": "4194304",
  "log.cleaner.backoff.ms": "500",
  "log.initial.task.delay.ms": "500",
  // Records of any age stay, unless a topic says otherwise: tests write old timestamps.
  "log.retention.ms": "-1",
  "log.retention.check.interval.ms": "1000",
  "log.segment.delete.delay.ms": "1000",
  "broker.session.timeout.ms": "3000",
  "broker.heartbeat.interval.ms": "500",
  "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
  "group.initial.rebalance.delay.ms": "0",
  "group.min.session.timeout.ms": "1000",
  "group.consumer.min.heartbeat.interval.ms": "200",
  "group.consumer.heartbeat.interval.ms": "500",
  "group.consumer.min.session.timeout.ms": "1000",
  "group.consumer.session.timeout.ms": "6000"
}

/** The lock of a record may be as short as a second; what a group gets unasked is Kafka's own default, 30 seconds. */
const quickShareGroups: Readonly<Record<string, string>> = {
  "group.share.min.heartbeat.interval.ms": "200",
  "group.share.heartbeat.interval.ms": "500",
  "group.share.min.session.timeout.ms": "1000",
  "group.share.session.timeout.ms": "6000",
  "group.share.min.record.lock.duration.ms": "1000"
}

/** Kafka's names and values; `overrides` win. */
export const brokerSettings = (node: NodeSpec): Readonly<Record<string, string>> => ({
  ...identity(node),
  ...replication(node.controllerPorts.length),
  ...quick,
  ...(node.old ? {} : quickShareGroups),
  ...node.overrides
})

/** The same as the text of a properties file. */
export const brokerProperties = (node: NodeSpec): string =>
  Object.entries(brokerSettings(node)).map(([key, value]) => `${key}=${value.replaceAll("\\", "\\\\")}\n`).join("")
