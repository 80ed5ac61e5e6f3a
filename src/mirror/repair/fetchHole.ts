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
import { intersect, overlaps, type RangeSet } from "../../wire/ranges.ts"
import { type Delivery, type DeliveredBatch, deliveredBatches, lastOffsetOf } from "../delivery.ts"

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

/** Ranges of one delivery, and so of one entry of the ledger. Aborted transactions may leave a hole every other offset. */
const MAX_HOLES = 1_000

const reaches = (batch: DeliveredBatch, ranges: RangeSet): boolean =>
  overlaps(ranges, { first: batch.baseOffset, last: lastOffsetOf(batch) })

/**
 * Holes (at least one) from the first on, as far as one fetch of `maxBytes` reaches (one batch at least). Null: nothing
 * of the first can be read now, be it that it lies behind the last stable offset or that the source has dropped it
 * meanwhile.
 */
export const fetchHole = (
  options: FetchHoleOptions,
  at: HoleAt,
  holes: RangeSet
): Effect.Effect<Delivery | null, WireError> =>
  options.cluster.retrying(
    Effect.gen(function*() {
      const { cluster, maxBytes, purpose, readCommitted } = options
      const { partition, topic, topicId } = at
      const first = holes[0]?.first ?? 0
      const { leader } = yield* cluster.leader(topic, partition)
      const answer = yield* cluster.request({ kind: "broker", id: leader }, fetch, {
        maxWaitMs: MAX_WAIT_MS,
        minBytes: 1,
        maxBytes,
        isolationLevel: readCommitted ? 1 : 0,
        topics: [{ topic, topicId, partitions: [{ partition, fetchOffset: first, partitionMaxBytes: maxBytes }] }]
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
            first,
            readCommitted
          ),
        catch: (cause) => cause instanceof ProtocolError ? cause : new ProtocolError({ what: String(cause) })
      })
      if (seen.next <= first) return null
      const ranges = intersect(holes, [{ first, last: seen.next - 1 }]).slice(0, MAX_HOLES)
      const batches = deliveredBatches(seen.batches).filter((batch) => reaches(batch, ranges))
      const delivery: Delivery = {
        ...at,
        ranges: ranges.map((range) => ({ ...range, deliveryCount: 1 })),
        batches,
        acquiredAtMs: yield* Clock.currentTimeMillis,
        token: new RepairToken(at)
      }
      return delivery
    }),
    { topic: at.topic }
  )
