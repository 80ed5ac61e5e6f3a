/**
 * How far a flow's group has come, read from the source cluster. With the ends of the logs (logOffsets.ts) this is
 * what lag and "caught up" are made of; it is the cluster's word, so it counts the work of every member, also those in
 * other processes.
 */
import { Effect } from "effect"
import { parseCommitMetadata } from "../../group/commitMetadata.ts"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { describeShareGroupOffsets } from "../../wire/messages/describeShareGroupOffsets.ts"
import { offsetFetch } from "../../wire/messages/offsetFetch.ts"
import { ZERO_UUID } from "../../wire/schema.ts"
import type { MirroredTopic } from "./topics.ts"

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}
export const partitionName = (topic: string, partition: number): string => `${topic}-${partition}`

const GROUP_ID_NOT_FOUND = 69

/** How far a group has come in one partition. */
export interface Progress {
  /** Everything below is done. */
  readonly position: number
  /** Records not done yet, where the broker says so (share groups, KIP-1226); null where it does not. */
  readonly left: number | null
}
export type ProgressMap = ReadonlyMap<string, Progress>

/** Whether what a group says under a topic's name is of that topic, and not of one before it that had the same name. */
const asksFor = (topics: ReadonlyArray<MirroredTopic>) => {
  const ids = new Map(topics.map(({ source, sourceId }) => [source, sourceId]))
  return (name: string, id: string | null): boolean => {
    const wanted = ids.get(name)
    return id === null || id === ZERO_UUID || wanted === undefined || wanted === ZERO_UUID || wanted === id
  }
}

/**
 * The share-partition start offset of each partition: all below is acknowledged or given up. Partitions the group
 * has not begun are absent, and those of another topic that has the name. Gotcha: brokers write the start offset down
 * with the next state change, so at rest it lags behind what is acknowledged; `left` does not.
 */
export const shareProgress = (
  source: Cluster,
  groupId: string,
  topics: ReadonlyArray<MirroredTopic>
): Effect.Effect<ProgressMap, WireError> =>
  source.retrying(
    Effect.gen(function*() {
      const answer = yield* source.request({ kind: "group", key: groupId }, describeShareGroupOffsets, {
        groups: [{
          groupId,
          topics: topics.map((t) => ({
            topicName: t.source,
            partitions: Array.from({ length: t.partitions }, (_, p) => p)
          }))
        }]
      })
      const progress = new Map<string, Progress>()
      const isThat = asksFor(topics)
      for (const group of answer.groups) {
        if (group.errorCode === GROUP_ID_NOT_FOUND) continue
        if (group.errorCode !== 0) {
          return yield* new BrokerError({
            api: "DescribeShareGroupOffsets",
            code: group.errorCode,
            subject: `group ${groupId}`,
            detail: group.errorMessage
          })
        }
        for (const topic of group.topics) {
          if (!isThat(topic.topicName, topic.topicId)) continue
          for (const p of topic.partitions) {
            if (p.errorCode === 0 && p.startOffset >= 0) {
              progress.set(partitionName(topic.topicName, p.partitionIndex), {
                position: p.startOffset,
                left: p.lag >= 0 ? p.lag : null
              })
            }
          }
        }
      }
      return progress as ProgressMap
    }),
    { destination: { kind: "group", key: groupId } }
  )

const asNamed = (topics: ReadonlyArray<MirroredTopic>) =>
  topics.map((t) => ({ name: t.source, partitionIndexes: Array.from({ length: t.partitions }, (_, p) => p) }))

/**
 * The committed position of each partition of a consumer group; partitions without one are absent, and so are those
 * whose position was committed for a topic before this one that had the same name, where the commit tells.
 */
export const groupProgress = (
  source: Cluster,
  groupId: string,
  topics: ReadonlyArray<MirroredTopic>
): Effect.Effect<ProgressMap, WireError> =>
  source.retrying(
    Effect.gen(function*() {
      // Topic ids (version 10) would only have to be turned back into names here.
      const answer = yield* source.request({ kind: "group", key: groupId }, offsetFetch, (version) =>
        version < 8
          ? { groupId, topics: asNamed(topics) }
          : { groups: [{ groupId, topics: asNamed(topics) }] }, { maxVersion: 9 })
      const progress = new Map<string, Progress>()
      const isThat = asksFor(topics)
      const first = answer.groups[0]
      const errorCode = first?.errorCode ?? answer.errorCode
      if (errorCode !== 0) {
        return yield* new BrokerError({
          api: "OffsetFetch",
          code: errorCode,
          subject: `group ${groupId}`,
          detail: null
        })
      }
      for (const topic of first?.topics ?? answer.topics) {
        for (const p of topic.partitions) {
          const { topicId } = parseCommitMetadata(p.metadata ?? "")
          if (p.errorCode === 0 && p.committedOffset >= 0 && isThat(topic.name, topicId)) {
            progress.set(partitionName(topic.name, p.partitionIndex), { position: p.committedOffset, left: null })
          }
        }
      }
      return progress as ProgressMap
    }),
    { destination: { kind: "group", key: groupId } }
  )
