/**
 * A ledger as a flow leaves it that has run for long: so many entries were committed, and what keeps it short (R11, the
 * program's own snapshots and cuts) ran beside them. Its end is the worst that a start can meet: a snapshot is nearly
 * due, and each entry since the last one is a transaction of its own, with its own batch and marker.
 *
 *   node bench/ledgerFill.ts --source HOST:PORT --target HOST:PORT --flow NAME --entries 10000000 [--slots 1000] [--whole]
 *
 * --whole: nothing was ever cut, as where the flow may not delete records of its ledger. The slots are those of a topic
 * that is not there any more, so a flow of that name mirrors what its topics hold.
 */
import { randomBytes } from "node:crypto"
import { parseArgs } from "node:util"
import { Effect } from "effect"
import { ledgerBatches } from "../src/txn/ledger/batches.ts"
import type { DoneEntry } from "../src/txn/ledger/entry.ts"
import { ensureLedgerTopic, ledgerTopicName } from "../src/txn/ledger/ledgerTopic.ts"
import { SNAPSHOT_LIMITS } from "../src/txn/ledger/snapshots.ts"
import { openWorker } from "../src/txn/ledger/worker.ts"
import { makeTransactionalProducer, type TransactionalProducer } from "../src/txn/transactions.ts"
import { makeCluster } from "../src/wire/clusterClient.ts"

export interface LedgerFill {
  /** Bootstrap servers. */
  readonly source: string
  readonly target: string
  readonly flow: string
  readonly entries: number
  /** Partitions of the topic that was mirrored; a transaction of the past had one entry of each. */
  readonly slots: number
  readonly whole: boolean
}

const LANES = 8
const RECORDS = 500
/** Entries behind the last snapshot: some below what makes the next one due. */
const LAST = Math.floor(0.9 * SNAPSHOT_LIMITS.entries)

export const ledgerFill = ({ entries, flow, slots, source, target, whole }: LedgerFill) =>
  Effect.scoped(Effect.gen(function*() {
    const from = yield* makeCluster("source", { "bootstrap.servers": source })
    const to = yield* makeCluster("target", { "bootstrap.servers": target })
    const clusterId = yield* from.clusterId
    const name = ledgerTopicName(flow)
    const topicId = randomBytes(16).toString("base64url")
    const log = () => {}
    const worker = whole ? null : yield* openWorker({ source: from, target: to, flow, patienceMs: 60_000, log })
    if (worker === null) yield* ensureLedgerTopic({ cluster: to, flow, mode: "apply" })
    const lanes = yield* Effect.forEach(Array.from({ length: LANES }, (_, n) => n), (n) =>
      makeTransactionalProducer({
        cluster: to,
        purpose: `fill-${n}`,
        transactionalId: `onceover.${flow}-${n}.past-0`
      }))
    const next = new Array<number>(slots).fill(0)
    const entryOf = (partition: number, transactionalId: string, transactionVersion: 1 | 2): DoneEntry => {
      const first = next[partition] as number
      next[partition] = first + RECORDS
      const at = { topic: "east.past", partition, baseOffset: first, sourceOffset: first }
      const slot = { clusterId, topicId, partition }
      const ranges = [{ first, last: first + RECORDS - 1 }]
      return { kind: "done", slot, ranges, transactionalId, transactionVersion, targets: [at] }
    }
    const commit = (lane: TransactionalProducer, partitions: ReadonlyArray<number>) =>
      Effect.gen(function*() {
        yield* lane.begin
        const version = yield* lane.version
        const own = yield* lane.identity
        if (own !== null) worker?.producerIds.add(own.producerId)
        const done = partitions.map((partition) => entryOf(partition, lane.transactionalId, version))
        yield* lane.produce(ledgerBatches(done).map(({ bytes }) => ({ topic: name, partition: 0, bytes })))
        const outcome = yield* lane.commit
        if (outcome.kind !== "committed") return yield* Effect.die(new Error(`not committed: ${outcome.kind}`))
      })
    /** Lanes go round by themselves; `each` gives a transaction's partitions, null at the end. */
    const run = (each: () => ReadonlyArray<number> | null) =>
      Effect.forEach(lanes, (lane) =>
        Effect.gen(function*() {
          for (let partitions = each(); partitions !== null; partitions = each()) yield* commit(lane, partitions)
        }), { concurrency: "unbounded", discard: true })
    const all = Array.from({ length: slots }, (_, partition) => partition)
    const [reader] = worker?.readers ?? []
    const since = () => reader?.tail().sinceSnapshot.entries ?? 0
    let left = entries - LAST
    yield* run(() => (left -= slots) + slots > 0 ? all.slice(0, Math.min(slots, left + slots)) : null)
    // A snapshot that is due is written first.
    yield* reader?.toEnd ?? Effect.void
    yield* reader?.until(() => since() < SNAPSHOT_LIMITS.entries) ?? Effect.void
    let last = LAST - since()
    yield* run(() => last-- > 0 ? [last % slots] : null)
    return reader === undefined ? null : { start: yield* reader.log.start, end: yield* reader.log.end }
  }))

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      source: { type: "string" },
      target: { type: "string" },
      flow: { type: "string" },
      entries: { type: "string", default: "10000000" },
      slots: { type: "string", default: "1000" },
      whole: { type: "boolean", default: false }
    }
  })
  const { entries, flow, slots, source, target, whole } = values
  if (source === undefined || target === undefined || flow === undefined) {
    console.error(
      "bench/ledgerFill.ts --source HOST:PORT --target HOST:PORT --flow NAME [--entries N] [--slots N] [--whole]"
    )
    process.exitCode = 2
  } else {
    const filled = ledgerFill({ source, target, flow, entries: Number(entries), slots: Number(slots), whole })
    console.log(JSON.stringify(await Effect.runPromise(filled)))
  }
}
