/**
 * Fetches from one broker: one request in flight, the next one leaves while the last result waits to be taken, within
 * the broker's share of the byte bound. All partitions of the broker are asked for by every request (fetchSession.ts), so
 * a long poll never leaves one of them out; those that gave data last come last in the next (the broker keeps that order
 * within a session), so a large partition starves no other, and a batch above the limits comes whole when its partition's
 * turn comes.
 */
import { Effect } from "effect"
import { ProtocolError } from "../wire/bytes.ts"
import { splitBatches } from "../wire/batch/recordBatch.ts"
import { fetch } from "../wire/messages/fetch.ts"
import type { WireError } from "../wire/errors.ts"
import { Lease, receiveMemory } from "../wire/receiveMemory.ts"
import { nowMs } from "../wire/retry.ts"
import { type RequestOf, type ResponseOf, ZERO_UUID } from "../wire/schema.ts"
import { onPartitionCode } from "./askLeaders.ts"
import { SourceRecordError } from "./errors.ts"
import { adoptLeader, backOff, fetchFrom, moveTo, type PartitionState, recovered, stop } from "./partition.ts"
import { type Asked, FetchSession } from "./fetchSession.ts"
import { enqueue, fail, isCurrent, type Shared } from "./shared.ts"
import { visibleBatches } from "./visibleBatches.ts"

type FetchAnswer = ResponseOf<typeof fetch>
type PartitionAnswer = FetchAnswer["responses"][number]["partitions"][number]

const OFFSET_OUT_OF_RANGE = 1

/** After an answer with less, so long until the next request: records that come one by one are not fetched one by one. */
const LITTLE_BYTES = 32 * 1024
const LITTLE_PAUSE_MS = 3

const choose = (shared: Shared, broker: number, now: number): ReadonlyArray<Asked> => {
  const asked: Array<Asked> = []
  for (const state of shared.partitions.values()) {
    // The leader is asked anew from time to time: the follower may have fallen behind, or another be nearer.
    if (state.replica >= 0 && state.replicaUntil <= now) {
      state.replica = -1
      shared.fetchable.notify()
    }
    if (
      state.stage === "ready" && !state.paused && !state.inFlight && state.notBefore <= now &&
      fetchFrom(state) === broker
    ) {
      asked.push({ state, token: state.token })
    }
  }
  return asked.sort((a, b) => a.state.turn - b.state.turn)
}

const bufferedOf = (shared: Shared, broker: number): number => {
  let bytes = 0
  for (const state of shared.partitions.values()) if (fetchFrom(state) === broker) bytes += state.buffered
  return bytes
}

const buildRequest = (
  { settings }: Shared,
  session: FetchSession,
  asked: ReadonlyArray<Asked>,
  maxBytes: number
): RequestOf<typeof fetch> => ({
  maxWaitMs: settings.fetchMaxWaitMs,
  minBytes: settings.fetchMinBytes,
  maxBytes,
  isolationLevel: settings.readCommitted ? 1 : 0,
  rackId: settings.rack,
  ...session.request(asked)
})

/** Data: what may be copied goes into the queue, the position moves. */
const take = (
  shared: Shared,
  state: PartitionState,
  answer: PartitionAnswer,
  now: number,
  lease: Lease | null
): void => {
  recovered(state)
  state.highWatermark = answer.highWatermark
  state.lastStableOffset = answer.lastStableOffset
  state.logStart = answer.logStartOffset
  if (answer.preferredReadReplica >= 0 && answer.preferredReadReplica !== state.replica) {
    state.replica = answer.preferredReadReplica
    state.replicaUntil = now + shared.replicaMaxAgeMs
    shared.work.notify()
  }
  const records = answer.records
  if (records === null || records.length === 0) return
  const visible = visibleBatches(
    splitBatches(records),
    answer.abortedTransactions ?? [],
    state.position,
    shared.settings.readCommitted
  )
  if (visible.next === state.position) return
  const first = state.position
  const leaderEpoch = visible.leaderEpoch >= 0 ? visible.leaderEpoch : state.positionEpoch
  state.position = visible.next
  state.positionEpoch = leaderEpoch
  state.turn = ++shared.turns
  lease?.hold()
  enqueue(shared, state, {
    leases: lease === null ? [] : [lease],
    first,
    next: visible.next,
    leaderEpoch,
    batches: visible.batches,
    bytes: records.length,
    abortedRecords: visible.abortedRecords,
    gap: null
  })
}

const refused = (shared: Shared, state: PartitionState, answer: PartitionAnswer, now: number): void => {
  const { leaderEpoch, leaderId } = answer.currentLeader
  if (answer.errorCode === OFFSET_OUT_OF_RANGE) {
    // A follower may be behind: only the leader's word counts.
    if (state.replica >= 0) state.replica = -1
    else moveTo(state, "range")
  } else if (leaderId >= 0 && leaderEpoch > state.leaderEpoch) adoptLeader(state, leaderId, leaderEpoch)
  else onPartitionCode(shared, state, "Fetch", answer.errorCode, now)
  shared.work.notify()
}

const apply = (
  shared: Shared,
  { state, token }: Asked,
  answer: PartitionAnswer,
  now: number,
  lease: Lease | null
): void => {
  if (!isCurrent(shared, state) || state.token !== token) return
  if (answer.errorCode !== 0) return refused(shared, state, answer, now)
  try {
    take(shared, state, answer, now, lease)
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    stop(
      state,
      new SourceRecordError({
        topic: state.topic,
        partition: state.partition,
        offset: state.position,
        what: error.what
      })
    )
  }
}

