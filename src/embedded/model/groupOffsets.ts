/** Committed offsets of a consumer group, and those that wait for a transaction. */
import type { Group } from "./group.ts"

export interface CommittedOffset {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly leaderEpoch: number
  readonly metadata: string
}

export const offsetKey = (topic: string, partition: number): string => `${topic}:${partition}`

export const commitOffset = (group: Group, committed: CommittedOffset): void => {
  group.offsets.set(offsetKey(committed.topic, committed.partition), committed)
}

/** TxnOffsetCommit: they count when the transaction commits. */
export const stageOffsets = (group: Group, producerId: number, offsets: ReadonlyArray<CommittedOffset>): void => {
  group.pendingOffsets.set(producerId, [...group.pendingOffsets.get(producerId) ?? [], ...offsets])
}

export const isUnstable = (group: Group, topic: string, partition: number): boolean =>
  [...group.pendingOffsets.values()].some((offsets) =>
    offsets.some((o) => o.topic === topic && o.partition === partition)
  )

/** The transaction's marker. */
export const settleGroupOffsets = (group: Group, producerId: number, committed: boolean): void => {
  const staged = group.pendingOffsets.get(producerId) ?? []
  group.pendingOffsets.delete(producerId)
  if (committed) { for (const offset of staged) commitOffset(group, offset) }
}
