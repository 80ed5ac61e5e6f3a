/**
 * What each error code means to a share consumer, in one place (Kafka 4.4.0: KafkaApis, SharePartitionManager,
 * SharePartition). The general classes of kafkaErrors.ts do not fit: what "retriable" is worth depends on whether
 * the acquisition lock outlives the error.
 */

export const Code = {
  unknownServerError: -1,
  none: 0,
  corruptMessage: 2,
  unknownTopicOrPartition: 3,
  leaderNotAvailable: 5,
  notLeaderOrFollower: 6,
  coordinatorLoadInProgress: 14,
  coordinatorNotAvailable: 15,
  notCoordinator: 16,
  invalidGroupId: 24,
  unknownMemberId: 25,
  topicAuthorizationFailed: 29,
  groupAuthorizationFailed: 30,
  clusterAuthorizationFailed: 31,
  unsupportedVersion: 35,
  invalidConfig: 40,
  invalidRequest: 42,
  kafkaStorageError: 56,
  groupIdNotFound: 69,
  fencedLeaderEpoch: 74,
  groupMaxSizeReached: 81,
  unknownTopicId: 100,
  fencedMemberEpoch: 110,
  unreleasedInstanceId: 111,
  invalidRecordState: 121,
  shareSessionNotFound: 122,
  invalidShareSessionEpoch: 123,
  fencedStateEpoch: 124,
  shareSessionLimitReached: 133
} as const

export type TopVerdict =
  | "ok"
  /** The broker has no such session: open a new one. */
  | "reopen"
  /** The broker cannot answer now: open a new session after a back-off. */
  | "back-off"
  /** Nothing will help but people. */
  | "fatal"

/** The error code of a whole ShareFetch or ShareAcknowledge answer. */
export const topVerdict = (code: number): TopVerdict => {
  switch (code) {
    case Code.none:
      return "ok"
    case Code.shareSessionNotFound:
    case Code.invalidShareSessionEpoch:
      return "reopen"
    case Code.groupAuthorizationFailed:
    case Code.clusterAuthorizationFailed:
    case Code.unsupportedVersion:
    case Code.invalidRequest:
    case Code.invalidGroupId:
      return "fatal"
    default:
      return "back-off"
  }
}

export type FetchVerdict =
  | "ok"
  /** Another broker leads: what was acquired here is gone (acquisitions are not handed over). Look the leader up. */
  | "moved"
  /** Not known here, yet or any more. Look it up again after a back-off. */
  | "unknown"
  /** The principal may not read the topic. Asked again now and then: rights can be granted. */
  | "denied"
  /** This partition cannot be read now. */
  | "pause"

/** The error code of one partition in a ShareFetch answer. */
export const fetchVerdict = (code: number): FetchVerdict => {
  switch (code) {
    case Code.none:
      return "ok"
    case Code.notLeaderOrFollower:
    case Code.fencedLeaderEpoch:
    // The share partition's state has a newer owner: another broker leads, or is about to.
    case Code.fencedStateEpoch:
      return "moved"
    case Code.unknownTopicOrPartition:
    case Code.unknownTopicId:
    case Code.leaderNotAvailable:
    case Code.kafkaStorageError:
      return "unknown"
    case Code.topicAuthorizationFailed:
      return "denied"
    default:
      return "pause"
  }
}

export type AckVerdict =
  | "done"
  /** At least one offset of the partition's request is not ours any more. Nothing of the partition was applied. */
  | "gone"
  /** The partition has another leader: nothing of it is ours any more. */
  | "moved"
  /** The state could not be written; the broker has rolled back, the lock still holds. */
  | "again"
  /** Refused, and the lock still holds. */
  | "refused"

/** The acknowledge error code of one partition (of a fetch or of an acknowledgement). */
export const ackVerdict = (code: number): AckVerdict => {
  switch (code) {
    case Code.none:
      return "done"
    case Code.invalidRecordState:
    // The broker's answer for offsets beyond what it tracks, as after a reset of the group's offsets.
    case Code.invalidRequest:
      return "gone"
    case Code.notLeaderOrFollower:
    case Code.fencedLeaderEpoch:
    case Code.fencedStateEpoch:
    case Code.unknownTopicOrPartition:
    case Code.unknownTopicId:
    case Code.leaderNotAvailable:
      return "moved"
    case Code.topicAuthorizationFailed:
    case Code.groupAuthorizationFailed:
      return "refused"
    default:
      return "again"
  }
}

export type HeartbeatVerdict =
  | "ok"
  /** The group does not know this member or epoch: join again with epoch 0. */
  | "rejoin"
  | "coordinator"
  | "retry"
  | "fatal"

/** The error code of a ShareGroupHeartbeat answer; `joined`: whether the member had joined before. */
export const heartbeatVerdict = (code: number, joined: boolean): HeartbeatVerdict => {
  switch (code) {
    case Code.none:
      return "ok"
    case Code.unknownMemberId:
    case Code.fencedMemberEpoch:
      return "rejoin"
    // A group exists from the first join on: a member whose group is gone (deleted, or its log lost) makes it anew.
    case Code.groupIdNotFound:
      return joined ? "rejoin" : "fatal"
    case Code.coordinatorNotAvailable:
    case Code.coordinatorLoadInProgress:
    case Code.notCoordinator:
      return "coordinator"
    case Code.invalidRequest:
    case Code.invalidGroupId:
    case Code.groupMaxSizeReached:
    case Code.groupAuthorizationFailed:
    case Code.topicAuthorizationFailed:
    case Code.unsupportedVersion:
      return "fatal"
    default:
      return "retry"
  }
}