/** Tells the cluster's cache of the leaders that the answer names, with where they listen (KIP-951). */
const learn = (
  shared: Shared,
  answer: FetchAnswer,
  named: ReadonlyArray<readonly [PartitionState, PartitionAnswer]>
): Effect.Effect<void> =>
  Effect.forEach(named.filter(([, part]) => part.currentLeader.leaderId >= 0), ([state, { currentLeader }]) => {
    const node = answer.nodeEndpoints.find(({ nodeId }) => nodeId === currentLeader.leaderId)
    const endpoint = node === undefined
      ? undefined
      : { id: node.nodeId, host: node.host, port: node.port, rack: node.rack }
    return shared.cluster.learnLeader(state.topic, state.partition, {
      id: currentLeader.leaderId,
      epoch: currentLeader.leaderEpoch
    }, endpoint)
  }, { discard: true })

/** On what the records of an answer lie in, which is one piece of memory; null: it is not to be given back. */
const leaseOf = (pairs: ReadonlyArray<readonly [Asked, PartitionAnswer]>): Lease | null => {
  const memory = pairs.find(([, { records }]) => records !== null && records.length > 0)?.[1].records?.buffer
  return memory !== undefined && receiveMemory.owns(memory) ? new Lease(receiveMemory, memory) : null
}

/** Gives how many bytes of records it had. */
const applyAll = (
  shared: Shared,
  session: FetchSession,
  asked: ReadonlyArray<Asked>,
  answer: FetchAnswer
): Effect.Effect<number> =>
  Effect.gen(function*() {
    if (!session.answered(answer)) return 0
    const now = yield* nowMs
    const pairs: Array<readonly [Asked, PartitionAnswer]> = []
    for (const { partitions, topic, topicId } of answer.responses) {
      for (const part of partitions) {
        const one = session.asker(topic, topicId, part.partitionIndex)
        if (one !== null) pairs.push([one, part])
      }
    }
    yield* learn(shared, answer, pairs.map(([{ state }, part]) => [state, part]))
    const lease = leaseOf(pairs)
    for (const [one, part] of pairs) apply(shared, one, part, now, lease)
    if (answer.errorCode !== 0) {
      for (const one of asked) onPartitionCode(shared, one.state, "Fetch", answer.errorCode, now)
    }
    return pairs.reduce((sum, [, { records }]) => sum + (records?.length ?? 0), 0)
  })

/** Nothing that comes later would be understood, or let in. */
const endsConsumer = (error: WireError): boolean =>
  error._tag === "UnsupportedError" || error._tag === "ProtocolError" ||
  (error._tag === "ConnectionError" && (error.kind === "authentication" || error.kind === "tls"))

/** One request, and what it gives. */
const fetchOnce = (
  shared: Shared,
  broker: number,
  session: FetchSession,
  asked: ReadonlyArray<Asked>,
  maxBytes: number
): Effect.Effect<number> =>
  Effect.suspend(() => {
    for (const { state } of asked) state.inFlight = true
    const request = buildRequest(shared, session, asked, maxBytes)
    const withoutIds = asked.some(({ state }) => state.topicId === "" || state.topicId === ZERO_UUID)
    return shared.cluster.request({ kind: "broker", id: broker }, fetch, request, {
      purpose: shared.purpose,
      timeoutMs: shared.requestTimeoutMs + shared.settings.fetchMaxWaitMs,
      ...(withoutIds ? { maxVersion: 12 } : {})
    }).pipe(
      Effect.onError(() => Effect.sync(() => session.failed())),
      Effect.flatMap((answer) => applyAll(shared, session, asked, answer)),
      Effect.catch((error) =>
        Effect.gen(function*() {
          if (endsConsumer(error)) {
            fail(shared, error)
            return 0
          }
          yield* Effect.logDebug(`group ${shared.groupId}: fetch from broker ${broker}: ${error.message}`)
          const failedAt = yield* nowMs
          for (const { state } of asked) if (isCurrent(shared, state)) backOff(state, failedAt, error.message)
          shared.work.notify()
          return 0
        })
      ),
      Effect.ensuring(Effect.sync(() => {
        for (const { state } of asked) state.inFlight = false
        // Another broker's by now: its loop has looked while this request was under way, and waits to be told.
        if (asked.some(({ state }) => fetchFrom(state) !== broker)) shared.fetchable.notify()
      }))
    )
  })

/** Fetches from one broker for as long as the consumer runs. `brokers` says how many share the bound. */
export const runFetcher = (shared: Shared, broker: number, brokers: () => number): Effect.Effect<never> =>
  Effect.suspend(() => {
    const session = new FetchSession(shared.settings.partitionMaxBytes)
    return Effect.gen(function*() {
      const changed = shared.fetchable.next
      const now = yield* nowMs
      const share = Math.floor(shared.maxBufferedBytes / Math.max(1, brokers()))
      const asked = bufferedOf(shared, broker) < share ? choose(shared, broker, now) : []
      if (asked.length === 0) return yield* changed
      const maxBytes = Math.max(1, Math.min(shared.settings.fetchMaxBytes, Math.ceil(share / 2)))
      const bytes = yield* fetchOnce(shared, broker, session, asked, maxBytes)
      if (bytes > 0 && bytes < Math.min(LITTLE_BYTES, maxBytes / 2)) yield* Effect.sleep(LITTLE_PAUSE_MS)
    }).pipe(Effect.forever)
  })
