/**
 * Which broker is asked for which partition: the assignment (topic ids from the coordinator) joined with metadata
 * (names and leaders). Runs again whenever one of them changes; what has no name or leader yet is looked up again
 * after a back-off, for as long as it takes.
 */
import { Effect, Result } from "effect"
import type { TopicMetadata } from "../wire/cluster.ts"
import { backoffMs, BrokerLink, type ShareCore } from "./core.ts"
import { partitionKey, type TopicIdPartition } from "./session.ts"
import { forgetUnassigned, leaderless } from "./unreachable.ts"

export interface Routes {
  /** Of each broker, the partitions it leads. */
  readonly byBroker: ReadonlyMap<number, ReadonlyMap<string, TopicIdPartition>>
  /** Partitions without a leader, or whose topic has no name yet. */
  readonly unresolved: ReadonlyArray<TopicIdPartition>
}

/** Pure: the assignment over what metadata knows. */
export const computeRoutes = (
  assignment: ReadonlyMap<string, ReadonlyArray<number>>,
  topics: ReadonlyMap<string, TopicMetadata>
): Routes => {
  const byBroker = new Map<number, Map<string, TopicIdPartition>>()
  const unresolved: Array<TopicIdPartition> = []
  for (const [topicId, partitions] of assignment) {
    const known = topics.get(topicId)?.partitions
    for (const partition of partitions) {
      const leader = known?.find((p) => p.partition === partition)?.leader ?? -1
      const at = { topicId, partition }
      if (leader < 0) {
        unresolved.push(at)
        continue
      }
      const list = byBroker.get(leader)
      if (list === undefined) byBroker.set(leader, new Map([[partitionKey(at), at]]))
      else list.set(partitionKey(at), at)
    }
  }
  return { byBroker, unresolved }
}

const lookUp = Effect.fnUntraced(function*(core: ShareCore, assignment: ReadonlyMap<string, ReadonlyArray<number>>) {
  const topics = new Map<string, TopicMetadata>()
  for (const topicId of assignment.keys()) {
    const found = yield* Effect.result(core.cluster.topicById(topicId))
    if (Result.isFailure(found) || found.success === null) continue
    topics.set(topicId, found.success)
    core.topicNames.set(topicId, found.success.name)
  }
  return topics
})

/** Gives each link its partitions; answers the links to start. */
export const applyRoutes = (core: ShareCore, routes: Routes): ReadonlyArray<BrokerLink> => {
  const started: Array<BrokerLink> = []
  for (const broker of routes.byBroker.keys()) {
    if (core.links.has(broker)) continue
    const link = new BrokerLink(broker, core.memberId)
    core.links.set(broker, link)
    started.push(link)
  }
  for (const link of core.links.values()) {
    link.wanted = routes.byBroker.get(link.broker) ?? new Map()
    for (const key of link.paused.keys()) if (!link.wanted.has(key)) link.paused.delete(key)
    link.wake.openUnsafe()
  }
  return started
}

/** Routes until interrupted; `start` runs a new link. Never fails. */
export const keepRoutes = Effect.fnUntraced(
  function*(core: ShareCore, start: (link: BrokerLink) => Effect.Effect<void>) {
    let fruitless = 0
    while (true) {
      yield* core.routing.await.pipe(
        fruitless > 0 ? Effect.timeoutOption(backoffMs(core.options, fruitless)) : Effect.asSome
      )
      core.routing.closeUnsafe()
      if (core.closing) return
      for (const hint of core.hints.splice(0)) {
        if (hint.leader === null) yield* core.cluster.invalidate(hint.topic)
        else yield* core.cluster.learnLeader(hint.topic, hint.partition, hint.leader, hint.endpoint ?? undefined)
      }
      const assignment = core.assignment
      const topics = yield* lookUp(core, assignment)
      const routes = computeRoutes(assignment, topics)
      forgetUnassigned(core)
      if (routes.unresolved.length > 0) {
        fruitless++
        leaderless(core, routes.unresolved, fruitless)
        for (const topic of topics.values()) yield* core.cluster.invalidate(topic.name)
      } else fruitless = 0
      if (core.closing) return
      for (const link of applyRoutes(core, routes)) yield* start(link)
    }
  }
)
