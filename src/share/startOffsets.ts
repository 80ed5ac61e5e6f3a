/**
 * Where a share group starts in each partition: everything below the start offset is done for the group, whether it
 * was acknowledged, archived after too many deliveries, or deleted. What repair compares with what is on the target.
 *
 * Gotcha (Kafka 4.4.0): the start offset told here is the one last written, and it is written with the next change
 * of the partition's state: after the last acknowledgement of a quiet partition it stays behind for as long as the
 * quiet lasts. It is never ahead. `lag` counts what is decided and is exact.
 */
import { Effect } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { describeShareGroupOffsets } from "../wire/messages/describeShareGroupOffsets.ts"

export interface ShareStart {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  /** At most the true one. -1: nothing of the partition was delivered yet. */
  readonly startOffset: number
  readonly leaderEpoch: number
  /** Records not yet decided for the group, held ones included; -1 where the broker does not tell (KIP-1226). */
  readonly lag: number
}

const GROUP_ID_NOT_FOUND = 69

/**
 * The start offsets of a group; of all partitions it knows, or of those asked for. Partitions the broker has no
 * answer for are left out.
 */
export const shareStartOffsets = (
  cluster: Cluster,
  groupId: string,
  of?: ReadonlyMap<string, ReadonlyArray<number>>
): Effect.Effect<ReadonlyArray<ShareStart>, WireError> => {
  const to = { kind: "group", key: groupId } as const
  const topics = of === undefined ? null : [...of].map(([topicName, partitions]) => ({ topicName, partitions }))
  return cluster.retrying(
    Effect.gen(function*() {
      const answer = yield* cluster.request(to, describeShareGroupOffsets, { groups: [{ groupId, topics }] })
      const group = answer.groups[0]
      // A group that nobody has joined yet, or no longer: it has done nothing.
      if (group === undefined || group.errorCode === GROUP_ID_NOT_FOUND) return []
      if (group.errorCode !== 0) {
        return yield* new BrokerError({
          api: "DescribeShareGroupOffsets",
          code: group.errorCode,
          subject: `group ${groupId}`,
          detail: group.errorMessage
        })
      }
      return group.topics.flatMap((t) =>
        t.partitions.filter((p) => p.errorCode === 0).map((p) => ({
          topic: t.topicName,
          topicId: t.topicId,
          partition: p.partitionIndex,
          startOffset: p.startOffset,
          leaderEpoch: p.leaderEpoch,
          lag: p.lag
        }))
      )
    }),
    { destination: to }
  )
}
