/**
 * Groups of one cluster, as an administrator sees them: which there are, and moving an empty one; groupPositions.ts has
 * where they stand. Consumer groups (classic and KIP-848) and share groups behind one face.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { alterShareGroupOffsets } from "../../wire/messages/alterShareGroupOffsets.ts"
import { listGroups } from "../../wire/messages/listGroups.ts"
import { offsetCommit } from "../../wire/messages/offsetCommit.ts"
import type { GroupPosition } from "./groupPositions.ts"
import { partitionName } from "./offsets.ts"

export type GroupKind = "consumer" | "share"

export interface Group {
  readonly id: string
  /** "other": no group that reads topics with offsets that we know (Connect, Streams of KIP-1071, ...). */
  readonly kind: GroupKind | "other"
  /** No members; a broker older than 2.6 does not say, then null. */
  readonly empty: boolean | null
  /** The broker that had it: each lists what it coordinates. */
  readonly broker: number
}

const NONE = 0
/** The newest version that names topics by name. */
const BY_NAME = 9
const IDLE = new Set(["Empty", "Dead"])

const kindOf = (type: string, protocolType: string): Group["kind"] => {
  if (type.toLowerCase() === "share") return "share"
  if (type.toLowerCase() === "streams") return "other"
  return protocolType === "consumer" || protocolType === "" ? "consumer" : "other"
}

/** All groups, by id. */
export const allGroups = (cluster: Cluster): Effect.Effect<ReadonlyMap<string, Group>, WireError> =>
  cluster.retrying(Effect.gen(function*() {
    const groups = new Map<string, Group>()
    for (const { id: broker } of yield* cluster.brokers) {
      const answer = yield* cluster.request({ kind: "broker", id: broker }, listGroups, {})
      if (answer.errorCode !== NONE) {
        return yield* new BrokerError({
          api: "ListGroups",
          code: answer.errorCode,
          subject: `broker ${broker}`,
          detail: null
        })
      }
      for (const { groupId: id, groupState, groupType, protocolType } of answer.groups) {
        groups.set(id, {
          id,
          kind: kindOf(groupType, protocolType),
          empty: groupState === "" ? null : IDLE.has(groupState),
          broker
        })
      }
    }
    return groups
  }))

const refused = (api: string, code: number, groupId: string, detail: string | null = null): BrokerError =>
  new BrokerError({ api, code, subject: `group ${groupId}`, detail })

/** Outcome of a move, by partition name; null: done. */
export type Moved = ReadonlyMap<string, BrokerError | null>

const byTopic = (moves: ReadonlyArray<GroupPosition>): ReadonlyMap<string, ReadonlyArray<GroupPosition>> =>
  Map.groupBy(moves, ({ topic }) => topic)

/**
 * Commits as somebody who is no member of the group: the coordinator takes it from a group that has none, and from no
 * other, so a member that has joined in the meantime is never moved.
 */
const moveConsumer = (
  cluster: Cluster,
  groupId: string,
  moves: ReadonlyArray<GroupPosition>
): Effect.Effect<Moved, WireError> =>
  cluster.retrying(
    Effect.gen(function*() {
      const answer = yield* cluster.request({ kind: "group", key: groupId }, offsetCommit, {
        groupId,
        memberId: "",
        topics: [...byTopic(moves)].map(([name, partitions]) => ({
          name,
          partitions: partitions.map((move) => ({
            partitionIndex: move.partition,
            committedOffset: move.offset,
            committedMetadata: move.metadata
          }))
        }))
      }, { maxVersion: BY_NAME })
      const moved = new Map<string, BrokerError | null>()
      for (const topic of answer.topics) {
        for (const { errorCode, partitionIndex } of topic.partitions) {
          const error = errorCode === NONE ? null : refused("OffsetCommit", errorCode, groupId)
          if (error?.class === "coordinator" || error?.class === "retriable") return yield* error
          moved.set(partitionName(topic.name, partitionIndex), error)
        }
      }
      return moved
    }),
    { destination: { kind: "group", key: groupId } }
  )

const moveShare = (
  cluster: Cluster,
  groupId: string,
  moves: ReadonlyArray<GroupPosition>
): Effect.Effect<Moved, WireError> =>
  cluster.retrying(
    Effect.gen(function*() {
      const answer = yield* cluster.request({ kind: "group", key: groupId }, alterShareGroupOffsets, {
        groupId,
        topics: [...byTopic(moves)].map(([topicName, partitions]) => ({
          topicName,
          partitions: partitions.map((move) => ({ partitionIndex: move.partition, startOffset: move.offset }))
        }))
      })
      const whole = answer.errorCode === NONE
        ? null
        : refused("AlterShareGroupOffsets", answer.errorCode, groupId, answer.errorMessage)
      if (whole?.class === "coordinator" || whole?.class === "retriable") return yield* whole
      const moved = new Map<string, BrokerError | null>(
        moves.map((move) => [partitionName(move.topic, move.partition), whole])
      )
      for (const topic of answer.responses) {
        for (const p of topic.partitions) {
          if (p.errorCode === NONE) continue
          const error = refused("AlterShareGroupOffsets", p.errorCode, groupId, p.errorMessage)
          moved.set(partitionName(topic.topicName, p.partitionIndex), error)
        }
      }
      return moved
    }),
    { destination: { kind: "group", key: groupId } }
  )

/** Moves a group that has no members; the brokers refuse it for any other. */
export const moveGroup = (
  cluster: Cluster,
  groupId: string,
  kind: GroupKind,
  moves: ReadonlyArray<GroupPosition>
): Effect.Effect<Moved, WireError> =>
  moves.length === 0
    ? Effect.succeed(new Map())
    : kind === "share"
    ? moveShare(cluster, groupId, moves)
    : moveConsumer(cluster, groupId, moves)

const UNKNOWN_MEMBER_ID = 25
const ILLEGAL_GENERATION = 22
const REBALANCE_IN_PROGRESS = 27
const NON_EMPTY_GROUP = 68
const STALE_MEMBER_EPOCH = 113
const ACTIVE: ReadonlySet<number> = new Set([
  UNKNOWN_MEMBER_ID,
  ILLEGAL_GENERATION,
  REBALANCE_IN_PROGRESS,
  NON_EMPTY_GROUP,
  STALE_MEMBER_EPOCH
])

/** Whether a move was refused because the group has members. */
export const isActive = (error: BrokerError): boolean => ACTIVE.has(error.code)
