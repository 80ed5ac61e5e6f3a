/**
 * The names of Kafka's client settings (4.4.0: consumer, producer, admin), with the type of their values and whether
 * they do anything here, plus the names that only librdkafka has.
 *
 * Why a list: Kafka warns about an unknown setting and goes on; a misspelt `sasl.mechanisim` then shows up as an
 * authentication failure. Here an unknown name is an error that offers the nearest.
 */

export type Scope = "consumer" | "producer" | "admin"
export type ValueType = "text" | "whole number" | "number" | "boolean"

export interface KafkaSetting {
  readonly name: string
  readonly type: ValueType
  readonly scopes: ReadonlyArray<Scope>
  /** null: it does what it says. Else why it does nothing here. */
  readonly ignored: string | null
}

const names = (list: string): ReadonlyArray<string> => list.trim().split(/\s+/)

const ALL: ReadonlyArray<Scope> = ["consumer", "producer", "admin"]

const BY_TYPE: ReadonlyArray<readonly [ReadonlyArray<Scope>, ValueType, ReadonlyArray<string>]> = [
  [
    ALL,
    "text",
    names(`
    bootstrap.servers client.dns.lookup client.id client.rack config.providers metadata.recovery.strategy metric.reporters
    metrics.recording.level sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.service.name sasl.login.callback.handler.class sasl.login.class sasl.mechanism
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    security.protocol security.providers ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
    ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
    ssl.truststore.password ssl.truststore.type
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.key.location ssl.key.pem
    sasl.username sasl.password sasl.oauthbearer.method sasl.oauthbearer.config sasl.oauthbearer.extensions
    https.ca.location`)
  ],
  [
    ALL,
    "whole number",
    names(`
    bootstrap.resolve.timeout.ms connections.max.idle.ms default.api.timeout.ms metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metrics.num.samples metrics.sample.window.ms receive.buffer.bytes
    receive.message.max.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries
    retry.backoff.max.ms retry.backoff.ms sasl.kerberos.min.time.before.relogin sasl.login.connect.timeout.ms
    sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms send.buffer.bytes socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms`)
  ],
  [
    ALL,
    "number",
    names(`
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter`)
  ],
  [
    ALL,
    "boolean",
    names(`
    enable.metrics.push enable.ssl.certificate.verification metadata.cluster.check.enable
    sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.header.urlencode`)
  ],
  [["consumer"], "boolean", names("allow.auto.create.topics check.crcs enable.auto.commit exclude.internal.topics")],
  [
    ["consumer"],
    "whole number",
    names(`
    auto.commit.interval.ms fetch.max.bytes fetch.max.wait.ms fetch.min.bytes heartbeat.interval.ms
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records session.timeout.ms
    share.assignment.interval.ms share.delivery.count.limit share.heartbeat.interval.ms
    share.partition.max.record.locks share.record.lock.duration.ms share.session.timeout.ms`)
  ],
  [["consumer"], "boolean", names("share.assignor.offload.enable share.renew.acknowledge.enable")],
  [["consumer"], "text", names("share.auto.offset.reset share.isolation.level")],
  [
    ["consumer"],
    "text",
    names(`
    auto.offset.reset group.id group.instance.id group.protocol group.remote.assignor isolation.level key.deserializer
    partition.assignment.strategy share.acknowledgement.mode share.acquire.mode value.deserializer`)
  ],
  [["consumer", "producer"], "text", names("interceptor.classes")],
  [
    ["producer"],
    "boolean",
    names(`
    enable.idempotence partitioner.adaptive.partitioning.enable partitioner.ignore.keys partitioner.rack.aware
    transaction.two.phase.commit.enable`)
  ],
  [
    ["producer"],
    "whole number",
    names(`
    batch.size buffer.memory compression.gzip.level compression.lz4.level compression.zstd.level delivery.timeout.ms
    linger.ms max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
    partitioner.availability.timeout.ms transaction.timeout.ms`)
  ],
  [
    ["producer"],
    "text",
    names(`
    acks buffer.memory.allocation.strategy compression.type key.serializer partitioner.class transactional.id
    value.serializer`)
  ],
  [["admin"], "text", names("bootstrap.controllers")]
]

