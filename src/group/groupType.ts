/**
 * One id, one kind of group: Kafka keeps classic, consumer (KIP-848), share and streams groups in one space of
 * names. A mirror that joins a group of another kind would at best be refused, at worst take over the offsets of
 * somebody's application, so it looks before it joins.
 */
import { Effect, Schema } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { describeGroups } from "../wire/messages/describeGroups.ts"
import { listGroups } from "../wire/messages/listGroups.ts"

/** Kafka's words. classic: members that rebalance themselves. */
export type GroupType = "classic" | "consumer" | "share" | "streams"

export class GroupCollisionError extends Schema.TaggedError<GroupCollisionError>()("GroupCollisionError", {
  groupId: Schema.String,
  wanted: Schema.String,
  exists: Schema.String
}) {
  override get message(): string {
    const both = `a ${this.exists} group of this name exists on the source, a ${this.wanted} group is wanted`
    return `group.id ${this.groupId}: ${both}: choose another group.id, or delete that group; the progress of the two kinds is separate, so a new group starts at auto.offset.reset`
  }
}

export interface KnownGroup {
  readonly type: GroupType | "unknown"
  /** "Empty", "Stable", ... */
  readonly state: string
  /** "consumer" for consumers; "connect" and others for other users of the classic protocol. */
  readonly protocolType: string
}

/** First version of ListGroups that tells types (Kafka 3.8). */
const TELLS_TYPES = 5
const DEAD = "Dead"

/** The group as its coordinator knows it; null when there is none (or the principal may not see it). */
export const findGroup = (cluster: Cluster, groupId: string): Effect.Effect<KnownGroup | null, WireError> => {
  const to = { kind: "group", key: groupId } as const
  const raised = (api: string, code: number, detail: string | null) =>
    new BrokerError({ api, code, subject: `group ${groupId}`, detail })
  const listed = Effect.gen(function*() {
    const answer = yield* cluster.request(to, listGroups, {})
    if (answer.errorCode !== 0) return yield* raised("ListGroups", answer.errorCode, null)
    const found = answer.groups.find((g) => g.groupId === groupId)
    if (found === undefined) return null
    return { type: typeOf(found.groupType), state: found.groupState, protocolType: found.protocolType }
  })
  // Brokers that do not tell types have no others than classic ones, but for the previews of KIP-848 in 3.7.
  const described = Effect.gen(function*() {
    const answer = yield* cluster.request(to, describeGroups, { groups: [groupId] })
    const found = answer.groups[0]
    if (found === undefined || found.groupState === DEAD) return null
    if (found.errorCode !== 0) return yield* raised("DescribeGroups", found.errorCode, found.errorMessage)
    return { type: "classic", state: found.groupState, protocolType: found.protocolType } as const
  })
  return cluster.retrying(
    Effect.flatMap(
      cluster.negotiate(to, listGroups),
      (version): Effect.Effect<KnownGroup | null, WireError> => version >= TELLS_TYPES ? listed : described
    ),
    { destination: to }
  )
}

const typeOf = (text: string): KnownGroup["type"] => {
  const lower = text.toLowerCase()
  return lower === "classic" || lower === "consumer" || lower === "share" || lower === "streams" ? lower : "unknown"
}

/**
 * Fails when a group of another kind has this id. A classic group is no obstacle to a consumer group: the coordinator
 * converts one into the other (KIP-848), and both speak of the same offsets.
 */
export const assertGroupType = (
  cluster: Cluster,
  groupId: string,
  wanted: "share" | "consumer"
): Effect.Effect<void, GroupCollisionError | WireError> =>
  Effect.flatMap(findGroup(cluster, groupId), (found) => {
    if (found === null || found.type === "unknown" || found.type === wanted) return Effect.void
    if (
      wanted === "consumer" && found.type === "classic" &&
      (found.protocolType === "" || found.protocolType === "consumer")
    ) return Effect.void
    const exists = found.type === "classic" && found.protocolType !== "" && found.protocolType !== "consumer"
      ? `classic (${found.protocolType})`
      : found.type
    return Effect.fail(new GroupCollisionError({ groupId, wanted, exists }))
  })
