/**
 * A log may end in offsets that hold no record: the marker of a transaction, records of an aborted one, or what
 * compaction has taken out. A group's position cannot pass what no broker gives out, so whoever waits for it asks the
 * log itself.
 *
 * Gotcha: an empty answer alone is no proof. Brokers send one for a partition that has no room in the answer, so this
 * asks for one partition at a time; and where a slow remote storage (KIP-405) keeps them waiting, so one asks again.
 */
import { Effect } from "effect"
import { visibleBatches } from "../group/visibleBatches.ts"
import type { Cluster } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { ProtocolError } from "../wire/bytes.ts"
import { splitBatches } from "../wire/batch/recordBatch.ts"
import { fetch } from "../wire/messages/fetch.ts"
import { nowMs } from "../wire/retry.ts"
import { ZERO_UUID } from "../wire/schema.ts"

export interface TailAt {
  readonly topic: string
  /** ZERO_UUID where the broker is older than topic ids. */
  readonly topicId: string
  readonly partition: number
}

const MAX_WAIT_MS = 200
/** A batch that is larger comes whole. */
const MAX_BYTES = 64 * 1024
/** Answers that hold nothing but markers and aborted records are read on, so many times. */
const MAX_ANSWERS = 100

/** Where to read on after `offset`, null: there is a record; `offset` itself: the log has nothing more to give. */
const next = (
  cluster: Cluster,
  at: TailAt,
  offset: number,
  end: number,
  readCommitted: boolean
): Effect.Effect<number | null, WireError> =>
  Effect.gen(function*() {
    const { partition, topic, topicId } = at
    const leader = (yield* cluster.leaders([topic])).get(topic)?.partitions[partition]?.leader ?? -1
    const answer = yield* cluster.request({ kind: "broker", id: leader }, fetch, {
      maxWaitMs: MAX_WAIT_MS,
      minBytes: 1,
      maxBytes: MAX_BYTES,
      isolationLevel: readCommitted ? 1 : 0,
      topics: [{ topic, topicId, partitions: [{ partition, fetchOffset: offset, partitionMaxBytes: MAX_BYTES }] }]
    }, { purpose: "tail", ...(topicId === ZERO_UUID ? { maxVersion: 12 } : {}) })
    const found = answer.responses[0]?.partitions[0]
    const errorCode = answer.errorCode !== 0 ? answer.errorCode : found?.errorCode ?? -1
    if (found === undefined || errorCode !== 0) {
      yield* cluster.invalidate(topic)
      return yield* new BrokerError({ api: "Fetch", code: errorCode, subject: `${topic}-${partition}`, detail: null })
    }
    // Not as far as the end that was told: what it has not got cannot be judged.
    if ((readCommitted ? found.lastStableOffset : found.highWatermark) < end) return null
    const seen = yield* Effect.try({
      try: () =>
        visibleBatches(
          splitBatches(found.records ?? Buffer.alloc(0)),
          found.abortedTransactions ?? [],
          offset,
          readCommitted
        ),
      catch: (cause) => cause instanceof ProtocolError ? cause : new ProtocolError({ what: String(cause) })
    })
    return seen.batches.some(({ baseOffset }) => baseOffset < end) ? null : seen.next
  })

/** Whether the log holds no record from `first` on and below `end` (offsets) that a reader would be given. */
export const holdsNothing = (
  cluster: Cluster,
  at: TailAt,
  first: number,
  end: number,
  readCommitted: boolean
): Effect.Effect<boolean, WireError> =>
  Effect.gen(function*() {
    let offset = first
    for (let answers = 0; answers < MAX_ANSWERS; answers++) {
      const found = yield* next(cluster, at, offset, end, readCommitted)
      if (found === null) return false
      if (found >= end || found === offset) return true
      offset = found
    }
    return false
  })

/** A position that has stood so long is asked about, milliseconds; then after twice as long, up to the ceiling. */
const FIRST_WAIT_MS = 1_500
const CEILING_MS = 60_000
/** So many answers in a row that say the same; the ones after the first follow soon. */
const PROOFS = 3
const BETWEEN_PROOFS_MS = 700

interface Standing {
  readonly position: number
  readonly left: number | null
  waitMs: number
  atMs: number
  proofs: number
}

/** Watches positions that do not move. */
export class TailWatch {
  readonly #cluster: Cluster
  readonly #readCommitted: boolean
  readonly #standing = new Map<string, Standing>()

  constructor(cluster: Cluster, readCommitted: boolean) {
    this.#cluster = cluster
    this.#readCommitted = readCommitted
  }

  /** Whether it has turned out that nothing is left between the position and `end`. Asked again and again. */
  look(
    at: TailAt,
    progress: { readonly position: number; readonly left: number | null },
    end: number
  ): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function*() {
      const key = `${at.topic}-${at.partition}`
      const now = yield* nowMs
      const { left, position } = progress
      const before = this.#standing.get(key)
      if (before === undefined || before.position !== position || before.left !== left) {
        this.#standing.set(key, { position, left, waitMs: FIRST_WAIT_MS, atMs: now + FIRST_WAIT_MS, proofs: 0 })
        return false
      }
      if (now < before.atMs) return false
      // Nobody can be asked now: that proves nothing.
      const nothing = yield* Effect.orElseSucceed(
        holdsNothing(this.#cluster, at, position, end, this.#readCommitted),
        () => false
      )
      before.proofs = nothing ? before.proofs + 1 : 0
      if (!nothing) before.waitMs = Math.min(2 * before.waitMs, CEILING_MS)
      before.atMs = (yield* nowMs) + (nothing ? BETWEEN_PROOFS_MS : before.waitMs)
      return before.proofs >= PROOFS
    })
  }
}
