/**
 * What every exchange with a broker has in common: how a request lists partitions, and what happens when the
 * session is lost.
 */
import { Effect } from "effect"
import { BrokerError, isOwnMistake, type WireError } from "../wire/errors.ts"
import { size } from "../wire/ranges.ts"
import { nowMs } from "../wire/retry.ts"
import type { AckUnit } from "./ackQueue.ts"
import { backoffMs, type BrokerLink, type ShareCore } from "./core.ts"
import { NO_SHARE_GROUPS, ShareError } from "./errors.ts"
import type { TopicIdPartition } from "./session.ts"
import { brokerAnswered, brokerSilent } from "./unreachable.ts"
import { Code, topVerdict } from "./verdicts.ts"

/** Partitions grouped by topic id, as requests list them. */
export const byTopic = <P extends TopicIdPartition, V>(
  partitions: Iterable<P>,
  value: (partition: P) => V
): ReadonlyArray<{ readonly topicId: string; readonly partitions: ReadonlyArray<V> }> => {
  const topics = new Map<string, Array<V>>()
  for (const p of partitions) {
    const list = topics.get(p.topicId)
    if (list === undefined) topics.set(p.topicId, [value(p)])
    else list.push(value(p))
  }
  return [...topics].map(([topicId, list]) => ({ topicId, partitions: list }))
}

export type AckBatchesInFlight = ReadonlyMap<string, ReadonlyArray<AckUnit>>

/**
 * The session is gone, and with it all that was held in it. Its connection is closed: that makes the broker release
 * what it still believes to be ours, at once, instead of when the locks end. `acks`: those of the request that found
 * it out; whoever waits for one hears of it when the loss is already on record.
 */
export const loseSession = Effect.fnUntraced(
  function*(
    core: ShareCore,
    link: BrokerLink,
    why: string,
    acks: AckBatchesInFlight = new Map(),
    outcome: "unknown" | "lost" = "lost"
  ) {
    link.session.reset()
    const lost = link.book.loseAll(why)
    link.acks.unanswered(acks, outcome, why)
    link.acks.lose(why)
    link.book.sweep()
    const records = lost.reduce((sum, hold) => sum + size(hold.ranges), 0)
    if (!link.closing) core.emit({ kind: "sessionLost", broker: link.broker, why, heldLost: records })
    yield* core.cluster.release(link.purpose)
  }
)

const pauseLink = Effect.fnUntraced(function*(core: ShareCore, link: BrokerLink) {
  link.failures++
  link.retryAtMs = (yield* nowMs) + backoffMs(core.options, link.failures)
})

/** No answer, or none that can be read. */
export const afterFailure = Effect.fnUntraced(
  function*(core: ShareCore, link: BrokerLink, acks: AckBatchesInFlight, error: WireError) {
    if (error._tag === "UnsupportedError") {
      core.fail(new ShareError({ reason: "unsupported", groupId: core.groupId, what: NO_SHARE_GROUPS }))
    }
    const own = isOwnMistake(error)
    if (own) core.fail(new ShareError({ reason: "internal", groupId: core.groupId, what: error.message }))
    const unsent = own || (error._tag === "ConnectionError" && error.outcome === "unsent")
    yield* loseSession(core, link, error.message, acks, unsent ? "lost" : "unknown")
    yield* pauseLink(core, link)
    brokerSilent(core, link, error.message)
    // The broker may be gone for good: who leads its partitions now?
    for (const partition of link.wanted.values()) {
      core.reroute({
        topic: core.topicName(partition.topicId),
        partition: partition.partition,
        leader: null,
        endpoint: null
      })
    }
  }
)

/** The answer's own error code. True when the answer holds more than that. */
export const topLevel = Effect.fnUntraced(
  function*(
    core: ShareCore,
    link: BrokerLink,
    acks: AckBatchesInFlight,
    api: string,
    code: number,
    detail: string | null
  ) {
    const verdict = topVerdict(code)
    if (verdict === "ok") {
      link.failures = 0
      brokerAnswered(core, link)
      return true
    }
    const error = new BrokerError({ api, code, subject: `group ${core.groupId}`, detail })
    // The broker looks at the session before it looks at acknowledgements: none was applied.
    yield* loseSession(core, link, error.message, acks)
    if (verdict === "fatal") {
      const reason = code === Code.groupAuthorizationFailed || code === Code.clusterAuthorizationFailed
        ? "authorization"
        : "refused"
      core.fail(new ShareError({ reason, groupId: core.groupId, what: error.message }))
    }
    if (verdict !== "reopen" || link.failures > 0) yield* pauseLink(core, link)
    else link.failures = 1
    return false
  }
)
