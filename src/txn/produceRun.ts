/**
 * One call of `produce`: what is to be sent, what has been answered, what comes out. Plain state, changed by one
 * fiber; producer.ts drives it with requests and time.
 *
 * Guarantees: a partition's batches are settled in the caller's order unless one failed and the rest goes on
 * (`afterFailure: "continue"`); every batch gets exactly one outcome; after `giveUp` the partitions are fit for the
 * next call (what was in flight is fenced by a new epoch first, see sequences.ts).
 */
import { splitBatches } from "../wire/batch/recordBatch.ts"
import { passThroughVerdict } from "../wire/batch/passThrough.ts"
import { rewriteForProduce } from "../wire/batch/rewrite.ts"
import { type BrokerNode } from "../wire/cluster.ts"
import { BrokerError, isOwnMistake, type WireError } from "../wire/errors.ts"
import { type ProtocolError } from "../wire/bytes.ts"
import { type Partition, type Partitions } from "./partitions.ts"
import {
  CONCURRENT_TRANSACTIONS,
  failuresBeforeWord,
  judgeProduce,
  takesNothing,
  type Verdict
} from "./produceAnswers.ts"
import {
  DeliveryTimedOut,
  HeldBack,
  PartitionBlocked,
  type ProduceFailure,
  type ProducerError,
  ProducerFenced,
  ProducerRefused,
  RecordRefused,
  TransactionMustAbort
} from "./produceErrors.ts"
import { type Answer, type Item, matchAnswers, outgoing, type OutgoingRequest, type Part } from "./produceRequest.ts"
import type { ProducerSettings } from "./producerSettings.ts"
import type { produce } from "../wire/messages/produce.ts"
import type { ResponseOf } from "../wire/schema.ts"
import type { Routes } from "./routes.ts"
import type { Identity, Slot, Step } from "./sequences.ts"

/** One record batch for one partition of the target. */
export interface Outgoing {
  readonly topic: string
  readonly partition: number
  /** Exactly one batch of format 2. Its header is rewritten in place; leave it alone until the outcome is there. */
  readonly bytes: Buffer
}

export type ProduceOutcome =
  /** baseOffset is -1 when the broker only knows that it has the batch; logAppendTimeMs is -1 with create time. */
  | { readonly ok: true; readonly baseOffset: number; readonly logAppendTimeMs: number }
  | { readonly ok: false; readonly error: ProduceFailure }

/** INVALID_RECORD: what a broker would answer to a batch that cannot go through as bytes. */
const INVALID_RECORD = 87
const UNKNOWN_TOPIC_OR_PARTITION = 3
const LEADER_NOT_AVAILABLE = 5

export interface RunContext {
  readonly settings: ProducerSettings
  readonly partitions: Partitions
  readonly routes: Routes
  /** The producer id to begin with; null until one was given. */
  readonly identity: { readonly current: Identity | null }
  /** null: idempotent only. */
  readonly transactionalId: string | null
  /** See PartitionSequences.assign. */
  readonly zeroFirst: boolean
  readonly onStall: (partition: Partition, reason: string, now: number) => void
  readonly onRecover: (partition: Partition) => void
  /** A leader's address that a broker named in its answer. */
  readonly onLeader: (
    topic: string,
    partition: number,
    leader: { readonly id: number; readonly epoch: number },
    endpoint: BrokerNode | undefined
  ) => void
}

export class ProduceRun {
  readonly #context: RunContext
  readonly #outcomes: Array<ProduceOutcome | null>
  readonly #active = new Map<string, Partition>()
  readonly #inFlight = new Map<number, number>()
  /** Partitions where a batch could not even be sent: what follows it there is held back. */
  readonly #held = new Set<string>()
  #open: number
  /** Spreads the tries of many producers, 0.8 to 1.2; the driver draws it. */
  jitter = 1
  failed: ProducerError | null = null
  /** Some partition needs a producer id before it can go on. */
  needsIdentity = false

