/**
 * What the lanes of one worker share of a flow's ledger: its topic, one tail per partition of it, the snapshots, and
 * the patience with others. Opened by the first lane, closed with the last.
 */
import { Effect, Exit, Scope, Semaphore } from "effect"
import { crc32c } from "../../wire/batch/crc32c.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { BindingStopped } from "../binding.ts"
import { makeProducer } from "../producer.ts"
import { type Fencer, makeFencer } from "./fencing.ts"
import { ensureLedgerTopic, type LedgerTopic } from "./ledgerTopic.ts"
import { clusterLog, type LedgerLog } from "./log.ts"
import type { Mutations } from "./mutations.ts"
import { type LedgerReader, makeReader } from "./reader.ts"
import { runSnapshots, SNAPSHOT_LIMITS, type SnapshotLimits } from "./snapshots.ts"

export interface WorkerLedger {
  readonly topic: LedgerTopic
  /** The source cluster's id: part of every slot. */
  readonly sourceClusterId: string
  /** By partition of the ledger topic. */
  readonly readers: ReadonlyArray<LedgerReader>
  readonly fencer: Fencer
  /** Producer ids of this worker's lanes, for choosing who writes snapshots. Never for R5. */
  readonly producerIds: Set<number>
}

/** What a flow keeps of its ledger from one run to the next, in one process. */
export interface LedgerMemory {
  topicId: string | null
}

export interface WorkerOptions {
  /** Where it is remembered which topic the ledger is; without it a topic that was created anew is taken for it at the next start. */
  readonly memory?: LedgerMemory
  readonly source: Cluster
  readonly target: Cluster
  /** For creating the topic; default `target`. */
  readonly targetAdmin?: Cluster
  readonly flow: string
  /** ledger.patience.ms: how long somebody else's undecided entry is waited for before it is fenced. */
  readonly patienceMs: number
  /** Partitions of the ledger topic, when it has to be created. Default 1. */
  readonly partitions?: number
  readonly replicationFactor?: number
  readonly snapshots?: SnapshotLimits
  readonly log: (level: "debug" | "info" | "warn", message: string) => void
  /** For tests. */
  readonly mutations?: Mutations
}

/** The ledger partition of a slot. Fixed for good, as the partition count is. */
export const partitionOfSlot = (key: string, partitions: number): number =>
  partitions === 1 ? 0 : crc32c(Buffer.from(key, "utf8")) % partitions

const stopped = (what: string): BindingStopped => new BindingStopped({ binding: "ledger", what })
const fromWire = (error: WireError): BindingStopped => stopped(error.message)

const openTopic = (options: WorkerOptions): Effect.Effect<LedgerTopic, BindingStopped> =>
  Effect.gen(function*() {
    const { flow, log, memory = { topicId: null }, partitions, replicationFactor, target, targetAdmin = target } =
      options
    const result = yield* ensureLedgerTopic({
      cluster: targetAdmin,
      flow,
      mode: "apply",
      knownId: memory.topicId,
      ...(partitions === undefined ? {} : { partitions }),
      ...(replicationFactor === undefined ? {} : { replicationFactor })
    }).pipe(Effect.mapError(fromWire))
    if (!result.ok) {
      return yield* new BindingStopped({ binding: "ledger", what: result.reason, forGood: result.forGood === true })
    }
    memory.topicId = result.topic.id
    for (const change of result.topic.changes) {
      log("info", `ledger: ${change}`)
    }
    for (const warning of result.topic.warnings) log("warn", `ledger: ${warning}`)
    return result.topic
  })

const openReader = (options: WorkerOptions, topic: LedgerTopic, log: LedgerLog) =>
  makeReader({
    log,
    topic: topic.name,
    onRestart: (why) => options.log("warn", why),
    ...(options.mutations === undefined ? {} : { mutations: options.mutations })
  })

export const openWorker = (options: WorkerOptions): Effect.Effect<WorkerLedger, BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const { flow, log, mutations = {}, patienceMs, source, target } = options
    const sourceClusterId = yield* Effect.mapError(source.retrying(source.clusterId), fromWire)
    const topic = yield* openTopic(options)
    const purposes = Array.from({ length: topic.partitions }, (_, partition) => `ledger-${flow}-${partition}`)
    yield* Effect.addFinalizer(() =>
      Effect.forEach(purposes.flatMap((p) => [p, `${p}-control`]), target.release, { discard: true })
    )
    const readers = yield* Effect.forEach(
      purposes,
      (purpose, partition) =>
        openReader(
          options,
          topic,
          clusterLog({ cluster: target, topic: topic.name, topicId: topic.id, partition, purpose })
        )
    )
    const fencer = yield* makeFencer({ cluster: target, purpose: `ledger-fence-${flow}`, patienceMs, mutations, log })
    const producer = yield* makeProducer({ cluster: target, purpose: `ledger-snapshot-${flow}` })
    const producerIds = new Set<number>()
    for (const reader of readers) {
      const run = runSnapshots({
        topic: topic.name,
        reader,
        producer,
        isOwn: (id) => producerIds.has(id),
        limits: options.snapshots ?? SNAPSHOT_LIMITS,
        log,
        mutations
      })
      // It fails only as the reader does, which every lane is told of.
      yield* Effect.forkScoped(Effect.ignore(run))
    }
    return { topic, sourceClusterId, readers, fencer, producerIds }
  })

/** One value for all who use it at the same time: made for the first, closed behind the last. */
export const sharedWhileUsed = <A, E>(make: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E, Scope.Scope> => {
  const one = Semaphore.makeUnsafe(1)
  let users = 0
  let current: { readonly value: A; readonly scope: Scope.Closeable } | null = null
  const open = Effect.gen(function*() {
    if (current !== null) return current.value
    const scope = yield* Scope.make()
    return yield* make.pipe(
      Scope.provide(scope),
      Effect.onExit((exit) =>
        Exit.isSuccess(exit)
          ? Effect.sync(() => void (current = { value: exit.value, scope }))
          : Scope.close(scope, Exit.void)
      )
    )
  })
  const leave = Effect.suspend(() => {
    users--
    if (users > 0 || current === null) return Effect.void
    const { scope } = current
    current = null
    return Scope.close(scope, Exit.void)
  })
  return Effect.gen(function*() {
    yield* Effect.acquireRelease(Effect.sync(() => void users++), () => one.withPermit(leave))
    return yield* one.withPermit(open)
  })
}
