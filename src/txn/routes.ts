/**
 * Where the target's partitions are led, as this producer last heard, with topic ids for Produce 13. Pure.
 *
 * Guarantee: news with an older leader epoch never replaces newer.
 */
import type { TopicMetadata } from "../wire/cluster.ts"

export interface Route {
  readonly leader: number
  readonly leaderEpoch: number
  readonly topicId: string
}

interface KnownTopic {
  readonly id: string
  readonly partitions: Map<number, { leader: number; epoch: number }>
}

export class Routes {
  /** null: asked for, and not there. */
  readonly #topics = new Map<string, KnownTopic | null>()
  readonly #stale = new Set<string>()

  /** null: ask for metadata first. */
  find(topic: string, partition: number): Route | null {
    const known = this.#topics.get(topic)
    const leader = known?.partitions.get(partition)
    if (known === undefined || known === null || leader === undefined || leader.leader < 0) return null
    return { leader: leader.leader, leaderEpoch: leader.epoch, topicId: known.id }
  }

  /** Never asked for, or known to be out of date. */
  isStale(topic: string): boolean {
    return this.#stale.has(topic) || !this.#topics.has(topic)
  }

  markStale(topic: string): void {
    this.#stale.add(topic)
  }

  /** Takes an answer to "what about these topics"; one that is absent in it does not exist. */
  apply(asked: ReadonlyArray<string>, answer: ReadonlyMap<string, TopicMetadata>): void {
    for (const name of asked) {
      this.#stale.delete(name)
      const topic = answer.get(name)
      if (topic === undefined) {
        this.#topics.set(name, null)
        continue
      }
      const old = this.#topics.get(name)
      const partitions = new Map<number, { leader: number; epoch: number }>()
      for (const p of topic.partitions) {
        const before = old?.id === topic.id ? old.partitions.get(p.partition) : undefined
        partitions.set(
          p.partition,
          before !== undefined && before.epoch > p.leaderEpoch ? before : { leader: p.leader, epoch: p.leaderEpoch }
        )
      }
      this.#topics.set(name, { id: topic.id, partitions })
    }
  }

  /** A leader that a broker named in its answer (KIP-951). True when it is newer than what was known. */
  learn(topic: string, partition: number, leader: number, epoch: number): boolean {
    const known = this.#topics.get(topic)?.partitions.get(partition)
    if (leader < 0 || known === undefined || epoch <= known.epoch) return false
    known.leader = leader
    known.epoch = epoch
    return true
  }

  /** The target has no such topic, or not so many partitions. */
  isMissing(topic: string, partition: number): boolean {
    return this.#topics.get(topic)?.partitions.has(partition) !== true
  }

  /** Why a partition has no route, in words. */
  why(topic: string, partition: number): string {
    const known = this.#topics.get(topic)
    if (known === undefined || known === null) return `the target has no topic ${topic}`
    if (!known.partitions.has(partition)) {
      return `the target's topic ${topic} has no partition ${partition} (it has ${known.partitions.size})`
    }
    return `${topic}-${partition} has no leader on the target`
  }
}
