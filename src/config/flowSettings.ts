/**
 * Every setting of a flow that has a fixed name: its values, its default and its sentence in the documentation.
 * What MirrorMaker 2 and Connect have keeps their names.
 */
import { controlSettings } from "./controlSettings.ts"
import { offsetSettings } from "./offsetSettings.ts"
import {
  flag,
  mapping,
  optional,
  patterns,
  required,
  startingPoint,
  text,
  whole,
  withDefault,
  word,
  words
} from "./setting.ts"

/** MirrorMaker 2's own default. */
const DEFAULT_EXCLUDES = ["mm2.*\\.internal", ".*\\.replica", "__.*"]

/** Kafka's Topic.validate: 1 to 249 of these, and not "." or "..". */
export const TOPIC_NAME = /^(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}$/
const TOPIC_ALLOWED = "a topic name (1 to 249 letters, digits, dots, underscores and hyphens)"
const NAME = /\S/
const MAX_INT = 2_147_483_647

export const naming = {
  name: optional(
    text("text that is not blank", NAME, "The flow's name in logs, metrics and /status. Unique in the file."),
    "SOURCE->TARGET"
  ),
  enabled: withDefault(flag("Whether the flow runs. A flow that is off is still checked."), true),
  source: required(text("an alias of clusters", NAME, "The cluster to read from, by its name under clusters.")),
  target: required(
    text("an alias of clusters", NAME, "The cluster to write to, by its name under clusters. Never the source.")
  )
}

export const topicSettings = {
  topics: withDefault(
    patterns("The topics to mirror: regular expressions that match the whole name. A list, or one text with commas."),
    [".*"]
  ),
  "topics.exclude": withDefault(
    patterns("Topics that are not mirrored although `topics` matches. A list here replaces the default one."),
    DEFAULT_EXCLUDES
  ),
  "topic.mapping": withDefault(
    mapping(
      "source topic names to target topic names, no target name twice",
      TOPIC_NAME,
      "Names single topics on the target. It comes before the replication policy, which then does not touch them."
    ),
    {}
  ),
  "refresh.topics.interval.seconds": withDefault(
    whole(
      1,
      86_400,
      "How often new topics and new partitions of the source are looked for. They are mirrored from their beginning.",
      "seconds"
    ),
    5
  ),
  "replication.policy": withDefault(
    word(
      ["default", "identity"],
      "How topics are named on the target: `default` puts the source's alias before the name (`east.orders`), `identity` keeps it."
    ),
    "default"
  ),
  "replication.policy.separator": withDefault(
    text(
      "one or more letters, digits, dots, underscores or hyphens",
      /^[a-zA-Z0-9._-]{1,50}$/,
      "What stands between alias and topic under the default policy."
    ),
    "."
  ),
  "replication.factor": withDefault(
    whole(
      1,
      32_767,
      "Replicas of the topics that are created on the target. -1 leaves it to the target's default.replication.factor (MirrorMaker 2 has 2, which fails on one broker and is low on three).",
      "",
      [-1]
    ),
    -1
  )
}

export const readSettings = {
  "group.protocol": optional(
    word(
      ["share", "consumer"],
      "How the source is read. `share`: through a share group (KIP-932), any number of workers on any number of partitions, order not kept. `consumer`: through a consumer group, order per partition kept, one member per partition."
    ),
    "share, or what consumer.group.protocol says"
  ),
  "group.membership": withDefault(
    word(
      ["auto", "classic", "consumer"],
      "With group.protocol consumer, how members join: `classic`, which every broker has, or `consumer` (KIP-848, brokers from 4.0 on, rebalances without a stop). `auto` takes `consumer` where the source has it, and `classic` where it has not or where the flow sets what only members that join so can have (session.timeout.ms, heartbeat.interval.ms, partition.assignment.strategy). No effect with share."
    ),
    "auto"
  ),
  "group.id": optional(
    text(
      "text that is not blank, 1 to 249 characters",
      /^(?=.*\S).{1,249}$/s,
      "The share group or consumer group on the source that holds the flow's progress. Another one starts over. Two flows on one source need two."
    ),
    "onceover-SOURCE-to-TARGET"
  ),
  "auto.offset.reset": withDefault(
    startingPoint(
      "Where a new group starts: at the `earliest` record that the source has, at the `latest`, or a time back from now (`by_duration:P1D`). What lies before is never mirrored. A flow's consumer.override.auto.offset.reset wins."
    ),
    "earliest"
  ),
  "share.acknowledgement.mode": withDefault(
    word(
      ["explicit", "implicit"],
      "With group.protocol share: `explicit` acknowledges a record after the target confirmed it; `implicit` acknowledges what was delivered with the next fetch, and can be used with at-least-once only."
    ),
    "explicit"
  ),
  "tasks.max": withDefault(
    whole(
      1,
      1_000,
      "Lanes of this flow in this process: each is a member of the group with a producer of its own. While one commits, the others read."
    ),
    2
  ),
  "max.in.flight.bytes": withDefault(
    whole(
      1_048_576,
      1_099_511_627_776,
      "Bytes that may be read and not yet acknowledged, all lanes of the flow together. Above it reading waits, and locks are renewed.",
      "bytes"
    ),
    33_554_432
  ),
  "offset.flush.interval.ms": withDefault(
    whole(
      10,
      MAX_INT,
      "With group.protocol consumer: how often confirmed positions are committed. After a crash, at most what was mirrored since is mirrored again.",
      "milliseconds"
    ),
    1_000
  ),
  "on.source.gap": withDefault(
    word(
      ["fail", "continue"],
      "What happens when the source no longer has records that were not mirrored yet (retention, deletion): `fail` stops the flow, `continue` counts and names the gap and goes on. Never silent. With group.protocol consumer the position stays before the gap until somebody decides. A share group goes on behind a gap by itself with its next fetch: a gap that is there at the start stops the flow before it fetches; one that opens while the flow runs stops it when what is at work is finished, and is behind the group when it is started again."
    ),
    "fail"
  )
}

