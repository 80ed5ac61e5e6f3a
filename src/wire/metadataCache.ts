/**
 * What is known of a cluster: brokers, topics, leaders. Plain state; the caller asks the brokers.
 *
 * Rules (as Kafka's Java client, Metadata.updateLatestMetadata):
 * 1. A partition never goes back to an older leader epoch, for brokers learn of an election one after the other;
 *    an answer with an older epoch is ignored for that partition.
 * 2. Another topic id is another topic, created anew: its epochs start over.
 * 3. Where either side has no epoch (-1: brokers before 2.4), the newer answer counts.
 */
import type { BrokerNode, PartitionMetadata, TopicMetadata } from "./cluster.ts"
import type { metadata } from "./messages/metadata.ts"
import { type ResponseOf, ZERO_UUID } from "./schema.ts"

export type MetadataAnswer = ResponseOf<typeof metadata>

interface CachedTopic {
  readonly topic: TopicMetadata
  readonly atMs: number
}

const newer = (before: PartitionMetadata | undefined, now: PartitionMetadata): PartitionMetadata =>
  before !== undefined && before.leaderEpoch >= 0 && now.leaderEpoch >= 0 && now.leaderEpoch < before.leaderEpoch
    ? before
    : now

const sameTopic = (a: TopicMetadata, b: TopicMetadata): boolean =>
  a.id === b.id || a.id === ZERO_UUID || b.id === ZERO_UUID

/** A topic of an answer; null where the answer says that it is not there. */
export const topicOf = (answer: MetadataAnswer["topics"][number]): TopicMetadata => ({
  name: answer.name ?? "",
  id: answer.topicId,
  internal: answer.isInternal,
  partitions: answer.partitions
    .map((p) => ({
      partition: p.partitionIndex,
      leader: p.leaderId,
      leaderEpoch: p.leaderEpoch,
      replicas: p.replicaNodes,
      isr: p.isrNodes
    }))
    .sort((a, b) => a.partition - b.partition)
})

export class MetadataCache {
  brokers: ReadonlyMap<number, BrokerNode> = new Map()
  brokersAtMs = -Infinity
  clusterId: string | null = null
  controllerId = -1
  readonly #topics = new Map<string, CachedTopic>()
  readonly #names = new Map<string, string>()

  /** Takes the part of an answer that speaks of brokers. */
  applyBrokers(answer: MetadataAnswer, atMs: number): void {
    if (answer.brokers.length > 0) {
      this.brokers = new Map(
        answer.brokers.map((b) => [b.nodeId, { id: b.nodeId, host: b.host, port: b.port, rack: b.rack }])
      )
      this.brokersAtMs = atMs
    }
    this.controllerId = answer.controllerId
    this.clusterId = answer.clusterId ?? this.clusterId
  }

  /** Takes a topic by the rules above; gives what counts now. */
  applyTopic(topic: TopicMetadata, atMs: number): TopicMetadata {
    const before = this.#topics.get(topic.name)?.topic
    const kept = before === undefined || !sameTopic(before, topic) ? topic : {
      ...topic,
      id: topic.id === ZERO_UUID ? before.id : topic.id,
      partitions: topic.partitions.map((p) => newer(before.partitions.find((b) => b.partition === p.partition), p))
    }
    if (before !== undefined && before.id !== kept.id) this.#names.delete(before.id)
    this.#topics.set(kept.name, { topic: kept, atMs })
    if (kept.id !== ZERO_UUID) this.#names.set(kept.id, kept.name)
    return kept
  }

  topic(name: string, notBeforeMs: number): TopicMetadata | null {
    const cached = this.#topics.get(name)
    return cached === undefined || cached.atMs < notBeforeMs ? null : cached.topic
  }

  /** Those of which each partition is known to have a leader. */
  led(names: ReadonlyArray<string>, notBeforeMs: number): Map<string, TopicMetadata> {
    const found = new Map<string, TopicMetadata>()
    for (const name of names) {
      const topic = this.topic(name, notBeforeMs)
      if (topic?.partitions.every((p) => p.leader >= 0) === true) found.set(name, topic)
    }
    return found
  }

  topicById(id: string, notBeforeMs: number): TopicMetadata | null {
    const name = this.#names.get(id)
    return name === undefined ? null : this.topic(name, notBeforeMs)
  }

  /** The topic is gone. */
  remove(name: string): void {
    const id = this.#topics.get(name)?.topic.id
    if (id !== undefined) this.#names.delete(id)
    this.#topics.delete(name)
  }

  /** Forces the next look-up to ask, but keeps the epochs so that rule 1 holds for the answer. */
  expire(name: string): void {
    const cached = this.#topics.get(name)
    if (cached !== undefined) this.#topics.set(name, { ...cached, atMs: -Infinity })
  }

  /** Keeps only these topics (after an answer that lists all). */
  retain(names: ReadonlySet<string>): void {
    for (const name of [...this.#topics.keys()]) if (!names.has(name)) this.remove(name)
  }

  addBroker(node: BrokerNode): void {
    const known = this.brokers.get(node.id)
    if (known !== undefined && known.host === node.host && known.port === node.port) return
    this.brokers = new Map(this.brokers).set(node.id, { ...node, rack: node.rack ?? known?.rack ?? null })
  }

  /** A leader named in a produce or fetch answer (KIP-951); only a newer epoch counts. */
  learnLeader(name: string, partition: number, leader: { readonly id: number; readonly epoch: number }): void {
    const cached = this.#topics.get(name)
    const before = cached?.topic.partitions.find((p) => p.partition === partition)
    if (cached === undefined || before === undefined || leader.id < 0 || leader.epoch <= before.leaderEpoch) return
    const partitions = cached.topic.partitions.map((
      p
    ) => (p === before ? { ...p, leader: leader.id, leaderEpoch: leader.epoch } : p))
    this.#topics.set(name, { ...cached, topic: { ...cached.topic, partitions } })
  }
}
