/**
 * A member of a share group (KIP-932): any number of members share any partition; each record is with one of them
 * at a time, under a lock, until it is acknowledged.
 *
 * Guarantees
 * - Nothing is acknowledged but what `acknowledge` (or, in implicit mode, the next `poll`) says.
 * - Each acknowledged range is answered by the broker's own word, or honestly "unknown".
 * - Locks on all that is held are renewed until it is acknowledged (brokers from Kafka 4.2 on), also while nobody
 *   polls: not polling is how a consumer waits out a slow or absent target without spending deliveries.
 * - Closing its scope releases what is held, closes the sessions and leaves the group, within `closeTimeoutMs`, also
 *   when interrupted. What no answer confirms by then, the closed connections make the brokers release.
 *
 * Gotchas: one poll at a time. An interrupted `acknowledge` is still sent. Limits of a poll hold for each broker.
 * Records in an answer may include offsets that are not in `ranges`: those are with somebody else.
 */
import { Deferred, Effect, FiberSet, type Scope } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import { rangeSet, type OffsetRange } from "../wire/ranges.ts"
import { nowMs } from "../wire/retry.ts"
import type { AckPart } from "./acknowledgement.ts"
import { type AckResult, type AckTicket, makeTicket, settleTicket } from "./ackQueue.ts"
import { runLink } from "./brokerSession.ts"
import { type BrokerLink, type Demand, ShareCore, type ShareEvent, type ShareOptions } from "./core.ts"
import { ShareError } from "./errors.ts"
import { type Acquired, Hold } from "./held.ts"
import { join, keepMembership, leave, newMemberId, newMembership, pauseAfter } from "./membership.ts"
import { keepRoutes } from "./routing.ts"

export type { AckPart, AckResult, Acquired, ShareEvent }

export interface ShareConsumerSettings extends Partial<ShareOptions> {
  readonly cluster: Cluster
  readonly groupId: string
  readonly rack?: string
  readonly topics: ReadonlyArray<string>
  /** explicit: only `acknowledge` does. implicit: a poll accepts all that the poll before it delivered. */
  readonly mode: "explicit" | "implicit"
  /** How long the first join may take, ms. Default 60000. */
  readonly joinTimeoutMs?: number
  readonly onEvent?: (event: ShareEvent) => void
}

export interface ShareConsumer {
  readonly groupId: string
  readonly memberId: string
  /** 0 while not (or not again) joined. What a transactional acknowledgement must name. */
  readonly memberEpoch: () => number
  /** By topic name, as assigned and known now. */
  readonly assignment: () => ReadonlyMap<string, ReadonlyArray<number>>
  /** The subscription from now on; sent with a heartbeat at once. */
  readonly subscribe: (topics: ReadonlyArray<string>) => Effect.Effect<void>
  /**
   * What brokers have for us, as soon as one has anything; empty after `maxWaitMs`. Brokers are asked in parallel.
   * `maxRecords` and `maxBytes` are per broker and may be exceeded by one batch, as brokers do not cut batches.
   */
  readonly poll: (limits: Demand) => Effect.Effect<ReadonlyArray<Acquired>, ShareError | WireError>
  /**
   * Acknowledges parts of what was acquired; answers for every offset of the parts, in order. Parts that are not
   * held (any more) are answered "lost", those that the broker refuses "refused": neither is a failure here, as it
   * is about records that somebody else will get.
   */
  readonly acknowledge: (acquired: Acquired, parts: ReadonlyArray<AckPart>) => Effect.Effect<ReadonlyArray<AckResult>>
  /** Stop holding these without an acknowledgement: a transaction has decided them. Locks are no longer renewed. */
  readonly forget: (acquired: Acquired, ranges: ReadonlyArray<OffsetRange>) => Effect.Effect<void>
  /** Whether a partition is left out of fetches although it is assigned. What is held of it stays, and is renewed. */
  readonly rest: (topic: string, partition: number, resting: boolean) => Effect.Effect<void>
  /** RELEASE for all that is held, acknowledged by the brokers; bounded by `closeTimeoutMs`. */
  readonly releaseAll: Effect.Effect<void>
  /** All that is held, delivered or not. */
  readonly holding: () => ReadonlyArray<Acquired>
}

const DEFAULTS: ShareOptions = {
  fetchMaxWaitMs: 500,
  fetchMaxWaitHeldMs: 20,
  requestTimeoutMs: 30_000,
  closeTimeoutMs: 10_000,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 5000
}

