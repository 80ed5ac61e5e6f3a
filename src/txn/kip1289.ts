/**
 * KIP-1289: the acknowledgements of a share group are part of the transaction that holds the output. One cluster only,
 * as a Kafka transaction lives in one. No released broker has it; both drafts of the wire are in src/wire/kip1289.ts.
 *
 * Order in a transaction: outputs, TxnShareAcknowledge to the leader of each share partition, EndTxn. What is staged
 * is the broker's from then on: commit acknowledges it, abort gives it back; nothing is acknowledged outside.
 */
import { Effect, type Scope } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { SHARE_FEATURE, SHARE_VERSION, txnShareAcknowledgeA, txnShareAcknowledgeB } from "../wire/kip1289.ts"
import {
  type Binding,
  type BindingCandidate,
  BindingStopped,
  type BoundTransaction,
  type Outcome,
  type ShareMember,
  type StagedRange,
  type Support
} from "./binding.ts"
import { HeldBack } from "./produceErrors.ts"
import type { ProducerOptions } from "./producer.ts"
import type { Outgoing, ProduceOutcome } from "./produceRun.ts"
import type { Identity } from "./sequences.ts"
import { makeTransactionalProducer, type TransactionalProducer } from "./transactions.ts"

export interface Kip1289Options extends Pick<ProducerOptions, "settings" | "onStall" | "onRecover"> {
  readonly source: Cluster
  readonly target: Cluster
  /** What the flow reads through. */
  readonly groupProtocol: "share" | "consumer"
  readonly transactionalId: (lane: string) => string
  /** See ProducerOptions. */
  readonly onWaiting?: (transactionalId: string, reason: string | null) => void
}

type Draft = "A" | "B"

/** Wire values (KIP-932). */
const TYPES = { gap: 0, accept: 1, reject: 3 } as const

const stopped = (what: string): BindingStopped => new BindingStopped({ binding: "kip-1289", what })
const aborted = (reason: string): Outcome => ({ kind: "aborted", reason })

/** The newest draft that the brokers list; null: none. */
const draftOf = (cluster: Cluster): Effect.Effect<Draft | null, WireError> =>
  Effect.gen(function*() {
    for (const [draft, api] of [["B", txnShareAcknowledgeB], ["A", txnShareAcknowledgeA]] as const) {
      const offered = yield* Effect.result(cluster.negotiate({ kind: "any" }, api))
      if (offered._tag === "Success") return draft
      if (offered.failure._tag !== "UnsupportedError") return yield* offered.failure
    }
    return null
  })

const unsupported = (reason: string): Support => ({ supported: false, reason })

const support = ({ groupProtocol, source, target }: Kip1289Options): Effect.Effect<Support> =>
  Effect.gen(function*() {
    if (groupProtocol !== "share") {
      return unsupported("it binds acknowledgements of share groups, and this flow reads through a consumer group")
    }
    const [from, to] = [yield* source.retrying(source.clusterId), yield* target.retrying(target.clusterId)]
    if (from !== to) {
      return unsupported(`source (${from}) and target (${to}) are two clusters, and a Kafka transaction lives in one`)
    }
    const level = (yield* target.retrying(target.features)).get(SHARE_FEATURE) ?? 0
    if (level < SHARE_VERSION) {
      return unsupported(
        `the cluster's ${SHARE_FEATURE} is ${level}; acknowledgements in transactions need ${SHARE_VERSION}`
      )
    }
    if ((yield* draftOf(target)) === null) {
      return unsupported(`the brokers have ${SHARE_FEATURE} ${level}, but do not offer TxnShareAcknowledge`)
    }
    return { supported: true } as const
  }).pipe(Effect.catch((error) => Effect.succeed(unsupported(error.message))))

interface Place {
  readonly topicId: string
  readonly partition: number
  readonly ranges: ReadonlyArray<StagedRange>
}

