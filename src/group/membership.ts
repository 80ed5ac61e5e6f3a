/**
 * Membership in a consumer group by librdkafka (classic protocol and KIP-848), with no record ever read through it:
 * partitions are paused in the moment they are assigned; the bytes come through src/wire.
 *
 * Guarantees: no exception and no event of the native client crosses this file; every answer is a value or a
 * MembershipError within a bound; after `revoked` has run (or its bound has passed) the partitions are given up, so
 * a stuck handler never holds up the group; the member leaves the group when the scope closes, also on interruption.
 *
 * Gotchas of the native client, each met in its source (1.10.1):
 * - Its calls run on libuv's pool of four threads, so `consume` is asked with a timeout of zero, now and then, and
 *   never waits there: four lanes that wait would stop the process's DNS and zlib.
 * - Rebalance callbacks reach us on the event loop some time after librdkafka made them; the group waits for our
 *   (un)assign. While the client closes, its unassign must come at once or close() waits for ever.
 * - commitCb's callback means "sent"; the broker's word comes as an offset_commit_cb while consume is called.
 */
import { Deferred, Effect, Queue, type Scope } from "effect"
import { MembershipError } from "./errors.ts"
import {
  codeOf,
  type MemberEvent,
  type NativeError,
  NativeMember,
  NOT_CONNECTED,
  plain,
  signature,
  TIMED_OUT
} from "./nativeMember.ts"
import type { Position, TopicPartition } from "./position.ts"

/** A committed position with the words that were committed beside it. */
export interface CommittedPosition extends Position {
  readonly metadata: string
}

export interface Membership {
  /** Replaces the set of topics; an empty one leaves the group. Partitions of topics that stay are not disturbed (unless the protocol is eager). */
  readonly subscribe: (topics: ReadonlyArray<string>) => Effect.Effect<void, MembershipError>
  /** Resolves with the coordinator's word. One at a time; the caller keeps to that. */
  readonly commit: (
    positions: ReadonlyArray<CommittedPosition>,
    timeoutMs: number
  ) => Effect.Effect<void, MembershipError>
  /** Partitions that the group has no offset for are absent. */
  readonly committed: (
    partitions: ReadonlyArray<TopicPartition>,
    timeoutMs: number
  ) => Effect.Effect<ReadonlyArray<CommittedPosition>, MembershipError>
}

/** Called one after the other. None may fail; all but `revoked` should be quick. */
export interface MembershipHandlers {
  readonly assigned: (partitions: ReadonlyArray<TopicPartition>) => Effect.Effect<void>
  /** Still ours until it returns or `revokeTimeoutMs` has passed: finish, commit. */
  readonly revoked: (partitions: ReadonlyArray<TopicPartition>) => Effect.Effect<void>
  /** Not ours any more: drop everything, commit nothing. */
  readonly lost: (partitions: ReadonlyArray<TopicPartition>) => Effect.Effect<void>
  /** An error that does not pass by itself (a missing right, fenced, a wrong password). */
  readonly failed: (error: MembershipError) => Effect.Effect<void>
}

export interface MembershipOptions {
  readonly groupId: string
  /** librdkafka's own settings (librdkafkaConf.ts makes them). */
  readonly conf: Readonly<Record<string, string | number | boolean>>
  /** Bound for the first connection, milliseconds. */
  readonly connectTimeoutMs: number
  /** Bound for the `revoked` handler, milliseconds: well below the group's rebalance timeout. */
  readonly revokeTimeoutMs: number
  /** Bound for leaving the group, milliseconds. */
  readonly closeTimeoutMs: number
  /** How often `consume` is called, milliseconds. */
  readonly pollIntervalMs: number
}

export type MakeMembership = (
  options: MembershipOptions,
  handlers: MembershipHandlers
) => Effect.Effect<Membership, MembershipError, Scope.Scope>

const subscribe = (client: NativeMember) => (topics: ReadonlyArray<string>): Effect.Effect<void, MembershipError> =>
  Effect.try({
    try: () => {
      if (topics.length === 0) client.native.unsubscribe()
      else client.native.subscribe([...topics])
    },
    catch: (cause) => client.error("subscribe", cause)
  })

const late = (client: NativeMember, operation: string, timeoutMs: number) =>
  Effect.timeoutOrElse({
    duration: timeoutMs,
    orElse: () => Effect.fail(client.error(operation, { code: TIMED_OUT, message: `no answer within ${timeoutMs} ms` }))
  })

const commit =
  (client: NativeMember) =>
  (positions: ReadonlyArray<CommittedPosition>, timeoutMs: number): Effect.Effect<void, MembershipError> =>
    Effect.suspend(() => {
      const key = signature(positions)
      const done = Deferred.makeUnsafe<void, MembershipError>()
      client.waiting.set(key, done)
      const send = Effect.try({
        try: () =>
          client.native.commitCb(positions, (error) => {
            if (error !== null && error !== undefined) {
              Deferred.doneUnsafe(done, Effect.fail(client.error("commit", error)))
            }
          }),
        catch: (cause) => client.error("commit", cause)
      })
      return send.pipe(
        Effect.andThen(Deferred.await(done)),
        late(client, "commit", timeoutMs),
        Effect.ensuring(Effect.sync(() => client.waiting.delete(key)))
      )
    })

