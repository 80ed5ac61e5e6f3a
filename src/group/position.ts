/** Where we are in a partition, and how partitions are named as map keys. Plain values; nothing here can fail. */
export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** The next offset to read (or to commit) of a partition. */
export interface Position extends TopicPartition {
  /** 0 or more: the offset AFTER the last one that is done. */
  readonly offset: number
  /** The leader epoch of the last record before `offset` (KIP-320); -1 when unknown. */
  readonly leaderEpoch: number
}

/** "orders-3": also what people read in messages. Topic names never hold a line break, so the key is unique. */
export const partitionKey = (at: TopicPartition): string => `${at.topic}-${at.partition}`
