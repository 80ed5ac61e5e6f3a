/**
 * A member of a consumer group for tests: reads what it is given into a list, as a pipeline would, and confirms it,
 * or not, as the test says. Promises outside, Effects inside.
 */
import RdKafka from "@confluentinc/kafka-javascript"
import { assert } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import type { GapError } from "../../src/group/errors.ts"
import {
  type GroupConsumer,
  type GroupConsumerOptions,
  makeGroupConsumer,
  type PartitionView
} from "../../src/group/groupConsumer.ts"
import type { Fetched } from "../../src/group/shared.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import type { ClientSettings } from "../../src/wire/settings.ts"
import type { Bootstrap } from "../kit/loader.ts"
import { call, connect, disconnect, KafkaConsumer } from "../kit/rdkafka.ts"
import { until } from "../kit/until.ts"

export interface SeenRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly generation: number
  readonly value: string
}

export interface MemberOptions {
  readonly group: string
  readonly topics: ReadonlyArray<string>
  readonly protocol?: GroupConsumerOptions["protocol"]
  readonly settings?: ClientSettings
  readonly onSourceGap?: "fail" | "continue"
  readonly onRevoke?: (
    member: Member,
    partitions: ReadonlyArray<{ readonly topic: string; readonly partition: number }>
  ) => Effect.Effect<void>
  /** Whether what was read is confirmed at once. Default true. */
  readonly confirm?: boolean
  readonly refreshTopicsMs?: number
}

export interface Member {
  readonly consumer: GroupConsumer
  readonly seen: Array<SeenRecord>
  readonly pieces: Array<Fetched>
  readonly gaps: Array<GapError>
  /** What was confirmed to the consumer: partition key -> offset. */
  readonly confirmed: Map<string, number>
  /** What ended the reading; null while it goes on. */
  readonly failure: () => unknown
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  readonly partitions: () => Promise<ReadonlyArray<PartitionView>>
  /** Waits until it has exactly these many partitions, all ready or stopped. */
  readonly owns: (count: number) => Promise<ReadonlyArray<PartitionView>>
  readonly sees: (count: number) => Promise<void>
  readonly stopReading: () => Promise<void>
  readonly close: () => Promise<void>
}

const readInto = (member: Member, piece: Fetched): void => {
  member.pieces.push(piece)
  for (const batch of piece.batches) {
    for (const record of decodeRecords(batch)) {
      if (record.offset < piece.first) continue
      member.seen.push({
        topic: piece.topic,
        partition: piece.partition,
        offset: record.offset,
        generation: piece.generation,
        value: String(record.value)
      })
    }
  }
}

export const confirmPieces = (member: Member, pieces: ReadonlyArray<Fetched>): Effect.Effect<number> => {
  for (const { next, partition, topic } of pieces) member.confirmed.set(`${topic}-${partition}`, next)
  return member.consumer.commit(
    pieces.map(({ generation, leaderEpoch, next, partition, topic }) => ({
      topic,
      partition,
      offset: next,
      leaderEpoch,
      generation
    }))
  )
}

