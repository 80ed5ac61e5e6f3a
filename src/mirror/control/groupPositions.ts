/**
 * Where groups stand: consumer groups (classic and KIP-848) and share groups behind one face; one of them, or many with
 * few questions.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { describeShareGroupOffsets } from "../../wire/messages/describeShareGroupOffsets.ts"
import { offsetFetch } from "../../wire/messages/offsetFetch.ts"
import type { GroupKind } from "./groups.ts"
import { partitionName } from "./offsets.ts"

/** Where a group stands in one partition. */
export interface GroupPosition {
  readonly topic: string
  readonly partition: number
  /** The next offset it wants. */
  readonly offset: number
  /** What was committed beside it. */
  readonly metadata: string
}
export type Positions = ReadonlyMap<string, GroupPosition>

const NONE = 0
const GROUP_ID_NOT_FOUND = 69
/** The newest version that names topics by name. */
const BY_NAME = 9
/** The first that takes several groups (KIP-709). */
const SEVERAL = 8

const refused = (api: string, code: number, groupId: string, detail: string | null = null): BrokerError =>
  new BrokerError({ api, code, subject: `group ${groupId}`, detail })

const keyed = (positions: ReadonlyArray<GroupPosition>): Positions =>
  new Map(positions.map((position) => [partitionName(position.topic, position.partition), position]))

interface FetchedTopic {
  readonly name: string
  readonly partitions: ReadonlyArray<{
    readonly partitionIndex: number
    readonly committedOffset: number
    readonly metadata: string | null
    readonly errorCode: number
  }>
}

/** What a coordinator says of one consumer group. */
const ofConsumer = (groupId: string, code: number, topics: ReadonlyArray<FetchedTopic>): Positions | BrokerError => {
  if (code === GROUP_ID_NOT_FOUND) return keyed([])
  if (code !== NONE) return refused("OffsetFetch", code, groupId)
  const found: Array<GroupPosition> = []
  for (const topic of topics) {
    for (const p of topic.partitions) {
      if (p.errorCode !== NONE) return refused("OffsetFetch", p.errorCode, groupId)
      if (p.committedOffset < 0) continue
      found.push({
        topic: topic.name,
        partition: p.partitionIndex,
        offset: p.committedOffset,
        metadata: p.metadata ?? ""
      })
    }
  }
  return keyed(found)
}

interface DescribedGroup {
  readonly errorCode: number
  readonly errorMessage: string | null
  readonly topics: ReadonlyArray<{
    readonly topicName: string
    readonly partitions: ReadonlyArray<{
      readonly partitionIndex: number
      readonly startOffset: number
      readonly errorCode: number
    }>
  }>
}

const ofShare = (groupId: string, group: DescribedGroup | undefined): Positions | BrokerError => {
  const code = group?.errorCode ?? NONE
  if (code === GROUP_ID_NOT_FOUND) return keyed([])
  if (code !== NONE) return refused("DescribeShareGroupOffsets", code, groupId, group?.errorMessage ?? null)
  return keyed(
    (group?.topics ?? []).flatMap((topic) =>
      topic.partitions.flatMap((p) =>
        p.errorCode === NONE && p.startOffset >= 0
          ? [{ topic: topic.topicName, partition: p.partitionIndex, offset: p.startOffset, metadata: "" }]
          : []
      )
    )
  )
}

const orFail = (found: Positions | BrokerError): Effect.Effect<Positions, WireError> =>
  found instanceof BrokerError ? Effect.fail(found) : Effect.succeed(found)

/** Where a group stands, in every partition that it has begun; a group that is not there stands nowhere. */
export const positionsOf = (
  cluster: Cluster,
  groupId: string,
  kind: GroupKind
): Effect.Effect<Positions, WireError> => {
  const to = { kind: "group", key: groupId } as const
  const consumer = Effect.gen(function*() {
    const answer = yield* cluster.request(to, offsetFetch, (version) =>
      version < SEVERAL
        ? { groupId, topics: null, requireStable: true }
        : { groups: [{ groupId, topics: null }], requireStable: true }, { maxVersion: BY_NAME, minVersion: 2 })
    const first = answer.groups[0]
    return yield* orFail(ofConsumer(groupId, first?.errorCode ?? answer.errorCode, first?.topics ?? answer.topics))
  })
  const share = Effect.gen(function*() {
    const answer = yield* cluster.request(to, describeShareGroupOffsets, { groups: [{ groupId, topics: null }] })
    return yield* orFail(ofShare(groupId, answer.groups[0]))
  })
  return cluster.retrying(kind === "share" ? share : consumer, { destination: to })
}

/** A group, and the broker that coordinated it when it was last looked for; null: not known. */
export interface Asked {
  readonly id: string
  readonly kind: GroupKind
  readonly broker: number | null
}

/** Groups of one question. */
const AT_ONCE = 100
/** Questions at a time. */
const CONCURRENCY = 4

/** What one broker says of some of its groups; nothing of those that it cannot speak of (any more). */
const several = (
  cluster: Cluster,
  broker: number,
  kind: GroupKind,
  ids: ReadonlyArray<string>
): Effect.Effect<ReadonlyMap<string, Positions>, WireError> =>
  Effect.gen(function*() {
    const to = { kind: "broker", id: broker } as const
    const groups = ids.map((groupId) => ({ groupId, topics: null }))
    const told: ReadonlyArray<readonly [string, Positions | BrokerError]> = kind === "share"
      ? (yield* cluster.request(to, describeShareGroupOffsets, { groups })).groups
        .map((group) => [group.groupId, ofShare(group.groupId, group)])
      : (yield* cluster.request(to, offsetFetch, { groups, requireStable: true }, {
        maxVersion: BY_NAME,
        minVersion: SEVERAL
      })).groups.map((group) => [group.groupId, ofConsumer(group.groupId, group.errorCode, group.topics)])
    return new Map(told.flatMap(([id, found]) => found instanceof BrokerError ? [] : [[id, found] as const]))
  })

const inParts = <A>(list: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(list.length / AT_ONCE) }, (_, n) => list.slice(n * AT_ONCE, (n + 1) * AT_ONCE))

/**
 * Where each of these groups stands, or why that cannot be told; one question for many groups of a broker. Those that it
 * leaves open (a coordinator that moved, an old broker, a missing right) are asked for one by one. Never fails.
 */
export const positionsOfAll = (
  cluster: Cluster,
  groups: ReadonlyArray<Asked>
): Effect.Effect<ReadonlyMap<string, Positions | WireError>> =>
  Effect.gen(function*() {
    const found = new Map<string, Positions | WireError>()
    const known = groups.filter(({ broker }) => broker !== null)
    const questions = [...Map.groupBy(known, ({ broker, kind }) => `${broker} ${kind}`).values()].flatMap(inParts)
    yield* Effect.forEach(questions, (part) => {
      const { broker, kind } = part[0] as Asked
      const ids = part.map(({ id }) => id)
      return Effect.ignore(Effect.map(several(cluster, broker as number, kind, ids), (told) => {
        for (const [id, positions] of told) found.set(id, positions)
      }))
    }, { concurrency: CONCURRENCY, discard: true })
    yield* Effect.forEach(groups.filter(({ id }) => !found.has(id)), ({ id, kind }) =>
      Effect.match(positionsOf(cluster, id, kind), {
        onSuccess: (positions) =>
          void found.set(id, positions),
        onFailure: (error) => void found.set(id, error)
      }), { concurrency: CONCURRENCY, discard: true })
    return found
  })
