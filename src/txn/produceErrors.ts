/**
 * How producing can fail, as typed values. Per batch (ProduceFailure): the other partitions go on. For the whole
 * producer (ProducerError): nothing more can be written with it.
 *
 * `written`: "no" is a promise that the batch is not in the target's log and never will be by this producer;
 * "unknown" says that it may be, or may still arrive.
 */
import { Schema } from "effect"
import { kafkaError } from "../wire/kafkaErrors.ts"

export const Written = Schema.Literals(["no", "unknown"])
export type Written = typeof Written.Type

const words = (code: number, detail: string | null): string => {
  const known = kafkaError(code)
  return `${known.name} (${code}): ${detail === null || detail === "" ? known.sentence : detail}`
}

/** The target will never take this batch as it is (too large, timestamp, invalid record). Blocks its partition only. */
export class RecordRefused extends Schema.TaggedError<RecordRefused>()("RecordRefused", {
  topic: Schema.String,
  partition: Schema.Int,
  code: Schema.Int,
  /** The broker's own words, if it sent any. */
  detail: Schema.NullOr(Schema.String),
  /** Which records of the batch, counted from 0, where the broker says so (KIP-467). */
  recordErrors: Schema.Array(Schema.Struct({ batchIndex: Schema.Int, message: Schema.NullOr(Schema.String) })),
  /** "unknown" only when an earlier try of the same batch went without an answer. */
  written: Written
}) {
  override get message(): string {
    const records = this.recordErrors.slice(0, 3).map((e) =>
      `record ${e.batchIndex}${e.message === null ? "" : `: ${e.message}`}`
    )
    return `${this.topic}-${this.partition} refuses a batch: ${words(this.code, this.detail)}${
      records.length === 0 ? "" : ` [${records.join("; ")}]`
    }`
  }
}

/** The partition takes nothing until somebody changes something on the target (a right, a policy, the topic). */
export class PartitionBlocked extends Schema.TaggedError<PartitionBlocked>()("PartitionBlocked", {
  topic: Schema.String,
  partition: Schema.Int,
  code: Schema.Int,
  detail: Schema.NullOr(Schema.String),
  written: Written
}) {
  override get message(): string {
    return `${this.topic}-${this.partition} takes no records: ${words(this.code, this.detail)}`
  }
}

/** Not sent, or not taken, because a batch before it in the same partition failed: order is kept. */
export class HeldBack extends Schema.TaggedError<HeldBack>()("HeldBack", {
  topic: Schema.String,
  partition: Schema.Int,
  written: Written
}) {
  override get message(): string {
    return `${this.topic}-${this.partition}: held back behind a batch that was not taken`
  }
}

/** No answer within the delivery timeout. */
export class DeliveryTimedOut extends Schema.TaggedError<DeliveryTimedOut>()("DeliveryTimedOut", {
  topic: Schema.String,
  partition: Schema.Int,
  /** How long it was tried, milliseconds. */
  afterMs: Schema.Number,
  /** What the last try said. */
  reason: Schema.String,
  written: Written
}) {
  override get message(): string {
    return `${this.topic}-${this.partition}: not confirmed within ${this.afterMs} ms: ${this.reason}`
  }
}

export type ProduceFailure = RecordRefused | PartitionBlocked | HeldBack | DeliveryTimedOut

/** A newer producer with the same transactional id has taken over. */
export class ProducerFenced extends Schema.TaggedError<ProducerFenced>()("ProducerFenced", {
  transactionalId: Schema.String,
  what: Schema.String
}) {
  override get message(): string {
    return `transactional id ${this.transactionalId}: ${this.what}`
  }
}

/** The open transaction can only be aborted; after that the producer goes on. */
export class TransactionMustAbort extends Schema.TaggedError<TransactionMustAbort>()("TransactionMustAbort", {
  what: Schema.String
}) {
  override get message(): string {
    return `the transaction must be aborted: ${this.what}`
  }
}

/** The target will not let this producer write at all (a right is missing, an API is not offered). */
export class ProducerRefused extends Schema.TaggedError<ProducerRefused>()("ProducerRefused", {
  what: Schema.String
}) {
  override get message(): string {
    return this.what
  }
}

export type ProducerError = ProducerFenced | TransactionMustAbort | ProducerRefused
