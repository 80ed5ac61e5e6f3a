/**
 * Every setting of MirrorMaker 2 (4.3.1: driver, its three connectors, their filters, the Connect worker) and what
 * becomes of it here. Client settings (security, consumer, producer, admin) are Kafka's own: kafkaSettings.ts has them.
 *
 * Guarantee: test/config/mm2/settings.test.ts compares this table with what MirrorMaker itself defines.
 */

export type Treatment =
  /** The same name here. */
  | { readonly kind: "keep" }
  /** flowRules.ts has a rule for it. */
  | { readonly kind: "rule" }
  /** Has no place here, and why that is no loss. */
  | { readonly kind: "unneeded"; readonly why: string }
  /** A Java class: MirrorMaker's own are what is built in here; others cannot run. */
  | { readonly kind: "class"; readonly own: ReadonlyArray<string>; readonly instead: string }
  /** Says which clusters and flows there are: read with the structure of the file. */
  | { readonly kind: "structure" }

const names = (list: string): ReadonlyArray<string> => list.trim().split(/\s+/)
const each = (list: string, treatment: Treatment): ReadonlyArray<readonly [string, Treatment]> =>
  names(list).map((name) => [name, treatment])
const unneeded = (list: string, why: string): ReadonlyArray<readonly [string, Treatment]> =>
  each(list, { kind: "unneeded", why })

const KEEP: Treatment = { kind: "keep" }
const RULE: Treatment = { kind: "rule" }
const STRUCTURE: Treatment = { kind: "structure" }
const NO_WORKER = "there is no Connect worker"

const MIRROR = "org.apache.kafka.connect.mirror"

/** Of the three connectors and their filters. */
const CONNECTORS: ReadonlyArray<readonly [string, Treatment]> = [
  ...each("enabled source.cluster.alias target.cluster.alias connector.class name clusters", STRUCTURE),
  ...each(
    `replication.policy.separator replication.factor sync.topic.configs.enabled sync.topic.acls.enabled
    use.defaults.from transforms predicates`,
    KEEP
  ),
  ...each(
    `topics topics.exclude config.properties.exclude replication.policy.class tasks.max refresh.topics.enabled
    refresh.topics.interval.seconds sync.topic.configs.interval.seconds sync.topic.acls.interval.seconds
    errors.tolerance exactly.once.support exactly.once.source.support topics.blacklist groups.blacklist
    config.properties.blacklist`,
    RULE
  ),
  ...each(
    `groups groups.exclude sync.group.offsets.enabled emit.checkpoints.enabled checkpoints.topic.replication.factor
    emit.heartbeats.enabled heartbeats.topic.replication.factor heartbeats.replication.enabled
    emit.offset-syncs.enabled offset-syncs.topic.replication.factor offset-syncs.topic.location
    replication.policy.internal.topic.separator.enabled`,
    KEEP
  ),
  ...each(
    `refresh.groups.enabled refresh.groups.interval.seconds sync.group.offsets.interval.seconds
    emit.checkpoints.interval.seconds emit.heartbeats.interval.seconds`,
    RULE
  ),
  ...unneeded(
    "offset.lag.max",
    "where a record is on the target is known exactly, so no distance between known points has to be chosen"
  ),
  ["topic.filter.class", {
    kind: "class",
    own: [`${MIRROR}.DefaultTopicFilter`],
    instead: "topics and topics.exclude"
  }],
  ["group.filter.class", {
    kind: "class",
    own: [`${MIRROR}.DefaultGroupFilter`],
    instead: "groups and groups.exclude"
  }],
  ["config.property.filter.class", {
    kind: "class",
    own: [`${MIRROR}.DefaultConfigPropertyFilter`],
    instead: "config.properties.exclude and topic.settings.pinned"
  }],
  ["forwarding.admin.class", {
    kind: "class",
    own: ["org.apache.kafka.clients.admin.ForwardingAdmin"],
    instead: "admin.override.* for another principal, or topics made beforehand"
  }],
  ...unneeded("add.source.alias.to.metrics", "metrics have the flow as a label"),
  ...unneeded("use.incremental.alter.configs", "settings are always altered one by one"),
  ...unneeded("admin.timeout.ms", "what fails is tried again; default.api.timeout.ms bounds one attempt"),
  ...unneeded("consumer.poll.timeout.ms", "a fetch waits fetch.max.wait.ms"),
  ...unneeded("metric.reporters metric.names.formats", "metrics are at /metrics, in Prometheus's format"),
  ...unneeded("config.action.reload", "a changed configuration takes effect with a restart"),
  ...unneeded("connector.plugin.version tasks.max.enforce", "there is no plugin to choose"),
  ...unneeded(
    `key.converter value.converter header.converter key.converter.plugin.version value.converter.plugin.version
    header.converter.plugin.version`,
    "records pass as bytes; key, value and headers are never converted"
  ),
  ...unneeded(
    "errors.retry.timeout errors.retry.delay.max.ms",
    "a transform that fails with a retriable error is tried again; one that fails for good is errors.tolerance's"
  ),
  ...unneeded("errors.log.enable errors.log.include.messages", "failures are logged, never with a record's content"),
  ...unneeded("offsets.storage.topic", "progress is kept in the group on the source and in the ledger on the target"),
  ...unneeded(
    "topic.creation.groups topic.creation.enable",
    "topics are made as on the source, with replication.factor and the source's settings"
  ),
  ...unneeded(
    "transaction.boundary transaction.boundary.interval.ms",
    "transaction.max.latency.ms, transaction.max.bytes and transaction.max.records bound a transaction"
  )
]

