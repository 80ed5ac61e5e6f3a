/**
 * Kafka's error codes (org.apache.kafka.common.protocol.Errors, 4.4.0) and what each means for a client. This is
 * the one place that classifies a code; an unknown code is fatal.
 *
 * STUB: filled by the cluster client's author.
 */
export type ErrorClass =
  | "none"
  /** Try again after a back-off. */
  | "retriable"
  /** Try again after metadata or the coordinator was looked up anew. */
  | "refresh"
  | "coordinator"
  /** Somebody newer has taken this identity. */
  | "fenced"
  /** The transaction must be aborted; then go on. */
  | "abortable"
  /** The principal lacks a right. */
  | "authorization"
  /** This record or batch will never be taken as it is. */
  | "record"
  | "fatal"

export interface KafkaError {
  readonly code: number
  readonly name: string
  readonly class: ErrorClass
  readonly sentence: string
}

export const kafkaError = (code: number): KafkaError => ({ code, name: `ERROR_${code}`, class: "fatal", sentence: "stub" })
