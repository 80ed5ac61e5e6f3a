/** What can be set on a producer. Kafka's names and defaults, but where a mirror needs another one it says so. */
import { MAX_IN_FLIGHT_PER_PARTITION } from "./sequences.ts"

export interface ProducerSettings {
  /** request.timeout.ms: for one request, and for the replicas' acknowledgement on the broker. */
  readonly requestTimeoutMs: number
  /** delivery.timeout.ms: for one batch, all tries together. Infinity here: a target that is down is waited for. */
  readonly deliveryTimeoutMs: number
  /** max.in.flight.requests.per.connection: 1 to 5; beyond 5 a broker cannot recognise every duplicate. */
  readonly maxInFlight: number
  /** Bytes of batches in one request; a larger batch goes alone. Far below socket.request.max.bytes (100 MiB). */
  readonly maxRequestBytes: number
  readonly retryBackoffMs: number
  readonly retryBackoffMaxMs: number
  /**
   * After a batch that its partition does not take: "hold" back what follows it in that partition (order is kept;
   * the default), or "continue" with it.
   */
  readonly afterFailure: "hold" | "continue"
  /** transaction.timeout.ms: the coordinator aborts a transaction that is open for longer. */
  readonly transactionTimeoutMs: number
}

export const defaultProducerSettings: ProducerSettings = {
  requestTimeoutMs: 30_000,
  deliveryTimeoutMs: Infinity,
  maxInFlight: MAX_IN_FLIGHT_PER_PARTITION,
  maxRequestBytes: 8 * 1024 * 1024,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 1_000,
  afterFailure: "hold",
  transactionTimeoutMs: 60_000
}
