/**
 * Which batches may go to the target as bytes, and which must be decoded and encoded anew or left out.
 *
 * What a broker takes from a producer (LogValidator, UnifiedLog and ProduceRequest of Kafka 4.4): one batch per
 * partition, format 2, base offset 0, at least one record, offsets without gaps, no control batch, a sequence when
 * there is a producer id. rewrite.ts sees to what lies in header fields; the verdict here answers for the rest.
 */
import type { BatchView } from "./recordBatch.ts"

/**
 * Why a batch cannot go through as bytes.
 *
 * - empty: compaction has left the header only; there is nothing to mirror.
 * - control: a transaction marker; the target's own coordinator writes those.
 * - gaps: compaction has removed some records; brokers take only contiguous offsets (INVALID_RECORD). Decode, encode.
 * - log-append-time: readers of the source see the broker's time, which stands in the header; the records carry their
 *   producers' times. A target topic with create time takes such a batch and drops the mark, so that its readers would
 *   see the producers' times; one with LogAppendTime refuses some of them (INVALID_TIMESTAMP). Decode, encode.
 */
export type PassThroughObstacle = "empty" | "control" | "gaps" | "log-append-time"

export type PassThroughVerdict = { readonly ok: true } | { readonly ok: false; readonly reason: PassThroughObstacle }

const passes: PassThroughVerdict = { ok: true }
const refused = (reason: PassThroughObstacle): PassThroughVerdict => ({ ok: false, reason })
const obstacles = {
  empty: refused("empty"),
  control: refused("control"),
  gaps: refused("gaps"),
  logAppendTime: refused("log-append-time")
}

/** Whether a broker takes this batch from a producer after `rewriteForProduce`. Header fields only; no record is read. */
export const passThroughVerdict = (batch: BatchView): PassThroughVerdict => {
  if (batch.isControl) return obstacles.control
  if (batch.recordCount === 0) return obstacles.empty
  if (batch.recordCount !== batch.lastOffsetDelta + 1) return obstacles.gaps
  if (batch.timestampType === "logAppend") return obstacles.logAppendTime
  return passes
}
