/**
 * Where records go on the target: which topics and partitions are there, made when they are missed.
 *
 * Guarantee: a topic is asked for or grown by one fiber at a time; what is known to be there costs a map lookup.
 */
import { Effect, Semaphore } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import { type CreationSettings, ensureTopics } from "./control/topics.ts"

export interface Places {
  /** Null when the topic has so many partitions on the target; else why it cannot be. */
  readonly ensure: (topic: string, partitions: number) => Effect.Effect<string | null, WireError>
  /** The topic's partitions on the target as last seen; 0 when it is not known. */
  readonly partitionsOf: (topic: string) => number
  /** What a refresh has found or made. */
  readonly learn: (topic: string, partitions: number) => void
  /** Ask again: the target says that it does not know the topic. */
  readonly forget: (topic: string) => void
}

export const makePlaces = (
  target: Cluster,
  replicationFactor: number,
  settings: CreationSettings | null = null
): Places => {
  const counts = new Map<string, number>()
  const one = Semaphore.makeUnsafe(1)
  const make = (topic: string, partitions: number) =>
    one.withPermit(Effect.gen(function*() {
      if ((counts.get(topic) ?? 0) >= partitions) return null
      const refused = (yield* ensureTopics(target, [{ name: topic, partitions }], replicationFactor, settings)).get(
        topic
      )
      if (refused !== undefined) return refused
      const found = yield* target.retrying(target.topics([topic]))
      counts.set(topic, found.get(topic)?.partitions.length ?? partitions)
      return null
    }))
  return {
    ensure: (topic, partitions) =>
      (counts.get(topic) ?? 0) >= partitions ? Effect.succeed(null) : make(topic, partitions),
    partitionsOf: (topic) => counts.get(topic) ?? 0,
    learn: (topic, partitions) => {
      counts.set(topic, Math.max(partitions, counts.get(topic) ?? 0))
    },
    forget: (topic) => {
      counts.delete(topic)
    }
  }
}
