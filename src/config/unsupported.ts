/**
 * Settings of MirrorMaker 2 and Kafka Connect that a user may bring along and that this version does not have. They
 * get a sentence of their own, because "unknown" would send the user looking for a typing error.
 */

/** What to write instead. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ["replication.policy.class", "replication.policy: default or identity"],
  ["topic.filter.class", "topics and topics.exclude"],
  ["group.filter.class", "groups and groups.exclude"],
  ["refresh.groups.enabled", "refresh.groups.interval.seconds"],
  ["offset.lag.max", "nothing: where each record is on the target is known"],
  ["config.property.filter.class", "config.properties.exclude"],
  ["refresh.topics.enabled", "refresh.topics.interval.seconds"],
  ["exactly.once.support", "delivery.guarantee"],
  ["exactly.once.source.support", "delivery.guarantee"],
  ["transaction.boundary", "transaction.max.latency.ms, transaction.max.bytes and transaction.max.records"],
  ["transaction.boundary.interval.ms", "transaction.max.latency.ms"],
  ["source.cluster.alias", "source"],
  ["target.cluster.alias", "target"],
  ["topics.blacklist", "topics.exclude"],
  ["topics.whitelist", "topics"],
  ["topics.regex", "topics"],
  ["errors.deadletterqueue.enable", "errors.deadletterqueue.topic.name"],
  ["key.converter", "nothing: records pass as bytes"],
  ["value.converter", "nothing: records pass as bytes"],
  ["header.converter", "nothing: records pass as bytes"]
])

/** The sentence for a setting of this name, or null where it is not one we know of. */
export const notSupported = (name: string): string | null => {
  const instead = INSTEAD.get(name)
  return instead === undefined ? null : `is not a setting here; write ${instead}`
}
