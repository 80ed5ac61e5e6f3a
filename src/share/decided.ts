/**
 * Which offsets of a share partition are decided for the group: acknowledged, rejected or given up, one by one also
 * beyond the start offset. What the flow's ledger takes over when it begins, or comes back after a time without it.
 *
 * Exact where this principal may ask the share coordinator (ReadShareGroupState: CLUSTER_ACTION, where there are ACLs).
 * Otherwise it is known from the start offset and the count of what is left: exact while nothing is decided beyond
 * the start offset, or nothing is left; else a lower bound, and `beyond` says how many more offsets are decided.
 */
import { Effect } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { findCoordinator } from "../wire/messages/findCoordinator.ts"
import { readShareGroupState } from "../wire/messages/readShareGroupState.ts"
import { type RangeSet, rangeSet } from "../wire/ranges.ts"
import { type ShareStart, shareStartOffsets } from "./startOffsets.ts"

export interface Decided {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  /** Never more than the truth. */
  readonly ranges: RangeSet
  /** Offsets decided beyond these, nobody knows which. 0: `ranges` is exact; null: the broker does not tell. */
  readonly beyond: number | null
}

const SHARE_KEY = 2
/** As the state is written: available, acquired, acknowledged, archiving, archived. */
const DECIDED_FROM = 2

/** Null: this principal may not ask, or the brokers do not answer clients. */
const written = (cluster: Cluster, groupId: string, at: ShareStart): Effect.Effect<RangeSet | null, WireError> =>
  cluster.retrying(Effect.gen(function*() {
    const { leaderEpoch, partition, topicId } = at
    const failed = (api: string, code: number, detail: string | null) => {
      const error = new BrokerError({ api, code, subject: `group ${groupId}, ${at.topic}-${partition}`, detail })
      return ["retriable", "refresh", "coordinator"].includes(error.class) ? Effect.fail(error) : Effect.succeed(null)
    }
    const key = `${groupId}:${topicId}:${partition}`
    const { coordinators } = yield* cluster.request({ kind: "any" }, findCoordinator, {
      keyType: SHARE_KEY,
      coordinatorKeys: [key]
    }, { minVersion: 6 })
    const found = coordinators.find((one) => one.key === key)
    if (found === undefined) return null
    if (found.errorCode !== 0) return yield* failed("FindCoordinator", found.errorCode, found.errorMessage)
    const answer = yield* cluster.request({ kind: "broker", id: found.nodeId }, readShareGroupState, {
      groupId,
      topics: [{ topicId, partitions: [{ partition, leaderEpoch }] }]
    })
    const state = answer.results[0]?.partitions[0]
    if (state === undefined) return null
    if (state.errorCode !== 0) return yield* failed("ReadShareGroupState", state.errorCode, state.errorMessage)
    const decided = state.stateBatches.filter(({ deliveryState }) => deliveryState >= DECIDED_FROM)
    return rangeSet([
      { first: 0, last: state.startOffset - 1 },
      ...decided.map(({ firstOffset, lastOffset }) => ({ first: firstOffset, last: lastOffset }))
    ])
  })).pipe(Effect.catchTag("UnsupportedError", () => Effect.succeed(null)))

/** `end`: where the log ended before the group was asked. */
const told = ({ lag, partition, startOffset, topic, topicId }: ShareStart, end: number): Decided => {
  const at = { topic, topicId, partition }
  if (lag === 0) return { ...at, ranges: rangeSet([{ first: 0, last: Math.max(end, startOffset) - 1 }]), beyond: 0 }
  const ranges = rangeSet([{ first: 0, last: startOffset - 1 }])
  // Records that came after `end` was asked for count as left: too low by them at most.
  return { ...at, ranges, beyond: lag < 0 ? null : Math.max(0, end - startOffset - lag) }
}

/** For one partition. `end`: its high watermark, asked for before `at`. */
export const decidedIn = (
  cluster: Cluster,
  groupId: string,
  at: ShareStart,
  end: number
): Effect.Effect<Decided, WireError> =>
  Effect.gen(function*() {
    const known = told(at, end)
    if (at.lag === 0) return known
    const exact = yield* written(cluster, groupId, at)
    return exact === null ? known : { ...known, ranges: exact, beyond: 0 }
  })

/**
 * For each partition the group has begun of the topics asked for. `ends`: by "topic-partition", high watermarks asked
 * for before this.
 */
export const decidedOffsets = (
  cluster: Cluster,
  groupId: string,
  topics: ReadonlySet<string>,
  ends: ReadonlyMap<string, number>
): Effect.Effect<ReadonlyArray<Decided>, WireError> =>
  Effect.gen(function*() {
    const begun = (yield* shareStartOffsets(cluster, groupId)).filter((at) =>
      at.startOffset >= 0 && topics.has(at.topic)
    )
    return yield* Effect.forEach(
      begun,
      (at) => decidedIn(cluster, groupId, at, ends.get(`${at.topic}-${at.partition}`) ?? 0),
      { concurrency: 8 }
    )
  })
