/**
 * The state of one transactional id at its coordinator, and the markers that are still to be written.
 *
 * As Kafka's TransactionMetadata: Empty -> Ongoing -> PrepareCommit or PrepareAbort -> CompleteCommit or CompleteAbort
 * -> Ongoing. EndTxn is answered when the decision (Prepare...) is known; the markers are in the logs only later, and
 * until the last one is, the id answers CONCURRENT_TRANSACTIONS.
 */
export type TransactionPhase =
  | "Empty"
  | "Ongoing"
  | "PrepareCommit"
  | "PrepareAbort"
  | "CompleteCommit"
  | "CompleteAbort"

/** What takes part in a transaction. */
export type Participant =
  | { readonly kind: "partition"; readonly topic: string; readonly topicId: string; readonly partition: number }
  | { readonly kind: "group"; readonly groupId: string }
  /** KIP-1289: the state of a share partition. */
  | { readonly kind: "share"; readonly groupId: string; readonly topicId: string; readonly partition: number }

export const participantKey = (participant: Participant): string => {
  switch (participant.kind) {
    case "partition":
      return `partition:${participant.topicId}:${participant.partition}`
    case "group":
      return `group:${participant.groupId}`
    case "share":
      return `share:${participant.groupId}:${participant.topicId}:${participant.partition}`
  }
}

export interface Transaction {
  readonly id: string
  producerId: number
  /** The one before, when the epochs of that were used up. */
  previousProducerId: number
  /** -1 before the first InitProducerId is answered. */
  epoch: number
  /** The epoch before the last bump that its client knows of, for a repeated request; -1: none. */
  lastEpoch: number
  timeoutMs: number
  phase: TransactionPhase
  readonly participants: Map<string, Participant>
  startedMs: number
  /** Counts transactions, so that a timer knows whether it means this one. */
  serial: number
  /** Version 2 (KIP-890) when it was ended by EndTxn of version 5 or by the coordinator of a cluster that has it. */
  version: 1 | 2
  /** Markers of the ended transaction that are not written yet. */
  outstanding: number
}

/** A marker that is decided and not written yet. */
export interface PendingMarker {
  readonly transactionalId: string
  readonly participant: Participant
  readonly producerId: number
  readonly epoch: number
  readonly committed: boolean
  readonly version: 1 | 2
}
