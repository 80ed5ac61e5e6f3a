/** What the source's group has decided, and who is in it: what the ledger's notes of a change are made of. */
import { Effect } from "effect"
import { decidedOffsets } from "../../share/decided.ts"
import type { DecidedAt } from "../../txn/ledger/regime.ts"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { shareGroupDescribe } from "../../wire/messages/shareGroupDescribe.ts"
import { type RangeSet, rangeSet, union } from "../../wire/ranges.ts"
import { reachableEnds } from "../control/logOffsets.ts"
import { groupProgress, partitionName } from "../control/offsets.ts"
import type { MirroredTopic } from "../control/topics.ts"

export interface GroupOptions {
  readonly source: Cluster
  readonly groupId: string
  readonly mode: "share" | "consumer"
  readonly readCommitted: boolean
  readonly topics: () => ReadonlyArray<MirroredTopic>
}

export interface GroupFact extends DecidedAt {
  /** Offsets that are decided too, nobody knows which; null: nobody knows whether there are any. */
  readonly beyond: number | null
}

/** More records than this are in flight in no share partition (group.share.max.partition.max.record.locks). */
const MOST_IN_FLIGHT = 10_000

const shareFacts = (options: GroupOptions): Effect.Effect<ReadonlyArray<GroupFact>, WireError> =>
  Effect.gen(function*() {
    const topics = options.topics()
    const { found, missing } = yield* reachableEnds(options.source, topics, options.readCommitted)
    const facts = yield* decidedOffsets(options.source, options.groupId, new Set(topics.map((t) => t.source)), found)
    // What the group has not begun needs no end. Of what it has, too little would be known.
    for (const { partition, topic } of facts) {
      const unknown = missing.get(partitionName(topic, partition))
      if (unknown !== undefined) return yield* Effect.fail(unknown)
    }
    return facts
  })

/** A committed position says that all below is mirrored. */
const consumerFacts = (options: GroupOptions): Effect.Effect<ReadonlyArray<GroupFact>, WireError> =>
  Effect.gen(function*() {
    const topics = options.topics()
    const found = yield* groupProgress(options.source, options.groupId, topics)
    return topics.flatMap((topic) =>
      Array.from({ length: topic.partitions }, (_, partition) => partition).flatMap((partition) => {
        const known = found.get(partitionName(topic.source, partition))
        if (known === undefined || known.position <= 0) return []
        const ranges = rangeSet([{ first: 0, last: known.position - 1 }])
        return [{ topic: topic.source, topicId: topic.sourceId, partition, ranges, beyond: 0 }]
      })
    )
  })

/** Never more than the truth. */
export const groupFacts = (options: GroupOptions): Effect.Effect<ReadonlyArray<GroupFact>, WireError> =>
  options.mode === "share" ? shareFacts(options) : consumerFacts(options)

const endOf = (ranges: RangeSet): number => (ranges.at(-1)?.last ?? -1) + 1

/** Never less than the truth: what may have been decided, as far as a share partition reaches. */
export const atMost = (facts: ReadonlyArray<GroupFact>): ReadonlyArray<DecidedAt> =>
  facts.map(({ beyond, ranges, ...at }) => {
    if (beyond === 0) return { ...at, ranges }
    const first = endOf(ranges)
    return { ...at, ranges: union(ranges, rangeSet([{ first, last: first + MOST_IN_FLIGHT - 1 }])) }
  })

/** How much of the facts is not known: offsets, or null where not even that is. */
export const unknownIn = (facts: ReadonlyArray<GroupFact>): number | null =>
  facts.reduce<number | null>((sum, { beyond }) => sum === null || beyond === null ? null : sum + beyond, 0)

const GROUP_ID_NOT_FOUND = 69

/** Member ids. Of consumer groups nobody asks: their positions stand in the group, whoever works. */
export const groupMembers = (
  { groupId, mode, source }: Pick<GroupOptions, "source" | "groupId" | "mode">
): Effect.Effect<ReadonlyArray<string>, WireError> => {
  if (mode === "consumer") return Effect.succeed([])
  const to = { kind: "group", key: groupId } as const
  return source.retrying(
    Effect.gen(function*() {
      const answer = yield* source.request(to, shareGroupDescribe, {
        groupIds: [groupId],
        includeAuthorizedOperations: false
      })
      const [group] = answer.groups
      if (group === undefined || group.errorCode === GROUP_ID_NOT_FOUND) return []
      if (group.errorCode !== 0) {
        return yield* new BrokerError({
          api: "ShareGroupDescribe",
          code: group.errorCode,
          subject: `group ${groupId}`,
          detail: group.errorMessage
        })
      }
      return group.members.map(({ memberId }) => memberId)
    }),
    { destination: to }
  )
}