  constructor(context: RunContext, batches: ReadonlyArray<Outgoing>) {
    this.#context = context
    this.#outcomes = batches.map(() => null)
    this.#open = batches.length
    batches.forEach((batch, index) => this.#add(batch, index))
  }

  get done(): boolean {
    return this.#open === 0
  }
  /** In the order of the call; complete once `done`. */
  get outcomes(): ReadonlyArray<ProduceOutcome> {
    return this.#outcomes.filter((outcome) => outcome !== null)
  }
  get active(): Iterable<Partition> {
    return this.#active.values()
  }

  #add(batch: Outgoing, index: number): void {
    const { topic, partition, bytes } = batch
    const views = splitBatches(bytes)
    const view = views[0]
    const verdict = view !== undefined && views.length === 1 && view.sizeInBytes === bytes.length
      ? passThroughVerdict(view)
      : null
    const key = `${topic}/${partition}`
    if (this.#held.has(key)) {
      return this.#settle(index, { ok: false, error: new HeldBack({ topic, partition, written: "no" }) })
    }
    if (view === undefined || verdict === null || !verdict.ok) {
      const detail = verdict === null || verdict.ok
        ? "the bytes are not exactly one record batch"
        : `the batch cannot go as it is: ${verdict.reason}`
      if (this.#context.settings.afterFailure === "hold") this.#held.add(key)
      const error = new RecordRefused({
        topic,
        partition,
        code: INVALID_RECORD,
        detail,
        recordErrors: [],
        written: "no"
      })
      return this.#settle(index, { ok: false, error })
    }
    const target = this.#context.partitions.of(topic, partition)
    this.#active.set(target.key, target)
    target.sequences.enqueue(
      { index, topic, partition, view, lastCode: null, attempts: 0, held: false },
      view.lastOffsetDelta + 1
    )
  }

  #settle(index: number, outcome: ProduceOutcome): void {
    this.#outcomes[index] = outcome
    this.#open--
  }

  /** Topics whose leaders have to be asked for before something can be sent. */
  staleTopics(now: number): ReadonlyArray<string> {
    const names = new Set<string>()
    for (const p of this.#active.values()) {
      if (p.sequences.slots.length > 0 && p.notBefore <= now && this.#context.routes.isStale(p.topic)) {
        names.add(p.topic)
      }
    }
    return [...names]
  }

  /** The next request that may go out, with its batches numbered and rewritten; null when there is none now. */
  nextRequest(now: number): OutgoingRequest | null {
    const { maxInFlight, maxRequestBytes } = this.#context.settings
    let broker = -1
    let size = 0
    const parts: Array<Part> = []
    for (const p of this.#active.values()) {
      if (p.sequences.slots.length === 0 || p.notBefore > now || this.#context.routes.isStale(p.topic)) continue
      const route = this.#context.routes.find(p.topic, p.partition)
      if (route === null) {
        this.#context.routes.markStale(p.topic)
        const why = this.#context.routes.why(p.topic, p.partition)
        this.#pause(p, why, now, true)
        const missing = this.#context.routes.isMissing(p.topic, p.partition)
        this.#leaveOut(p, missing ? UNKNOWN_TOPIC_OR_PARTITION : LEADER_NOT_AVAILABLE, why, now)
        continue
      }
      if (broker === -1 ? (this.#inFlight.get(route.leader) ?? 0) >= maxInFlight : route.leader !== broker) continue
      const part = this.#take(p, parts.length === 0 ? Infinity : maxRequestBytes - size, route.topicId)
      if (part === null) continue
      broker = route.leader
      size += part.slot.item.view.sizeInBytes
      parts.push(part)
    }
    if (parts.length === 0) return null
    this.#inFlight.set(broker, (this.#inFlight.get(broker) ?? 0) + 1)
    return outgoing(broker, parts)
  }

  #take(p: Partition, room: number, topicId: string): Part | null {
    const step = this.#step(p)
    if (step.kind === "identity") this.needsIdentity = true
    if (step.kind === "broken") {
      this.failed ??= new TransactionMustAbort({ what: `a batch for ${p.topic}-${p.partition} is missing` })
    }
    if (step.kind !== "send" || step.slot.item.view.sizeInBytes > room) return null
    rewriteForProduce(step.slot.item.view, {
      producerId: step.identity.producerId,
      producerEpoch: step.identity.epoch,
      baseSequence: step.sequence,
      transactional: this.#context.transactionalId !== null
    })
    p.sequences.sent(step.slot)
    return { slot: step.slot, topicId }
  }

  /** The partition's next step, with the producer id that is there given to one that needs one. */
  #step(p: Partition): Step<Item> {
    const step = p.sequences.step()
    const { current } = this.#context.identity
    if (step.kind !== "identity" || current === null || current.producerId === p.sequences.identity?.producerId) {
      return step
    }
    p.sequences.assign(current, this.#context)
    return p.sequences.step()
  }

  /** `refused`: a target that answers says that the partition takes nothing for now. */
  #pause(p: Partition, reason: string, now: number, refused = false, code: number | null = null): void {
    p.pause(now, this.#context.settings, this.jitter, code === CONCURRENT_TRANSACTIONS)
    p.refusedSince = refused ? p.refusedSince ?? now : null
    p.lastReason = reason
    if (p.attempts > failuresBeforeWord(code)) this.#context.onStall(p, reason, now)
  }

  /** The leaders could not be asked for. A missing right blocks; everything else may pass. */
  metadataFailed(topics: ReadonlyArray<string>, error: WireError, now: number): void {
    const names = new Set(topics)
    for (const p of this.#active.values()) {
      if (!names.has(p.topic) || p.sequences.slots.length === 0) continue
      if (error._tag !== "BrokerError" || error.class !== "authorization") this.#pause(p, error.message, now)
      else for (const slot of [...p.sequences.slots].reverse()) this.#block(p, slot, error)
    }
  }

  /** The other partitions of the call go on without one that takes nothing for too long. */
  #leaveOut(p: Partition, code: number, detail: string | null, now: number): void {
    if (!p.isLeftOut(now, this.#context.settings)) return
    for (const slot of [...p.sequences.slots].reverse()) this.#block(p, slot, { code, detail })
  }

  #block(p: Partition, slot: Slot<Item>, error: { readonly code: number; readonly detail: string | null }): void {
    if (slot.state === "inFlight") return
    const written = slot.maybeWritten ? "unknown" : "no"
    p.sequences.drop(slot)
    this.#settle(slot.item.index, {
      ok: false,
      error: new PartitionBlocked({
        topic: p.topic,
        partition: p.partition,
        code: error.code,
        detail: error.detail,
        written
      })
    })
  }