export const joinGroup = async (cluster: Bootstrap, options: MemberOptions): Promise<Member> => {
  const scope = Scope.makeUnsafe()
  const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)
  const settings: ClientSettings = {
    "bootstrap.servers": cluster.bootstrap,
    "fetch.max.wait.ms": 100,
    ...options.settings
  }
  const gaps: Array<GapError> = []
  let member: Member
  const consumer = await run(
    Effect.gen(function*() {
      const wire = yield* makeCluster("source", settings)
      return yield* makeGroupConsumer({
        cluster: wire,
        settings,
        groupId: options.group,
        protocol: options.protocol ?? "classic",
        onSourceGap: options.onSourceGap ?? "fail",
        name: "test",
        onGap: (gap) => void gaps.push(gap),
        onRevoke: (partitions) => Effect.suspend(() => options.onRevoke?.(member, partitions) ?? Effect.void),
        commitIntervalMs: 100,
        refreshTopicsMs: options.refreshTopicsMs ?? 500
      })
    }).pipe(Scope.provide(scope))
  )
  let failure: unknown = null
  const partitions = () => run(consumer.partitions)
  const reading = consumer.poll({ maxWaitMs: 1_000, maxBytes: 1_000_000 }).pipe(
    Effect.tap((pieces) => Effect.sync(() => pieces.forEach((piece) => readInto(member, piece)))),
    Effect.tap((pieces) => options.confirm === false ? Effect.void : confirmPieces(member, pieces)),
    Effect.forever,
    Effect.tapError((error) => Effect.sync(() => void (failure = error)))
  )
  member = {
    consumer,
    seen: [],
    pieces: [],
    gaps,
    confirmed: new Map(),
    failure: () => failure,
    run,
    partitions,
    owns: async (count) => {
      let last: ReadonlyArray<PartitionView> = []
      await until(async () => {
        last = await partitions()
        return last.length === count && last.every(({ stage }) => stage === "ready" || stage === "stopped")
      }, { what: () => `${count} partitions, has ${JSON.stringify(last)}, failure ${String(failure)}` })
      return last
    },
    sees: (count) =>
      until(() => member.seen.length >= count, {
        what: () => `${count} records, has ${member.seen.length}, failure ${String(failure)}`
      }).then(() => {}),
    stopReading: async () => void (await run(Fiber.interrupt(fiber))),
    close: async () => {
      await run(Fiber.interrupt(fiber))
      await run(Scope.close(scope, Exit.void))
    }
  }
  await run(consumer.subscribe(options.topics))
  const fiber = Effect.runFork(reading)
  return member
}

/** What the group's coordinator has, asked by a client that is not ours; -1 for none. By partition number. */
export const committedOffsets = async (
  cluster: Bootstrap,
  group: string,
  topic: string,
  partitions: number
): Promise<ReadonlyArray<number>> => {
  const consumer = new KafkaConsumer({ "bootstrap.servers": cluster.bootstrap, "group.id": group } as never, {})
  await connect(consumer)
  try {
    const asked = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }))
    const found = await call<ReadonlyArray<{ partition: number; offset?: number }>>(
      "committed",
      (done) => consumer.committed(asked, 10_000, done as never)
    )
    return found.toSorted((a, b) => a.partition - b.partition).map(({ offset }) =>
      offset === undefined || offset < 0 ? -1 : offset
    )
  } finally {
    await disconnect(consumer)
  }
}

/** Offsets ascend within each partition and generation, as they were given out. */
export const assertInOrder = (seen: ReadonlyArray<SeenRecord>): void => {
  const last = new Map<number, SeenRecord>()
  for (const record of seen) {
    const before = last.get(record.partition)
    if (before?.generation === record.generation) {
      assert.isAbove(record.offset, before.offset, `partition ${record.partition}`)
    }
    last.set(record.partition, record)
  }
}

/** Members of a group, as its coordinator says. */
export const memberCount = async (cluster: Bootstrap, group: string): Promise<number> => {
  const admin = RdKafka.AdminClient.create({ "bootstrap.servers": cluster.bootstrap } as never)
  try {
    const found = await call<{ groups: ReadonlyArray<{ members: ReadonlyArray<unknown> }> }>(
      "describe",
      (done) => admin.describeGroups([group], { timeout: 10_000 }, done as never)
    )
    return found.groups[0]?.members.length ?? 0
  } finally {
    admin.disconnect()
  }
}

/** Sets the offset of partition 0 of a group without members, as an operator would. */
export const commitByHand = async (cluster: Bootstrap, group: string, topic: string, offset: number): Promise<void> => {
  let committed: unknown = null
  const consumer = new KafkaConsumer(
    { "bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": false } as never,
    {}
  )
  await connect(consumer)
  try {
    consumer.commitSync([{ topic, partition: 0, offset }])
    committed = (await committedOffsets(cluster, group, topic, 1))[0]
  } finally {
    await disconnect(consumer)
  }
  assert.strictEqual(committed, offset)
}
