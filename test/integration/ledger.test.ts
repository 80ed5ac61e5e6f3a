/** The ledger binding on real brokers: what readers in read_committed see when lanes meet, stop half-way and are fenced. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { Binding, SourceRange } from "../../src/txn/binding.ts"
import { ledger, type LedgerOptions } from "../../src/txn/ledger/ledgerBinding.ts"
import { ensureLedgerTopic, ledgerTopicName } from "../../src/txn/ledger/ledgerTopic.ts"
import { ledgerBatches } from "../../src/txn/ledger/batches.ts"
import { clusterLog } from "../../src/txn/ledger/log.ts"
import { claimsOf } from "../../src/txn/ledger/rules.ts"
import { makeTransactionalProducer } from "../../src/txn/transactions.ts"
import { encodeBatch } from "../../src/wire/batch/records.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { describeConfigs } from "../../src/wire/messages/describeConfigs.ts"
import { createTopic } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { versions } from "../kit/paths.ts"
import { sharedClusters, unique } from "../kit/shared.ts"
import { until } from "../kit/until.ts"

interface Target {
  bootstrap: string
}

/** Source offsets of one slot; the source's records are their own numbers. */
const range = (first: number, last: number): SourceRange => ({
  topic: "orders",
  topicId: "AAECAwQFBgcICQoLDA0ODw",
  partition: 0,
  first,
  last
})

const outgoing = (topic: string, { first, last }: SourceRange) => {
  const records = Array.from(
    { length: last - first + 1 },
    (_, n) => ({
      offset: n,
      timestamp: 1_700_000_000_000n,
      key: null,
      value: Buffer.from(String(first + n)),
      headers: []
    })
  )
  return { topic, partition: 0, bytes: encodeBatch(records, { codec: "none" }) }
}

/** What a lane that was frozen just before its EndTxn leaves behind: output and note, undecided. */
const leaveNote = (
  target: Target,
  flow: string,
  topic: string,
  transactionalId: string,
  what: SourceRange,
  sourceClusterId: string
) =>
  Effect.gen(function*() {
    const cluster = yield* makeCluster("target", { "bootstrap.servers": target.bootstrap })
    const producer = yield* makeTransactionalProducer({ cluster, purpose: "frozen", transactionalId })
    yield* producer.begin
    const [claim] = claimsOf(sourceClusterId, [what])
    assert.isDefined(claim)
    const entry = {
      kind: "done" as const,
      slot: claim.slot,
      ranges: claim.ranges,
      transactionalId,
      transactionVersion: yield* producer.version,
      targets: []
    }
    const notes = ledgerBatches([entry]).map(({ bytes }) => ({ topic: ledgerTopicName(flow), partition: 0, bytes }))
    const outcomes = yield* producer.produce([outgoing(topic, what), ...notes])
    assert.isTrue(outcomes.every(({ ok }) => ok))
    return producer
  })

