/**
 * The topic on the target that keeps a flow's offset notes (note.ts): one partition, kept for ever, folded by the
 * process that leads. `__onceover_offsets_FLOW`.
 *
 * Guarantees
 * - `read` sees committed notes only. It says whether it has seen every note that was committed before it was called:
 *   the notes of a transaction that is still open hide those behind them.
 * - `fold` loses nothing: the folded map is acknowledged before what it holds is deleted, and who reads meanwhile adds
 *   what it finds to what it has.
 */
import { Effect, type Scope, Semaphore } from "effect"
import { visibleBatches } from "../../group/visibleBatches.ts"
import { flowTopicName } from "../../txn/ledger/ledgerTopic.ts"
import { makeProducer, type Producer } from "../../txn/producer.ts"
import { decodeRecords } from "../../wire/batch/records.ts"
import { type BatchView, splitBatches } from "../../wire/batch/recordBatch.ts"
import { ProtocolError } from "../../wire/bytes.ts"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { deleteRecords } from "../../wire/messages/deleteRecords.ts"
import { fetch } from "../../wire/messages/fetch.ts"
import { EARLIEST, LATEST, listOffsets } from "../../wire/messages/listOffsets.ts"
import { nowMs } from "../../wire/retry.ts"
import { ensureSmallTopic, findTopic } from "../control/smallTopic.ts"
import { noteBatch } from "./laneNotes.ts"
import { decodeNote, type Note } from "./note.ts"
import { OffsetMap } from "./offsetMap.ts"

/** Fewer where the cluster has fewer brokers. */
const REPLICAS = 3

export const offsetsTopicName = (flow: string): string => flowTopicName("__onceover_offsets_", flow)

const OFFSET_OUT_OF_RANGE = 1
const READ_COMMITTED = 1
const MAX_WAIT_MS = 100
const MAX_BYTES = 4 * 1024 * 1024
const ADMIN_MS = 30_000
/** How long `read` waits for a transaction that is open. */
const PATIENCE_MS = 2_000
const SETTINGS = [
  { name: "cleanup.policy", value: "delete" },
  { name: "retention.ms", value: "-1" },
  { name: "retention.bytes", value: "-1" },
  { name: "unclean.leader.election.enable", value: "false" },
  { name: "message.timestamp.type", value: "LogAppendTime" }
]

const wait = { purpose: "offsets", timeoutMs: 2 * ADMIN_MS }

/** Null when the topic is there; else why it cannot be. */
export const ensureOffsetsTopic = (cluster: Cluster, flow: string): Effect.Effect<string | null, WireError> =>
  ensureSmallTopic(cluster, offsetsTopicName(flow), REPLICAS, SETTINGS)

export interface OffsetsTopic {
  readonly name: string
  readonly map: OffsetMap
  /** false: the notes of an open transaction are still to come, and with them perhaps others. */
  readonly read: Effect.Effect<boolean, WireError>
  /** Bytes of notes that were read since the last fold, and of that. */
  readonly weight: () => { readonly unfolded: number; readonly folded: number }
  /** Writes the map as it is, and deletes the notes that it is made of. What was not read is left alone. */
  readonly fold: Effect.Effect<void, WireError>
  readonly append: (notes: ReadonlyArray<Note>) => Effect.Effect<void, WireError>
  /** Whether anything was ever written to it. */
  readonly isNew: Effect.Effect<boolean, WireError>
}

/** Runs of one note; a batch of it stays well below what every topic takes. */
const RUNS_PER_NOTE = 20_000

/** A map as notes that fit into batches. */
export const foldedNotes = (map: OffsetMap): ReadonlyArray<Note> =>
  map.notes.flatMap(({ clusterId, slots }) =>
    slots.flatMap(({ covered, partition, places, topicId }): ReadonlyArray<Note> => {
      const empty: Note = { clusterId, slots: [{ topicId, partition, covered, places: [] }] }
      const parts = places.flatMap((place) => {
        const notes: Array<Note> = []
        for (let at = 0; at < place.runs.length; at += RUNS_PER_NOTE) {
          const runs = place.runs.slice(at, at + RUNS_PER_NOTE)
          notes.push({ clusterId, slots: [{ topicId, partition, covered: [], places: [{ ...place, runs }] }] })
        }
        return notes
      })
      return [empty, ...parts]
    })
  )

const decodeAll = (name: string, batches: ReadonlyArray<BatchView>, from: number) =>
  Effect.try({
    try: () =>
      batches.flatMap((view) =>
        decodeRecords(view).flatMap(({ offset, value }) =>
          value === null || offset < from ? [] : [{ note: decodeNote(value), bytes: value.length }]
        )
      ),
    catch: (cause) =>
      cause instanceof ProtocolError
        ? new ProtocolError({ what: `${name}: ${cause.what}` })
        : new ProtocolError({ what: String(cause) })
  })

class Keeper implements OffsetsTopic {
  readonly name: string
  readonly #cluster: Cluster
  readonly #producer: Producer
  #map: OffsetMap
  #id = ""
  #next = -1
  readonly #one = Semaphore.makeUnsafe(1)
  #unfolded = 0
  #folded = 0

  constructor(cluster: Cluster, flow: string, sourceId: string, producer: Producer) {
    this.#cluster = cluster
    this.#producer = producer
    this.#map = new OffsetMap(sourceId)
    this.name = offsetsTopicName(flow)
  }

  get map(): OffsetMap {
    return this.#map
  }
  readonly weight = () => ({ unfolded: this.#unfolded, folded: this.#folded })

  #retrying<A>(effect: Effect.Effect<A, WireError>): Effect.Effect<A, WireError> {
    return this.#cluster.retrying(effect, { topic: this.name })
  }

  #refused(api: string, code: number): BrokerError {
    return new BrokerError({ api, code, subject: this.name, detail: null })
  }

