/**
 * The fiber that speaks with one broker: fetches, acknowledgements and renewals, strictly one after the other, as a
 * share session demands.
 *
 * What goes next, in this order: close; renewals that are due (with the acknowledgements that wait); a fetch, when
 * a poll asks and the last answer was taken (acknowledgements ride on it); acknowledgements alone. So a lock is
 * never lost to a fetch, and an acknowledgement waits for one long poll at most.
 *
 * Not polling is how a consumer is held still: nothing is fetched, locks are renewed for as long as it takes, and
 * no delivery is spent. Where brokers cannot renew (before Kafka 4.2, or share.renew.acknowledge.enable=false) the
 * locks run out: releasing them just before would spend the same one delivery of each record, and might give up a
 * record whose acknowledgement was about to come.
 */
import { Effect, Result } from "effect"
import { shareFetch } from "../wire/messages/shareFetch.ts"
import { nowMs } from "../wire/retry.ts"
import { applyFetch } from "./answers.ts"
import { sendAcknowledge, sendClose } from "./acknowledging.ts"
import { type BrokerLink, type Demand, type ShareCore } from "./core.ts"
import { ackBatches } from "./acknowledgement.ts"
import type { AckUnit } from "./ackQueue.ts"
import { afterFailure, byTopic } from "./exchange.ts"
import type { Hold } from "./held.ts"
import { partitionKey, type TopicIdPartition } from "./session.ts"

export type Step =
  | { readonly kind: "close" | "end" | "acknowledge" }
  | { readonly kind: "renew"; readonly holds: ReadonlyArray<Hold> }
  | { readonly kind: "fetch"; readonly demand: Demand; readonly wanted: ReadonlyMap<string, TopicIdPartition> }
  | { readonly kind: "wait"; readonly untilMs: number }

/** Those of the wanted partitions that are not left out for now, and when the next of them comes back. */
export const readyPartitions = (
  core: ShareCore,
  link: BrokerLink,
  nowMs: number
): { readonly ready: ReadonlyMap<string, TopicIdPartition>; readonly nextMs: number } => {
  if (link.paused.size === 0 && core.resting.size === 0) return { ready: link.wanted, nextMs: Infinity }
  const ready = new Map<string, TopicIdPartition>()
  let nextMs = Infinity
  for (const [key, partition] of link.wanted) {
    if (core.resting.has(`${core.topicName(partition.topicId)}-${partition.partition}`)) continue
    const pause = link.paused.get(key)
    if (pause !== undefined && pause.untilMs > nowMs) nextMs = Math.min(nextMs, pause.untilMs)
    else ready.set(key, partition)
  }
  return { ready, nextMs }
}

/** What to do next. Pure but for expiring locks. */
export const nextStep = (core: ShareCore, link: BrokerLink, nowMs: number): Step => {
  if (link.closing) return { kind: "close" }
  for (const hold of link.book.expire(nowMs)) {
    core.emit({
      kind: "lost",
      topic: hold.topic,
      partition: hold.partition,
      ranges: hold.ranges,
      why: hold.lostWhy ?? ""
    })
  }
  if (link.retryAtMs > nowMs) return { kind: "wait", untilMs: link.retryAtMs }
  const renewals = link.renewing === false ? [] : link.book.renewals(nowMs)
  if (renewals.length > 0) return { kind: "renew", holds: renewals }
  const { ready, nextMs } = readyPartitions(core, link, nowMs)
  if (core.demand !== null && !link.waiting && ready.size > 0 && core.failure === null) {
    return { kind: "fetch", demand: core.demand, wanted: ready }
  }
  if (!link.acks.isEmpty) return { kind: "acknowledge" }
  if (link.wanted.size === 0 && link.book.isEmpty) return { kind: link.session.isOpen ? "close" : "end" }
  return {
    kind: "wait",
    untilMs: Math.min(link.book.nextDueMs(link.renewing !== false), core.demand === null ? Infinity : nextMs)
  }
}

/** A wait with no reason to end is looked at again after this, so that a missed wake-up is a delay, not a hang. */
const LONGEST_WAIT_MS = 10_000

/** Runs until the consumer closes, or the broker leads nothing of ours and nothing of it is held. Never fails. */
export const runLink = Effect.fnUntraced(function*(core: ShareCore, link: BrokerLink) {
  while (true) {
    link.wake.closeUnsafe()
    const now = yield* nowMs
    const step = nextStep(core, link, now)
    switch (step.kind) {
      case "wait":
        yield* link.wake.await.pipe(Effect.timeoutOption(Math.max(1, Math.min(step.untilMs - now, LONGEST_WAIT_MS))))
        break
      case "fetch":
        yield* sendFetch(core, link, step.demand, step.wanted)
        break
      case "renew":
        yield* sendAcknowledge(core, link, step.holds)
        break
      case "acknowledge":
        yield* sendAcknowledge(core, link, [])
        break
      case "close":
        yield* sendClose(core, link)
        return end(core, link)
      case "end":
        return end(core, link)
    }
  }
})

const end = (core: ShareCore, link: BrokerLink): void => {
  link.markEnded()
  if (core.links.get(link.broker) === link) core.links.delete(link.broker)
  // Wanted again since the decision to end: the router starts a new one.
  core.routing.openUnsafe()
}

const sendFetch = Effect.fnUntraced(
  function*(core: ShareCore, link: BrokerLink, demand: Demand, wanted: ReadonlyMap<string, TopicIdPartition>) {
    const acks: ReadonlyMap<string, ReadonlyArray<AckUnit>> = link.session.isOpen ? link.acks.next() : new Map()
    const plan = link.session.plan(wanted, new Set(acks.keys()))
    const named = new Map<string, TopicIdPartition & { readonly units: ReadonlyArray<AckUnit> }>()
    for (const p of plan.add) named.set(partitionKey(p), { ...p, units: [] })
    for (const [key, units] of acks) {
      const hold = (units[0] as AckUnit).hold
      named.set(key, { topicId: hold.topicId, partition: hold.partition, units })
    }
    const longest = link.book.isEmpty && acks.size === 0 ? core.options.fetchMaxWaitMs : core.options.fetchMaxWaitHeldMs
    // The wire takes whole milliseconds.
    const maxWaitMs = Math.ceil(Math.min(demand.maxWaitMs, longest))
    const requestedAtMs = yield* nowMs
    const answer = yield* Effect.result(core.cluster.request({ kind: "broker", id: link.broker }, shareFetch, {
      groupId: core.groupId,
      memberId: core.memberId,
      shareSessionEpoch: plan.epoch,
      maxWaitMs,
      minBytes: 1,
      maxBytes: demand.maxBytes,
      maxRecords: demand.maxRecords,
      batchSize: demand.maxRecords,
      topics: byTopic(
        named.values(),
        (p) => ({
          partitionIndex: p.partition,
          acknowledgementBatches: ackBatches(p.units.map((u) => u.part))
        })
      ),
      forgottenTopicsData: byTopic(plan.forget, (p) => p.partition)
    }, { purpose: link.purpose, timeoutMs: maxWaitMs + core.options.requestTimeoutMs }))
    if (Result.isFailure(answer)) return yield* afterFailure(core, link, acks, answer.failure)
    yield* applyFetch(core, link, { plan, named, acks, requestedAtMs }, answer.success)
  }
)