  /** No producer id could be had for now. */
  identityFailed(reason: string, now: number): void {
    for (const p of this.#active.values()) {
      if (p.sequences.step().kind === "identity") this.#pause(p, reason, now)
    }
  }

  /** A request ended without an answer that can be read. */
  requestFailed(request: OutgoingRequest, error: WireError | ProtocolError, now: number): void {
    this.#answered(request)
    const refused = error._tag === "UnsupportedError" || isOwnMistake(error)
    if (refused) this.failed ??= new ProducerRefused({ what: error.message })
    const maybeWritten = !refused && !(error._tag === "ConnectionError" && error.outcome === "unsent")
    for (const { slot } of request.parts) {
      slot.item.lastCode = null
      this.#context.routes.markStale(slot.item.topic)
      this.#again(this.#partitionOf(slot), slot, maybeWritten, error.message, now)
    }
  }

  requestAnswered(request: OutgoingRequest, response: ResponseOf<typeof produce>, now: number): void {
    this.#answered(request)
    for (const [part, answer] of matchAnswers(request, response)) {
      const p = this.#partitionOf(part.slot)
      if (answer === null) {
        this.#again(p, part.slot, true, "the broker's answer leaves the partition out", now)
        continue
      }
      const endpoint = response.nodeEndpoints.find((node) => node.nodeId === answer.currentLeader.leaderId)
      this.#judge(
        p,
        part.slot,
        answer,
        endpoint && { id: endpoint.nodeId, host: endpoint.host, port: endpoint.port, rack: endpoint.rack },
        now
      )
    }
  }

  #answered(request: OutgoingRequest): void {
    this.#inFlight.set(request.broker, (this.#inFlight.get(request.broker) ?? 1) - 1)
  }
  #partitionOf(slot: Slot<Item>): Partition {
    return this.#context.partitions.of(slot.item.topic, slot.item.partition)
  }

  #judge(p: Partition, slot: Slot<Item>, answer: Answer, endpoint: BrokerNode | undefined, now: number): void {
    const verdict = this.#bounded(answer.errorCode, slot.item)
    const reason = (): string =>
      new BrokerError({
        api: "Produce",
        code: answer.errorCode,
        subject: `${p.topic}-${p.partition}`,
        detail: answer.errorMessage
      }).message
    switch (verdict.kind) {
      case "written": {
        p.sequences.written(slot)
        if (p.recovered()) this.#context.onRecover(p)
        return this.#settle(slot.item.index, {
          ok: true,
          baseOffset: verdict.duplicate ? -1 : answer.baseOffset,
          logAppendTimeMs: answer.logAppendTimeMs
        })
      }
      case "retry": {
        const { leaderEpoch, leaderId } = answer.currentLeader
        const known = this.#context.routes.learn(p.topic, p.partition, leaderId, leaderEpoch)
        if (known) this.#context.onLeader(p.topic, p.partition, { id: leaderId, epoch: leaderEpoch }, endpoint)
        else if (verdict.refresh) this.#context.routes.markStale(p.topic)
        const refused = takesNothing(answer.errorCode, verdict)
        this.#again(p, slot, verdict.maybeWritten, reason(), now, refused)
        if (known) p.notBefore = now
        if (refused) this.#leaveOut(p, answer.errorCode, answer.errorMessage, now)
        return
      }
      case "outOfOrder":
        if (slot.item.held) return this.#giveUpSlot(p, slot, true)
        p.sequences.outOfOrder(slot)
        if (p.sequences.hasHole) this.#pause(p, reason(), now)
        return
      case "identityLost":
        if (this.#context.transactionalId !== null) {
          this.failed ??= new TransactionMustAbort({ what: reason() })
          return p.sequences.retry(slot, { maybeWritten: false })
        }
        p.sequences.identityLost(slot)
        return this.#pause(p, reason(), now)
      case "refused":
      case "blocked":
        return this.#refuse(p, slot, verdict.kind, answer)
      case "abort":
      case "fenced":
      case "fatal":
        p.sequences.retry(slot, { maybeWritten: false })
        this.failed ??= verdict.kind === "fatal" ?
          new ProducerRefused({ what: reason() })
          : this.#context.transactionalId === null || verdict.kind === "abort" ?
          new TransactionMustAbort({ what: reason() })
          : new ProducerFenced({ transactionalId: this.#context.transactionalId, what: reason() })
    }
  }

  /**
   * A verdict "try again" that has been given too often in a row becomes what it says it becomes. Other failures in
   * between do not count: a batch that an outage held up for an hour is not to blame for the first damaged request.
   */
  #bounded(code: number, item: Item): Verdict {
    const verdict = judgeProduce(code)
    item.attempts = item.lastCode === code ? item.attempts + 1 : 1
    item.lastCode = code
    return verdict.kind !== "retry" || item.attempts < verdict.attempts ? verdict : { kind: verdict.then }
  }

  #again(p: Partition, slot: Slot<Item>, maybeWritten: boolean, reason: string, now: number, refused = false): void {
    p.sequences.retry(slot, { maybeWritten })
    if (slot.item.held) return this.#giveUpSlot(p, slot, false)
    this.#pause(p, reason, now, refused, slot.item.lastCode)
  }

  #refuse(p: Partition, slot: Slot<Item>, kind: "refused" | "blocked", answer: Answer): void {
    const at = p.sequences.slots.indexOf(slot)
    const behind = this.#context.settings.afterFailure === "hold" ? p.sequences.slots.slice(at + 1) : []
    const written = slot.maybeWritten ? "unknown" : "no"
    const { item } = slot
    const about = {
      topic: p.topic,
      partition: p.partition,
      code: answer.errorCode,
      detail: answer.errorMessage,
      written
    } as const
    // Newest first, so that numbers which surely were not used are free again without a new epoch.
    for (const next of [...behind].reverse()) {
      if (next.state === "inFlight") next.item.held = true
      else this.#giveUpSlot(p, next, false)
    }
    p.sequences.refused(slot)
    p.attempts = 0
    const error = kind === "blocked" ? new PartitionBlocked(about) : new RecordRefused({
      ...about,
      recordErrors: answer.recordErrors.map((e) => ({ batchIndex: e.batchIndex, message: e.batchIndexErrorMessage }))
    })
    this.#settle(item.index, { ok: false, error })
  }

  /** Gives a held batch up. `answered`: the broker has just said that it did not take it. */
  #giveUpSlot(p: Partition, slot: Slot<Item>, answered: boolean): void {
    const written = slot.maybeWritten ? "unknown" : "no"
    if (answered) p.sequences.refused(slot)
    else p.sequences.drop(slot)
    this.#settle(slot.item.index, {
      ok: false,
      error: new HeldBack({ topic: p.topic, partition: p.partition, written })
    })
  }

  /** Ends the run: what is not settled gets the outcome "timed out" (deadline), or none (interrupted, failed). */
  giveUp(deadlineMs: number | null): void {
    for (const p of this.#active.values()) {
      for (const slot of [...p.sequences.slots].reverse()) {
        const written = slot.maybeWritten || slot.state === "inFlight" ? "unknown" : "no"
        p.sequences.drop(slot)
        if (deadlineMs === null) continue
        const error = new DeliveryTimedOut({
          topic: p.topic,
          partition: p.partition,
          afterMs: deadlineMs,
          reason: p.lastReason,
          written
        })
        this.#settle(slot.item.index, { ok: false, error })
      }
    }
  }
}
