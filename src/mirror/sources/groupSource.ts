/**
 * A consumer group as the source of a lane. Order is kept: what is settled moves the position over the part that
 * has no hole, and that position is committed.
 */
import { Effect, type Scope } from "effect"
import {
  type GroupConsumer,
  type GroupConsumerOptions,
  type GroupError,
  makeGroupConsumer,
  type PartitionView
} from "../../group/groupConsumer.ts"
import type { Fetched } from "../../group/shared.ts"
import type { TopicPartition } from "../../group/position.ts"
import type { SettingsError } from "../../wire/settings.ts"
import type { GapError } from "../../group/errors.ts"
import { rangeSet, type RangeSet, union } from "../../wire/ranges.ts"
import { type Delivery, deliveredBatches, type Settled, type Settlement, type Source } from "../delivery.ts"

export interface GroupSourceOptions {
  readonly consumer: Omit<GroupConsumerOptions, "onRevoke" | "onLost">
  readonly maxWaitMs: number
  readonly maxBytes: number
  readonly topics: ReadonlyArray<string>
  /** Partitions came or went; for the partition count. */
  readonly onForget: (partitions: ReadonlyArray<TopicPartition>) => void
  /** A partition stands still, and why; `gap`: because of this one. null: it goes on. Called when that changes. */
  readonly onTrouble: (at: TopicPartition, reason: string | null, gap: GapError | null) => void
  readonly nowMs: () => number
}

/** A piece that was given out: what of it is settled. */
interface Piece {
  readonly fetched: Fetched
  settled: RangeSet
}

interface Flight {
  readonly generation: number
  readonly pieces: Array<Piece>
  paused: boolean
}

const keyOf = (at: TopicPartition): string => `${at.topic}-${at.partition}`

/** The pieces of each partition that are not settled whole yet, in order. Pure. */
export class Flights {
  readonly #flights = new Map<string, Flight>()

  add(fetched: Fetched): Piece {
    const key = keyOf(fetched)
    let flight = this.#flights.get(key)
    if (flight === undefined || flight.generation !== fetched.generation) {
      flight = { generation: fetched.generation, pieces: [], paused: false }
      this.#flights.set(key, flight)
    }
    const piece: Piece = { fetched, settled: [] }
    flight.pieces.push(piece)
    return piece
  }

  owns(piece: Piece): boolean {
    return this.#flights.get(keyOf(piece.fetched))?.pieces.includes(piece) === true
  }

  /** The position that may be committed after a settlement: the end of the settled part without a hole; null when it does not move. */
  settle(
    piece: Piece,
    settlements: ReadonlyArray<Settlement>
  ): { readonly offset: number; readonly leaderEpoch: number } | null {
    piece.settled = union(piece.settled, rangeSet(settlements))
    const flight = this.#flights.get(keyOf(piece.fetched))
    if (flight === undefined || flight.pieces[0] !== piece) return null
    let offset: number | null = null
    let leaderEpoch = -1
    for (let head = flight.pieces[0]; head !== undefined; head = flight.pieces[0]) {
      const { first, next } = head.fetched
      const done = head.settled[0]
      leaderEpoch = head.fetched.leaderEpoch
      if (first === next || (done !== undefined && done.first <= first && done.last >= next - 1)) {
        offset = next
        flight.pieces.shift()
        // All of it is on the target, or was given up: nobody looks at its bytes again.
        for (const lease of head.fetched.leases ?? []) lease.letGo()
        continue
      }
      if (done !== undefined && done.first <= first) offset = done.last + 1
      break
    }
    return offset === null ? null : { offset, leaderEpoch }
  }

  setPaused(at: TopicPartition, paused: boolean): void {
    const flight = this.#flights.get(keyOf(at))
    if (flight !== undefined) flight.paused = paused
  }

  forget(partitions: ReadonlyArray<TopicPartition>): void {
    for (const at of partitions) this.#flights.delete(keyOf(at))
  }

  /** Whether anything of these is being written now; what is blocked (paused) does not count: it would not end. */
  busy(partitions: ReadonlyArray<TopicPartition>): boolean {
    return partitions.some((at) => {
      const flight = this.#flights.get(keyOf(at))
      return flight !== undefined && !flight.paused && flight.pieces.length > 0
    })
  }
}

const WATCH_INTERVAL = "1 second"
/** Looks in a row that find a partition waiting before that is worth a word: leaders move every day. */
const PATIENCE = 3

