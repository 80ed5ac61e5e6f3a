/** A member of a share group as a conformance case needs it: its session by hand, one request at a time. */
import { Effect } from "effect"
import { splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { describeShareGroupOffsets } from "../../src/wire/messages/describeShareGroupOffsets.ts"
import { shareAcknowledge } from "../../src/wire/messages/shareAcknowledge.ts"
import { shareFetch } from "../../src/wire/messages/shareFetch.ts"
import { shareGroupHeartbeat } from "../../src/wire/messages/shareGroupHeartbeat.ts"
import { type Bench, eventually, nameOf, valuesOf } from "./bench.ts"

export const ack = { gap: 0, accept: 1, release: 2, reject: 3, renew: 4 } as const

/** [first, last, type or types] */
export type Ack = readonly [first: number, last: number, type: number | ReadonlyArray<number>]

const GROUP = 32
/** The lock of a case that waits for its end; the kit's brokers allow a second. */
export const SHORT_LOCK = { "share.record.lock.duration.ms": "1000" }

export interface FetchOptions {
  readonly maxRecords?: number
  readonly batchSize?: number
  readonly maxWaitMs?: number
  readonly strict?: boolean
  readonly epoch?: number
  readonly acks?: ReadonlyArray<Ack>
  readonly renewing?: boolean
}

const batchesOf = (acks: ReadonlyArray<Ack>) =>
  acks.map(([firstOffset, lastOffset, type]) => ({
    firstOffset,
    lastOffset,
    acknowledgeTypes: typeof type === "number" ? [type] : type
  }))

export const heartbeat = (
  b: Bench,
  groupId: string,
  memberId: string,
  memberEpoch: number,
  topics: ReadonlyArray<string> | null
) =>
  eventually(
    b.cluster.request({ kind: "group", key: groupId }, shareGroupHeartbeat, {
      groupId,
      memberId,
      memberEpoch,
      subscribedTopicNames: topics
    }),
    (a) => ![14, 15, 16].includes(a.errorCode)
  )

/** A group that starts at the beginning (unless told otherwise) on one topic. */
export const shareGroup = (b: Bench, topic: string, settings: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function*() {
    const groupId = b.unique("share")
    yield* b.configure(GROUP, groupId, { "share.auto.offset.reset": "earliest", ...settings })
    const topicId = yield* b.idOf(topic)
    const leader = yield* b.leaderOf(topic)
    return { b, groupId, topic, topicId, leader }
  })
export type ShareGroupGiven = Effect.Success<ReturnType<typeof shareGroup>>

/** Joins, and waits until the broker knows the share partition: its first fetch may come too early. */
export const shareMember = (given: ShareGroupGiven, joins = true) =>
  Effect.gen(function*() {
    const { b, groupId, leader, topic, topicId } = given
    const memberId = b.unique("m")
    const memberEpoch = joins ? (yield* heartbeat(b, groupId, memberId, 0, [topic])).memberEpoch : -1
    let epoch = 0
    const purpose = memberId
    const fetchOnce = (o: FetchOptions) =>
      Effect.gen(function*() {
        const sent = o.epoch ?? epoch
        const renewing = o.renewing ?? false
        const partition = { partitionIndex: 0, acknowledgementBatches: batchesOf(o.acks ?? []) }
        const limits = renewing
          ? { maxWaitMs: 0, maxRecords: 0, maxBytes: 0 }
          : { maxWaitMs: o.maxWaitMs ?? 0, maxRecords: o.maxRecords ?? 500, maxBytes: 1_000_000 }
        const answer = yield* b.cluster.request(leader, shareFetch, {
          groupId,
          memberId,
          shareSessionEpoch: sent,
          minBytes: renewing ? 0 : 1,
          ...limits,
          batchSize: o.batchSize ?? 500,
          shareAcquireMode: o.strict === true ? 1 : 0,
          isRenewAck: renewing,
          topics: sent === 0 || (o.acks ?? []).length > 0 ? [{ topicId, partitions: [partition] }] : [],
          forgottenTopicsData: []
        }, { purpose })
        if (answer.errorCode === 0) epoch = sent === -1 ? 0 : sent + 1
        const found = answer.responses[0]?.partitions[0]
        return {
          top: nameOf(answer.errorCode),
          code: nameOf(found?.errorCode ?? 0),
          ack: nameOf(found?.acknowledgeErrorCode ?? 0),
          ranges: (found?.acquiredRecords ?? []).map((r) => [r.firstOffset, r.lastOffset, r.deliveryCount]),
          values: valuesOf(splitBatches(found?.records ?? Buffer.alloc(0))),
          lockMs: answer.acquisitionLockTimeoutMs
        }
      })
    return {
      ...given,
      memberId,
      memberEpoch,
      fetch: fetchOnce,
      /** Until something was acquired. */
      take: (o: FetchOptions = {}) => eventually(fetchOnce(o), (a) => a.ranges.length > 0 || a.top !== "NONE"),
      acknowledge: (acks: ReadonlyArray<Ack>, o: { readonly epoch?: number; readonly renewing?: boolean } = {}) =>
        Effect.gen(function*() {
          const sent = o.epoch ?? epoch
          const answer = yield* b.cluster.request(leader, shareAcknowledge, {
            groupId,
            memberId,
            shareSessionEpoch: sent,
            isRenewAck: o.renewing ?? false,
            topics: acks.length === 0
              ? []
              : [{ topicId, partitions: [{ partitionIndex: 0, acknowledgementBatches: batchesOf(acks) }] }]
          }, { purpose })
          if (answer.errorCode === 0) epoch = sent === -1 ? 0 : sent + 1
          return answer.errorCode !== 0
            ? `top ${nameOf(answer.errorCode)}`
            : nameOf(answer.responses[0]?.partitions[0]?.errorCode ?? 0)
        }),
      disconnect: b.cluster.release(purpose)
    }
  })
export type ShareMember = Effect.Success<ReturnType<typeof shareMember>>

/** [start offset, lag] of partition 0 */
export const position = ({ b, groupId, topic }: ShareGroupGiven) =>
  Effect.map(
    eventually(
      b.cluster.request({ kind: "group", key: groupId }, describeShareGroupOffsets, {
        groups: [{ groupId, topics: [{ topicName: topic, partitions: [0] }] }]
      }),
      (a) => ![14, 15, 16].includes(a.groups[0]!.errorCode)
    ),
    (a) => {
      const found = a.groups[0]?.topics[0]?.partitions[0]
      return [found?.startOffset ?? nameOf(a.groups[0]?.errorCode ?? 0), found?.lag ?? -1]
    }
  )
