/**
 * What a ShareFetch answer says: which acknowledgements were applied, what was acquired, and what is wrong with a
 * partition.
 */
import { Clock, Effect } from "effect"
import { kafkaError } from "../wire/kafkaErrors.ts"
import type { shareFetch } from "../wire/messages/shareFetch.ts"
import type { ResponseOf } from "../wire/schema.ts"
import { nowMs } from "../wire/retry.ts"
import { backoffMs, type BrokerLink, type ShareCore } from "./core.ts"
import { type AckBatchesInFlight, topLevel } from "./exchange.ts"
import { type AcquiredRange, Hold } from "./held.ts"
import { type FetchPlan, partitionKey, type TopicIdPartition } from "./session.ts"
import { type FetchVerdict, fetchVerdict } from "./verdicts.ts"

type FetchAnswer = ResponseOf<typeof shareFetch>
type PartitionAnswer = FetchAnswer["responses"][number]["partitions"][number]

export interface FetchExchange {
  readonly plan: FetchPlan
  readonly named: ReadonlyMap<string, TopicIdPartition>
  readonly acks: AckBatchesInFlight
  /** Monotonic: what a lock counts from. */
  readonly requestedAtMs: number
}

export const applyFetch = Effect.fnUntraced(
  function*(core: ShareCore, link: BrokerLink, sent: FetchExchange, answer: FetchAnswer) {
    if (!(yield* topLevel(core, link, sent.acks, "ShareFetch", answer.errorCode, answer.errorMessage))) return
    link.session.fetched(sent.plan, sent.named.values())
    const now = yield* nowMs
    const acquiredAtMs = yield* Clock.currentTimeMillis
    const unanswered = new Map(sent.acks)
    for (const topic of answer.responses) {
      for (const partition of topic.partitions) {
        const at = { topicId: topic.topicId, partition: partition.partitionIndex }
        const key = partitionKey(at)
        const units = unanswered.get(key)
        if (units !== undefined) {
          unanswered.delete(key)
          acknowledgedBy(
            core,
            link,
            at,
            link.acks.answered(units, "ShareFetch", partition.acknowledgeErrorCode, partition.acknowledgeErrorMessage),
            now
          )
        }
        const verdict = fetchVerdict(partition.errorCode)
        if (verdict === "ok") {
          if (link.paused.get(key)?.told === true) {
            core.emit({ kind: "partitionRecovered", topic: core.topicName(topic.topicId), partition: at.partition })
          }
          link.paused.delete(key)
          acquire(core, link, at, partition, answer.acquisitionLockTimeoutMs, sent.requestedAtMs, acquiredAtMs)
        } else troubled(core, link, at, partition, verdict, endpointOf(answer, partition.currentLeader.leaderId), now)
      }
    }
    link.acks.unanswered(unanswered, "unknown", "the broker's answer does not mention the partition")
    link.book.sweep()
  }
)

const endpointOf = (answer: { readonly nodeEndpoints: FetchAnswer["nodeEndpoints"] }, id: number) => {
  const found = answer.nodeEndpoints.find((n) => n.nodeId === id)
  return found === undefined ? null : { id: found.nodeId, host: found.host, port: found.port, rack: found.rack }
}

/** After the broker's word on acknowledgements: a moved partition takes all that is held of it along. */
export const acknowledgedBy = (
  core: ShareCore,
  link: BrokerLink,
  at: TopicIdPartition,
  said: "ok" | "moved" | "again",
  nowMs: number
): void => {
  if (said === "moved") losePartition(core, link, at, "the partition has another leader")
  if (said === "again") {
    link.failures++
    link.retryAtMs = nowMs + backoffMs(core.options, link.failures)
  }
}

const losePartition = (core: ShareCore, link: BrokerLink, at: TopicIdPartition, why: string): void => {
  for (const hold of link.book.loseAll(why, at)) {
    core.emit({ kind: "lost", topic: hold.topic, partition: hold.partition, ranges: hold.ranges, why })
  }
  link.acks.lose(why, partitionKey(at))
  core.reroute({ topic: core.topicName(at.topicId), partition: at.partition, leader: null, endpoint: null })
}

const troubled = (
  core: ShareCore,
  link: BrokerLink,
  at: TopicIdPartition,
  partition: PartitionAnswer,
  verdict: FetchVerdict,
  endpoint: ReturnType<typeof endpointOf>,
  nowMs: number
): void => {
  const topic = core.topicName(at.topicId)
  const key = partitionKey(at)
  const times = (link.paused.get(key)?.times ?? 0) + 1
  // A leader that moves is everyday life, and so is a share partition that its leader has yet to load (-1 in Kafka
  // 4.4.0). What needs people is said.
  const told = verdict === "denied" || times > 5
  link.paused.set(key, { times, told, untilMs: nowMs + backoffMs(core.options, times) })
  const leader = partition.currentLeader.leaderId >= 0 && verdict === "moved"
    ? { id: partition.currentLeader.leaderId, epoch: partition.currentLeader.leaderEpoch }
    : null
  if (verdict === "moved") losePartition(core, link, at, kafkaError(partition.errorCode).sentence)
  if (verdict === "moved" || verdict === "unknown") core.reroute({ topic, partition: at.partition, leader, endpoint })
  if (told) {
    const known = kafkaError(partition.errorCode)
    core.emit({
      kind: "partitionProblem",
      topic,
      partition: at.partition,
      code: partition.errorCode,
      why: `${known.name}: ${partition.errorMessage ?? known.sentence}`
    })
  }
}

/** The same records may be held from before, of this broker or of the leader before it: two of us must not work on them. */
const supersede = (core: ShareCore, by: Hold): void => {
  for (const link of core.links.values()) {
    for (const { hold, ranges } of link.book.supersede(by)) {
      core.emit({ kind: "lost", topic: hold.topic, partition: hold.partition, ranges, why: hold.lostWhy ?? "" })
    }
  }
}

const acquire = (
  core: ShareCore,
  link: BrokerLink,
  at: TopicIdPartition,
  partition: PartitionAnswer,
  lockTimeoutMs: number,
  requestedAtMs: number,
  acquiredAtMs: number
): void => {
  const ranges = acquiredRanges(partition.acquiredRecords)
  if (ranges.length === 0) return
  const hold = new Hold({
    topic: core.topicName(at.topicId),
    topicId: at.topicId,
    partition: at.partition,
    ranges,
    records: partition.records ?? Buffer.alloc(0),
    broker: link.broker,
    requestedAtMs,
    acquiredAtMs,
    // Never zero, whatever a broker says: a lock without length would be renewed without pause.
    lockTimeoutMs: Math.max(1000, lockTimeoutMs),
    generation: link.session.generation
  })
  supersede(core, hold)
  link.book.add(hold)
  link.waiting = true
  core.arrivals.push(hold)
  core.arrived.openUnsafe()
}

/** Ascending and disjoint, whatever the broker's order; of ranges that overlap the first one counts. */
const acquiredRanges = (given: PartitionAnswer["acquiredRecords"]): ReadonlyArray<AcquiredRange> => {
  const out: Array<AcquiredRange> = []
  let next = 0
  for (const range of [...given].sort((a, b) => a.firstOffset - b.firstOffset)) {
    const first = Math.max(next, range.firstOffset)
    if (range.lastOffset < first) continue
    out.push({ first, last: range.lastOffset, deliveryCount: range.deliveryCount })
    next = range.lastOffset + 1
  }
  return out
}