/** By share partition, ascending. */
export const placesOf = (ranges: ReadonlyArray<StagedRange>): ReadonlyArray<Place & { readonly topic: string }> => {
  const places = new Map<
    string,
    {
      readonly topic: string
      readonly topicId: string
      readonly partition: number
      readonly ranges: Array<StagedRange>
    }
  >()
  for (const range of ranges) {
    const key = `${range.topicId}/${range.partition}`
    const known = places.get(key)
    if (known === undefined) {
      places.set(key, { topic: range.topic, topicId: range.topicId, partition: range.partition, ranges: [range] })
    } else known.ranges.push(range)
  }
  return [...places.values()].map((place) => ({ ...place, ranges: place.ranges.toSorted((a, b) => a.first - b.first) }))
}

interface Acknowledging {
  readonly cluster: Cluster
  readonly draft: Draft
  readonly purpose: string
  readonly transactionalId: string
  readonly identity: Identity
  readonly member: ShareMember
}

/** One request to one leader. Gives the error of each partition, and of the whole under "". */
const acknowledge = (
  a: Acknowledging,
  broker: number,
  places: ReadonlyArray<Place>
): Effect.Effect<ReadonlyMap<string, number>, WireError> =>
  Effect.gen(function*() {
    const { cluster, draft, identity, member, purpose, transactionalId } = a
    const to = { kind: "broker", id: broker } as const
    const head = { transactionalId, producerId: identity.producerId, producerEpoch: identity.epoch, ...member }
    const topics = <R>(range: (r: StagedRange) => R) =>
      places.map(({ partition, ranges, topicId }) => ({
        topicId,
        partitions: [{ partitionIndex: partition, acknowledgementBatches: ranges.map(range) }]
      }))
    const bounds = (r: StagedRange) => ({ firstOffset: r.first, lastOffset: r.last })
    const typeOf = (r: StagedRange): number => TYPES[r.type ?? "accept"]
    const answer = draft === "A"
      ? yield* Effect.map(
        cluster.request(to, txnShareAcknowledgeA, {
          ...head,
          topics: topics((r) => ({ ...bounds(r), acknowledgeType: typeOf(r) }))
        }, { purpose }),
        (response) => ({ errorCode: response.errorCode, topics: response.topics })
      )
      : yield* Effect.map(
        cluster.request(to, txnShareAcknowledgeB, {
          ...head,
          topics: topics((r) => ({ ...bounds(r), acknowledgeTypes: [typeOf(r)] }))
        }, { purpose }),
        (response) => ({ errorCode: response.errorCode, topics: response.responses })
      )
    const codes = new Map<string, number>([["", answer.errorCode]])
    for (const topic of answer.topics) {
      for (const p of topic.partitions) codes.set(`${topic.topicId}/${p.partitionIndex}`, p.errorCode)
    }
    return codes
  })

/** Stages the acknowledgements. Null, or why the transaction must be aborted. */
const stageAll = (a: Acknowledging, ranges: ReadonlyArray<StagedRange>): Effect.Effect<string | null, WireError> =>
  Effect.gen(function*() {
    const byLeader = new Map<number, Array<Place & { readonly topic: string }>>()
    for (const place of placesOf(ranges)) {
      const { leader } = yield* a.cluster.leader(place.topic, place.partition)
      const list = byLeader.get(leader)
      if (list === undefined) byLeader.set(leader, [place])
      else list.push(place)
    }
    for (const [broker, places] of byLeader) {
      const codes = yield* acknowledge(a, broker, places)
      for (const [where, code] of codes) {
        if (code === 0) continue
        // Stale leaders, members and locks alike: the records come again, under whoever holds them then.
        for (const place of places) yield* a.cluster.invalidate(place.topic)
        return new BrokerError({
          api: "TxnShareAcknowledge",
          code,
          subject: where === "" ? `group ${a.member.groupId}` : where,
          detail: null
        }).message
      }
      const missing = places.find((place) => !codes.has(`${place.topicId}/${place.partition}`))
      if (missing !== undefined) return `TxnShareAcknowledge has no answer for ${missing.topic}-${missing.partition}`
    }
    return null
  })

