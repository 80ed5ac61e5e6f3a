/**
 * What each error code of a Produce answer means for the batch it is about. One switch, a line of reason each.
 *
 * Gotcha: whether the batch may be in the log all the same ("maybeWritten") decides later whether giving it up is
 * a clean "not written" or an unknown outcome, so when in doubt it is true.
 */

export type Verdict =
  /** In the log. The offset is -1 where the broker no longer remembers it (a late duplicate). */
  | { readonly kind: "written"; readonly duplicate: boolean }
  /** The same bytes again, after a back-off; up to `attempts` in a row, then it counts as `then`. */
  | {
    readonly kind: "retry"
    readonly refresh: boolean
    readonly maybeWritten: boolean
    readonly attempts: number
    readonly then: "refused" | "blocked"
  }
  | { readonly kind: "outOfOrder" }
  /** Idempotent: another producer id is needed. Transactional: abort, and find out whether we are fenced. */
  | { readonly kind: "identityLost" }
  /** This batch will never be taken as it is. */
  | { readonly kind: "refused" }
  /** Nothing will be taken on this partition until somebody changes something there. */
  | { readonly kind: "blocked" }
  /** The transaction cannot be committed any more. */
  | { readonly kind: "abort" }
  | { readonly kind: "fenced" }
  | { readonly kind: "fatal" }

const again = (
  options: {
    readonly refresh?: boolean
    readonly maybeWritten?: boolean
    readonly attempts?: number
    readonly then?: "refused" | "blocked"
  } = {}
): Verdict => ({
  kind: "retry",
  refresh: options.refresh ?? false,
  maybeWritten: options.maybeWritten ?? false,
  attempts: options.attempts ?? Infinity,
  then: options.then ?? "blocked"
})

export const judgeProduce = (code: number): Verdict => {
  switch (code) {
    case 0:
      return { kind: "written", duplicate: false }
    case 46: // DUPLICATE_SEQUENCE_NUMBER: older than the five batches the broker remembers, but surely appended.
      return { kind: "written", duplicate: true }
    case 2: // CORRUPT_MESSAGE: a bit flipped on the way passes with the next try; one flipped in memory does not.
      return again({ attempts: 3, then: "refused" })
    case 3: // UNKNOWN_TOPIC_OR_PARTITION: not created yet, or the broker has not heard of it yet.
    case 5: // LEADER_NOT_AVAILABLE
    case 9: // REPLICA_NOT_AVAILABLE
    case 72: // LISTENER_NOT_FOUND
    case 74: // FENCED_LEADER_EPOCH
    case 75: // UNKNOWN_LEADER_EPOCH
    case 100: // UNKNOWN_TOPIC_ID
    case 103: // INCONSISTENT_TOPIC_ID
      return again({ refresh: true })
    case 6: // NOT_LEADER_OR_FOLLOWER: also the answer when leadership went away after the append, while waiting for acks.
    case 13: // NETWORK_EXCEPTION
    case 56: // KAFKA_STORAGE_ERROR: the disk may have failed after the append.
      return again({ refresh: true, maybeWritten: true })
    case 7: // REQUEST_TIMED_OUT: appended, not replicated in time.
    case 20: // NOT_ENOUGH_REPLICAS_AFTER_APPEND
      return again({ maybeWritten: true })
    case 19: // NOT_ENOUGH_REPLICAS: checked before the append.
    case 14: // COORDINATOR_LOAD_IN_PROGRESS, 15, 16: the broker asks the transaction's coordinator first.
    case 15: // COORDINATOR_NOT_AVAILABLE
    case 16: // NOT_COORDINATOR
    case 51: // CONCURRENT_TRANSACTIONS: the markers of the last transaction are still being written.
    case 89: // THROTTLING_QUOTA_EXCEEDED
      return again()
    case -1: // UNKNOWN_SERVER_ERROR: often passes; a batch that provokes it every time must not hide as an outage.
      return again({ maybeWritten: true, attempts: 10, then: "blocked" })
    case 45: // OUT_OF_ORDER_SEQUENCE_NUMBER
    case 59: // UNKNOWN_PRODUCER_ID: brokers before 2.5, whose state went with the records.
      return { kind: "outOfOrder" }
    case 47: // INVALID_PRODUCER_EPOCH
    case 90: // PRODUCER_FENCED
      return { kind: "identityLost" }
    case 10: // MESSAGE_TOO_LARGE
    case 18: // RECORD_LIST_TOO_LARGE
    case 32: // INVALID_TIMESTAMP
    case 43: // UNSUPPORTED_FOR_MESSAGE_FORMAT
    case 76: // UNSUPPORTED_COMPRESSION_TYPE
    case 87: // INVALID_RECORD
      return { kind: "refused" }
    case 48: // INVALID_TXN_STATE: timed out and aborted by the coordinator, or never begun there.
    case 49: // INVALID_PRODUCER_ID_MAPPING: the coordinator forgot the transactional id.
    case 120: // TRANSACTION_ABORTABLE
      return { kind: "abort" }
    case 31: // CLUSTER_AUTHORIZATION_FAILED
    case 53: // TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    case 54: // SECURITY_DISABLED
    case 58: // SASL_AUTHENTICATION_FAILED
    case 35: // UNSUPPORTED_VERSION
      return { kind: "fatal" }
    default: // TOPIC_AUTHORIZATION_FAILED, INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION, INVALID_REQUEST and whatever comes.
      return { kind: "blocked" }
  }
}

const NOT_ENOUGH_REPLICAS = 19
export const CONCURRENT_TRANSACTIONS = 51

/**
 * Everyday: a transaction follows another at once, and the markers of that are still on their way to busy brokers. With
 * its short back-offs (Partition.pause) it is two to three seconds by default.
 */
const PATIENCE = 28

/** After how many failures in a row people should hear of it. */
export const failuresBeforeWord = (code: number | null): number => code === CONCURRENT_TRANSACTIONS ? PATIENCE : 1

/** A target that answers says that the partition surely took nothing and for now takes nothing, whoever asks. */
export const takesNothing = (code: number, verdict: Verdict): boolean =>
  verdict.kind === "retry" && !verdict.maybeWritten && (verdict.refresh || code === NOT_ENOUGH_REPLICAS)
