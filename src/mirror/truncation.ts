/**
 * A source whose log was cut back and written anew from there (unclean leader election): the offsets that were mirrored
 * are other records now. A ledger, and a share group, go by offsets: they take the new records for done and leave them
 * out. Nobody can tell which they are, but it is seen and said.
 *
 * What gives it away, for as long as a process runs: an end below the end that was told before, or a leader that says
 * of the epoch before it (KIP-320) that it ended below what was told to be replicated then. At the first look: a group
 * that stands above the log's end. A log that was cut and has grown past the group's position while nobody ran is not
 * seen (docs/limits.md).
 */
import { Effect } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import { offsetForLeaderEpoch } from "../wire/messages/offsetForLeaderEpoch.ts"

export interface Truncation {
  readonly topic: string
  readonly partition: number
  /** Where the log was cut: from here on records are others than before. */
  readonly at: number
  /** The end of what was there before. */
  readonly before: number
}

/** One partition as its leader tells it now. */
export interface EndNow {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  readonly highWatermark: number
  /** Of the leader that told it; -1: it does not say. */
  readonly leaderEpoch: number
}

/** Infinity: the leader knows nothing of the epoch any more. Null: it cannot be asked now. */
const endOfEpoch = (cluster: Cluster, { partition, topic }: EndNow, epoch: number): Effect.Effect<number | null> =>
  Effect.gen(function*() {
    const leader = (yield* cluster.leaders([topic])).get(topic)?.partitions[partition]?.leader ?? -1
    const answer = yield* cluster.request({ kind: "broker", id: leader }, offsetForLeaderEpoch, {
      topics: [{ topic, partitions: [{ partition, leaderEpoch: epoch }] }]
    })
    const found = answer.topics[0]?.partitions[0]
    if (found === undefined || found.errorCode !== 0) return null
    return found.leaderEpoch < 0 || found.endOffset < 0 ? Infinity : found.endOffset
  }).pipe(Effect.catch(() => Effect.succeed(null)))

/**
 * Whether the name stands for that topic still: ends are asked for by name, and a topic that was made anew ends lower.
 * Null: nobody can say now.
 */
const isThatTopic = (cluster: Cluster, { topic, topicId }: EndNow): Effect.Effect<boolean | null> =>
  cluster.topics([topic]).pipe(
    Effect.map((found) => found.get(topic)?.id === topicId),
    Effect.catch(() => Effect.succeed(null))
  )

export class TruncationWatch {
  readonly #cluster: Cluster
  readonly #seen = new Map<string, EndNow>()
  readonly #told = new Map<string, number>()
  readonly #above = new Map<string, number>()

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  /** What has been cut since the look before. */
  look(ends: ReadonlyArray<EndNow>): Effect.Effect<ReadonlyArray<Truncation>> {
    return Effect.gen({ self: this }, function*() {
      const cut: Array<Truncation> = []
      for (const now of ends) {
        const name = `${now.topic}-${now.partition}`
        const before = this.#seen.get(name)
        const known = before !== undefined && before.topicId === now.topicId
        const changed = known && before.leaderEpoch >= 0 && now.leaderEpoch > before.leaderEpoch
        const end = changed ? yield* endOfEpoch(this.#cluster, now, before.leaderEpoch) : null
        // Asked again at the next look.
        if (changed && end === null && now.highWatermark >= before.highWatermark) continue
        this.#seen.set(name, now)
        if (!known) continue
        // A new leader's high watermark may stand behind for a moment (before KIP-207); what it says of the epoch does not.
        const at = end === null || end === Infinity ? now.highWatermark : end
        if (at >= before.highWatermark) continue
        const isThat = yield* isThatTopic(this.#cluster, now)
        // Asked again at the next look, too.
        if (isThat === null) this.#seen.set(name, before)
        if (isThat !== true) continue
        this.#told.set(name, before.highWatermark)
        cut.push({ topic: now.topic, partition: now.partition, at, before: before.highWatermark })
      }
      return cut
    })
  }

  /**
   * A group that stands above the end, which was asked for after the group's word, in two looks in a row. Null: told
   * already, or not so.
   */
  above(end: EndNow, position: number): Effect.Effect<Truncation | null> {
    return Effect.gen({ self: this }, function*() {
      const { highWatermark, partition, topic } = end
      const name = `${topic}-${partition}`
      if (position <= highWatermark || (this.#told.get(name) ?? -1) >= position) return null
      const again = this.#above.get(name) === position
      this.#above.set(name, position)
      if (!again || (yield* isThatTopic(this.#cluster, end)) !== true) return null
      this.#told.set(name, position)
      return { topic, partition, at: highWatermark, before: position }
    })
  }
}

export const truncationSentence = ({ at, before, partition, topic }: Truncation): string =>
  `${topic}-${partition}: the source's log was cut back to offset ${at} (it had reached ${before}), as after an unclean leader election: what stands now at offsets ${at} to ${
    before - 1
  }, or comes there, are other records than those that were mirrored, but they count as mirrored and are left out. verify says what the target lacks; a flow with another name and group.id mirrors all of it again`
