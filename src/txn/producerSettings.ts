/** What can be set on a producer. Kafka's names and defaults, but where a mirror needs another one it says so. */
import type { Effect } from "effect"
import { type ClientSettings, integer, parsing, type SettingsError, text, wrongSetting } from "../wire/settings.ts"
import { MAX_IN_FLIGHT_PER_PARTITION } from "./sequences.ts"

export interface ProducerSettings {
  /** request.timeout.ms: for one request, and for the replicas' acknowledgement on the broker. */
  readonly requestTimeoutMs: number
  /** delivery.timeout.ms: for one batch, all tries together. Infinity here: a target that is down is waited for. */
  readonly deliveryTimeoutMs: number
  /** max.in.flight.requests.per.connection: 1 to 5; beyond 5 a broker cannot recognise every duplicate. */
  readonly maxInFlight: number
  /**
   * max.request.size: bytes of batches in one request; a larger batch goes alone. Far below socket.request.max.bytes
   * (100 MiB), far above Kafka's default (1 MiB), because whole batches of many partitions go together.
   */
  readonly maxRequestBytes: number
  readonly retryBackoffMs: number
  readonly retryBackoffMaxMs: number
  /**
   * How long a partition that an answering target takes nothing for (no leader, too few replicas in sync) may hold
   * up the other partitions of a call, and with them the transaction: well below transaction.timeout.ms. Infinity:
   * for as long as it takes; a mirror's is a third of transaction.timeout.ms, at most 5 seconds.
   */
  readonly partitionPatienceMs: number
  /**
   * After a batch that its partition does not take: "hold" back what follows it in that partition (order is kept;
   * the default), or "continue" with it.
   */
  readonly afterFailure: "hold" | "continue"
  /**
   * transaction.timeout.ms: the coordinator aborts a transaction that is open for longer. Readers of the target wait
   * that long behind a worker that died and does not come back; Kafka's own default is a minute.
   */
  readonly transactionTimeoutMs: number
}

export const defaultProducerSettings: ProducerSettings = {
  requestTimeoutMs: 30_000,
  deliveryTimeoutMs: Infinity,
  maxInFlight: MAX_IN_FLIGHT_PER_PARTITION,
  maxRequestBytes: 8 * 1024 * 1024,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 1_000,
  partitionPatienceMs: Infinity,
  afterFailure: "hold",
  transactionTimeoutMs: 15_000
}

const MAX_INT = 2_147_483_647
const LONGEST_PATIENCE_MS = 5_000

/** As in Kafka: a batch must have time for one whole request, or every slow answer would be a failure. */
const deliveryTimeout = (settings: ClientSettings, requestTimeoutMs: number): number => {
  const key = "delivery.timeout.ms"
  if (text(settings, key) === undefined) return defaultProducerSettings.deliveryTimeoutMs
  const given = integer(settings, key, 0, 0, MAX_INT)
  if (given < requestTimeoutMs) {
    throw wrongSetting(
      key,
      settings[key],
      `at least request.timeout.ms (${requestTimeoutMs}), or not set: a target that is down is waited for`
    )
  }
  return given
}

/**
 * Reads a producer's settings in Kafka's names (the cluster's, with producer.override.* over them). What has no
 * meaning for whole batches (linger.ms, batch.size, compression.type, ...) is left alone: the configuration warns.
 */
export const parseProducerSettings = (settings: ClientSettings): Effect.Effect<ProducerSettings, SettingsError> =>
  parsing(() => {
    const fallback = defaultProducerSettings
    const requestTimeoutMs = integer(settings, "request.timeout.ms", fallback.requestTimeoutMs, 1, MAX_INT)
    const retryBackoffMs = integer(settings, "retry.backoff.ms", fallback.retryBackoffMs, 0, MAX_INT)
    const transactionTimeoutMs = integer(
      settings,
      "transaction.timeout.ms",
      fallback.transactionTimeoutMs,
      1,
      MAX_INT
    )
    return {
      requestTimeoutMs,
      deliveryTimeoutMs: deliveryTimeout(settings, requestTimeoutMs),
      maxInFlight: integer(
        settings,
        "max.in.flight.requests.per.connection",
        fallback.maxInFlight,
        1,
        MAX_IN_FLIGHT_PER_PARTITION
      ),
      maxRequestBytes: integer(settings, "max.request.size", fallback.maxRequestBytes, 1, MAX_INT),
      retryBackoffMs,
      retryBackoffMaxMs: Math.max(
        retryBackoffMs,
        integer(settings, "retry.backoff.max.ms", fallback.retryBackoffMaxMs, 0, MAX_INT)
      ),
      partitionPatienceMs: Math.min(LONGEST_PATIENCE_MS, transactionTimeoutMs / 3),
      afterFailure: fallback.afterFailure,
      transactionTimeoutMs
    }
  })