/** Joins the group; fails with the reason when that cannot be. */
export const makeShareConsumer = Effect.fnUntraced(
  function*(settings: ShareConsumerSettings): Effect.fn.Return<ShareConsumer, ShareError | WireError, Scope.Scope> {
    const core = new ShareCore({
      cluster: settings.cluster,
      groupId: settings.groupId,
      memberId: yield* newMemberId,
      rack: settings.rack ?? null,
      options: optionsOf(settings),
      emit: settings.onEvent ?? (() => {})
    })
    core.subscription = settings.topics
    // Registered first, so closed last: what outlives the orderly close is interrupted, and its connections closed.
    const fibers = yield* FiberSet.make<void, never>()
    const membership = newMembership()
    yield* Effect.addFinalizer(() => close(core, fibers))
    yield* join(core, membership, settings.joinTimeoutMs ?? 60_000)
    const guarded = (effect: Effect.Effect<void>) =>
      FiberSet.run(fibers, effect.pipe(Effect.catchDefect((defect) => Effect.sync(() => broken(core, defect)))))
    yield* guarded(keepMembership(core, membership, pauseAfter(core, membership, "ok")))
    yield* guarded(keepRoutes(core, (link) => Effect.asVoid(guarded(runLink(core, link)))))
    return consumerOf(core, settings.mode)
  }
)

const optionsOf = (settings: Partial<ShareOptions>): ShareOptions => ({
  fetchMaxWaitMs: settings.fetchMaxWaitMs ?? DEFAULTS.fetchMaxWaitMs,
  fetchMaxWaitHeldMs: settings.fetchMaxWaitHeldMs ?? DEFAULTS.fetchMaxWaitHeldMs,
  requestTimeoutMs: settings.requestTimeoutMs ?? DEFAULTS.requestTimeoutMs,
  closeTimeoutMs: settings.closeTimeoutMs ?? DEFAULTS.closeTimeoutMs,
  retryBackoffMs: settings.retryBackoffMs ?? DEFAULTS.retryBackoffMs,
  retryBackoffMaxMs: settings.retryBackoffMaxMs ?? DEFAULTS.retryBackoffMaxMs
})

/** A mistake of ours: the consumer ends with it, and nobody waits for an answer that cannot come. */
const broken = (core: ShareCore, defect: unknown): void => {
  const what = defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)
  core.fail(new ShareError({ reason: "internal", groupId: core.groupId, what }))
  for (const link of core.links.values()) {
    link.book.loseAll(what)
    link.acks.lose(what)
    link.markEnded()
  }
}

const consumerOf = (core: ShareCore, mode: "explicit" | "implicit"): ShareConsumer => {
  /** Implicit mode: what polls have given out and is not settled, be it that a broker could not take the word yet. */
  const delivered = new Set<Hold>()
  return {
    groupId: core.groupId,
    memberId: core.memberId,
    memberEpoch: () => core.memberEpoch,
    assignment: () => new Map([...core.assignment].map(([id, partitions]) => [core.topicName(id), partitions])),
    subscribe: (topics) =>
      Effect.sync(() => {
        core.subscription = [...topics]
        core.heartbeatNow.openUnsafe()
      }),
    poll: (limits) =>
      Effect.suspend(() => {
        for (const hold of delivered) {
          acceptUnseen(core, hold)
          if (hold.isSettled) delivered.delete(hold)
        }
        return poll(core, limits)
      }).pipe(Effect.tap((got) =>
        Effect.sync(() => {
          if (mode === "implicit") { for (const hold of got) delivered.add(hold) }
        })
      )),
    acknowledge: (acquired, parts) => acknowledge(core, acquired, parts),
    forget: (acquired, ranges) => Effect.sync(() => holdOf(acquired).forget(rangeSet(ranges))),
    rest: (topic, partition, resting) =>
      Effect.sync(() => {
        const name = `${topic}-${partition}`
        if (resting) core.resting.add(name)
        else if (core.resting.delete(name)) core.wakeAll()
      }),
    releaseAll: releaseAll(core),
    holding: () => [...core.links.values()].flatMap((link) => [...link.book.holds])
  }
}

