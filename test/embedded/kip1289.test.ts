/** KIP-1289 on the cluster in this process, both drafts: our share consumer, our binding, one transaction. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Embedded, type EmbeddedOptions, makeEmbedded } from "../../src/embedded/embedded.ts"
import { type Acquired, makeShareConsumer, type ShareConsumer } from "../../src/share/consumer.ts"
import type { ShareMember, StagedRange } from "../../src/txn/binding.ts"
import { kip1289 } from "../../src/txn/kip1289.ts"
import { defaultProducerSettings } from "../../src/txn/producerSettings.ts"
import { takeOver } from "../../src/txn/takeOver.ts"
import { encodeBatch } from "../../src/wire/batch/records.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { SHARE_FEATURE, txnShareAcknowledgeA, txnShareAcknowledgeB } from "../../src/wire/kip1289.ts"

const GROUP = "g"
const IN = "in"
const OUT = "out"
const ID = "lane-0"
const LIMITS = { maxWaitMs: 300, maxBytes: 1_000_000, maxRecords: 100 }

/** Runs an effect while time passes by itself, in small steps. */
const passing = <A, E, R>(effect: Effect.Effect<A, E, R>, stepMs = 50) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    for (let i = 0; i < 20_000 && fiber.pollUnsafe() === undefined; i++) yield* TestClock.adjust(stepMs)
    return yield* Fiber.join(fiber)
  })

const output = (partition: number, value: string) => ({
  topic: OUT,
  partition,
  bytes: encodeBatch([{ offset: 0, timestamp: 1n, key: null, value: Buffer.from(value), headers: [] }], {
    codec: "none"
  })
})

const staged = (acquired: ReadonlyArray<Acquired>, type: StagedRange["type"] = "accept"): ReadonlyArray<StagedRange> =>
  acquired.flatMap(({ partition, ranges, topic, topicId }) =>
    ranges.map(({ first, last }) => ({ topic, topicId, partition, first, last, type }))
  )

const offsets = (acquired: ReadonlyArray<Acquired>): ReadonlyArray<string> =>
  acquired.flatMap(({ partition, ranges }) =>
    ranges.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, n) => `${partition}:${first + n}`))
  ).toSorted()

/** Until so many have come. */
const acquire = (consumer: ShareConsumer, count: number) =>
  Effect.gen(function*() {
    const got: Array<Acquired> = []
    for (let n = 0; offsets(got).length < count; n++) {
      if (n > 200) throw new Error(`only ${offsets(got).join(" ")} of ${count} came`)
      got.push(...(yield* consumer.poll(LIMITS)))
    }
    return got
  })

const states = (embedded: Embedded, partition = 0): ReadonlyArray<string> =>
  embedded.sharePartition(GROUP, IN, partition)?.records.map(({ offset, state }) => `${offset} ${state}`) ?? []
const start = (embedded: Embedded, partition = 0): number => embedded.sharePartition(GROUP, IN, partition)?.start ?? -1

const worker = (embedded: Embedded, name = "worker", memberOf: (real: ShareMember) => ShareMember = (real) => real) =>
  Effect.gen(function*() {
    const cluster = yield* embedded.cluster(name)
    const consumer = yield* makeShareConsumer({ cluster, groupId: GROUP, topics: [IN], mode: "explicit" })
    const candidate = kip1289({ source: cluster, target: cluster, groupProtocol: "share", transactionalId: () => ID })
    const binding = yield* candidate.make({
      name: "0",
      member: () =>
        memberOf({
          groupId: GROUP,
          memberId: consumer.memberId,
          memberEpoch: [...embedded.state.shareGroups.get(GROUP)?.members.values() ?? []].find(({ id }) =>
            id === consumer.memberId
          )?.epoch ?? 0
        })
    })
    yield* binding.start
    return { consumer, binding, cluster }
  })

