/**
 * One partition of the ledger topic as its reader sees it: from where to where it goes, what is in it, and cutting
 * off its beginning. `clusterLog` is the one on a real cluster.
 *
 * Guarantees: what `read` gives begins at the asked offset (or in the batch that holds it) and has no hole; nothing
 * above the high watermark is given. `end` is at least what was acknowledged to anybody before it was asked: a leader
 * that was just elected is asked again until it knows (KIP-207).
 */
import { Effect, Schema } from "effect"
import { type BatchView, splitBatches } from "../../wire/batch/recordBatch.ts"
import { ProtocolError } from "../../wire/bytes.ts"
import type { Cluster, Destination } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { deleteRecords } from "../../wire/messages/deleteRecords.ts"
import { fetch } from "../../wire/messages/fetch.ts"
import { EARLIEST, LATEST, listOffsets } from "../../wire/messages/listOffsets.ts"

export type Read =
  | { readonly kind: "batches"; readonly batches: ReadonlyArray<BatchView>; readonly lastStable: number }
  /** Before the log's start (pruned), or behind its end (lost). */
  | { readonly kind: "outOfRange" }

/** The topic that was verified is not there any more: nobody knows now what is mirrored. Does not pass. */
export class LedgerLost extends Schema.TaggedError<LedgerLost>()("LedgerLost", { what: Schema.String }) {
  override get message(): string {
    return this.what
  }
}

export type LogError = WireError | LedgerLost

/** One sentence for every place that may find it. `now`: another topic has the name. */
export const ledgerLost = (topic: string, now: boolean): LedgerLost =>
  new LedgerLost({
    what: `the ledger topic ${topic} was deleted${
      now ? " and created anew" : ""
    } while this flow ran. What it knew of the records that are mirrored is gone, and without it some could be mirrored twice, so the flow does not go on by itself. Set on.ledger.lost: adopt to begin a new ledger that takes for mirrored what the group has done`
  })

export interface LedgerLog {
  readonly partition: number
  /** The first offset that is there. */
  readonly start: Effect.Effect<number, LogError>
  /** The high watermark. */
  readonly end: Effect.Effect<number, LogError>
  /** What is there from an offset on; waits for something to come for a while, then gives nothing. */
  readonly read: (offset: number) => Effect.Effect<Read, LogError>
  /** Lets the log begin at `offset`. */
  readonly deleteBelow: (offset: number) => Effect.Effect<void, LogError>
}

export interface ClusterLogOptions {
  readonly cluster: Cluster
  readonly topic: string
  /** As it was when the topic was verified: one that was created anew is not the ledger any more. */
  readonly topicId: string
  readonly partition: number
  /** Names the connections. */
  readonly purpose: string
}

const OFFSET_OUT_OF_RANGE = 1
const UNKNOWN_TOPIC_OR_PARTITION = 3
const UNKNOWN_TOPIC_ID = 100
const INCONSISTENT_TOPIC_ID = 103
const UNKNOWN: ReadonlySet<number> = new Set([UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID])
/** So often, so many milliseconds apart, a topic is looked for before it counts as deleted: a broker may not know yet. */
const LOOKS = 50
const LOOK_MS = 200
/** What comes is answered at once: this is how often a ledger that nothing happens in is asked for nothing. */
const MAX_WAIT_MS = 5_000
const MAX_BYTES = 4 * 1024 * 1024
const REQUEST_TIMEOUT_MS = 30_000

/** The records field; larger than the limit when its first batch is. Throws nothing. */
const batchesOf = (records: Buffer | null): Effect.Effect<ReadonlyArray<BatchView>, ProtocolError> =>
  records === null || records.length === 0 ? Effect.succeed([]) : Effect.try({
    try: () => splitBatches(records),
    catch: (cause) => cause instanceof ProtocolError ? cause : new ProtocolError({ what: String(cause) })
  })

export const clusterLog = (options: ClusterLogOptions): LedgerLog => {
  const { cluster, partition, purpose, topic, topicId } = options
  const subject = `${topic}-${partition}`
  const leader: Effect.Effect<Destination, WireError> = Effect.map(
    cluster.leader(topic, partition),
    ({ leader: id }) => ({ kind: "broker", id })
  )
  /** Returns when the topic is the one it was. */
  const stillThere: Effect.Effect<void, LogError> = Effect.gen(function*() {
    for (let look = 0; look < LOOKS; look++) {
      const now = (yield* cluster.topics([topic])).get(topic)
      if (now !== undefined && now.partitions.length > 0) {
        return now.id === topicId
          ? undefined
          : yield* ledgerLost(topic, true)
      }
      yield* Effect.sleep(LOOK_MS)
    }
    return yield* ledgerLost(topic, false)
  })

  /** A partition's error; what the cache says of the topic is forgotten, as a refresh never hurts here. */
  const refuse = (api: string, code: number): Effect.Effect<never, LogError> =>
    Effect.gen(function*() {
      yield* cluster.invalidate(topic)
      if (UNKNOWN.has(code)) yield* stillThere
      return yield* new BrokerError({ api, code, subject, detail: null })
    })

  const list = (timestamp: number): Effect.Effect<number, LogError> =>
    Effect.gen(function*() {
      const answer = yield* cluster.request(yield* leader, listOffsets, {
        replicaId: -1,
        isolationLevel: 0,
        topics: [{ name: topic, partitions: [{ partitionIndex: partition, timestamp }] }]
      }, { purpose: `${purpose}-control` })
      const found = answer.topics[0]?.partitions[0]
      if (found === undefined) return yield* new ProtocolError({ what: `ListOffsets has no answer for ${subject}` })
      return found.errorCode === 0 ? found.offset : yield* refuse("ListOffsets", found.errorCode)
    })

  const read = (offset: number): Effect.Effect<Read, LogError> =>
    Effect.gen(function*() {
      const answer = yield* cluster.request(yield* leader, fetch, {
        maxWaitMs: MAX_WAIT_MS,
        minBytes: 1,
        maxBytes: MAX_BYTES,
        isolationLevel: 0,
        topics: [{ topic, topicId, partitions: [{ partition, fetchOffset: offset, partitionMaxBytes: MAX_BYTES }] }]
      }, { purpose, timeoutMs: REQUEST_TIMEOUT_MS + MAX_WAIT_MS })
      if (answer.errorCode !== 0) return yield* refuse("Fetch", answer.errorCode)
      const found = answer.responses[0]?.partitions[0]
      if (found === undefined) return yield* new ProtocolError({ what: `Fetch has no answer for ${subject}` })
      if (found.errorCode === OFFSET_OUT_OF_RANGE) return { kind: "outOfRange" }
      if (found.errorCode !== 0) return yield* refuse("Fetch", found.errorCode)
      return { kind: "batches", batches: yield* batchesOf(found.records), lastStable: found.lastStableOffset }
    })

  const deleteBelow = (offset: number): Effect.Effect<void, LogError> =>
    Effect.gen(function*() {
      const answer = yield* cluster.request(yield* leader, deleteRecords, {
        topics: [{ name: topic, partitions: [{ partitionIndex: partition, offset }] }],
        timeoutMs: REQUEST_TIMEOUT_MS
      }, { purpose: `${purpose}-control`, timeoutMs: 2 * REQUEST_TIMEOUT_MS })
      const code = answer.topics[0]?.partitions[0]?.errorCode ?? 0
      // Out of range: another worker has cut off more already.
      if (code !== 0 && code !== OFFSET_OUT_OF_RANGE) return yield* refuse("DeleteRecords", code)
    })

  return { partition, start: list(EARLIEST), end: list(LATEST), read, deleteBelow }
}