const IGNORED: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ["records pass as bytes", names("key.deserializer value.deserializer key.serializer value.serializer")],
  [
    "no Java class is loaded",
    names(`
    interceptor.classes metric.reporters partitioner.class security.providers ssl.provider config.providers`)
  ],
  [
    "metrics are at /metrics",
    names("enable.metrics.push metrics.num.samples metrics.recording.level metrics.sample.window.ms")
  ],
  [
    "partition numbers are kept",
    names(`
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.ignore.keys
    partitioner.rack.aware`)
  ],
  [
    "whole batches pass through, so nothing is gathered",
    names(`
    batch.size linger.ms buffer.memory buffer.memory.allocation.strategy max.block.ms`)
  ],
  [
    "batches keep the codec they have",
    names("compression.type compression.gzip.level compression.lz4.level compression.zstd.level")
  ],
  [
    "positions are committed for what is confirmed only; see offset.flush.interval.ms",
    names("enable.auto.commit auto.commit.interval.ms")
  ],
  ["topics are created by the flow", names("allow.auto.create.topics exclude.internal.topics")],
  ["every checksum is checked", names("check.crcs")],
  ["a target that is down is waited for", names("retries")],
  ["transactions, bytes in flight and tasks.max bound what is read", names("max.poll.records")],
  [
    "the connection has its own way",
    names(`
    bootstrap.resolve.timeout.ms client.dns.lookup metadata.cluster.check.enable metadata.max.idle.ms
    metadata.recovery.rebootstrap.trigger.ms receive.buffer.bytes send.buffer.bytes bootstrap.controllers`)
  ],
  [
    "TLS is Node's own",
    names(`
    ssl.keymanager.algorithm ssl.protocol ssl.secure.random.implementation ssl.trustmanager.algorithm`)
  ],
  ["the content of a store tells its type", names("ssl.keystore.type ssl.truststore.type")],
  [
    "tokens are renewed before they expire",
    names(`
    sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms
    sasl.login.retry.backoff.ms`)
  ],
  [
    "a broker's affair: a client does not validate tokens",
    names(`
    sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.header.urlencode`)
  ]
]

/** Without these a login or a certificate would fail in a way that nobody understands: refused by name. */
const UNSUPPORTED: ReadonlyArray<readonly [RegExp, string]> = [
  [
    /^sasl\.kerberos\./,
    "is not supported: there is no Kerberos here; sasl.mechanism takes PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER"
  ],
  [
    /^sasl\.oauthbearer\.assertion\./,
    "is not supported: a token is fetched with client id and secret, or read from a file"
  ],
  [
    /^(sasl\.(client\.callback\.handler|login\.callback\.handler|login|oauthbearer\.jwt\.retriever)\.class|ssl\.engine\.factory\.class)$/,
    "is not supported: no Java class is loaded"
  ]
]

/** Why a setting of Kafka cannot be used here; null for all others. */
export const whyUnsupported = (name: string): string | null =>
  UNSUPPORTED.find(([names]) => names.test(name))?.[1] ?? null

/** Where -1 is a value with a meaning. */
export const MAY_BE_MINUS_ONE: ReadonlySet<string> = new Set(
  names("connections.max.idle.ms receive.buffer.bytes send.buffer.bytes compression.gzip.level compression.zstd.level")
)

/** Settings that are ours to set: what to write instead, or why not. By scope-free name. */
export const RESERVED: ReadonlyMap<string, string> = new Map([
  ["group.id", "is set by the flow: write group.id there"],
  ["share.acknowledgement.mode", "is set by the flow: write share.acknowledgement.mode there"],
  ["share.acquire.mode", "is set by onceover, which fetches whole batches"],
  ["transactional.id", "is set by onceover: the guarantee rests on it"],
  ["transaction.two.phase.commit.enable", "is set by onceover: the guarantee rests on it"]
])