const suite = (name: string, target: Target) => {
  interface Setting {
    readonly flow: string
    readonly topic: string
  }
  const setting: Effect.Effect<Setting> = Effect.gen(function*() {
    const topic = unique("ledger-out")
    yield* Effect.promise(() => createTopic(target, topic, { partitions: 1, configs: { "retention.ms": "-1" } }))
    return { flow: unique("flow"), topic }
  })
  /** A worker with a connection, a tail and a memory of its own. */
  const worker = ({ flow }: Setting, instance: string, options: Partial<LedgerOptions> = {}) =>
    Effect.gen(function*() {
      const source = yield* makeCluster("source", { "bootstrap.servers": sharedClusters().source.bootstrap })
      const cluster = yield* makeCluster("target", { "bootstrap.servers": target.bootstrap })
      return ledger({
        source,
        target: cluster,
        flow,
        patienceMs: 600_000,
        transactionalId: (lane) => `onceover.${flow}.${instance}.${lane}`,
        log: () => {},
        ...options
      })
    })
  const lane = (of: Setting, instance: string, options: Partial<LedgerOptions> = {}) =>
    Effect.gen(function*() {
      const binding = yield* (yield* worker(of, instance, options)).make({ name: "0" })
      yield* binding.start
      return binding
    })
  /** Begins, writes and stages; the caller ends it. */
  const opened = ({ topic }: Setting, binding: Binding, what: SourceRange) =>
    Effect.gen(function*() {
      const transaction = yield* binding.begin
      const outcomes = yield* transaction.produce([outgoing(topic, what)])
      assert.isTrue(outcomes.every(({ ok }) => ok))
      yield* transaction.stage([what], [])
      return transaction
    })
  const mirror = (of: Setting, binding: Binding, what: SourceRange) =>
    Effect.flatMap(opened(of, binding, what), (transaction) => transaction.commit)
  const values = ({ topic }: Setting) =>
    Effect.promise(async () =>
      (await readTopics(target, [topic])).map(({ value }) => Number(value?.toString())).toSorted((a, b) => a - b)
    )
  const numbers = (first: number, last: number): ReadonlyArray<number> =>
    Array.from({ length: last - first + 1 }, (_, n) => first + n)
  /** Triage once nothing of it is undecided. */
  const sorted = (binding: Binding, ranges: ReadonlyArray<SourceRange>) =>
    Effect.promise(() =>
      until(async () => {
        const triage = await Effect.runPromise(binding.triage(ranges))
        return triage.wait.length === 0 ? triage : null
      }, { what: "the end of undecided transactions" })
    )
  /** Notes without a marker, as the log has them now. */
  const openNotes = (of: Setting) =>
    Effect.scoped(Effect.gen(function*() {
      const { readers } = yield* (yield* worker(of, "audit")).ledger
      yield* Effect.forEach(readers, (reader) => reader.toEnd)
      return readers.reduce((sum, reader) => sum + reader.tail().open.length, 0)
    }))

  describe(`the ledger, ${name}`, () => {
    it.live("what a lane has mirrored is done for a worker that starts later, and only that", () =>
      Effect.gen(function*() {
        const of = yield* setting
        const first = yield* lane(of, "a")
        assert.deepStrictEqual(yield* mirror(of, first, range(0, 4)), { kind: "committed" })
        assert.deepStrictEqual(yield* mirror(of, first, range(7, 9)), { kind: "committed" })
        const second = yield* lane(of, "b")
        const triage = yield* second.triage([range(0, 12)])
        assert.deepStrictEqual([triage.done, triage.wait, triage.ours], [[range(0, 4), range(7, 9)], [], [
          range(5, 6),
          range(10, 12)
        ]])
        assert.deepStrictEqual(yield* values(of), [...numbers(0, 4), ...numbers(7, 9)])
      }).pipe(Effect.scoped))

    it.live("of two lanes with the same records the one whose note comes first wins, the other is aborted", () =>
      Effect.gen(function*() {
        const of = yield* setting
        const [a, b] = [yield* lane(of, "a"), yield* lane(of, "b")]
        for (let n = 0; n < 10; n++) {
          const what = range(n * 10, n * 10 + 9)
          const [first, second] = [
            yield* opened(of, a, what),
            yield* opened(of, b, range(what.first + 5, what.last + 5))
          ]
          const outcomes = yield* Effect.all([first.commit, second.commit], { concurrency: 2 })
          assert.deepStrictEqual(outcomes.map(({ kind }) => kind).toSorted(), ["aborted", "committed"])
          const loser = outcomes[0]?.kind === "aborted" ? a : b
          // Its own aborted note counts as undecided until the marker is read.
          const { ours } = yield* sorted(loser, [range(what.first, what.last + 5)])
          assert.deepStrictEqual(
            yield* Effect.forEach(ours, (rest) => mirror(of, loser, rest)),
            ours.map(() => ({ kind: "committed" as const }))
          )
        }
        assert.deepStrictEqual(yield* values(of), numbers(0, 104))
      }).pipe(Effect.scoped))

    it.live("an undecided note is waited for: its commit aborts who waits, its abort lets it commit", () =>
      Effect.gen(function*() {
        const of = yield* setting
        const b = yield* lane(of, "b")
        for (const [n, end] of (["commit", "abort"] as const).entries()) {
          const what = range(n * 10, n * 10 + 9)
          const frozen = yield* leaveNote(
            target,
            of.flow,
            of.topic,
            unique("frozen"),
            what,
            sharedClusters().source.clusterId
          )
          const second = yield* opened(of, b, what)
          const waiting = yield* Effect.forkChild(second.commit, { startImmediately: true })
          // Its own note is in the log, and it waits: only the end of the other can move it.
          yield* Effect.promise(() =>
            until(async () => (await Effect.runPromise(openNotes(of))) === 2, { what: "the second note" })
          )
          assert.isUndefined(waiting.pollUnsafe())
          yield* frozen[end]
          assert.strictEqual((yield* Fiber.join(waiting)).kind, end === "commit" ? "aborted" : "committed")
        }
        assert.deepStrictEqual(yield* values(of), numbers(0, 19))
      }).pipe(Effect.scoped))

    it.live("a lane that stands still with its note written is fenced when patience is over, and its records are mirrored once", () =>
      Effect.gen(function*() {
        const of = yield* setting
        const log: Array<string> = []
        const other = yield* lane(of, "b", { patienceMs: 50, log: (_, message) => void log.push(message) })
        const frozen = yield* leaveNote(
          target,
          of.flow,
          of.topic,
          unique("frozen"),
          range(0, 4),
          sharedClusters().source.clusterId
        )
        yield* Effect.promise(() =>
          until(async () => {
            const { wait } = await Effect.runPromise(other.triage([range(0, 9)]))
            return wait.length > 0
          }, { what: "the note of the frozen lane" })
        )
        yield* sorted(other, [range(0, 9)])
        yield* Effect.promise(() =>
          until(() => log.some((line) => line.includes("was fenced")), {
            what: () => `the word of it: ${log.join("; ")}`
          })
        )
        assert.deepStrictEqual(yield* mirror(of, other, range(0, 9)), { kind: "committed" })
        assert.strictEqual((yield* frozen.commit).kind, "aborted")
        assert.deepStrictEqual(yield* values(of), numbers(0, 9))
      }).pipe(Effect.scoped))

    it.live("snapshots keep the ledger short, and a worker that starts afterwards knows everything", () =>
      Effect.gen(function*() {
        const of = yield* setting
        const a = yield* lane(of, "a", { snapshots: { entries: 5, bytes: Infinity } })
        const cluster = yield* makeCluster("target", { "bootstrap.servers": target.bootstrap })
        const topic = (yield* cluster.topics([ledgerTopicName(of.flow)])).get(ledgerTopicName(of.flow))
        assert.isDefined(topic)
        const log = clusterLog({ cluster, topic: topic.name, topicId: topic.id, partition: 0, purpose: "audit" })
        let n = 0
        const cut = Effect.gen(function*() {
          assert.deepStrictEqual(yield* mirror(of, a, range(n * 10, n * 10 + 8)), { kind: "committed" })
          n++
          return (yield* log.start) > 30
        })
        while (!(yield* cut)) assert.isBelow(n, 500, "the ledger is never cut")
        const b = yield* lane(of, "b")
        const triage = yield* b.triage([range(0, n * 10 - 2)])
        assert.deepStrictEqual(triage.done, Array.from({ length: n }, (_, i) => range(i * 10, i * 10 + 8)))
        assert.lengthOf(triage.wait, 0)
      }).pipe(Effect.scoped))

    it.live("several ledger partitions hold the slots of one transaction", () =>
      Effect.gen(function*() {
        const of = yield* setting
        const a = yield* lane(of, "a", { partitions: 3 })
        const slots = Array.from({ length: 12 }, (_, partition) => ({ ...range(0, 0), partition }))
        const transaction = yield* a.begin
        yield* transaction.produce([outgoing(of.topic, range(0, 11))])
        yield* transaction.stage(slots, [])
        assert.deepStrictEqual(yield* transaction.commit, { kind: "committed" })
        const b = yield* lane(of, "b")
        const { done, ours } = yield* b.triage(slots)
        assert.deepStrictEqual([done.map(({ partition }) => partition), ours], [numbers(0, 11), []])
      }).pipe(Effect.scoped))

    it.live("the topic is made with settings that let nothing go, and brought back to them", () =>
      Effect.gen(function*() {
        const flow = unique("flow->x")
        const cluster = yield* makeCluster("target", { "bootstrap.servers": target.bootstrap })
        yield* Effect.promise(() =>
          createTopic(target, ledgerTopicName(flow), {
            partitions: 1,
            configs: { "cleanup.policy": "compact", "unclean.leader.election.enable": "true", "retention.ms": "1000" }
          })
        )
        const validated = yield* ensureLedgerTopic({ cluster, flow, mode: "validate" })
        const result = yield* ensureLedgerTopic({ cluster, flow, mode: "apply" })
        assert.isTrue(validated.ok && result.ok)
        if (!result.ok || !validated.ok) return
        assert.deepStrictEqual(validated.topic.changes, result.topic.changes)
        assert.include(result.topic.changes.join("; "), "unclean.leader.election.enable of")
        const answer = yield* cluster.request({ kind: "any" }, describeConfigs, {
          resources: [{ resourceType: 2, resourceName: result.topic.name, configurationKeys: null }]
        })
        const config = new Map(answer.results[0]?.configs.map((c) => [c.name, c.value]))
        assert.deepStrictEqual(
          ["cleanup.policy", "unclean.leader.election.enable", "retention.ms", "retention.bytes"].map((key) =>
            config.get(key)
          ),
          ["delete", "false", "-1", "-1"]
        )
        assert.deepStrictEqual(yield* ensureLedgerTopic({ cluster, flow, mode: "apply" }), {
          ok: true,
          topic: { ...result.topic, changes: [] }
        })
      }).pipe(Effect.scoped))
  })
}

suite("transactions of version 2", sharedClusters().target)

const older: Target = { bootstrap: "" }
let cluster: KafkaCluster | null = null
beforeAll(async () => {
  cluster = await startCluster({ name: "older", version: versions.kafkaOld })
  older.bootstrap = cluster.bootstrap
})
afterAll(() => cluster?.stop())

suite("transactions of version 1", older)