const poll = (core: ShareCore, limits: Demand): Effect.Effect<ReadonlyArray<Hold>, ShareError | WireError> =>
  Effect.gen(function*() {
    const until = (yield* nowMs) + limits.maxWaitMs
    while (true) {
      if (core.failure !== null) return yield* core.failure
      const got = takeArrivals(core)
      if (got.length > 0) return got
      const leftMs = until - (yield* nowMs)
      if (leftMs <= 0) return []
      core.arrived.closeUnsafe()
      core.demand = limits
      core.wakeAll()
      yield* core.arrived.await.pipe(Effect.timeoutOption(leftMs))
    }
  }).pipe(Effect.ensuring(Effect.sync(() => core.demand = null)))

/** Takes what has come; what was lost while it waited is not worth delivering. */
const takeArrivals = (core: ShareCore): ReadonlyArray<Hold> => {
  const arrived = core.arrivals.splice(0)
  for (const link of core.links.values()) link.waiting = false
  return arrived.filter((hold) => hold.held.length > 0)
}

const holdOf = (acquired: Acquired): Hold => {
  if (acquired instanceof Hold) return acquired
  throw new TypeError("not something a share consumer has acquired")
}

const linkOf = (core: ShareCore, hold: Hold): BrokerLink | null => {
  const link = core.links.get(hold.broker)
  return link === undefined || link.ended || !link.book.holds.has(hold) ? null : link
}

const enqueue = (
  core: ShareCore,
  hold: Hold,
  parts: ReadonlyArray<AckPart>,
  report?: AckTicket["report"]
): AckTicket => {
  const ticket = makeTicket(report)
  const link = linkOf(core, hold)
  const { taken, missing } = link === null ? { taken: [], missing: parts } : hold.take(parts)
  for (const part of missing) {
    ticket.results.push({
      ...part,
      outcome: "lost",
      error: null,
      why: hold.lostWhy ?? "not held: acknowledged before, or never acquired",
      held: false
    })
  }
  if (link !== null && taken.length > 0) {
    link.acks.push(hold, taken, ticket)
    link.wake.openUnsafe()
  }
  settleTicket(ticket)
  return ticket
}

const acknowledge = (
  core: ShareCore,
  acquired: Acquired,
  parts: ReadonlyArray<AckPart>
): Effect.Effect<ReadonlyArray<AckResult>> =>
  Effect.suspend(() => Deferred.await(enqueue(core, holdOf(acquired), parts).done))

/** Sends an acknowledgement nobody waits for; its outcome is an event. */
const unattended = (core: ShareCore, hold: Hold, type: "accept" | "release"): AckTicket =>
  enqueue(
    core,
    hold,
    hold.held.map((r) => ({ ...r, type })),
    (results) => core.emit({ kind: "acknowledged", topic: hold.topic, partition: hold.partition, results })
  )
const acceptUnseen = (core: ShareCore, hold: Hold): void => {
  if (hold.held.length > 0) unattended(core, hold, "accept")
}

const releaseAll = (core: ShareCore): Effect.Effect<void> =>
  Effect.suspend(() => {
    core.arrivals.length = 0
    const tickets: Array<AckTicket> = []
    for (const link of core.links.values()) {
      link.waiting = false
      for (const hold of link.book.holds) if (hold.held.length > 0) tickets.push(unattended(core, hold, "release"))
    }
    return Effect.forEach(tickets, (ticket) => Deferred.await(ticket.done), { discard: true, concurrency: "unbounded" })
  }).pipe(Effect.timeoutOption(core.options.closeTimeoutMs), Effect.asVoid)

/** The orderly end; a finalizer, so uninterruptible, so bounded. */
const close = (core: ShareCore, fibers: FiberSet.FiberSet<void, never>): Effect.Effect<void> =>
  Effect.gen(function*() {
    core.closing = true
    core.demand = null
    core.fail(new ShareError({ reason: "internal", groupId: core.groupId, what: "the consumer is closed" }))
    const links = [...core.links.values()]
    for (const link of links) {
      link.closing = true
      link.wake.openUnsafe()
    }
    const half = core.options.closeTimeoutMs / 2
    yield* Effect.forEach(links, (link) => Deferred.await(link.end), { concurrency: "unbounded", discard: true }).pipe(
      Effect.timeoutOption(half)
    )
    yield* leave(core).pipe(Effect.timeoutOption(half))
    yield* FiberSet.clear(fibers)
    for (const link of links) {
      link.acks.lose("the consumer is closed")
      link.book.loseAll("the consumer is closed")
      if (!link.ended) yield* core.cluster.release(link.purpose)
    }
  })