/** Tells which partitions stand still. What needs a person is told at once, passing trouble when it does not pass. */
const watchTrouble = (consumer: GroupConsumer, onTrouble: GroupSourceOptions["onTrouble"]): Effect.Effect<never> => {
  const waits = new Map<string, number>()
  const told = new Map<string, string>()
  const look = (state: PartitionView): void => {
    const key = keyOf(state)
    const times = state.waiting === null ? 0 : (waits.get(key) ?? 0) + 1
    waits.set(key, times)
    const reason = state.problem?.message ?? (times >= PATIENCE ? state.waiting : null)
    if (reason === (told.get(key) ?? null)) return
    if (reason === null) told.delete(key)
    else told.set(key, reason)
    onTrouble(state, reason, state.problem?._tag === "GapError" ? state.problem : null)
  }
  return consumer.partitions.pipe(
    Effect.map((states) => states.forEach(look)),
    Effect.andThen(Effect.sleep(WATCH_INTERVAL)),
    Effect.forever
  )
}

export const makeGroupSource = (
  options: GroupSourceOptions
): Effect.Effect<Source<GroupError>, GroupError | SettingsError, Scope.Scope> =>
  Effect.gen(function*() {
    const flights = new Flights()
    let waiting = 0
    // The lane's round ends by itself; the consumer bounds this wait.
    const finished = (partitions: ReadonlyArray<TopicPartition>) =>
      Effect.gen(function*() {
        waiting++
        while (flights.busy(partitions)) yield* Effect.sleep("10 millis")
      }).pipe(Effect.ensuring(Effect.sync(() => {
        waiting--
        flights.forget(partitions)
        options.onForget(partitions)
      })))
    const lost = (partitions: ReadonlyArray<TopicPartition>) =>
      Effect.sync(() => {
        flights.forget(partitions)
        options.onForget(partitions)
      })
    const consumer = yield* makeGroupConsumer({ ...options.consumer, onRevoke: finished, onLost: lost })
    yield* consumer.subscribe(options.topics)
    yield* Effect.forkScoped(watchTrouble(consumer, options.onTrouble))

    const toDelivery = (fetched: Fetched): Delivery => ({
      topic: fetched.topic,
      topicId: fetched.topicId,
      partition: fetched.partition,
      ranges: [{ first: fetched.first, last: fetched.next - 1, deliveryCount: 1 }],
      batches: deliveredBatches(fetched.batches),
      acquiredAtMs: options.nowMs(),
      token: flights.add(fetched)
    })

    /** In order. A gap that was gone over has nothing to write: its position is committed once all before it is settled. */
    const deliver = (pieces: ReadonlyArray<Fetched>): Effect.Effect<ReadonlyArray<Delivery>> => {
      const deliveries: Array<Delivery> = []
      const passed: Array<Parameters<typeof consumer.commit>[0][number]> = []
      for (const fetched of pieces) {
        if (fetched.next > fetched.first) {
          deliveries.push(toDelivery(fetched))
          continue
        }
        const { generation, partition, topic } = fetched
        const position = flights.settle(flights.add(fetched), [])
        if (position !== null) passed.push({ topic, partition, generation, ...position })
      }
      return Effect.as(consumer.commit(passed), deliveries)
    }

    const settle = (delivery: Delivery, settlements: ReadonlyArray<Settlement>): Effect.Effect<Settled> =>
      Effect.gen(function*() {
        const piece = delivery.token as Piece
        const count = settlements.reduce((sum, s) => sum + s.last - s.first + 1, 0)
        const { generation, partition, topic } = piece.fetched
        if (!flights.owns(piece)) {
          return { confirmed: 0, refused: count, reason: "the partition is another member's now" }
        }
        const position = flights.settle(piece, settlements)
        if (position !== null) yield* consumer.commit([{ topic, partition, generation, ...position }])
        return { confirmed: count, refused: 0, reason: null }
      })

    const pollWithin = (maxWaitMs: number) =>
      Effect.flatMap(consumer.poll({ maxWaitMs, maxBytes: options.maxBytes }), deliver)

    return {
      mode: "consumer",
      poll: pollWithin(options.maxWaitMs),
      pollWithin,
      hurried: () => waiting > 0,
      settle,
      pause: (topic, partition) =>
        Effect.suspend(() => {
          flights.setPaused({ topic, partition }, true)
          return consumer.pause([{ topic, partition }])
        }),
      resume: (topic, partition) =>
        Effect.suspend(() => {
          flights.setPaused({ topic, partition }, false)
          return consumer.resume([{ topic, partition }])
        }),
      subscribe: consumer.subscribe,
      owns: (delivery) => flights.owns(delivery.token as Piece),
      pollsWhileHolding: true,
      deliveryLimit: Infinity
    }
  })
