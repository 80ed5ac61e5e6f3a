/**
 * The port to one Kafka cluster: who leads what, which versions and features its brokers have, and one way to
 * send a request. clusterClient.ts implements it on @platformatic/kafka's Connection; tests and simulations may
 * implement it on a model.
 *
 * Guarantees of every implementation: a request is sent at most once per call of `request` (retrying is the
 * caller's, or `retrying`'s); requests of different `purpose` never wait for each other; each answer is a value or
 * a typed failure within `timeoutMs`.
 */
import type { Effect } from "effect"
import type { WireError } from "./errors.ts"
import type { Api, ApiHead, Decoded, Encoded } from "./schema.ts"

export interface BrokerNode {
  readonly id: number
  readonly host: string
  readonly port: number
  readonly rack: string | null
}

export interface PartitionMetadata {
  readonly partition: number
  /** -1: no leader now. */
  readonly leader: number
  readonly leaderEpoch: number
  readonly replicas: ReadonlyArray<number>
  readonly isr: ReadonlyArray<number>
}

export interface TopicMetadata {
  readonly name: string
  /** base64url, 22 characters; ZERO_UUID where the broker is older than topic ids (2.8). */
  readonly id: string
  readonly internal: boolean
  /** Ordered by partition number. */
  readonly partitions: ReadonlyArray<PartitionMetadata>
}

/** Which broker a request is for. */
export type Destination =
  | { readonly kind: "any" }
  | { readonly kind: "controller" }
  | { readonly kind: "broker"; readonly id: number }
  /** The coordinator of a group (also a share group). */
  | { readonly kind: "group"; readonly key: string }
  /** The coordinator of a transactional id. */
  | { readonly kind: "transaction"; readonly key: string }

export interface RequestOptions {
  /** Requests with different purposes use different connections. Default "control". */
  readonly purpose?: string
  /** Whole time until the answer, milliseconds. Default request.timeout.ms. A long poll adds its own wait. */
  readonly timeoutMs?: number
  /** Highest and lowest version to use, where the caller needs to hold it down or up. */
  readonly maxVersion?: number
  readonly minVersion?: number
}

export interface Cluster {
  /** The alias from the configuration. */
  readonly name: string
  readonly clusterId: Effect.Effect<string, WireError>
  /** Finalized features of the cluster, by name, with the maximum version level ("share.version" -> 2). Not cached for longer than a metadata age. */
  readonly features: Effect.Effect<ReadonlyMap<string, number>, WireError>
  readonly brokers: Effect.Effect<ReadonlyArray<BrokerNode>, WireError>
  /**
   * Sends one request, once. Fails with UnsupportedError when the broker offers no version that fits. Does not
   * look at error codes inside the answer. `value` may be a function of the version that was negotiated.
   */
  readonly request: <Req, Res>(
    to: Destination,
    api: Api<Req, Res>,
    value: Encoded<Req> | ((version: number) => Encoded<Req>),
    options?: RequestOptions
  ) => Effect.Effect<Decoded<Res>, WireError>
  /** The version `request` would use, or UnsupportedError in words. */
  readonly negotiate: (to: Destination, api: ApiHead, options?: RequestOptions) => Effect.Effect<number, WireError>
  /**
   * Metadata of these topics, asked now; a topic that does not exist is absent from the map. So is one that the broker
   * refuses to speak of (no right to see it), unless it refuses them all: then this fails. Asked for alone it says why.
   */
  readonly topics: (names: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, TopicMetadata>, WireError>
  readonly allTopics: Effect.Effect<ReadonlyArray<TopicMetadata>, WireError>
  /** The leader of a partition, from the cache or asked; retried with back-off while there is none, within `default.api.timeout.ms`. */
  readonly leader: (topic: string, partition: number) => Effect.Effect<PartitionMetadata, WireError>
  /**
   * Metadata of these topics: from the cache where each partition has a leader, the others asked now, once. A partition
   * may have none (-1), a topic may be absent, as with `topics`.
   */
  readonly leaders: (names: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, TopicMetadata>, WireError>
  /** What is cached of a topic by its id; asked when unknown. */
  readonly topicById: (id: string) => Effect.Effect<TopicMetadata | null, WireError>
  /** Forget what the cache says of a topic (after NOT_LEADER_OR_FOLLOWER and the like). */
  readonly invalidate: (topic: string) => Effect.Effect<void>
  /** A newer leader that a broker named in its answer (KIP-951); older epochs are ignored. */
  readonly learnLeader: (
    topic: string,
    partition: number,
    leader: { readonly id: number; readonly epoch: number },
    endpoint?: BrokerNode
  ) => Effect.Effect<void>
  /** Forget a coordinator (after NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, a lost connection). */
  readonly invalidateCoordinator: (to: Destination) => Effect.Effect<void>
  /**
   * Runs an effect again, with jittered exponential back-off from `retry.backoff.ms` to `retry.backoff.max.ms`,
   * while it fails with something that passes by itself (class retriable, refresh, coordinator; a lost
   * connection), refreshing what must be; up to `timeoutMs` in all (default `default.api.timeout.ms`).
   */
  readonly retrying: <A, R>(
    effect: Effect.Effect<A, WireError, R>,
    options?: { readonly timeoutMs?: number; readonly destination?: Destination; readonly topic?: string }
  ) => Effect.Effect<A, WireError, R>
  /** Closes the connections of a purpose (a lane that stops). */
  readonly release: (purpose: string) => Effect.Effect<void>
}
