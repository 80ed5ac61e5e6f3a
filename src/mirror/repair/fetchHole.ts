/**
 * Reads offsets of a source partition by number, as a consumer would: the records that a reader in the flow's
 * isolation level sees. What is not there (compacted, control records, aborted) is part of the delivery's range and
 * has no batch, so that the copy takes it for a gap and the hole closes.
 */
import { Clock, Effect } from "effect"
import { visibleBatches } from "../../group/visibleBatches.ts"
import { ProtocolError } from "../../wire/bytes.ts"
import { splitBatches } from "../../wire/batch/recordBatch.ts"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { fetch } from "../../wire/messages/fetch.ts"
import type { OffsetRange } from "../../wire/ranges.ts"
import { type Delivery, deliveredBatches } from "../delivery.ts"

export interface HoleAt {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
}

/** Marks a delivery that no group knows of: nothing is acknowledged for it. */
export class RepairToken {
  readonly at: HoleAt

  constructor(at: HoleAt) {
    this.at = at
  }
}

export interface FetchHoleOptions {
  readonly cluster: Cluster
  readonly purpose: string
  readonly readCommitted: boolean
  readonly maxBytes: number
}

const MAX_WAIT_MS = 500
const OFFSET_OUT_OF_RANGE = 1

/**
 * The beginning of a hole, as much as `maxBytes` allows (one batch at least). Null: nothing of it can be read now, be
 * it that it lies behind the last stable offset or that the source has dropped it meanwhile.
 */
export const fetchHole = (
  options: FetchHoleOptions,
  at: HoleAt,
  hole: OffsetRange
): Effect.Effect<Delivery | null, WireError> =>
  options.cluster.retrying(
    Effect.gen(function*() {
      const { cluster, maxBytes, purpose, readCommitted } = options
      const { partition, topic, topicId } = at
      const { leader } = yield* cluster.leader(topic, partition)
      const answer = yield* cluster.request({ kind: "broker", id: leader }, fetch, {
        maxWaitMs: MAX_WAIT_MS,
        minBytes: 1,
        maxBytes,
        isolationLevel: readCommitted ? 1 : 0,
        topics: [{ topic, topicId, partitions: [{ partition, fetchOffset: hole.first, partitionMaxBytes: maxBytes }] }]
      }, { purpose })
      const found = answer.responses[0]?.partitions[0]
      const errorCode = answer.errorCode !== 0 ? answer.errorCode : found?.errorCode ?? -1
      if (errorCode === OFFSET_OUT_OF_RANGE) return null
      if (found === undefined || errorCode !== 0) {
        yield* cluster.invalidate(topic)
        return yield* new BrokerError({ api: "Fetch", code: errorCode, subject: `${topic}-${partition}`, detail: null })
      }
      const seen = yield* Effect.try({
        try: () =>
          visibleBatches(
            splitBatches(found.records ?? Buffer.alloc(0)),
            found.abortedTransactions ?? [],
            hole.first,
            readCommitted
          ),
        catch: (cause) => cause instanceof ProtocolError ? cause : new ProtocolError({ what: String(cause) })
      })
      if (seen.next <= hole.first) return null
      const range = { first: hole.first, last: Math.min(hole.last, seen.next - 1) }
      const batches = deliveredBatches(seen.batches)
      const delivery: Delivery = {
        ...at,
        ranges: [{ ...range, deliveryCount: 1 }],
        batches,
        acquiredAtMs: yield* Clock.currentTimeMillis,
        token: new RepairToken(at)
      }
      return delivery
    }),
    { topic: at.topic }
  )
