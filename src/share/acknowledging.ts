/**
 * ShareAcknowledge: acknowledgements alone, renewals of locks (KIP-1222, version 2), and the end of a session.
 *
 * A renewal's request may carry acknowledgements too. They are kept in separate requests where both are due for one
 * partition, as the broker decides a partition's ranges together: a lost lock must not cost an acknowledgement.
 */
import { Effect, Result } from "effect"
import { kafkaError } from "../wire/kafkaErrors.ts"
import { shareAcknowledge } from "../wire/messages/shareAcknowledge.ts"
import * as Ranges from "../wire/ranges.ts"
import type { ResponseOf } from "../wire/schema.ts"
import { nowMs } from "../wire/retry.ts"
import { ackBatches, type WireAckType } from "./acknowledgement.ts"
import type { AckUnit } from "./ackQueue.ts"
import { acknowledgedBy } from "./answers.ts"
import type { BrokerLink, ShareCore } from "./core.ts"
import { afterFailure, byTopic, loseSession, topLevel } from "./exchange.ts"
import type { Hold } from "./held.ts"
import { FINAL_EPOCH, partitionKey, type TopicIdPartition } from "./session.ts"
import { ackVerdict } from "./verdicts.ts"

type AckAnswer = ResponseOf<typeof shareAcknowledge>
type AckPartition = AckAnswer["responses"][number]["partitions"][number]
interface Entry extends TopicIdPartition {
  readonly ranges: ReadonlyArray<Ranges.OffsetRange & { readonly type: WireAckType }>
}

const request = (core: ShareCore, link: BrokerLink, epoch: number, isRenewAck: boolean, entries: Iterable<Entry>) =>
  core.cluster.request({ kind: "broker", id: link.broker }, shareAcknowledge, {
    groupId: core.groupId,
    memberId: core.memberId,
    shareSessionEpoch: epoch,
    isRenewAck,
    topics: byTopic(entries, (e) => ({ partitionIndex: e.partition, acknowledgementBatches: ackBatches(e.ranges) }))
  }, { purpose: link.purpose, timeoutMs: core.options.requestTimeoutMs, ...(isRenewAck ? { minVersion: 2 } : {}) })

/** Whether this broker renews locks, asked once in each link's life. */
const canRenew = Effect.fnUntraced(function*(core: ShareCore, link: BrokerLink) {
  if (link.renewing !== null) return link.renewing
  const version = yield* Effect.result(core.cluster.negotiate({ kind: "broker", id: link.broker }, shareAcknowledge))
  // No answer is no reason to give up renewing: the request itself will say what is wrong.
  if (Result.isFailure(version)) return true
  link.renewing = version.success >= 2
  if (!link.renewing) noRenewal(core, link, "the broker is older than Kafka 4.2")
  return link.renewing
})
const noRenewal = (core: ShareCore, link: BrokerLink, why: string): void => {
  link.renewing = false
  core.emit({ kind: "renewalUnavailable", broker: link.broker, why })
}

/** Sends what waits to be acknowledged, and renewals of these holds. */
export const sendAcknowledge = Effect.fnUntraced(
  function*(core: ShareCore, link: BrokerLink, due: ReadonlyArray<Hold>) {
    const renewed = due.length > 0 && (yield* canRenew(core, link))
      ? groupHolds(due)
      : new Map<string, ReadonlyArray<Hold>>()
    if (renewed.size > 0) yield* renew(core, link, renewed)
    if (!link.session.isOpen || link.acks.isEmpty || link.retryAtMs > (yield* nowMs)) return
    const acks = link.acks.next()
    const answer = yield* Effect.result(request(core, link, link.session.epoch, false, ackEntries(acks)))
    if (Result.isFailure(answer)) return yield* afterFailure(core, link, acks, answer.failure)
    if (
      !(yield* topLevel(core, link, acks, "ShareAcknowledge", answer.success.errorCode, answer.success.errorMessage))
    ) return
    link.session.acknowledged()
    settleAnswer(core, link, acks, answer.success, yield* nowMs)
  }
)

const groupHolds = (holds: ReadonlyArray<Hold>): ReadonlyMap<string, ReadonlyArray<Hold>> =>
  Map.groupBy(holds, partitionKey)

const ackEntries = (acks: ReadonlyMap<string, ReadonlyArray<AckUnit>>): ReadonlyArray<Entry> =>
  [...acks.values()].map((units) => {
    const { topicId, partition } = (units[0] as AckUnit).hold
    return { topicId, partition, ranges: units.map((u) => u.part) }
  })

const settleAnswer = (
  core: ShareCore,
  link: BrokerLink,
  acks: ReadonlyMap<string, ReadonlyArray<AckUnit>>,
  answer: AckAnswer,
  nowMs: number
): void => {
  const unanswered = new Map(acks)
  for (const [at, partition] of partitionsOf(answer)) {
    const units = unanswered.get(partitionKey(at))
    if (units === undefined) continue
    unanswered.delete(partitionKey(at))
    acknowledgedBy(
      core,
      link,
      at,
      link.acks.answered(units, "ShareAcknowledge", partition.errorCode, partition.errorMessage),
      nowMs
    )
  }
  link.acks.unanswered(unanswered, "unknown", "the broker's answer does not mention the partition")
  link.book.sweep()
}

