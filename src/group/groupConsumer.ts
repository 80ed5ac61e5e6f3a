/**
 * A consumer group's member whose records come as raw batches: membership, rebalances and commits by librdkafka
 * (membership.ts), bytes by our own Fetch (fetcher.ts).
 *
 * Guarantees:
 * 1. Order: what poll gives of a partition is contiguous and in order, across polls too, within a generation.
 * 2. Nothing is committed that was not confirmed through `commit`, nor what was read under an assignment that is over.
 * 3. Before partitions are given up, `onRevoke` runs (bounded), then what is confirmed is committed (bounded); when
 *    they were lost instead, nothing is committed. What was not committed comes again to the new owner.
 * 4. Records that the source no longer has are never skipped in silence: see gap.ts and on.source.gap.
 * 5. Closing the scope commits what is confirmed and leaves the group, within bounds, also on interruption.
 */
import { Deferred, Effect, FiberMap, Semaphore, type Scope } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import { consumerGroupHeartbeat } from "../wire/messages/consumerGroupHeartbeat.ts"
import {
  type ClientConfig,
  type ClientSettings,
  integer,
  parseClientConfig,
  parsing,
  type SettingsError
} from "../wire/settings.ts"
import { askTopics } from "./askTopics.ts"
import { CommitBook, type Confirmed } from "./commitBook.ts"
import { type CommitOutcome, finalCommit, flush, lastCommit, runCommitter } from "./committer.ts"
import type { GapError, MembershipError, PartitionProblem } from "./errors.ts"
import { runFetcher } from "./fetcher.ts"
import { type GroupProtocol, librdkafkaConf } from "./librdkafkaConf.ts"
import { joinPieces } from "./joinPieces.ts"
import { makeMembership, type MakeMembership, type Membership, type MembershipHandlers } from "./membership.ts"
import { fetchFrom, moveTo, newPartition, type PartitionState, type Stage } from "./partition.ts"
import { partitionKey, type TopicPartition } from "./position.ts"
import { parseGroupSettings } from "./settings.ts"
import { dropBuffered, fail, type Fetched, type Shared, type StartAt } from "./shared.ts"
import { Signal } from "./signal.ts"
import { runSteward } from "./steward.ts"

export interface GroupConsumerOptions {
  readonly cluster: Cluster
  /** The cluster's settings with consumer.override.* over them, in Kafka's names. */
  readonly settings: ClientSettings
  readonly groupId: string
  /** "classic" works with every broker; "consumer" is KIP-848 (brokers 4.0 and newer); "auto" takes it where it is offered. */
  readonly protocol: GroupProtocol | "auto"
  readonly onSourceGap: "fail" | "continue"
  /** Whether a topic that was created anew is a gap as any other (default), or is read from its beginning all the same. */
  readonly onTopicRecreated?: "gap" | "continue"
  /** Part of the connections' purpose: unique in the process (a lane's name). */
  readonly name: string
  /**
   * Called before partitions are given up, while they are still ours: finish or drop what is in flight of them and
   * confirm what is done. Interrupted when the bound passes. poll gives nothing of them any more.
   */
  readonly onRevoke?: (partitions: ReadonlyArray<TopicPartition>) => Effect.Effect<void>
  /** Called when partitions are gone already: drop everything. */
  readonly onLost?: (partitions: ReadonlyArray<TopicPartition>) => Effect.Effect<void>
  /**
   * Where a partition begins that is assigned to us, by another word than the group's committed position (null: it has
   * none) and auto.offset.reset: a ledger's. null: as the group says. Asked once for each assignment.
   */
  readonly startAt?: StartAt
  /** Called for each gap that is gone over (on.source.gap: continue). */
  readonly onGap?: (gap: GapError) => void
  /** Called with the number of partitions that are ours, whenever it changes; 0 at the end. */
  readonly onAssignment?: (partitions: number) => void
  /** Called with the seconds that a successful commit took. */
  readonly onCommit?: (seconds: number) => void
  /** offset.flush.interval.ms: the most time between a confirmation and its commit. Default 1000. */
  readonly commitIntervalMs?: number
  /** Bytes fetched and not yet polled, in all. Default 64 MiB. */
  readonly maxBufferedBytes?: number
  /** Bound for closing: the last commit and leaving the group take at most half of it each. Default 10 000. */
  readonly closeTimeoutMs?: number
  /** How soon new partitions of a subscribed topic are seen. Default 5000. */
  readonly refreshTopicsMs?: number
  /** For tests. */
  readonly membership?: MakeMembership
}

