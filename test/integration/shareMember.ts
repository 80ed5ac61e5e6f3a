/** A member of a share group for tests: a consumer, what happened to it, and waits for conditions. */
import { Clock, Effect } from "effect"
import {
  makeShareConsumer,
  type Acquired,
  type AckResult,
  type ShareConsumer,
  type ShareConsumerSettings,
  type ShareEvent
} from "../../src/share/consumer.ts"
import { prepareGroup } from "../../src/share/groupSettings.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { until } from "../kit/until.ts"

export const LIMITS = { maxWaitMs: 500, maxBytes: 10_000_000, maxRecords: 1000 } as const

export const connect = (bootstrap: string) => makeCluster("source", { "bootstrap.servers": bootstrap })

/** Settings as a mirror has them, and a lock as short as the test wants. */
export const prepare = (cluster: Cluster, groupId: string, lockMs = 30_000) =>
  prepareGroup({ cluster, groupId, overrides: { "share.record.lock.duration.ms": String(lockMs) } })

export interface Member extends ShareConsumer {
  readonly events: Array<ShareEvent>
}

export const member = (
  cluster: Cluster,
  groupId: string,
  topics: ReadonlyArray<string>,
  settings: Partial<ShareConsumerSettings> = {}
) =>
  Effect.gen(function*() {
    const events: Array<ShareEvent> = []
    const consumer = yield* makeShareConsumer({
      cluster,
      groupId,
      topics,
      mode: "explicit",
      onEvent: (event) => events.push(event),
      ...settings
    })
    return { ...consumer, events } satisfies Member
  })

/** Offsets of what was acquired: "partition:offset". */
export const offsetsOf = (acquired: ReadonlyArray<Acquired>): ReadonlyArray<string> =>
  acquired.flatMap((a) =>
    a.ranges.flatMap((r) => Array.from({ length: r.last - r.first + 1 }, (_, i) => `${a.partition}:${r.first + i}`))
  )

const BOUND_MS = 60_000

/** Polls until as many offsets have come. */
export const acquire = (consumer: ShareConsumer, count: number) =>
  Effect.gen(function*() {
    const got: Array<Acquired> = []
    const end = (yield* Clock.currentTimeMillis) + BOUND_MS
    while (offsetsOf(got).length < count) {
      got.push(...(yield* consumer.poll(LIMITS)))
      if ((yield* Clock.currentTimeMillis) > end) {
        return yield* Effect.die(
          new Error(`only ${offsetsOf(got).length} of ${count} records came within ${BOUND_MS} ms`)
        )
      }
    }
    return got
  })

export const acknowledgeAll = (
  consumer: ShareConsumer,
  acquired: ReadonlyArray<Acquired>,
  type: "accept" | "release" | "reject"
) =>
  Effect.map(
    Effect.forEach(acquired, (a) =>
      consumer.acknowledge(a, a.ranges.map((r) => ({ first: r.first, last: r.last, type }))), {
      concurrency: "unbounded"
    }),
    (results): ReadonlyArray<AckResult> =>
      results.flat()
  )

/** `until`, as an Effect. */
export const eventually = (condition: () => boolean, what: string): Effect.Effect<unknown> =>
  Effect.promise(() => until(condition, { what, timeoutMs: BOUND_MS, everyMs: 20 }))
