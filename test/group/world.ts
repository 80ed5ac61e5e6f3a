/** A group consumer on a fake cluster and a fake group, with what it gave out; virtual time passes step by step. */
import { Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { GapError } from "../../src/group/errors.ts"
import { type GroupConsumer, type GroupConsumerOptions, makeGroupConsumer } from "../../src/group/groupConsumer.ts"
import { partitionKey, type TopicPartition } from "../../src/group/position.ts"
import type { Fetched } from "../../src/group/shared.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"
import { FakeCluster, type FakeOptions } from "./fakeCluster.ts"
import { FakeMembership } from "./fakeMembership.ts"

export interface World {
  readonly cluster: FakeCluster
  readonly group: FakeMembership
  readonly consumer: GroupConsumer
  readonly gaps: Array<GapError>
  /** Everything polled: values in order, per partition. */
  readonly seen: Map<string, Array<string>>
  readonly pieces: Array<Fetched>
}

export const at = (partition: number, topic = "t"): TopicPartition => ({ topic, partition })
export const valuesOf = (piece: Fetched): ReadonlyArray<string> =>
  piece.batches.flatMap((batch) =>
    decodeRecords(batch).filter(({ offset }) => offset >= piece.first).map(({ value }) => String(value))
  )

export const world = (
  fake: FakeOptions,
  options: Partial<GroupConsumerOptions> = {},
  prepare: (group: FakeMembership, cluster: FakeCluster) => void = () => {}
): Effect.Effect<World, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const cluster = new FakeCluster(fake)
    const group = new FakeMembership()
    const gaps: Array<GapError> = []
    prepare(group, cluster)
    const consumer = yield* makeGroupConsumer({
      cluster: cluster.port,
      settings: { "bootstrap.servers": "fake:1" },
      groupId: "g",
      protocol: "classic",
      onSourceGap: "fail",
      name: "lane",
      onGap: (gap) => void gaps.push(gap),
      membership: group.make,
      ...options
    })
    return { cluster, group, consumer, gaps, seen: new Map(), pieces: [] }
  })

/** Polls what is there into the world. */
export const drain = (w: World, maxBytes = 1_000_000) =>
  Effect.gen(function*() {
    const pieces = yield* w.consumer.poll({ maxWaitMs: 0, maxBytes })
    for (const piece of pieces) {
      w.pieces.push(piece)
      const list = w.seen.get(partitionKey(piece)) ?? []
      w.seen.set(partitionKey(piece), list)
      list.push(...valuesOf(piece))
    }
  })

/** Lets virtual time pass, step by step, until the condition holds. */
export const passUntil = <E = never>(condition: () => boolean, each: Effect.Effect<void, E> = Effect.void) =>
  Effect.gen(function*() {
    for (let i = 0; i < 2_000; i++) {
      yield* each
      if (condition()) return
      yield* TestClock.adjust("20 millis")
    }
    return yield* Effect.die(new Error("waited in vain"))
  })
export const reads = (w: World, key: string, count: number) =>
  passUntil(() => (w.seen.get(key)?.length ?? 0) >= count, drain(w))
export const confirmAll = (w: World) =>
  w.consumer.commit(
    w.pieces.map((p) => ({
      topic: p.topic,
      partition: p.partition,
      offset: p.next,
      leaderEpoch: p.leaderEpoch,
      generation: p.generation
    }))
  )
export const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `v${from + i}`)
export const viewOf = (w: World, key: string) =>
  Effect.map(w.consumer.partitions, (all) => all.find((p) => partitionKey(p) === key))
