/**
 * Sends confirmed positions to the coordinator: one commit in flight, the latest position of each partition.
 *
 * A commit that a rebalance overtook is an outcome, not a failure: nothing is lost, the records come again to the new
 * owner. One that nobody answered stays to be sent again (committing twice is harmless).
 */
import { Duration, Effect, type Semaphore } from "effect"
import type { Confirmed } from "./commitBook.ts"
import { writeCommitMetadata } from "./commitMetadata.ts"
import type { MembershipError } from "./errors.ts"
import type { CommittedPosition, Membership } from "./membership.ts"
import { partitionKey } from "./position.ts"
import { fail, type Shared } from "./shared.ts"

export type CommitOutcome =
  /** Everything that was confirmed is committed. */
  | { readonly kind: "committed"; readonly partitions: number }
  /** The assignment changed: what was read comes again elsewhere. */
  | { readonly kind: "rebalanced"; readonly error: MembershipError }
  /** Not now; it will be sent again. */
  | { readonly kind: "later"; readonly error: MembershipError }
  /** It will not work: a missing right and the like. The consumer has failed with it. */
  | { readonly kind: "failed"; readonly error: MembershipError }

const withMetadata = (shared: Shared, position: Confirmed): CommittedPosition => ({
  topic: position.topic,
  partition: position.partition,
  offset: position.offset,
  leaderEpoch: position.leaderEpoch,
  metadata: writeCommitMetadata({
    topicId: shared.partitions.get(partitionKey(position))?.topicId ?? null,
    partitions: shared.firstCounts.get(position.topic) ?? null
  })
})

const commitOnce = (
  shared: Shared,
  membership: Membership,
  positions: ReadonlyArray<Confirmed>,
  timeoutMs: number
): Effect.Effect<CommitOutcome> =>
  membership.commit(positions.map((position) => withMetadata(shared, position)), timeoutMs).pipe(
    Effect.timed,
    Effect.map(([took]): CommitOutcome => {
      shared.book.settle(positions)
      shared.onCommit(Duration.toSeconds(took))
      return { kind: "committed", partitions: positions.length }
    }),
    Effect.catch((error) =>
      Effect.succeed<CommitOutcome>({
        kind: error.rebalanced ? "rebalanced" : error.retriable ? "later" : "failed",
        error
      })
    )
  )

const topicsOf = (positions: ReadonlyArray<Confirmed>): ReadonlyArray<ReadonlyArray<Confirmed>> => {
  const topics = Map.groupBy(positions, (position) => position.topic)
  return [...topics.values()]
}

/**
 * Commits what is confirmed now. Never fails: the outcome says what became of it. At most `timeoutMs` for each
 * request; a refused request of several topics is sent again topic by topic, for one bad topic (deleted, no right)
 * must not hold up the others.
 */
export const flush = (
  shared: Shared,
  membership: Membership,
  one: Semaphore.Semaphore,
  timeoutMs: number
): Effect.Effect<CommitOutcome> =>
  one.withPermits(1)(Effect.gen(function*() {
    const positions = shared.book.dirty()
    if (positions.length === 0) return { kind: "committed", partitions: 0 } as CommitOutcome
    const outcome = yield* commitOnce(shared, membership, positions, timeoutMs)
    if (outcome.kind === "committed" || outcome.kind === "rebalanced") return outcome
    const topics = topicsOf(positions)
    const outcomes = topics.length === 1 || outcome.error.code < 0
      ? [outcome]
      : yield* Effect.forEach(topics, (part) => commitOnce(shared, membership, part, timeoutMs))
    const worst = outcomes.find(({ kind }) => kind === "failed") ?? outcomes.find(({ kind }) => kind !== "committed") ??
      (outcomes[0] as CommitOutcome)
    if (worst.kind === "failed") fail(shared, worst.error)
    return worst
  }))

/** Commits every `intervalMs`, for as long as the consumer runs. */
export const runCommitter = (
  shared: Shared,
  membership: Membership,
  one: Semaphore.Semaphore,
  intervalMs: number,
  timeoutMs: number
): Effect.Effect<never> =>
  Effect.sleep(intervalMs).pipe(
    Effect.andThen(flush(shared, membership, one, timeoutMs)),
    Effect.flatMap((outcome) =>
      outcome.kind === "committed" ? Effect.void : Effect.logDebug(`${outcome.kind}: ${outcome.error.message}`)
    ),
    Effect.forever
  )

const REBALANCE_IN_PROGRESS = 27

/** Once more after a moment, where the group or its coordinator was just busy: it is the last chance. */
export const lastCommit = (commitNow: Effect.Effect<CommitOutcome>): Effect.Effect<CommitOutcome> =>
  Effect.flatMap(
    commitNow,
    (outcome) =>
      outcome.kind === "later" || (outcome.kind === "rebalanced" && outcome.error.code === REBALANCE_IN_PROGRESS)
        ? Effect.andThen(Effect.sleep(200), commitNow)
        : Effect.succeed(outcome)
  )

const BETWEEN_TRIES_MS = 200

/**
 * The commit before leaving: again and again, for a rebalance passes (with the next generation what stayed ours can be
 * committed), and so does a busy coordinator. Bounded.
 */
export const finalCommit = (
  shared: Shared,
  commitOnce: Effect.Effect<CommitOutcome>,
  forMs: number
): Effect.Effect<void> =>
  Effect.gen(function*() {
    while (true) {
      const { kind } = yield* commitOnce
      if (kind === "committed" || kind === "failed") return
      yield* Effect.sleep(BETWEEN_TRIES_MS)
    }
  }).pipe(Effect.timeoutOrElse({
    duration: forMs,
    orElse: () =>
      Effect.logWarning(
        `group ${shared.groupId}: the last positions could not be committed within ${forMs} ms; the records since the commit before come again`
      )
  }))