const transactionOf = (
  options: Kip1289Options,
  producer: TransactionalProducer,
  draft: Draft,
  identity: Identity,
  member: () => ShareMember | null,
  purpose: string
): BoundTransaction => {
  let doomed: string | null = null
  const heldBack = (batches: ReadonlyArray<Outgoing>): ReadonlyArray<ProduceOutcome> =>
    batches.map(({ partition, topic }) => ({
      ok: false,
      error: new HeldBack({ topic, partition, written: "unknown" })
    }))
  const abort = Effect.suspend(() =>
    Effect.map(producer.abort, (outcome) => outcome.kind === "aborted" ? aborted(doomed ?? "given up") : outcome)
  )
  const produce: BoundTransaction["produce"] = (batches) =>
    Effect.suspend(() => {
      if (doomed !== null) return Effect.succeed(heldBack(batches))
      const doom = (error: { readonly message: string }) =>
        Effect.sync(() => {
          doomed = error.message
          return heldBack(batches)
        })
      return producer.produce(batches).pipe(Effect.catchTags({ TransactionMustAbort: doom, ProducerFenced: doom }))
    })
  return {
    produce,
    stage: (ranges, _outputs, notes = []) =>
      Effect.gen(function*() {
        const refused = (notes.length === 0 ? [] : yield* produce(notes)).find((outcome) => !outcome.ok)
        if (refused?.ok === false) doomed ??= `its offset note could not be written: ${refused.error.message}`
        if (doomed !== null || ranges.length === 0) return
        const who = member()
        if (who === null || who.memberEpoch <= 0) {
          doomed = "this worker is not a member of the share group now"
          return
        }
        // An interruption leaves it undone: then nothing may be committed.
        doomed = "its acknowledgements were not all staged"
        const staged = stageAll({
          cluster: options.source,
          draft,
          purpose,
          transactionalId: producer.transactionalId,
          identity,
          member: who
        }, ranges)
        doomed = yield* Effect.catch(producer.participate(staged), (error) => Effect.succeed(error.message))
      }),
    commit: Effect.suspend(() => doomed === null ? producer.commit : abort),
    abort
  }
}

const makeBinding = (
  options: Kip1289Options,
  lane: { readonly name: string; readonly member?: () => ShareMember | null }
): Effect.Effect<Binding, BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const draft = yield* Effect.mapError(draftOf(options.target), (error) => stopped(error.message))
    if (draft === null) return yield* stopped("the brokers do not offer TxnShareAcknowledge any more")
    const purpose = `kip1289-${lane.name}`
    const { onRecover, onStall, settings } = options
    const transactionalId = options.transactionalId(lane.name)
    const producer = yield* makeTransactionalProducer({
      cluster: options.target,
      purpose,
      transactionalId,
      onWaiting: (reason) => options.onWaiting?.(transactionalId, reason),
      ...(settings === undefined ? {} : { settings }),
      ...(onStall === undefined ? {} : { onStall }),
      ...(onRecover === undefined ? {} : { onRecover })
    })
    yield* Effect.addFinalizer(() =>
      Effect.andThen(Effect.timeoutOption(producer.abort, 5_000), options.source.release(purpose))
    )
    const refused = Effect.mapError((error: { readonly message: string }) => stopped(error.message))
    return {
      name: "kip-1289",
      guarantee: "exactly-once",
      settlesItself: true,
      start: producer.init.pipe(refused),
      triage: (ranges) => Effect.succeed({ done: [], wait: [], ours: ranges }),
      begin: Effect.gen(function*() {
        yield* producer.begin.pipe(refused)
        const identity = yield* producer.identity
        if (identity === null) return yield* stopped("the producer has no identity after it was given one")
        return transactionOf(options, producer, draft, identity, lane.member ?? (() => null), purpose)
      })
    }
  })

export const kip1289 = (options: Kip1289Options): BindingCandidate => ({
  name: "kip-1289",
  guarantee: "exactly-once",
  support: support(options),
  make: (lane) => makeBinding(options, lane)
})
