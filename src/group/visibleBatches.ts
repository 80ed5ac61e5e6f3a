/**
 * From a fetched piece of a partition's log to what may be copied: control batches left out, with read_committed
 * the batches of aborted transactions too, as Kafka's own consumer does it (clients, CompletedFetch.java): a
 * producer id is in doubt from the first offset the broker's aborted list names until its abort marker is met.
 *
 * Guarantees: pure; the order is kept; `next` is after the last whole batch of the piece, whatever was left out of
 * it, so a piece of markers or aborted records only still moves the position. A hole that compaction left is just
 * skipped: it is no gap.
 *
 * Gotcha: the first batch may begin below `position` (a fetch gives whole batches): whoever copies leaves out its
 * records below.
 */
import type { BatchView } from "../wire/batch/recordBatch.ts"

/** One entry of the broker's list: this producer's transaction that begins at firstOffset was aborted. */
export interface AbortedTransaction {
  readonly producerId: number
  readonly firstOffset: number
}

export interface Visible {
  readonly batches: ReadonlyArray<BatchView>
  /** Where to fetch next; `position` itself when no whole batch was there. */
  readonly next: number
  /** Leader epoch of the last whole batch; -1 when there was none. */
  readonly leaderEpoch: number
  /** Records of aborted transactions that were left out. */
  readonly abortedRecords: number
}

const ABORT = 0

/** The type in a control record's key (version int16, type int16); -1 when there is none. Broker-written batches are not compressed. */
export const controlType = (batch: BatchView): number => {
  const bytes = batch.recordBytes
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 0; shift < 70 && at < bytes.length; shift += 7) {
      const byte = bytes[at++] as number
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) break
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }
  varint() // length
  at++ // attributes
  varint() // timestamp delta
  varint() // offset delta
  const keyLength = varint()
  return keyLength >= 4 && at + 4 <= bytes.length ? bytes.readInt16BE(at + 2) : -1
}

/** What of `views` is to be copied. `aborted` in any order; ignored unless `readCommitted`. */
export const visibleBatches = (
  views: ReadonlyArray<BatchView>,
  aborted: ReadonlyArray<AbortedTransaction>,
  position: number,
  readCommitted: boolean
): Visible => {
  const pending = readCommitted ? aborted.toSorted((a, b) => a.firstOffset - b.firstOffset) : []
  const inDoubt = new Set<number>()
  const batches: Array<BatchView> = []
  let head = 0
  let next = position
  let leaderEpoch = -1
  let abortedRecords = 0
  for (const view of views) {
    const { lastOffset, producerId } = view
    if (readCommitted && producerId >= 0) {
      for (let first = pending[head]; first !== undefined && first.firstOffset <= lastOffset; first = pending[++head]) {
        inDoubt.add(first.producerId)
      }
      if (view.isControl && controlType(view) === ABORT) inDoubt.delete(producerId)
    }
    leaderEpoch = view.partitionLeaderEpoch
    if (lastOffset < next) continue
    next = lastOffset + 1
    if (view.isControl || view.recordCount === 0) continue
    if (readCommitted && view.isTransactional && inDoubt.has(producerId)) abortedRecords += view.recordCount
    else batches.push(view)
  }
  return { batches, next, leaderEpoch, abortedRecords }
}