/** Of the Connect worker and of its REST server. */
const WORKER: ReadonlyArray<readonly [string, Treatment]> = [
  ...unneeded(
    `offset.storage.topic offset.storage.partitions offset.storage.replication.factor config.storage.topic
    config.storage.replication.factor status.storage.topic status.storage.partitions
    status.storage.replication.factor`,
    "progress is kept in the group on the source and in the ledger on the target; there is no other internal topic"
  ),
  ...unneeded("offset.flush.interval.ms offset.flush.timeout.ms", "positions are written with each transaction"),
  ...unneeded(
    `listeners admin.listeners rest.advertised.host.name rest.advertised.listener rest.advertised.port
    rest.extension.classes access.control.allow.methods access.control.allow.origin response.http.headers.config ssl.client.auth
    dedicated.mode.enable.internal.rest`,
    "processes need no REST between them; health, metrics and status are served at http.listen"
  ),
  ...unneeded(
    `group.id heartbeat.interval.ms session.timeout.ms rebalance.timeout.ms scheduled.rebalance.max.delay.ms
    connect.protocol worker.sync.timeout.ms worker.unsync.backoff.ms`,
    `${NO_WORKER}: processes share a flow's work through its group on the source`
  ),
  ...unneeded(
    `inter.worker.key.generation.algorithm inter.worker.key.size inter.worker.key.ttl.ms
    inter.worker.signature.algorithm inter.worker.verification.algorithms`,
    `${NO_WORKER}: processes send each other nothing`
  ),
  ...unneeded("plugin.path plugin.discovery", "no Java class is loaded"),
  ...unneeded("connector.client.config.override.policy", "what is written in this file is in force"),
  ...unneeded("task.shutdown.graceful.timeout.ms", "shutdown.timeout.ms bounds a stop"),
  ...unneeded("topic.tracking.enable topic.tracking.allow.reset", "the topics in use are in /status")
]

/** Also: whatever begins with one of these, as plugins define settings behind their own names. */
const FAMILIES: ReadonlyArray<readonly [prefix: string, Treatment]> = [
  ["transforms.", KEEP],
  ["predicates.", KEEP],
  ...unneeded("topic.creation.", "topics are made as on the source, with replication.factor and the source's settings"),
  ...unneeded(
    "key.converter. value.converter. header.converter.",
    "records pass as bytes; key, value and headers are never converted"
  ),
  ...unneeded("offset.storage. config.storage. status.storage.", "there is no such topic"),
  ...unneeded("listeners. admin.listeners. rest. metrics.context. inter.worker. worker.", NO_WORKER),
  ...unneeded("task.assignment.", NO_WORKER),
  ...unneeded(
    "offset-syncs.topic. checkpoints.topic. heartbeats.topic.",
    "MirrorMaker reads no such setting; its internal topics always have one partition and are compacted"
  )
]

export const MM2_SETTINGS: ReadonlyMap<string, Treatment> = new Map([...WORKER, ...CONNECTORS])

/** What becomes of a setting of this name (without prefix); undefined: MirrorMaker has none of that name. */
export const treatmentOf = (name: string): Treatment | undefined =>
  MM2_SETTINGS.get(name) ?? FAMILIES.find(([prefix]) => name.startsWith(prefix))?.[1]

/** Settings that MirrorMaker hands from the top of the file to every cluster: security, and where to connect. */
export const isSecurity = (name: string): boolean =>
  name === "security.protocol" || name === "bootstrap.servers" || /^(ssl|sasl)\./.test(name)

/** Settings of the Connect worker and its REST server, which MirrorMaker takes from the top or from the target. */
export const WORKER_SETTINGS: ReadonlySet<string> = new Set(WORKER.map(([name]) => name))