export interface PartitionView extends TopicPartition {
  readonly stage: Stage
  readonly paused: boolean
  /** Next offset to fetch; -1 until known. */
  readonly position: number
  /** -1: the group has none. */
  readonly committed: number
  /** -1 until the first answer. */
  readonly highWatermark: number
  readonly lastStableOffset: number
  readonly logStartOffset: number
  /** Why it stands still; null when it does not. */
  readonly problem: PartitionProblem | null
  /** The passing trouble that is being waited for (no leader, a broker that is away); null when there is none. */
  readonly waiting: string | null
  readonly generation: number
}

export type GroupError = MembershipError | WireError

export interface GroupConsumer {
  /** Replaces the topics; may change while running, without disturbing the partitions of topics that stay. */
  readonly subscribe: (topics: ReadonlyArray<string>) => Effect.Effect<void, GroupError>
  /**
   * What is there, up to `maxBytes` (at least one piece), or as soon as something is; empty after `maxWaitMs`.
   * Call it from the fiber that uses what it gives: a race or a time-out around it could win while it answers, and
   * what it gave would not come again.
   */
  readonly poll: (
    options: { readonly maxWaitMs: number; readonly maxBytes: number }
  ) => Effect.Effect<ReadonlyArray<Fetched>, GroupError>
  /**
   * These are safe on the target: they will be committed. Answers how many were dropped because their assignment is
   * over. A position above what poll gave is a defect.
   */
  readonly commit: (positions: ReadonlyArray<Confirmed>) => Effect.Effect<number>
  /** Commits what is confirmed, now. */
  readonly flush: Effect.Effect<CommitOutcome>
  /** Fetches nothing of these and gives nothing of them out, until resumed; what was fetched is fetched again. */
  readonly pause: (partitions: ReadonlyArray<TopicPartition>) => Effect.Effect<void>
  readonly resume: (partitions: ReadonlyArray<TopicPartition>) => Effect.Effect<void>
  /** What is assigned now, with positions, ends and problems. */
  readonly partitions: Effect.Effect<ReadonlyArray<PartitionView>>
}

const COMMIT_TIMEOUT_MS = 10_000
/** A recommended follower counts for so long at least: one that counts for nothing would be recommended for ever, and never read. */
const LEAST_REPLICA_MS = 1_000

const view = (shared: Shared, state: PartitionState): PartitionView => ({
  topic: state.topic,
  partition: state.partition,
  stage: state.stage,
  paused: state.paused,
  position: state.position,
  committed: shared.book.committed(state),
  highWatermark: state.highWatermark,
  lastStableOffset: state.lastStableOffset,
  logStartOffset: state.logStart,
  problem: state.problem,
  waiting: state.waiting,
  generation: state.generation
})

const takeReady = (shared: Shared, maxBytes: number): ReadonlyArray<Fetched> => {
  const taken: Array<Fetched> = []
  let bytes = 0
  while (shared.ready.length > taken.length) {
    const piece = shared.ready[taken.length] as Fetched
    if (taken.length > 0 && bytes + piece.bytes > maxBytes) break
    bytes += piece.bytes
    taken.push(piece)
    const state = shared.partitions.get(partitionKey(piece))
    if (state?.generation !== piece.generation) continue
    state.buffered -= piece.bytes
    state.deliveredTo = piece.next
  }
  shared.ready.splice(0, taken.length)
  if (taken.length > 0) shared.fetchable.notify()
  return joinPieces(taken)
}

/**
 * The wait may be interrupted or time out; taking is one step after it, so no result is taken that is not given out.
 * After a failure nothing is given out any more.
 */
const poll = (shared: Shared) =>
(
  { maxBytes, maxWaitMs }: { readonly maxWaitMs: number; readonly maxBytes: number }
): Effect.Effect<ReadonlyArray<Fetched>, GroupError> => {
  const wait = Effect.suspend(() => {
    const arrived = shared.arrived.next
    return shared.ready.length > 0 ? Effect.void : arrived
  })
  return Effect.suspend(() => {
    const failed = Deferred.await(shared.failure)
    if (Deferred.isDoneUnsafe(shared.failure)) return failed
    return wait.pipe(
      Effect.timeoutOption(maxWaitMs),
      Effect.raceFirst(failed),
      Effect.andThen(Effect.sync(() => takeReady(shared, maxBytes)))
    )
  })
}