/** Settings that may be written, with one value only. */
export const FIXED: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["enable.idempotence", ["true"]],
  ["acks", ["all", "-1"]]
])

/** Whole numbers that are refused outside of these bounds; both ends are allowed. */
export const RANGES: ReadonlyMap<string, readonly [min: number, max: number]> = new Map([
  // Beyond five a broker cannot recognise every batch that is sent twice.
  ["max.in.flight.requests.per.connection", [1, 5]],
  ["max.request.size", [1, 2_147_483_647]],
  ["request.timeout.ms", [1, 2_147_483_647]],
  ["delivery.timeout.ms", [1, 2_147_483_647]],
  ["transaction.timeout.ms", [1, 2_147_483_647]],
  ["fetch.max.bytes", [1, 2_147_483_647]],
  ["fetch.min.bytes", [0, 2_147_483_647]],
  ["fetch.max.wait.ms", [0, 2_147_483_647]],
  ["max.partition.fetch.bytes", [1, 2_147_483_647]],
  // librdkafka's bounds: it is the member of the group.
  ["session.timeout.ms", [1, 3_600_000]],
  ["heartbeat.interval.ms", [1, 3_600_000]],
  ["max.poll.interval.ms", [1_000, 86_400_000]]
])

/** Settings that take certain words only. */
export const WORDS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["security.protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]],
  ["sasl.mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]],
  ["isolation.level", ["read_committed", "read_uncommitted"]],
  ["share.isolation.level", ["read_committed", "read_uncommitted"]],
  ["compression.type", ["none", "gzip", "snappy", "lz4", "zstd"]],
  ["metadata.recovery.strategy", ["rebootstrap", "none"]]
])

/** Where a new group starts, as Kafka writes it (KIP-1106); without fractions of a second. */
export const STARTING_POINT = /^(earliest|latest|by_duration:P(?=\d|T\d)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)$/i
export const STARTING_POINT_ALLOWED = "earliest, latest, or by_duration:PnDTnHnMnS"
/** Settings whose text has a form. */
export const FORMS: ReadonlyMap<string, readonly [form: RegExp, allowed: string]> = new Map([
  ["auto.offset.reset", [STARTING_POINT, STARTING_POINT_ALLOWED]],
  ["share.auto.offset.reset", [STARTING_POINT, STARTING_POINT_ALLOWED]]
])

/** librdkafka's name to Kafka's, where they mean the same. */
export const LIBRDKAFKA: ReadonlyMap<string, string> = new Map([
  ["metadata.broker.list", "bootstrap.servers"],
  ["sasl.mechanisms", "sasl.mechanism"],
  ["socket.timeout.ms", "request.timeout.ms"],
  ["topic.metadata.refresh.interval.ms", "metadata.max.age.ms"],
  ["fetch.wait.max.ms", "fetch.max.wait.ms"],
  ["fetch.message.max.bytes", "max.partition.fetch.bytes"],
  ["message.max.bytes", "max.request.size"],
  ["queue.buffering.max.ms", "linger.ms"],
  ["compression.codec", "compression.type"],
  ["request.required.acks", "acks"],
  ["message.timeout.ms", "delivery.timeout.ms"],
  ["sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"],
  ["sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"]
])

const whyIgnored = (name: string): string | null => IGNORED.find(([, list]) => list.includes(name))?.[0] ?? null

export const KAFKA_SETTINGS: ReadonlyMap<string, KafkaSetting> = new Map(
  BY_TYPE.flatMap(([scopes, type, list]) =>
    list.map((name) => [name, { name, type, scopes, ignored: whyIgnored(name) }] as const)
  )
)

/** Names that may be written for one scope; `null` is a cluster, which takes all. */
export const namesOf = (scope: Scope | null): ReadonlyArray<string> =>
  [...KAFKA_SETTINGS.values()].filter((s) => scope === null || s.scopes.includes(scope)).map((s) => s.name)
