/**
 * Kafka's error codes (org.apache.kafka.common.protocol.Errors, 4.4.0) and what each means for a client. This is
 * the one place that classifies a code; an unknown code is fatal. test/wire/kafkaErrors.test.ts holds the table
 * against the Java enum.
 *
 * The classes follow Java's exception classes (RetriableException, RefreshRetriableException,
 * AuthorizationException) but where that is too coarse for a mirror: the coordinator codes, NOT_CONTROLLER and
 * REBOOTSTRAP_REQUIRED, which want a look-up first, the codes that say that somebody newer took an identity or a
 * lock, those that are cured by aborting the transaction, and those that speak of one record.
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

type Row = readonly [code: number, name: string, class_: ErrorClass, sentence: string]

const ROWS: ReadonlyArray<Row> = [
  [-1, "UNKNOWN_SERVER_ERROR", "fatal", "the broker failed in a way it did not expect; its log says more"],
  [0, "NONE", "none", "no error"],
  [1, "OFFSET_OUT_OF_RANGE", "fatal", "the offset is not in the log (any more, or yet)"],
  [2, "CORRUPT_MESSAGE", "retriable", "a record batch failed its checksum or is malformed"],
  [3, "UNKNOWN_TOPIC_OR_PARTITION", "refresh", "the broker does not have this topic or partition"],
  [4, "INVALID_FETCH_SIZE", "fatal", "the fetch size is not valid"],
  [5, "LEADER_NOT_AVAILABLE", "refresh", "the partition has no leader at the moment"],
  [6, "NOT_LEADER_OR_FOLLOWER", "refresh", "the broker does not lead or hold this partition"],
  [7, "REQUEST_TIMED_OUT", "retriable", "the broker could not finish the request in time"],
  [8, "BROKER_NOT_AVAILABLE", "fatal", "the broker is not available"],
  [9, "REPLICA_NOT_AVAILABLE", "refresh", "the replica is not available"],
  [10, "MESSAGE_TOO_LARGE", "record", "the batch is larger than max.message.bytes of the topic or the broker allows"],
  [11, "STALE_CONTROLLER_EPOCH", "fatal", "the controller has moved to another broker"],
  [12, "OFFSET_METADATA_TOO_LARGE", "fatal", "the metadata of an offset commit is too long"],
  [13, "NETWORK_EXCEPTION", "refresh", "a broker lost its connection before the answer came"],
  [14, "COORDINATOR_LOAD_IN_PROGRESS", "retriable", "the coordinator is still loading its state"],
  [15, "COORDINATOR_NOT_AVAILABLE", "coordinator", "there is no coordinator at the moment"],
  [16, "NOT_COORDINATOR", "coordinator", "the broker is not the coordinator"],
  [17, "INVALID_TOPIC_EXCEPTION", "fatal", "the topic's name is not valid, or the topic may not be used like this"],
  [18, "RECORD_LIST_TOO_LARGE", "record", "the batch is larger than the topic's segment.bytes"],
  [19, "NOT_ENOUGH_REPLICAS", "retriable", "fewer replicas are in sync than min.insync.replicas wants"],
  [
    20,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "retriable",
    "written, but to fewer in-sync replicas than min.insync.replicas wants"
  ],
  [21, "INVALID_REQUIRED_ACKS", "fatal", "the value of acks is not valid"],
  [22, "ILLEGAL_GENERATION", "fenced", "the group has moved on to another generation"],
  [23, "INCONSISTENT_GROUP_PROTOCOL", "fatal", "the group uses a protocol that this member does not speak"],
  [24, "INVALID_GROUP_ID", "fatal", "the group id is not valid"],
  [25, "UNKNOWN_MEMBER_ID", "fenced", "the coordinator does not know this member; it has to join anew"],
  [26, "INVALID_SESSION_TIMEOUT", "fatal", "session.timeout.ms is outside of what the broker allows"],
  [27, "REBALANCE_IN_PROGRESS", "fatal", "the group is rebalancing; the member has to join again first"],
  [28, "INVALID_COMMIT_OFFSET_SIZE", "fatal", "the offset commit is too large"],
  [29, "TOPIC_AUTHORIZATION_FAILED", "authorization", "the principal lacks a right on the topic"],
  [30, "GROUP_AUTHORIZATION_FAILED", "authorization", "the principal lacks a right on the group"],
  [31, "CLUSTER_AUTHORIZATION_FAILED", "authorization", "the principal lacks a right on the cluster"],
  [32, "INVALID_TIMESTAMP", "record", "a record's timestamp is outside of what the topic allows"],
  [33, "UNSUPPORTED_SASL_MECHANISM", "fatal", "the broker does not offer this SASL mechanism"],
  [34, "ILLEGAL_SASL_STATE", "fatal", "the request does not fit the state of the SASL exchange"],
  [35, "UNSUPPORTED_VERSION", "fatal", "the broker does not support this version of the request"],
  [36, "TOPIC_ALREADY_EXISTS", "fatal", "a topic of this name exists already"],
  [37, "INVALID_PARTITIONS", "fatal", "the number of partitions is not valid"],
  [38, "INVALID_REPLICATION_FACTOR", "fatal", "the replication factor is below 1 or larger than the number of brokers"],
  [39, "INVALID_REPLICA_ASSIGNMENT", "fatal", "the replica assignment is not valid"],
  [40, "INVALID_CONFIG", "fatal", "a setting is not valid"],
  [41, "NOT_CONTROLLER", "refresh", "the broker is not the controller"],
  [42, "INVALID_REQUEST", "fatal", "the broker takes the request for malformed; its log says more"],
  [43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", "fatal", "the log's message format does not support the request"],
  [44, "POLICY_VIOLATION", "fatal", "a policy of the cluster forbids it"],
  [45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "abortable", "a sequence number of this producer is missing or came too late"],
  [46, "DUPLICATE_SEQUENCE_NUMBER", "abortable", "the batch's sequence number was written already"],
  [47, "INVALID_PRODUCER_EPOCH", "fenced", "a producer with a newer epoch has taken over"],
  [48, "INVALID_TXN_STATE", "fatal", "the transaction is not in a state that allows this"],
  [
    49,
    "INVALID_PRODUCER_ID_MAPPING",
    "abortable",
    "the producer id does not belong to the transactional id (any more)"
  ],
  [
    50,
    "INVALID_TRANSACTION_TIMEOUT",
    "fatal",
    "transaction.timeout.ms is above the broker's transaction.max.timeout.ms"
  ],
  [51, "CONCURRENT_TRANSACTIONS", "retriable", "the last transaction of this transactional id is still being ended"],
  [52, "TRANSACTION_COORDINATOR_FENCED", "fenced", "a newer transaction coordinator has taken over"],
  [53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "authorization", "the principal lacks a right on the transactional id"],
  [54, "SECURITY_DISABLED", "fatal", "the cluster has no authorizer"],
  [55, "OPERATION_NOT_ATTEMPTED", "fatal", "not tried, because another part of the request failed"],
  [56, "KAFKA_STORAGE_ERROR", "refresh", "the broker's disk failed"],
  [57, "LOG_DIR_NOT_FOUND", "fatal", "the broker has no such log directory"],
  [
    58,
    "SASL_AUTHENTICATION_FAILED",
    "authorization",
    "authentication failed: user, password or token are not accepted"
  ],
  [59, "UNKNOWN_PRODUCER_ID", "abortable", "the broker has forgotten this producer id"],
  [60, "REASSIGNMENT_IN_PROGRESS", "fatal", "the partition's replicas are being moved"],
  [61, "DELEGATION_TOKEN_AUTH_DISABLED", "fatal", "delegation tokens are switched off"],
  [62, "DELEGATION_TOKEN_NOT_FOUND", "fatal", "there is no such delegation token"],
  [63, "DELEGATION_TOKEN_OWNER_MISMATCH", "fatal", "the principal neither owns nor may renew the delegation token"],
  [
    64,
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "fatal",
    "delegation tokens cannot be asked for on this kind of connection"
  ],
  [65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", "authorization", "the principal lacks a right on the delegation token"],
  [66, "DELEGATION_TOKEN_EXPIRED", "fatal", "the delegation token has expired"],
  [67, "INVALID_PRINCIPAL_TYPE", "fatal", "the principal type is not supported"],
  [68, "NON_EMPTY_GROUP", "fatal", "the group has members"],
  [69, "GROUP_ID_NOT_FOUND", "fatal", "there is no such group"],
  [70, "FETCH_SESSION_ID_NOT_FOUND", "retriable", "the broker has forgotten the fetch session"],
  [71, "INVALID_FETCH_SESSION_EPOCH", "retriable", "the fetch session's epoch is not the one the broker expects"],
  [72, "LISTENER_NOT_FOUND", "refresh", "the leader has no listener of the kind that was asked"],
  [73, "TOPIC_DELETION_DISABLED", "fatal", "the cluster does not allow to delete topics"],
  [74, "FENCED_LEADER_EPOCH", "refresh", "the leader epoch sent is older than the broker's"],
  [75, "UNKNOWN_LEADER_EPOCH", "retriable", "the leader epoch sent is newer than the broker's"],
  [76, "UNSUPPORTED_COMPRESSION_TYPE", "record", "the broker does not take this compression in this request version"],
  [77, "STALE_BROKER_EPOCH", "fatal", "the broker has been started anew in the meantime"],
  [78, "OFFSET_NOT_AVAILABLE", "retriable", "the new leader does not know its high watermark yet"],
  [79, "MEMBER_ID_REQUIRED", "fatal", "the member has to join with the member id the broker gave it"],
  [80, "PREFERRED_LEADER_NOT_AVAILABLE", "refresh", "the preferred leader is not available"],
  [81, "GROUP_MAX_SIZE_REACHED", "fatal", "the group has as many members as the broker allows"],
  [82, "FENCED_INSTANCE_ID", "fenced", "another member with the same group.instance.id has joined"],
  [83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "refresh", "no replica may become leader at the moment"],
  [84, "ELECTION_NOT_NEEDED", "refresh", "the partition has its leader already"],
  [85, "NO_REASSIGNMENT_IN_PROGRESS", "fatal", "no replicas are being moved"],
  [86, "GROUP_SUBSCRIBED_TO_TOPIC", "fatal", "the group is reading the topic, so its offsets cannot be deleted"],
  [87, "INVALID_RECORD", "record", "the broker's checks refuse a record (no key for a compacted topic, for one)"],
  [88, "UNSTABLE_OFFSET_COMMIT", "retriable", "offsets of an open transaction are not decided yet"],
  [89, "THROTTLING_QUOTA_EXCEEDED", "retriable", "a quota is used up"],
  [90, "PRODUCER_FENCED", "fenced", "a newer producer with the same transactional id has taken over"],
  [91, "RESOURCE_NOT_FOUND", "fatal", "the request names something that does not exist"],
  [92, "DUPLICATE_RESOURCE", "fatal", "the request names something twice"],
  [93, "UNACCEPTABLE_CREDENTIAL", "fatal", "the credential does not meet the broker's rules"],
  [94, "INCONSISTENT_VOTER_SET", "fatal", "sender and receiver disagree on the voters of the quorum"],
  [95, "INVALID_UPDATE_VERSION", "fatal", "the version of the update is not valid"],
  [96, "FEATURE_UPDATE_FAILED", "fatal", "the features could not be updated"],
  [
    97,
    "PRINCIPAL_DESERIALIZATION_FAILURE",
    "fatal",
    "the controller could not read the forwarded principal: the cluster's security is set up wrongly"
  ],
  [98, "SNAPSHOT_NOT_FOUND", "fatal", "there is no such snapshot"],
  [99, "POSITION_OUT_OF_RANGE", "fatal", "the position is outside of the snapshot"],
  [
    100,
    "UNKNOWN_TOPIC_ID",
    "refresh",
    "the broker does not have a topic of this id: deleted, created anew, or not yet known to it"
  ],
  [101, "DUPLICATE_BROKER_REGISTRATION", "fatal", "a broker with this id is registered already"],
  [102, "BROKER_ID_NOT_REGISTERED", "fatal", "no broker of this id is registered"],
  [103, "INCONSISTENT_TOPIC_ID", "refresh", "the topic id is not that of the log: the topic was created anew"],
  [104, "INCONSISTENT_CLUSTER_ID", "fatal", "the cluster id is not that of the broker"],
  [105, "TRANSACTIONAL_ID_NOT_FOUND", "fatal", "there is no such transactional id"],
  [106, "FETCH_SESSION_TOPIC_ID_ERROR", "retriable", "the fetch session mixed topic ids and names"],
  [107, "INELIGIBLE_REPLICA", "fatal", "a replica may not be in the in-sync set"],
  [108, "NEW_LEADER_ELECTED", "fatal", "done, but the leader has changed"],
  [109, "OFFSET_MOVED_TO_TIERED_STORAGE", "fatal", "the offset lies in tiered storage"],
  [
    110,
    "FENCED_MEMBER_EPOCH",
    "fenced",
    "the coordinator has fenced this member; it must give up its partitions and join anew"
  ],
  [111, "UNRELEASED_INSTANCE_ID", "fatal", "another member still uses this group.instance.id"],
  [112, "UNSUPPORTED_ASSIGNOR", "fatal", "the group does not support this assignor"],
  [113, "STALE_MEMBER_EPOCH", "fenced", "the member's epoch is old; the next heartbeat brings the new one"],
  [
    114,
    "MISMATCHED_ENDPOINT_TYPE",
    "fatal",
    "the request went to a controller instead of a broker, or the other way round"
  ],
  [115, "UNSUPPORTED_ENDPOINT_TYPE", "fatal", "the endpoint type is not supported"],
  [116, "UNKNOWN_CONTROLLER_ID", "fatal", "the controller id is not known"],
  [117, "UNKNOWN_SUBSCRIPTION_ID", "fatal", "the telemetry subscription is not known"],
  [118, "TELEMETRY_TOO_LARGE", "fatal", "the telemetry is too large"],
  [119, "INVALID_REGISTRATION", "fatal", "the controller refuses the broker's registration"],
  [
    120,
    "TRANSACTION_ABORTABLE",
    "abortable",
    "the transaction failed; it can be aborted and the transactional id used on"
  ],
  [
    121,
    "INVALID_RECORD_STATE",
    "fenced",
    "the records are no longer acquired by this member, so the acknowledgement does not count"
  ],
  [122, "SHARE_SESSION_NOT_FOUND", "retriable", "the broker has forgotten the share session"],
  [123, "INVALID_SHARE_SESSION_EPOCH", "retriable", "the share session's epoch is not the one the broker expects"],
  [124, "FENCED_STATE_EPOCH", "fenced", "a newer leader of the share partition has written its state"],
  [125, "INVALID_VOTER_KEY", "fatal", "the voter key is not that of the replica"],
  [126, "DUPLICATE_VOTER", "fatal", "the voter is in the set already"],
  [127, "VOTER_NOT_FOUND", "fatal", "the voter is not in the set"],
  [128, "INVALID_REGULAR_EXPRESSION", "fatal", "the regular expression is not valid"],
  [
    129,
    "REBOOTSTRAP_REQUIRED",
    "refresh",
    "what the client knows of the cluster is too old; it starts again from bootstrap.servers"
  ],
  [130, "STREAMS_INVALID_TOPOLOGY", "fatal", "the streams topology is not valid"],
  [131, "STREAMS_INVALID_TOPOLOGY_EPOCH", "fatal", "the streams topology epoch is not valid"],
  [132, "STREAMS_TOPOLOGY_FENCED", "fenced", "a newer streams topology has taken over"],
  [133, "SHARE_SESSION_LIMIT_REACHED", "retriable", "the broker has as many share sessions as it allows"],
  [134, "GROUP_DELETION_FAILED", "fatal", "the group could not be deleted"],
  [135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", "fatal", "the streams topology description could not be updated"],
  [136, "CONTROLLER_ID_NOT_REGISTERED", "fatal", "no controller of this id is registered"]
]

/** Every code that is known here, by number. */
export const KAFKA_ERRORS: ReadonlyMap<number, KafkaError> = new Map(
  ROWS.map(([code, name, class_, sentence]) => [code, { code, name, class: class_, sentence }])
)

/** What a code means. A code from a newer broker is fatal until somebody has thought about it. */
export const kafkaError = (code: number): KafkaError =>
  KAFKA_ERRORS.get(code)
    ?? { code, name: `ERROR_${code}`, class: "fatal", sentence: "an error code that is newer than this program" }