  get #leader() {
    return Effect.map(this.#cluster.leader(this.name, 0), ({ leader }) => ({ kind: "broker", id: leader }) as const)
  }

  #offset(timestamp: number): Effect.Effect<number, WireError> {
    return this.#retrying(Effect.gen({ self: this }, function*() {
      const answer = yield* this.#cluster.request(yield* this.#leader, listOffsets, {
        replicaId: -1,
        isolationLevel: 0,
        topics: [{ name: this.name, partitions: [{ partitionIndex: 0, timestamp }] }]
      }, wait)
      const found = answer.topics[0]?.partitions[0]
      if (found?.errorCode !== 0) return yield* this.#refused("ListOffsets", found?.errorCode ?? -1)
      return found.offset
    }))
  }

  get isNew(): Effect.Effect<boolean, WireError> {
    return Effect.map(this.#offset(LATEST), (end) => end === 0)
  }

  /** One fetch; false when nothing came. */
  get #fetch(): Effect.Effect<boolean, WireError> {
    return this.#retrying(Effect.gen({ self: this }, function*() {
      const partitions = [{ partition: 0, fetchOffset: this.#next, partitionMaxBytes: MAX_BYTES }]
      const answer = yield* this.#cluster.request(yield* this.#leader, fetch, {
        maxWaitMs: MAX_WAIT_MS,
        minBytes: 1,
        maxBytes: MAX_BYTES,
        isolationLevel: READ_COMMITTED,
        topics: [{ topic: this.name, topicId: this.#id, partitions }]
      }, wait)
      if (answer.errorCode !== 0) return yield* this.#refused("Fetch", answer.errorCode)
      const found = answer.responses[0]?.partitions[0]
      if (found?.errorCode === OFFSET_OUT_OF_RANGE) {
        // Folded past us: what is gone is in the fold, and adding it again does no harm.
        this.#next = yield* this.#offset(EARLIEST)
        return true
      }
      if (found?.errorCode !== 0) return yield* this.#refused("Fetch", found?.errorCode ?? -1)
      const before = this.#next
      const visible = yield* Effect.try({
        try: () =>
          visibleBatches(
            found.records === null ? [] : splitBatches(found.records),
            found.abortedTransactions ?? [],
            before,
            true
          ),
        catch: (cause) => cause instanceof ProtocolError ? cause : new ProtocolError({ what: String(cause) })
      })
      for (const { bytes, note } of yield* decodeAll(this.name, visible.batches, before)) {
        this.#map.add(note)
        this.#unfolded += bytes
      }
      this.#next = visible.next
      return visible.next > before
    }))
  }

  get read(): Effect.Effect<boolean, WireError> {
    return this.#one.withPermit(this.#read)
  }

  get #read(): Effect.Effect<boolean, WireError> {
    return Effect.gen({ self: this }, function*() {
      const { id } = (yield* findTopic(this.#cluster, this.name)) ?? { id: "" }
      if (id !== this.#id || this.#next < 0) {
        this.#map = new OffsetMap(this.#map.clusterId)
        this.#id = id
        this.#next = yield* this.#offset(EARLIEST)
      }
      const end = yield* this.#offset(LATEST)
      let idleSince: number | null = null
      while (this.#next < end) {
        if (yield* this.#fetch) {
          idleSince = null
          continue
        }
        const now = yield* nowMs
        idleSince ??= now
        if (now - idleSince > PATIENCE_MS) return false
      }
      return true
    })
  }

  append(notes: ReadonlyArray<Note>): Effect.Effect<void, WireError> {
    return Effect.gen({ self: this }, function*() {
      for (const note of notes) {
        const outcomes = yield* Effect.timeout(this.#producer.produce([noteBatch(this.name, [note])]), ADMIN_MS).pipe(
          Effect.mapError((error) => new ProtocolError({ what: `${this.name} cannot be written: ${error.message}` }))
        )
        const refused = outcomes.find((outcome) => !outcome.ok)
        if (refused?.ok === false) {
          return yield* new ProtocolError({ what: `${this.name} cannot be written: ${refused.error.message}` })
        }
      }
    })
  }

  get fold(): Effect.Effect<void, WireError> {
    return this.#one.withPermit(this.#fold)
  }

  get #fold(): Effect.Effect<void, WireError> {
    return Effect.gen({ self: this }, function*() {
      // Everything below is decided, and in the map.
      const below = this.#next
      yield* this.append(foldedNotes(this.#map))
      const answer = yield* this.#retrying(Effect.gen({ self: this }, function*() {
        return yield* this.#cluster.request(yield* this.#leader, deleteRecords, {
          topics: [{ name: this.name, partitions: [{ partitionIndex: 0, offset: below }] }],
          timeoutMs: ADMIN_MS
        }, wait)
      }))
      const code = answer.topics[0]?.partitions[0]?.errorCode ?? 0
      if (code !== 0 && code !== OFFSET_OUT_OF_RANGE) return yield* this.#refused("DeleteRecords", code)
      const before = this.#unfolded
      yield* this.#read
      this.#folded = this.#unfolded - before
      this.#unfolded = 0
    })
  }
}

/** `sourceId`: the source cluster's id. The topic must be there. */
export const openOffsetsTopic = (
  cluster: Cluster,
  flow: string,
  sourceId: string
): Effect.Effect<OffsetsTopic, never, Scope.Scope> =>
  Effect.gen(function*() {
    const producer = yield* makeProducer({ cluster, purpose: `offsets-${flow}` })
    return new Keeper(cluster, flow, sourceId, producer)
  })