const partitionsOf = function*(answer: AckAnswer): Generator<readonly [TopicIdPartition, AckPartition]> {
  for (const topic of answer.responses) {
    for (const partition of topic.partitions) {
      yield [{ topicId: topic.topicId, partition: partition.partitionIndex }, partition]
    }
  }
}

const renewEntry = (holds: ReadonlyArray<Hold>): Entry => {
  const { topicId, partition } = holds[0] as Hold
  return { topicId, partition, ranges: holds.flatMap((h) => h.held.map((r) => ({ ...r, type: "renew" as const }))) }
}

/** Renews together; what is refused together is asked hold by hold, so that only the lost lock is given up. */
const renew = Effect.fnUntraced(
  function*(core: ShareCore, link: BrokerLink, groups: ReadonlyMap<string, ReadonlyArray<Hold>>) {
    const alone: Array<Hold> = []
    if (!(yield* renewOnce(core, link, groups, alone))) return
    for (const hold of alone) {
      if (!link.session.isOpen || hold.held.length === 0) continue
      if (!(yield* renewOnce(core, link, new Map([[partitionKey(hold), [hold]]]), []))) return
    }
    link.book.sweep()
  }
)

/**
 * A group that does not allow renewing answers with the code of a lost lock (INVALID_RECORD_STATE), and only these
 * words tell them apart (Kafka 4.4.0, SharePartition). Taking the one for the other would give up what is ours.
 */
const RENEWAL_OFF = /renew.* not enabled/i

/** One renewal request. False when the session is lost or renewing is not allowed. */
const renewOnce = Effect.fnUntraced(
  function*(core: ShareCore, link: BrokerLink, groups: ReadonlyMap<string, ReadonlyArray<Hold>>, alone: Array<Hold>) {
    const requestedAtMs = yield* nowMs
    const result = yield* Effect.result(
      request(core, link, link.session.epoch, true, [...groups.values()].map(renewEntry))
    )
    if (Result.isFailure(result)) {
      yield* afterFailure(core, link, new Map(), result.failure)
      return false
    }
    const answer = result.success
    if (!(yield* topLevel(core, link, new Map(), "ShareAcknowledge", answer.errorCode, answer.errorMessage))) {
      return false
    }
    link.session.acknowledged()
    const unanswered = new Map(groups)
    let records = 0
    for (const [at, partition] of partitionsOf(answer)) {
      const holds = unanswered.get(partitionKey(at)) ?? []
      unanswered.delete(partitionKey(at))
      if (partition.errorMessage !== null && RENEWAL_OFF.test(partition.errorMessage)) {
        noRenewal(core, link, partition.errorMessage)
        continue
      }
      switch (ackVerdict(partition.errorCode)) {
        case "done":
          for (const hold of holds) {
            hold.renewed(
              requestedAtMs,
              answer.acquisitionLockTimeoutMs > 0 ? answer.acquisitionLockTimeoutMs : hold.lockTimeoutMs
            )
            records += Ranges.size(hold.held)
          }
          break
        case "gone":
          if (holds.length > 1) alone.push(...holds)
          else for (const hold of holds) giveUp(core, hold, partition)
          break
        case "moved":
          acknowledgedBy(core, link, at, "moved", requestedAtMs)
          break
        case "refused":
          for (const hold of holds) hold.renewable = false
          break
        case "again":
          acknowledgedBy(core, link, at, "again", requestedAtMs)
      }
    }
    for (const holds of unanswered.values()) acknowledgedBy(core, link, holds[0] as Hold, "again", requestedAtMs)
    if (records > 0) core.emit({ kind: "renewed", broker: link.broker, records })
    return true
  }
)

const giveUp = (core: ShareCore, hold: Hold, partition: AckPartition): void => {
  const known = kafkaError(partition.errorCode)
  const why = `${known.name}: ${partition.errorMessage ?? known.sentence}`
  const ranges = hold.loseAll(why)
  if (ranges.length > 0) core.emit({ kind: "lost", topic: hold.topic, partition: hold.partition, ranges, why })
}

/**
 * Ends the session. First the acknowledgements that wait; then the close itself, by which the broker releases all
 * that is still held, so that another member gets it at once. What this cannot do (no answer in time), closing the
 * connection does.
 */
export const sendClose = Effect.fnUntraced(function*(core: ShareCore, link: BrokerLink) {
  while (link.session.isOpen && !link.acks.isEmpty) {
    link.retryAtMs = 0
    yield* sendAcknowledge(core, link, [])
  }
  if (link.session.isOpen) {
    yield* Effect.result(request(core, link, FINAL_EPOCH, false, []))
    yield* loseSession(core, link, "released: the consumer is closed")
  } else link.acks.lose("the consumer is closed")
})
