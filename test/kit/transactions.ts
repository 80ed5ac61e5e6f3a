/**
 * What a cluster says of transactions: which are open, by its coordinators, and how many were aborted, by the markers
 * in its logs. And a worker killed at the worst moment: with a transaction open.
 */
import { Effect } from "effect"
import { readBatch } from "../../src/txn/ledger/batches.ts"
import { clusterLog } from "../../src/txn/ledger/log.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import type { WireError } from "../../src/wire/errors.ts"
import { listTransactions } from "../../src/wire/messages/listTransactions.ts"
import type { Bootstrap } from "./loader.ts"
import type { Onceover } from "./onceover.ts"
import { until } from "./until.ts"

const onCluster = <A, E>(cluster: Bootstrap, use: (client: Cluster) => Effect.Effect<A, E>): Promise<A> =>
  Effect.runPromise(Effect.scoped(
    Effect.flatMap(makeCluster("kit", { "bootstrap.servers": cluster.bootstrap }), use)
  ))

/** Transactional ids of the transactions that are open now, those with this word in their name. */
export const openTransactions = (cluster: Bootstrap, word = ""): Promise<ReadonlyArray<string>> =>
  onCluster(cluster, (client) =>
    Effect.gen(function*() {
      const ids: Array<string> = []
      // Each broker knows of those that it coordinates.
      for (const { id } of yield* client.brokers) {
        const { transactionStates } = yield* client.request({ kind: "broker", id }, listTransactions, {
          stateFilters: ["Ongoing"],
          producerIdFilters: []
        })
        ids.push(...transactionStates.map(({ transactionalId }) => transactionalId))
      }
      return ids.filter((id) => id.includes(word))
    }))

/** Producer and epoch of each abort marker of a partition. */
const abortsOf = (client: Cluster, topic: string, topicId: string, partition: number) =>
  Effect.gen(function*() {
    const log = clusterLog({ cluster: client, topic, topicId, partition, purpose: "markers" })
    const aborts: Array<string> = []
    const end = yield* log.end
    let next = yield* log.start
    while (next < end) {
      const read = yield* log.read(next)
      if (read.kind === "outOfRange" || read.batches.length === 0) break
      for (const view of read.batches) {
        next = view.lastOffset + 1
        if (!view.isControl) continue
        const marker = readBatch(view)
        if (marker.kind === "marker" && !marker.commit) aborts.push(`${marker.producerId}/${marker.epoch}`)
      }
    }
    return aborts
  })

/**
 * How many transactions over these topics were aborted, whoever did it: producers' aborts, fencing, time-outs. A
 * transaction has one marker in each partition that it has written to, all with its producer and epoch; under
 * transaction version 2 (Kafka 4) no other transaction has the same two.
 */
export const abortedTransactions = (cluster: Bootstrap, topics: ReadonlyArray<string>): Promise<number> =>
  onCluster(cluster, (client) =>
    Effect.gen(function*() {
      const aborts = new Set<string>()
      for (const { id, name, partitions } of (yield* client.topics(topics)).values()) {
        for (const { partition } of partitions) {
          for (const abort of yield* abortsOf(client, name, id, partition)) aborts.add(abort)
        }
      }
      return aborts.size
    }).pipe(Effect.mapError((error: WireError | { readonly message: string }) => new Error(error.message))))

export interface InTransaction {
  readonly target: Bootstrap
  /** The worker's instance.id, which is part of its transactional ids. */
  readonly instance: string
  /** No transaction will come any more: it is done without one. */
  readonly last?: () => boolean
}

/** Freezes a worker (SIGSTOP) while it has a transaction open: frozen, looked at, and thawed again when it has none. */
export const freezeInTransaction = async (
  worker: Onceover,
  { instance, last = () => false, target }: InTransaction
): Promise<void> => {
  const open = () => openTransactions(target, instance)
  await until(async () => {
    if (last()) return true
    await worker.kill("SIGSTOP")
    // What it had asked for before it froze may be carried out between two looks.
    for (let looks = 0; looks < 3; looks++) {
      if ((await open()).length > 0) continue
      await worker.kill("SIGCONT")
      return false
    }
    return true
  }, { what: () => `a transaction of ${instance}; it said\n${worker.output().slice(-2_000)}`, timeoutMs: 120_000 })
}

/** The same with SIGKILL. Gives the transactional ids that it has left open. */
export const killInTransaction = async (
  worker: Onceover,
  options: InTransaction
): Promise<ReadonlyArray<string>> => {
  await freezeInTransaction(worker, options)
  await worker.kill("SIGKILL")
  return openTransactions(options.target, options.instance)
}
