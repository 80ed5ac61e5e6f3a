/** A lane's surroundings without a broker: what it is given, what it writes, and the order of all that happens. */
import { Effect } from "effect"
import type { Delivery, Settlement, Source } from "../../src/mirror/delivery.ts"
import type { LaneParts } from "../../src/mirror/laneContext.ts"
import type { LaneEvents } from "../../src/mirror/laneEvents.ts"
import { makeChain, type TransformChain } from "../../src/mirror/transforms/chain.ts"
import type { Transform } from "../../src/mirror/transforms/transform.ts"
import type { Binding, Outcome } from "../../src/txn/binding.ts"
import { HeldBack, PartitionBlocked, type ProduceFailure, RecordRefused } from "../../src/txn/produceErrors.ts"
import type { Outgoing, ProduceOutcome } from "../../src/txn/produceRun.ts"
import { splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { decodeRecords, encodeBatch, type Rec } from "../../src/wire/batch/records.ts"
import { rewriteForProduce } from "../../src/wire/batch/rewrite.ts"

export interface World {
  /** Everything that happened, in order: "write v1 v2", "commit", "settle 0-1:accept". */
  readonly log: Array<string>
  readonly target: Array<Rec & { readonly topic: string }>
  readonly stalls: Array<string>
  readonly parts: LaneParts<never>
  /** Polls that found nothing since the last that found something. */
  idle: number
  /** Deliveries that were given out. */
  polled: number
  stop: boolean
}

export interface WorldOptions {
  readonly mode?: "share" | "consumer"
  readonly deliveries: ReadonlyArray<ReadonlyArray<Delivery>>
  readonly transforms?: ReadonlyArray<Transform>
  /** Why the target refuses a batch of these values; null: it takes it. */
  readonly refuses?: (values: ReadonlyArray<string>, topic: string) => "records" | "partition" | null
  /** The target looks at checksums, as brokers do. */
  readonly refusesDamaged?: boolean
  /** One by one; then "committed" for ever. */
  readonly outcomes?: Array<Outcome>
  readonly deadLetters?: boolean
  readonly onRecordRefused?: "block" | "deadletter"
  readonly errorsTolerance?: "none" | "all"
  readonly deliveryLimit?: number
  readonly owns?: (delivery: Delivery) => boolean
  readonly triage?: Binding["triage"]
  readonly binding?: Partial<Binding>
}

const text = (rec: Rec): string => rec.value?.toString() ?? "null"
const show = (s: Settlement): string => `${s.first === s.last ? s.first : `${s.first}-${s.last}`}:${s.type}`

const failure = (kind: "records" | "partition", outgoing: Outgoing): ProduceFailure => {
  const at = { topic: outgoing.topic, partition: outgoing.partition, detail: null, written: "no" as const }
  return kind === "records"
    ? new RecordRefused({ ...at, code: 10, recordErrors: [] })
    : new PartitionBlocked({ ...at, code: 29 })
}

/** A producer as src/txn's: what follows a refused batch in its partition is held back. */
const produce =
  (world: World, options: WorldOptions) =>
  (batches: ReadonlyArray<Outgoing>): Effect.Effect<ReadonlyArray<ProduceOutcome>> =>
    Effect.sync(() => {
      const standing = new Set<string>()
      return batches.map((outgoing): ProduceOutcome => {
        const key = `${outgoing.topic}-${outgoing.partition}`
        if (standing.has(key)) {
          return {
            ok: false,
            error: new HeldBack({ topic: outgoing.topic, partition: outgoing.partition, written: "no" })
          }
        }
        const [view] = splitBatches(outgoing.bytes)
        if (view === undefined) throw new Error("no batch")
        rewriteForProduce(view, { producerId: 1, producerEpoch: 0, baseSequence: 0, transactional: false })
        if (options.refusesDamaged === true && !view.crcIsValid()) {
          standing.add(key)
          return { ok: false, error: failure("records", outgoing) }
        }
        const records = decodeRecords(view)
        const refusal = options.refuses?.(records.map(text), outgoing.topic) ?? null
        if (refusal !== null) {
          standing.add(key)
          return { ok: false, error: failure(refusal, outgoing) }
        }
        world.log.push(`write ${outgoing.topic === "t" ? "" : `${outgoing.topic} `}${records.map(text).join(" ")}`)
        for (const record of records) world.target.push({ ...record, topic: outgoing.topic })
        return { ok: true, baseOffset: world.target.length, logAppendTimeMs: -1 }
      })
    })

const binding = (world: World, options: WorldOptions): Binding => ({
  name: "at-least-once",
  guarantee: "at-least-once",
  settlesItself: false,
  start: Effect.sync(() => void world.log.push("start")),
  triage: options.triage ?? ((ranges) => Effect.succeed({ done: [], wait: [], ours: ranges })),
  begin: Effect.sync(() => ({
    produce: produce(world, options),
    stage: () => Effect.void,
    commit: Effect.sync(() => {
      const outcome = options.outcomes?.shift() ?? { kind: "committed" as const }
      world.log.push(outcome.kind === "committed" ? "commit" : outcome.kind)
      return outcome
    }),
    abort: Effect.sync(() => {
      world.log.push("abort")
      return { kind: "aborted", reason: "" } as const
    })
  })),
  ...options.binding
})

const POLL_WAIT_MS = 100

const source = (world: World, options: WorldOptions): Source<never> => {
  const left = [...options.deliveries]
  return {
    mode: options.mode ?? "share",
    poll: Effect.suspend(() => {
      const next = left.shift()
      if (next !== undefined) {
        world.idle = 0
        world.polled++
        return Effect.succeed(next)
      }
      world.idle++
      return Effect.as(Effect.sleep(POLL_WAIT_MS), [])
    }),
    settle: (_, settlements) =>
      Effect.sync(() => {
        world.log.push(`settle ${settlements.map(show).join(" ")}`)
        return { confirmed: 1, refused: 0, reason: null }
      }),
    pause: (topic, partition) => Effect.sync(() => void world.log.push(`pause ${topic}-${partition}`)),
    resume: (topic, partition) => Effect.sync(() => void world.log.push(`resume ${topic}-${partition}`)),
    subscribe: () => Effect.void,
    owns: options.owns ?? (() => true),
    pollsWhileHolding: true,
    deliveryLimit: options.deliveryLimit ?? 5
  }
}

const letterBatch = (value: Buffer | null): Buffer =>
  encodeBatch([{ offset: 0, timestamp: 0n, key: null, value, headers: [] }], { codec: "none" })

const nothing = (): void => {}

export const makeWorld = (options: WorldOptions): World => {
  const events: LaneEvents = {
    acquired: nothing,
    alreadyDone: nothing,
    mirrored: nothing,
    settled: nothing,
    transaction: nothing,
    blocked: (_, reason) => world.stalls.push(reason),
    unblocked: nothing,
    deadLettered: nothing,
    skipped: (_, offset) => void world.log.push(`skipped ${offset}`)
  }
  const world: World = { log: [], target: [], stalls: [], idle: 0, polled: 0, stop: false, parts: null as never }
  const chain: TransformChain | null = options.transforms === undefined ? null : makeChain(options.transforms)
  const parts: LaneParts<never> = {
    source: source(world, options),
    binding: binding(world, options),
    placeOf: () =>
      Effect.succeed({ ok: true, rules: { targetTopic: "t", chain, ordered: options.mode === "consumer" } }),
    ensureOutput: () => Effect.succeed(null),
    missing: nothing,
    deadLetter: options.deadLetters === true
      ? ({ record, stage }) => ({
        topic: `dlq:${stage}`,
        partition: 0,
        bytes: letterBatch(record.value),
        recordCount: 1,
        offsets: record.offset
      })
      : null,
    onRecordRefused: options.onRecordRefused ?? "block",
    errorsTolerance: options.errorsTolerance ?? "none",
    events,
    stopping: () => world.stop
  }
  return Object.assign(world, { parts })
}
