/**
 * A share group (KIP-932) as the source of a lane. Deliveries are what the brokers gave under acquisition locks;
 * settlements are acknowledgements. Locks of what is not settled are renewed by the consumer.
 */
import { Effect, type Scope } from "effect"
import {
  type Acquired,
  type AckResult,
  makeShareConsumer,
  type ShareConsumer,
  type ShareConsumerSettings,
  type ShareEvent
} from "../../share/consumer.ts"
import type { ShareError } from "../../share/errors.ts"
import type { WireError } from "../../wire/errors.ts"
import { overlaps } from "../../wire/ranges.ts"
import { type BatchView, splitBatches } from "../../wire/batch/recordBatch.ts"
import { ProtocolError } from "../../wire/bytes.ts"
import { type Delivery, deliveredBatches, type Settled, type Settlement, type Source } from "../delivery.ts"

export interface ShareSourceOptions {
  readonly consumer: ShareConsumerSettings
  readonly maxWaitMs: number
  readonly maxBytes: number
  readonly maxRecords: number
  readonly deliveryLimit: number
  readonly onEvent: (event: ShareEvent) => void
}

/**
 * The batches, or why the bytes cannot be understood. A broker acquires whole batches only, and an offset without a
 * batch counts as a gap: where the bytes end in a cut batch before what was acquired does, that would be a loss.
 */
const batchesOf = ({ ranges, records }: Acquired): ReadonlyArray<BatchView> | string => {
  try {
    const views = splitBatches(records)
    const last = views.at(-1)
    const cut = records.length > views.reduce((sum, view) => sum + view.sizeInBytes, 0)
    const end = last === undefined ? ranges[0]?.first ?? 0 : last.lastOffset + 1
    if (cut && (ranges.at(-1)?.last ?? -1) >= end) return `the broker's bytes end before offset ${end}`
    return views
  } catch (error) {
    if (error instanceof ProtocolError) return error.what
    throw error
  }
}

/** Control batches hold no records: their offsets are acknowledged as gaps (copy.ts does, for offsets without a data batch). */
const toDelivery = (acquired: Acquired): Delivery => {
  const found = batchesOf(acquired)
  acquired.dropRecords()
  const readable = typeof found !== "string"
  return {
    topic: acquired.topic,
    topicId: acquired.topicId,
    partition: acquired.partition,
    ranges: acquired.ranges,
    batches: readable ? deliveredBatches(found.filter((batch) => !batch.isControl)) : [],
    ...(readable ? {} : { unreadable: found }),
    acquiredAtMs: acquired.acquiredAtMs,
    lockTimeoutMs: acquired.lockTimeoutMs,
    token: acquired
  }
}

/** What the brokers' words add up to. */
export const settledBy = (results: ReadonlyArray<AckResult>): Settled => {
  let confirmed = 0
  let refused = 0
  let reason: string | null = null
  for (const result of results) {
    const count = result.last - result.first + 1
    if (result.outcome === "done") confirmed += count
    else {
      refused += count
      reason ??= result.why
    }
  }
  return { confirmed, refused, reason }
}

/** Between two tries of an acknowledgement that the broker does not take now, milliseconds: doubling, with this floor and ceiling. */
const AGAIN_FLOOR_MS = 500
const AGAIN_CEILING_MS = 15_000

/**
 * Acknowledges until each offset is decided or lost. What a broker refuses and leaves locked (the group's state cannot
 * be written, a right is missing) would else stay ours, renewed and never said again, for as long as this process runs.
 */
const acknowledged = (
  consumer: ShareConsumer,
  acquired: Acquired,
  settlements: ReadonlyArray<Settlement>,
  onEvent: ShareSourceOptions["onEvent"]
): Effect.Effect<ReadonlyArray<AckResult>> =>
  Effect.gen(function*() {
    const decided: Array<AckResult> = []
    let open: ReadonlyArray<Settlement> = settlements
    for (let waitMs = AGAIN_FLOOR_MS;; waitMs = Math.min(2 * waitMs, AGAIN_CEILING_MS)) {
      const results = yield* consumer.acknowledge(acquired, open)
      decided.push(...results.filter(({ held }) => !held))
      const [first, ...others] = results.filter(({ held }) => held)
      if (first === undefined) return decided
      if (open === settlements) {
        const { partition, topic } = acquired
        onEvent({
          kind: "acknowledgementWaits",
          topic,
          partition,
          records: count([first, ...others]),
          why: first.why
        })
      }
      open = [first, ...others]
      yield* Effect.sleep(waitMs)
    }
  })

const count = (settlements: ReadonlyArray<Settlement>): number =>
  settlements.reduce((sum, s) => sum + s.last - s.first + 1, 0)

export const makeShareSource = (
  options: ShareSourceOptions
): Effect.Effect<Source<ShareError | WireError>, ShareError | WireError, Scope.Scope> =>
  Effect.gen(function*() {
    const implicit = options.consumer.mode === "implicit"
    const consumer = yield* makeShareConsumer({ ...options.consumer, onEvent: options.onEvent })
    const { maxBytes, maxRecords } = options
    const pollWithin = (maxWaitMs: number) =>
      Effect.map(consumer.poll({ maxWaitMs, maxBytes, maxRecords }), (acquired) => acquired.map(toDelivery))
    return {
      mode: "share",
      poll: pollWithin(options.maxWaitMs),
      // In implicit mode a poll accepts what the one before it gave.
      ...(implicit ? {} : { pollWithin }),
      settle: (delivery, settlements) => {
        const acquired = delivery.token as Acquired
        if (!implicit) return Effect.map(acknowledged(consumer, acquired, settlements, options.onEvent), settledBy)
        // The next poll accepts all of this delivery that is still held: what is not to be accepted is said before.
        const said = settlements.filter((settlement) => settlement.type !== "accept")
        const accepted = count(settlements) - count(said)
        if (said.length === 0) return Effect.succeed({ confirmed: accepted, refused: 0, reason: null })
        return Effect.map(acknowledged(consumer, acquired, said, options.onEvent), (results) => {
          const settled = settledBy(results)
          return { ...settled, confirmed: settled.confirmed + accepted }
        })
      },
      pause: (topic, partition) => consumer.rest(topic, partition, true),
      resume: (topic, partition) => consumer.rest(topic, partition, false),
      subscribe: consumer.subscribe,
      forget: (delivery, ranges) => consumer.forget(delivery.token as Acquired, ranges),
      member: () => ({ groupId: consumer.groupId, memberId: consumer.memberId, memberEpoch: consumer.memberEpoch() }),
      owns: (delivery) => {
        const { held } = delivery.token as Acquired
        return delivery.ranges.some((range) => overlaps(held, range))
      },
      pollsWhileHolding: !implicit,
      // Implicit mode cannot give a record back: the next poll would accept it. So it is held and tried here.
      deliveryLimit: implicit ? 0 : options.deliveryLimit
    }
  })