const confirm = (shared: Shared) => (positions: ReadonlyArray<Confirmed>): Effect.Effect<number> =>
  Effect.sync(() => {
    let dropped = 0
    for (const position of positions) {
      const state = shared.partitions.get(partitionKey(position))
      if (state?.generation === position.generation && position.offset > state.deliveredTo) {
        throw new Error(
          `${state.key}: offset ${position.offset} is confirmed, but only what is below ${state.deliveredTo} was given out`
        )
      }
      if (!shared.book.confirm(position)) dropped++
    }
    return dropped
  })

const remove = (
  shared: Shared,
  partitions: ReadonlyArray<TopicPartition>,
  { onAssignment }: Pick<GroupConsumerOptions, "onAssignment">
): void => {
  for (const at of partitions) {
    const state = shared.partitions.get(partitionKey(at))
    if (state === undefined) continue
    moveTo(state, "revoked")
    dropBuffered(shared, state)
    shared.partitions.delete(state.key)
    shared.book.forget(state)
  }
  onAssignment?.(shared.partitions.size)
}

/** What a rebalance does to the consumer. `commitNow` is bounded. */
const rebalancing = (
  shared: Shared,
  options: GroupConsumerOptions,
  hookMs: number,
  commitNow: Effect.Effect<CommitOutcome>
): MembershipHandlers => ({
  assigned: (partitions) =>
    Effect.sync(() => {
      for (const at of partitions) {
        const state = newPartition(at, ++shared.generations)
        shared.partitions.set(state.key, state)
      }
      options.onAssignment?.(shared.partitions.size)
      shared.work.notify()
    }),
  revoked: (partitions) =>
    Effect.suspend(() => {
      for (const at of partitions) {
        const state = shared.partitions.get(partitionKey(at))
        if (state === undefined) continue
        moveTo(state, "revoked")
        dropBuffered(shared, state)
      }
      const hook = options.onRevoke?.(partitions) ?? Effect.void
      return hook.pipe(
        Effect.timeoutOrElse({
          duration: hookMs,
          orElse: () =>
            Effect.logWarning(
              `group ${shared.groupId}: what is in flight did not end within ${hookMs} ms; it is dropped`
            )
        }),
        Effect.andThen(lastCommit(commitNow)),
        Effect.flatMap((outcome) =>
          outcome.kind === "committed"
            ? Effect.void
            : Effect.logInfo(
              `group ${shared.groupId}: partitions were given up without a commit; their last records come again: ${outcome.error.message}`
            )
        ),
        Effect.ensuring(Effect.sync(() => remove(shared, partitions, options)))
      )
    }),
  lost: (partitions) =>
    Effect.suspend(() => {
      remove(shared, partitions, options)
      return options.onLost?.(partitions) ?? Effect.void
    }),
  failed: (error) => Effect.sync(() => fail(shared, error))
})

const setPaused =
  (shared: Shared, paused: boolean) => (partitions: ReadonlyArray<TopicPartition>): Effect.Effect<void> =>
    Effect.sync(() => {
      for (const at of partitions) {
        const state = shared.partitions.get(partitionKey(at))
        if (state === undefined || state.paused === paused) continue
        state.paused = paused
        if (paused) dropBuffered(shared, state)
      }
      shared.fetchable.notify()
    })

/** Remembers how many partitions topics have now, before we join. */
const rememberCounts = (shared: Shared, topics: ReadonlyArray<string>): Effect.Effect<void, WireError> =>
  shared.cluster.retrying(askTopics(shared.cluster, topics)).pipe(Effect.map((found) => {
    for (const [name, topic] of found.topics) shared.firstCounts.set(name, topic.partitions.length)
  }))

/** KIP-848 where the brokers have it and the cluster has switched it on (4.0 and newer), else the classic protocol. */
export const chooseProtocol = (cluster: Cluster): Effect.Effect<GroupProtocol, WireError> =>
  Effect.gen(function*() {
    if (((yield* cluster.features).get("group.version") ?? 0) < 1) return "classic"
    return yield* cluster.negotiate({ kind: "any" }, consumerGroupHeartbeat).pipe(
      Effect.as("consumer" as const),
      Effect.catchTag("UnsupportedError", () => Effect.succeed("classic" as const))
    )
  })

