/**
 * A producer of raw record batches: idempotent, acks=all, five produce requests in flight a broker, one batch of a
 * partition in a request. Batches of a partition get into its log in the order of the calls, once each, through lost
 * requests, lost answers and leaders that move.
 *
 * Without a transactional id each partition has its own epoch of the producer id: a broker keeps a producer's state
 * per partition, so a partition whose numbers have a hole goes on under the next epoch alone, without asking anybody
 * and without holding up the others (Kafka's Java client bumps the epoch locally too, KIP-360, but for all of them).
 *
 * What is not promised: after an interruption or a delivery timeout a batch may be in the log although its outcome
 * says "unknown"; sending it again can then put it there twice. That is what transactions are for.
 */
import { Effect, type Scope, Semaphore } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import { drive } from "./drive.ts"
import { type Partition, Partitions } from "./partitions.ts"
import type { ProducerError } from "./produceErrors.ts"
import type { Outgoing, ProduceOutcome } from "./produceRun.ts"
import { defaultProducerSettings, type ProducerSettings } from "./producerSettings.ts"
import { Routes } from "./routes.ts"
import type { Identity } from "./sequences.ts"

/** A partition that stands still, and why, for people. */
export interface Stall {
  readonly topic: string
  readonly partition: number
  readonly reason: string
  /** Monotonic time, milliseconds. */
  readonly sinceMs: number
}

export interface Producer {
  /**
   * Writes the batches and gives one outcome each, in their order. Calls run one after the other. Waits for a target
   * that is down (deliveryTimeoutMs, Infinity by default) and may be interrupted at any time; then what was in flight
   * may or may not be in the log.
   */
  readonly produce: (batches: ReadonlyArray<Outgoing>) => Effect.Effect<ReadonlyArray<ProduceOutcome>, ProducerError>
  /** Partitions that stand still now. */
  readonly stalls: Effect.Effect<ReadonlyArray<Stall>>
}

export interface ProducerOptions {
  readonly cluster: Cluster
  /** Names the connections: producers with different purposes never wait for each other. */
  readonly purpose: string
  readonly settings?: Partial<ProducerSettings>
  /** Called when a partition fails for the second time in a row, and with every later reason. */
  readonly onStall?: (stall: Stall) => void
  /** Called when it moves again (`taken`), and when nothing waits for it any more. */
  readonly onRecover?: (topic: string, partition: number, taken: boolean) => void
  /**
   * Transactions only: called with the reason when the coordinator has been asked in vain for some seconds, now and then
   * with a later one, and with null when it answers.
   */
  readonly onWaiting?: (reason: string | null) => void
}

/** A producer without transactions. Asks for its producer id with the first call, so it starts while the target is down. */
export const makeProducer = (options: ProducerOptions): Effect.Effect<Producer, never, Scope.Scope> =>
  Effect.gen(function*() {
    const settings: ProducerSettings = { ...defaultProducerSettings, ...options.settings }
    const partitions = new Partitions({ mayRestart: true })
    const routes = new Routes()
    const oneAtATime = yield* Semaphore.make(1)
    const identity: { current: Identity | null } = { current: null }
    const stalls = new Map<string, Stall>()
    yield* Effect.addFinalizer(() => options.cluster.release(options.purpose))

    const note = stallNotes(options, stalls)
    const produceAll = (batches: ReadonlyArray<Outgoing>) =>
      drive({
        cluster: options.cluster,
        purpose: options.purpose,
        settings,
        routes,
        partitions,
        identity,
        transactionalId: null,
        zeroFirst: false,
        versions: {},
        ...note
      }, batches)
    return {
      produce: (batches) => batches.length === 0 ? Effect.succeed([]) : oneAtATime.withPermit(produceAll(batches)),
      stalls: Effect.sync(() => [...stalls.values()])
    }
  })

/** Keeps what stands still, and tells whoever wants to know. */
export const stallNotes = (options: Pick<ProducerOptions, "onStall" | "onRecover">, stalls: Map<string, Stall>) => ({
  onStall: (p: Partition, reason: string, now: number): void => {
    p.stalledSince ??= now
    const stall = { topic: p.topic, partition: p.partition, reason, sinceMs: p.stalledSince }
    stalls.set(p.key, stall)
    options.onStall?.(stall)
  },
  onRecover: (p: Partition): void => {
    stalls.delete(p.key)
    options.onRecover?.(p.topic, p.partition, true)
  },
  /** Nobody waits for any of these any more, be it that they would take something or not. */
  giveUp: (partitions: Iterable<Partition>): void => {
    for (const p of partitions) {
      if (!p.givenUp()) continue
      stalls.delete(p.key)
      options.onRecover?.(p.topic, p.partition, false)
    }
  }
})