export const guaranteeSettings = {
  "delivery.guarantee": withDefault(
    word(
      ["exactly-once", "at-least-once"],
      "What is wanted. `exactly-once`: every source record is on the target once for readers with read_committed. `at-least-once`: nothing is lost, a crash may double records. What holds is in /status and the metric onceover_guarantee."
    ),
    "exactly-once"
  ),
  "exactly.once.bindings": withDefault(
    words(
      ["kip-1289", "ledger"],
      "The ways to bind source acknowledgements to target output, tried in this order. `kip-1289` needs source and target in one cluster; `ledger` keeps a topic on the target."
    ),
    ["kip-1289", "ledger"]
  ),
  "exactly.once.fallback": withDefault(
    word(
      ["at-least-once", "fail"],
      "When no binding is available: `at-least-once` runs all the same and says so everywhere, `fail` refuses to run the flow."
    ),
    "at-least-once"
  ),
  "on.ledger.lost": withDefault(
    word(
      ["fail", "adopt"],
      "What happens when the ledger topic is gone although the flow has run with one (the target remembers its transactions for a week): `fail` stops the flow with the reason, `adopt` begins a new ledger and takes for mirrored what the group has done. What was mirrored and not acknowledged is then mirrored twice, once. Set it back when the flow runs."
    ),
    "fail"
  ),
  "ledger.patience.ms": withDefault(
    whole(
      1_000,
      600_000,
      "How long a worker waits for another worker's undecided transaction over the same records before it ends it. Any value is safe: it only serves progress. Shorter, a worker that is slow or paused loses its transaction sooner; longer, records wait longer behind a worker that has died. It doubles each time the same worker is met.",
      "milliseconds"
    ),
    10_000
  ),
  "transaction.max.latency.ms": withDefault(
    whole(
      1,
      900_000,
      "How long a transaction gathers records on the target while few come at a time: read_committed readers see them at most this late. One after a pause does not wait; one that is large (500 records or 256 KiB) takes only what was read already. At most a third of the producer's transaction.timeout.ms.",
      "milliseconds"
    ),
    100
  ),
  "transaction.max.bytes": withDefault(
    whole(1_024, MAX_INT, "A transaction is committed when it holds this much, before its time is over.", "bytes"),
    67_108_864
  ),
  "transaction.max.records": withDefault(
    whole(1, 100_000_000, "A transaction is committed when it holds this many records, before its time is over."),
    1_000_000
  )
}

export const errorSettings = {
  "on.record.refused": withDefault(
    word(
      ["block", "deadletter"],
      "A record that the target refuses (too large, timestamp): `block` stops its partition with the reason in /status until the target takes it, `deadletter` sends it to the dead-letter topic."
    ),
    "block"
  ),
  "errors.tolerance": withDefault(
    word(
      ["none", "all"],
      "A record on which a transform fails for good: with a dead-letter topic it goes there; else `none` stops the flow with the reason and `all` skips the record and counts it."
    ),
    "none"
  ),
  "errors.deadletterqueue.topic.name": optional(
    text(
      TOPIC_ALLOWED,
      TOPIC_NAME,
      "The dead-letter topic on the target. What goes there is acknowledged on the source."
    )
  ),
  "errors.deadletterqueue.topic.replication.factor": withDefault(
    whole(
      1,
      32_767,
      "Replicas of the dead-letter topic where it has to be created. -1 leaves it to the target's default.",
      "",
      [-1]
    ),
    -1
  ),
  "errors.deadletterqueue.context.headers.enable": withDefault(
    flag(
      "Adds Connect's `__connect.errors.*` headers (topic, partition, offset, transform, exception) to dead letters."
    ),
    false
  )
}

export const SHUTDOWN_TIMEOUT_MS = 30_000
export const shutdownSetting = whole(
  0,
  3_600_000,
  "After SIGINT or SIGTERM: how long what was read may take to be confirmed and acknowledged. The rest is released, not lost.",
  "milliseconds"
)

export const flowSettings = {
  ...naming,
  ...topicSettings,
  ...controlSettings,
  ...offsetSettings,
  ...readSettings,
  ...guaranteeSettings,
  ...errorSettings,
  "shutdown.timeout.ms": optional(shutdownSetting, "what shutdown.timeout.ms at top level says")
}