const setUp = (options: EmbeddedOptions, partitions = 1, each = 4) =>
  Effect.gen(function*() {
    const embedded = yield* makeEmbedded(options)
    embedded.createTopic(IN, { partitions })
    embedded.createTopic(OUT, { partitions })
    embedded.configure("group", GROUP, {
      "share.auto.offset.reset": "earliest",
      "share.isolation.level": "read_committed"
    })
    for (let p = 0; p < partitions; p++) {
      embedded.append(IN, p, Array.from({ length: each }, (_, n) => ({ value: `${p}:${n}` })))
    }
    return embedded
  })

/** An output, and what it stands for; not ended yet. */
const opened = (of: Effect.Success<ReturnType<typeof worker>>, ranges: ReadonlyArray<StagedRange>) =>
  Effect.gen(function*() {
    const transaction = yield* of.binding.begin
    yield* transaction.produce([output(0, "copy")])
    // As a lane does: from here on they are the transaction's.
    yield* transaction.stage(ranges, [])
    return transaction
  })

const reason = (source: Cluster, target: Cluster) =>
  Effect.map(
    kip1289({ source, target, groupProtocol: "share", transactionalId: () => ID }).support,
    (answer) => answer.supported ? "supported" : answer.reason
  )

for (const draft of ["A", "B"] as const) {
  describe(`KIP-1289, draft ${draft}`, () => {
    it.effect("a commit acknowledges, and not before its marker", () =>
      Effect.scoped(Effect.gen(function*() {
        const embedded = yield* setUp({ kip1289: draft, markerDelayMs: "manual" })
        const of = yield* passing(worker(embedded))
        const transaction = yield* passing(opened(of, staged(yield* passing(acquire(of.consumer, 4)))))
        assert.deepStrictEqual(yield* passing(transaction.commit), { kind: "committed" })
        assert.strictEqual(start(embedded), 0)
        embedded.releaseMarkers()
        assert.strictEqual(start(embedded), 4)
      })))

    it.effect("an abort makes the records come again, with their delivery counted", () =>
      Effect.scoped(Effect.gen(function*() {
        const embedded = yield* setUp({ kip1289: draft })
        const of = yield* passing(worker(embedded))
        const first = yield* passing(acquire(of.consumer, 4))
        const transaction = yield* passing(opened(of, staged(first)))
        yield* passing(transaction.abort)
        const again = yield* passing(acquire(of.consumer, 4))
        assert.deepStrictEqual(offsets(again), offsets(first))
        assert.deepStrictEqual(again.flatMap(({ ranges }) => ranges.map(({ deliveryCount }) => deliveryCount)), [2])
      })))

    it.effect("a reject archives with the commit; a part leaves the rest acquired", () =>
      Effect.scoped(Effect.gen(function*() {
        const embedded = yield* setUp({ kip1289: draft })
        const of = yield* passing(worker(embedded))
        const [range] = staged(yield* passing(acquire(of.consumer, 4)))
        const transaction = yield* passing(
          opened(of, [{ ...range!, last: 0, type: "reject" }, { ...range!, first: 1, last: 1, type: "gap" }])
        )
        assert.deepStrictEqual(yield* passing(transaction.commit), { kind: "committed" })
        yield* TestClock.adjust(100)
        assert.strictEqual(start(embedded), 2)
        assert.deepStrictEqual(states(embedded).map((line) => line.toLowerCase()), ["2 acquired", "3 acquired"])
      })))

    it.effect("several partitions, led by several brokers, in one transaction", () =>
      Effect.scoped(Effect.gen(function*() {
        const embedded = yield* setUp({ kip1289: draft, brokers: 3 }, 3)
        const of = yield* passing(worker(embedded))
        const transaction = yield* passing(opened(of, staged(yield* passing(acquire(of.consumer, 12)))))
        assert.deepStrictEqual(yield* passing(transaction.commit), { kind: "committed" })
        yield* TestClock.adjust(1_000)
        assert.deepStrictEqual([0, 1, 2].map((p) => start(embedded, p)), [4, 4, 4])
      })))

    for (const when of ["before", "after"] as const) {
      it.effect(`the leader stops ${when} the abort: the records come again, nothing is acknowledged`, () =>
        Effect.scoped(Effect.gen(function*() {
          const embedded = yield* setUp({ kip1289: draft, brokers: 3 })
          const of = yield* passing(worker(embedded))
          const first = yield* passing(acquire(of.consumer, 4))
          const transaction = yield* passing(opened(of, staged(first)))
          const leader = embedded.state.topics.get(IN)!.partitions[0]!.leader
          if (when === "before") embedded.stopBroker(leader)
          yield* passing(transaction.abort)
          if (when === "after") embedded.stopBroker(leader)
          assert.deepStrictEqual(offsets(yield* passing(acquire(of.consumer, 4))), offsets(first))
          assert.strictEqual(start(embedded), 0)
        })))
    }

    it.effect("what a fenced producer has staged never lands", () =>
      Effect.scoped(Effect.gen(function*() {
        const embedded = yield* setUp({ kip1289: draft })
        const of = yield* passing(worker(embedded))
        const first = yield* passing(acquire(of.consumer, 4))
        const transaction = yield* passing(opened(of, staged(first)))
        const cluster = yield* embedded.cluster("other")
        yield* passing(takeOver({ ...defaultProducerSettings, cluster, transactionalId: ID, purpose: "fence" }))
        assert.notStrictEqual((yield* passing(transaction.commit)).kind, "committed")
        assert.deepStrictEqual(offsets(yield* passing(acquire(of.consumer, 4))), offsets(first))
        assert.strictEqual(start(embedded), 0)
      })))

    it.effect("an old member epoch aborts, and the next try acknowledges", () =>
      Effect.scoped(Effect.gen(function*() {
        const embedded = yield* setUp({ kip1289: draft })
        let stale = true
        const of = yield* passing(
          worker(embedded, "worker", (real) => stale ? { ...real, memberEpoch: real.memberEpoch + 1 } : real)
        )
        const got = staged(yield* passing(acquire(of.consumer, 4)))
        const refused = yield* passing(Effect.flatMap(opened(of, got), (transaction) => transaction.commit))
        assert.strictEqual(refused.kind, "aborted")
        assert.match(JSON.stringify(refused), /STALE_MEMBER_EPOCH/)
        stale = false
        const outcome = yield* passing(Effect.flatMap(opened(of, got), (transaction) => transaction.commit))
        assert.deepStrictEqual(outcome, { kind: "committed" })
        yield* TestClock.adjust(100)
        assert.strictEqual(start(embedded), 4)
      })))

    it.effect("a lost answer to the acknowledgements aborts: the records come again", () =>
      Effect.scoped(Effect.gen(function*() {
        const embedded = yield* setUp({ kip1289: draft })
        const of = yield* passing(worker(embedded))
        const first = yield* passing(acquire(of.consumer, 4))
        const lost = embedded.control(
          draft === "A" ? txnShareAcknowledgeA : txnShareAcknowledgeB,
          () => ({ kind: "loseAnswer", then: "close" })
        )
        const outcome = yield* passing(Effect.flatMap(opened(of, staged(first)), (transaction) => transaction.commit))
        assert.isTrue(lost.used)
        assert.strictEqual(outcome.kind, "aborted")
        assert.deepStrictEqual(offsets(yield* passing(acquire(of.consumer, 4))), offsets(first))
      })))

    it.effect("it binds one cluster with the feature, and says what is missing elsewhere", () =>
      Effect.scoped(Effect.gen(function*() {
        const embedded = yield* makeEmbedded({ kip1289: draft })
        const one = yield* embedded.cluster("worker")
        assert.strictEqual(yield* passing(reason(one, one)), "supported")
        const other = yield* (yield* makeEmbedded({ kip1289: draft, clusterId: "another-cluster-0000" })).cluster(
          "worker"
        )
        assert.match(yield* passing(reason(one, other)), /are two clusters, and a Kafka transaction lives in one/)
        const feature = embedded.state.features.get(SHARE_FEATURE)!
        embedded.state.features.set(SHARE_FEATURE, { ...feature, level: 2 })
        const late = yield* embedded.cluster("late")
        assert.match(yield* passing(reason(late, late)), /share.version is 2; acknowledgements in transactions need 3/)
      })))
  })
}
