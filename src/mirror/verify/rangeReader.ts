/**
 * Reads offsets [from, to) of a partition in order, as a consumer would see them: no control records and, under
 * read_committed, none of aborted transactions. One fetch at a time; records are handed on batch by batch and not kept.
 */
import { Effect } from "effect"
import { visibleBatches } from "../../group/visibleBatches.ts"
import { ProtocolError } from "../../wire/bytes.ts"
import { decodeRecords, type Rec } from "../../wire/batch/records.ts"
import { splitBatches } from "../../wire/batch/recordBatch.ts"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { fetch } from "../../wire/messages/fetch.ts"
import { ZERO_UUID } from "../../wire/schema.ts"

export interface PartitionRange {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  readonly from: number
  /** Not included. */
  readonly to: number
}

export const lengthOf = (ranges: ReadonlyArray<Pick<PartitionRange, "from" | "to">>): number =>
  ranges.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0)

export interface Reading {
  readonly cluster: Cluster
  readonly committed: boolean
  /** Names the connections. */
  readonly purpose: string
  readonly maxBytes: number
  /** Offsets that have been passed, for the progress. */
  readonly onPassed: (offsets: number) => void
}

/** False: enough has been read. A promise only where a transform is asynchronous. */
export type OnRecords = (records: ReadonlyArray<Rec>) => boolean | Promise<boolean>

const MAX_WAIT_MS = 500

const fetchAt = (reading: Reading, range: PartitionRange, offset: number): Effect.Effect<
  { readonly records: ReadonlyArray<Rec>; readonly next: number },
  WireError
> =>
  reading.cluster.retrying(
    Effect.gen(function*() {
      const { cluster, committed, maxBytes, purpose } = reading
      const { partition, topic, topicId } = range
      const { leader } = yield* cluster.leader(topic, partition)
      const answer = yield* cluster.request({ kind: "broker", id: leader }, fetch, {
        maxWaitMs: MAX_WAIT_MS,
        minBytes: 1,
        maxBytes,
        isolationLevel: committed ? 1 : 0,
        topics: [{ topic, topicId, partitions: [{ partition, fetchOffset: offset, partitionMaxBytes: maxBytes }] }]
      }, { purpose, ...(topicId === ZERO_UUID ? { maxVersion: 12 } : {}) })
      const found = answer.responses[0]?.partitions[0]
      const code = answer.errorCode !== 0 ? answer.errorCode : found?.errorCode ?? -1
      if (found === undefined || code !== 0) {
        yield* cluster.invalidate(topic)
        return yield* new BrokerError({ api: "Fetch", code, subject: `${topic}-${partition}`, detail: null })
      }
      return yield* Effect.try({
        try: () => {
          const aborted = found.abortedTransactions ?? []
          const seen = visibleBatches(splitBatches(found.records ?? Buffer.alloc(0)), aborted, offset, committed)
          const records = seen.batches.flatMap((batch) => decodeRecords(batch))
            .filter((record) => record.offset >= offset && record.offset < range.to)
          return { records, next: seen.next }
        },
        catch: (cause) => cause instanceof ProtocolError ? cause : new ProtocolError({ what: String(cause) })
      })
    }),
    { topic: range.topic }
  )

/** Fails where the range is no longer there (retention goes on while it is read) or cannot be read. */
export const readRange = (
  reading: Reading,
  range: PartitionRange,
  onRecords: OnRecords
): Effect.Effect<void, WireError> =>
  Effect.gen(function*() {
    let offset = range.from
    while (offset < range.to) {
      const { next, records } = yield* fetchAt(reading, range, offset)
      // Nothing came: an end behind the last stable offset is asked for again, which retention or time resolves.
      if (next <= offset) continue
      reading.onPassed(Math.min(next, range.to) - offset)
      offset = next
      if (records.length === 0) continue
      const wanted = onRecords(records)
      if (!(wanted instanceof Promise ? yield* Effect.promise(() => wanted) : wanted)) return
    }
  })
