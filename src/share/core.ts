/**
 * What the parts of one share consumer share: membership, the sessions with brokers, and the poll in between. Plain
 * mutable state; every change happens between two suspension points of a fiber, so nothing here needs a lock.
 */
import { Deferred, Effect, Latch } from "effect"
import { LASTING } from "../wire/brokerPool.ts"
import type { BrokerNode, Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import type { OffsetRange } from "../wire/ranges.ts"
import { AckQueue, type AckResult } from "./ackQueue.ts"
import type { ShareError } from "./errors.ts"
import { type Hold, HeldBook } from "./held.ts"
import { ShareSession, type TopicIdPartition } from "./session.ts"

/** What happens to a consumer, for logs and metrics. Called synchronously; must not throw. */
export type ShareEvent =
  | { readonly kind: "joined"; readonly epoch: number; readonly again: boolean }
  /** The coordinator does not know the member (or its epoch) any more; it joins again. What it holds stays held. */
  | { readonly kind: "fenced"; readonly why: string }
  | { readonly kind: "assigned"; readonly partitions: number }
  | { readonly kind: "sessionLost"; readonly broker: number; readonly why: string; readonly heldLost: number }
  /** Held records that will be delivered again, to whoever. */
  | {
    readonly kind: "lost"
    readonly topic: string
    readonly partition: number
    readonly ranges: ReadonlyArray<OffsetRange>
    readonly why: string
  }
  | { readonly kind: "renewed"; readonly broker: number; readonly records: number }
  /** The brokers cannot or will not renew locks: a target slower than the lock means duplicates. */
  | { readonly kind: "renewalUnavailable"; readonly broker: number; readonly why: string }
  | {
    readonly kind: "partitionProblem"
    readonly topic: string
    readonly partition: number
    /** null: no broker has said anything. */
    readonly code: number | null
    readonly why: string
  }
  /** It gives records again. */
  | { readonly kind: "partitionRecovered"; readonly topic: string; readonly partition: number }
  /** The broker does not take an acknowledgement now, and leaves us the lock: it is said again until it does. */
  | {
    readonly kind: "acknowledgementWaits"
    readonly topic: string
    readonly partition: number
    readonly records: number
    readonly why: string
  }
  /** Acknowledgements that nobody waits for (implicit mode, release on stop). */
  | {
    readonly kind: "acknowledged"
    readonly topic: string
    readonly partition: number
    readonly results: ReadonlyArray<AckResult>
  }

export interface ShareOptions {
  /** Longest wait of a fetch, ms; a poll may ask for less. An acknowledgement waits for its turn as long. */
  readonly fetchMaxWaitMs: number
  /**
   * The same while records of that broker are held: their acknowledgements are about to come, and a partition whose
   * locks are all taken (share.partition.max.record.locks) lets a fetch wait in vain until they do.
   */
  readonly fetchMaxWaitHeldMs: number
  readonly requestTimeoutMs: number
  readonly closeTimeoutMs: number
  readonly retryBackoffMs: number
  readonly retryBackoffMaxMs: number
}

export interface Demand {
  /** 0 or more, part of one counts as one. */
  readonly maxWaitMs: number
  readonly maxBytes: number
  readonly maxRecords: number
}

/** The session with one broker and all that belongs to it. */
export class BrokerLink {
  readonly broker: number
  /** A connection of its own, so that closing it makes this broker, and no other, let go of what we hold. */
  readonly purpose: string
  readonly session = new ShareSession()
  readonly book = new HeldBook()
  readonly acks = new AckQueue()
  readonly wake: Latch.Latch = Latch.makeUnsafe(false)
  /** What this broker leads of our assignment. */
  wanted: ReadonlyMap<string, TopicIdPartition> = new Map()
  /** Partitions that are left out of fetches until then, and how often in a row. */
  readonly paused = new Map<string, { untilMs: number; times: number; told: boolean }>()
  /** An answer that no poll has taken yet: no further fetch until then. */
  waiting = false
  failures = 0
  retryAtMs = 0
  renewing: boolean | null = null
  closing = false
  /** Completed when no fiber serves this link any more. */
  readonly end: Deferred.Deferred<void> = Deferred.makeUnsafe()

  constructor(broker: number, memberId: string) {
    this.broker = broker
    this.purpose = `${LASTING}${memberId}:${broker}`
  }

  get ended(): boolean {
    return Deferred.isDoneUnsafe(this.end)
  }
  markEnded(): void {
    Deferred.doneUnsafe(this.end, Effect.void)
  }
}

export interface RerouteHint {
  readonly topic: string
  readonly partition: number
  readonly leader: { readonly id: number; readonly epoch: number } | null
  readonly endpoint: BrokerNode | null
}

export class ShareCore {
  readonly cluster: Cluster
  readonly groupId: string
  readonly memberId: string
  readonly rack: string | null
  readonly options: ShareOptions
  readonly emit: (event: ShareEvent) => void
  memberEpoch = 0
  subscription: ReadonlyArray<string> = []
  /** By topic id, as the coordinator said last. */
  assignment: ReadonlyMap<string, ReadonlyArray<number>> = new Map()
  readonly topicNames = new Map<string, string>()
  readonly links = new Map<number, BrokerLink>()
  /** Partitions ("orders-0") that are not fetched although they are assigned. */
  readonly resting = new Set<string>()
  /** Of these was said that no broker can be asked for them (unreachable.ts). */
  readonly unreachable = new Map<string, TopicIdPartition>()
  demand: Demand | null = null
  readonly arrivals: Array<Hold> = []
  readonly arrived: Latch.Latch = Latch.makeUnsafe(false)
  readonly routing: Latch.Latch = Latch.makeUnsafe(true)
  readonly hints: Array<RerouteHint> = []
  readonly heartbeatNow: Latch.Latch = Latch.makeUnsafe(false)
  failure: ShareError | WireError | null = null
  closing = false

  constructor(of: {
    readonly cluster: Cluster
    readonly groupId: string
    readonly memberId: string
    readonly rack: string | null
    readonly options: ShareOptions
    readonly emit: (event: ShareEvent) => void
  }) {
    this.cluster = of.cluster
    this.groupId = of.groupId
    this.memberId = of.memberId
    this.rack = of.rack
    this.options = of.options
    this.emit = of.emit
  }

  /** The consumer cannot go on; every poll says so from now on. The first reason stays. */
  fail(error: ShareError | WireError): void {
    this.failure ??= error
    this.arrived.openUnsafe()
  }
  reroute(hint: RerouteHint): void {
    this.hints.push(hint)
    this.routing.openUnsafe()
  }
  wakeAll(): void {
    for (const link of this.links.values()) link.wake.openUnsafe()
  }
  topicName(topicId: string): string {
    return this.topicNames.get(topicId) ?? topicId
  }
}

/** Exponential, without jitter: what waits here is one member's next request, not a crowd's. */
export const backoffMs = (options: ShareOptions, failures: number): number =>
  Math.min(options.retryBackoffMs * 2 ** Math.max(0, failures - 1), options.retryBackoffMaxMs)