const makeShared = (options: GroupConsumerOptions, settings: Shared["settings"], client: ClientConfig): Shared => ({
  cluster: options.cluster,
  groupId: options.groupId,
  settings,
  onSourceGap: options.onSourceGap,
  onTopicRecreated: options.onTopicRecreated ?? "gap",
  purpose: `fetch:${options.name}`,
  requestTimeoutMs: client.requestTimeoutMs,
  replicaMaxAgeMs: Math.max(LEAST_REPLICA_MS, client.metadataMaxAgeMs),
  maxBufferedBytes: options.maxBufferedBytes ?? 64 * 1024 * 1024,
  partitions: new Map(),
  ready: [],
  book: new CommitBook(),
  startAt: options.startAt ?? null,
  onGap: options.onGap ?? (() => {}),
  onCommit: options.onCommit ?? (() => {}),
  firstCounts: new Map(),
  counts: new Map(),
  work: new Signal(),
  fetchable: new Signal(),
  arrived: new Signal(),
  failure: Deferred.makeUnsafe(),
  generations: 0,
  turns: 0
})

/**
 * Connects and returns; joins with the first `subscribe`.
 * @see KIP-62 (max.poll.interval.ms), KIP-320 (truncation), KIP-429 (incremental rebalances), KIP-848
 */
export const makeGroupConsumer = (
  options: GroupConsumerOptions
): Effect.Effect<GroupConsumer, GroupError | SettingsError, Scope.Scope> =>
  Effect.gen(function*() {
    const settings = yield* parseGroupSettings(options.settings)
    const client = yield* parseClientConfig(options.settings)
    const sessionMs = yield* parsing(() => integer(options.settings, "session.timeout.ms", 45_000, 1, 2_147_483_647))
    const shared = makeShared(options, settings, client)
    const protocol = options.protocol === "auto" ? yield* chooseProtocol(options.cluster) : options.protocol
    // The group waits for us as long as max.poll.interval.ms; lanes that wait for one another should not.
    const revokeMs = Math.max(
      1_000,
      Math.min(30_000, Math.floor(settings.maxPollIntervalMs / 3), Math.floor(sessionMs / 2))
    )
    const one = Semaphore.makeUnsafe(1)
    const commitNow = (timeoutMs: number): Effect.Effect<CommitOutcome> =>
      Effect.suspend(() => flush(shared, membership, one, timeoutMs))
    const conf = librdkafkaConf(options.settings, {
      groupId: options.groupId,
      protocol,
      member: options.name,
      metadataRefreshMs: options.refreshTopicsMs ?? 5_000
    })
    const closeMs = Math.floor((options.closeTimeoutMs ?? 10_000) / 2)
    const membership: Membership = yield* (options.membership ?? makeMembership)({
      groupId: options.groupId,
      conf,
      connectTimeoutMs: client.apiTimeoutMs,
      revokeTimeoutMs: revokeMs,
      closeTimeoutMs: closeMs,
      pollIntervalMs: 50
    }, rebalancing(shared, options, Math.floor(revokeMs * 0.6), commitNow(Math.floor(revokeMs * 0.3))))
    yield* Effect.addFinalizer(() => Effect.sync(() => options.onAssignment?.(0)))
    yield* Effect.addFinalizer(() =>
      finalCommit(shared, commitNow(Math.ceil(closeMs / 4)), closeMs).pipe(
        Effect.andThen(options.cluster.release(shared.purpose))
      )
    )
    const fetchers = yield* FiberMap.make<number>()
    const brokers = () => new Set([...shared.partitions.values()].map(fetchFrom).filter((id) => id >= 0))
    // A fiber that breaks must not leave the owner waiting: poll dies with it.
    const guard = (work: Effect.Effect<never>): Effect.Effect<unknown> =>
      work.pipe(Effect.catchDefect((defect) => Deferred.die(shared.failure, defect)))
    const settled = Effect.suspend(() => {
      shared.fetchable.notify()
      return Effect.forEach(brokers(), (id) =>
        FiberMap.run(fetchers, id, guard(runFetcher(shared, id, () => brokers().size)), { onlyIfMissing: true }), {
        discard: true
      })
    })
    yield* Effect.forkScoped(guard(runSteward(shared, membership, settled)))
    yield* Effect.forkScoped(
      guard(runCommitter(shared, membership, one, options.commitIntervalMs ?? 1_000, COMMIT_TIMEOUT_MS))
    )
    let started = settings.offsetReset === "earliest"
    return {
      subscribe: (topics) => {
        const first = !started && topics.length > 0
        started ||= first
        return (first ? rememberCounts(shared, topics) : Effect.void).pipe(Effect.andThen(membership.subscribe(topics)))
      },
      poll: poll(shared),
      commit: confirm(shared),
      flush: commitNow(COMMIT_TIMEOUT_MS),
      pause: setPaused(shared, true),
      resume: setPaused(shared, false),
      partitions: Effect.sync(() =>
        [...shared.partitions.values()].map((state) =>
          view(shared, state)
        )
      )
    }
  })
