/**
 * What can go wrong between us and a broker, as typed failures. Nothing in src/wire throws past its border.
 *
 * - BrokerError: the broker answered, with an error code.
 * - ConnectionError: no answer. When the request may have reached the broker, `outcome` is "unknown" and the
 *   caller must treat a write as perhaps done.
 * - ProtocolError (bytes.ts): an answer that is not what the protocol says, or a request of ours that cannot be
 *   written: a mistake (`own`), never to be taken for the broker's fault, or it is made again and again in silence.
 * - UnsupportedError: the broker does not offer the API, or no version that we speak.
 */
import { Schema } from "effect"
import type { ProtocolError } from "./bytes.ts"
import { type ErrorClass, kafkaError } from "./kafkaErrors.ts"

export class BrokerError extends Schema.TaggedError<BrokerError>()("BrokerError", {
  /** Kafka's API name ("Produce"). */
  api: Schema.String,
  code: Schema.Int,
  /** What it is about, for people: "orders-3", "group onceover", or "". */
  subject: Schema.String,
  /** The broker's own words, if it sent any. */
  detail: Schema.NullOr(Schema.String)
}) {
  /** "NOT_LEADER_OR_FOLLOWER" */
  get codeName(): string {
    return kafkaError(this.code).name
  }
  get class(): ErrorClass {
    return kafkaError(this.code).class
  }
  override get message(): string {
    const known = kafkaError(this.code)
    const about = this.subject === "" ? "" : ` for ${this.subject}`
    const words = this.detail === null || this.detail === "" ? known.sentence : this.detail
    return `${this.api}${about}: ${known.name} (${this.code}): ${words}`
  }
}

export class ConnectionError extends Schema.TaggedError<ConnectionError>()("ConnectionError", {
  /** "host:port" */
  address: Schema.String,
  kind: Schema.Literals(["refused", "closed", "timeout", "tls", "authentication", "resolve"]),
  /** "unsent": the request never left; "unknown": it may have been carried out. */
  outcome: Schema.Literals(["unsent", "unknown"]),
  what: Schema.String
}) {
  override get message(): string {
    return `${this.address}: ${this.what}`
  }
}

export class UnsupportedError extends Schema.TaggedError<UnsupportedError>()("UnsupportedError", {
  api: Schema.String,
  what: Schema.String
}) {
  override get message(): string {
    return this.what
  }
}

/** A mistake of ours: nothing was sent, and nothing is to be tried again. */
export const isOwnMistake = (error: WireError): boolean => error._tag === "ProtocolError" && error.own === true

export type WireError = BrokerError | ConnectionError | ProtocolError | UnsupportedError