const committed = (client: NativeMember) =>
(
  partitions: ReadonlyArray<TopicPartition>,
  timeoutMs: number
): Effect.Effect<ReadonlyArray<CommittedPosition>, MembershipError> =>
  Effect.callback<ReadonlyArray<CommittedPosition>, MembershipError>((resume) => {
    try {
      client.native.committed(plain(partitions), timeoutMs, (error, positions) => {
        if (error) return resume(Effect.fail(client.error("committed", error)))
        // A partition with an error comes as an Error in its place; taken for "no offset", it would start over.
        const wrong = positions.find((p) => p instanceof Error)
        if (wrong !== undefined) {
          const { message } = wrong as unknown as Error
          const known = codeOf(message)
          return resume(Effect.fail(client.error("committed", { code: known === -1 ? TIMED_OUT : known, message })))
        }
        resume(Effect.succeed(positions.flatMap((p) =>
          typeof p.offset === "number" && p.offset >= 0
            ? [{
              topic: p.topic,
              partition: p.partition,
              offset: p.offset,
              leaderEpoch: p.leaderEpoch ?? -1,
              metadata: p.metadata ?? ""
            }]
            : []
        )))
      })
    } catch (cause) {
      resume(Effect.fail(client.error("committed", cause)))
    }
  }).pipe(late(client, "committed", timeoutMs + 1_000))

const connect = (client: NativeMember, timeoutMs: number): Effect.Effect<void, MembershipError> =>
  Effect.callback<void, MembershipError>((resume) => {
    // The client would try a wrong password until its time is up.
    client.onLasting = (error) => resume(Effect.fail(error))
    try {
      client.native.connect({ allTopics: false, timeout: timeoutMs }, (error) => {
        // Closed while it connected: nobody is there any more to end it.
        if (client.closing && !error) client.native.disconnect(() => {})
        resume(error ? Effect.fail(client.error("connect", error)) : Effect.void)
      })
    } catch (cause) {
      resume(Effect.fail(client.error("connect", cause)))
    }
  }).pipe(
    late(client, "connect", timeoutMs + 1_000),
    Effect.ensuring(Effect.sync(() => void (client.onLasting = null)))
  )

const disconnect = (client: NativeMember, timeoutMs: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    client.closing = true
    if (!client.native.isConnected()) return resume(Effect.void)
    try {
      client.native.disconnect(() => resume(Effect.void))
    } catch {
      resume(Effect.void)
    }
  }).pipe(Effect.timeoutOrElse({
    duration: timeoutMs,
    orElse: () =>
      Effect.logWarning(
        `group ${client.groupId}: leaving took longer than ${timeoutMs} ms; the group will notice by its session timeout`
      )
  }))

/** Serves the client's queue: rebalances, commit outcomes and errors arrive only while this is called. */
const keepAlive = (client: NativeMember, intervalMs: number): Effect.Effect<never> =>
  Effect.callback<void>((resume) => {
    try {
      client.native.consume(1, (error) => {
        if (error && error.code !== NOT_CONNECTED) client.report("poll", error)
        resume(Effect.void)
      })
    } catch (cause) {
      client.report("poll", cause as NativeError)
      resume(Effect.void)
    }
  }).pipe(Effect.andThen(Effect.sleep(intervalMs)), Effect.forever)

const handle =
  (client: NativeMember, options: MembershipOptions, handlers: MembershipHandlers) =>
  (event: MemberEvent): Effect.Effect<void> => {
    switch (event.kind) {
      case "log":
        return Effect.logDebug(event.text)
      case "failed":
        return handlers.failed(event.error)
      case "assigned":
        return handlers.assigned(event.partitions)
      case "lost":
        return handlers.lost(event.partitions)
      case "revoked": {
        const release = Effect.sync(() => {
          try {
            client.giveUp(event.partitions)
          } catch (cause) {
            client.report("assign", cause as NativeError)
          }
        })
        return handlers.revoked(event.partitions).pipe(
          Effect.timeoutOrElse({
            duration: options.revokeTimeoutMs,
            orElse: () =>
              Effect.logWarning(
                `group ${client.groupId}: giving up ${event.partitions.length} partitions before their work was done: it took longer than ${options.revokeTimeoutMs} ms`
              )
          }),
          Effect.ensuring(release)
        )
      }
    }
  }

/** Connects; joins with the first `subscribe`. Leaves the group when the scope closes. */
export const makeMembership: MakeMembership = Effect.fnUntraced(function*(options, handlers) {
  const events = yield* Queue.unbounded<MemberEvent>()
  const client = yield* Effect.try({
    try: () => new NativeMember(options.groupId, options.conf, events),
    catch: (cause) =>
      new MembershipError({
        operation: "configure",
        groupId: options.groupId,
        code: -186,
        what: cause instanceof Error ? cause.message : String(cause)
      })
  })
  yield* Effect.addFinalizer(() => disconnect(client, options.closeTimeoutMs))
  const serve = handle(client, options, handlers)
  // Neither of the two can fail; a defect in a handler is reported to the owner, who would otherwise wait for ever.
  const guarded = (work: Effect.Effect<never>) =>
    work.pipe(
      Effect.catchDefect((defect) =>
        handlers.failed(client.error("poll", { code: -1, message: `a handler broke: ${String(defect)}` }))
      ),
      Effect.forkScoped
    )
  yield* guarded(Effect.forever(Queue.take(events).pipe(Effect.flatMap(serve))))
  // Before the connection is there: its errors come this way too.
  yield* guarded(keepAlive(client, options.pollIntervalMs))
  yield* connect(client, options.connectTimeoutMs)
  return { subscribe: subscribe(client), commit: commit(client), committed: committed(client) }
})
