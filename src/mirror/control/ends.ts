/** Both ends of each partition that can be asked, and whether a share group has anything left to do below the nearer one. */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { reachableEnds } from "./logOffsets.ts"
import type { MirroredTopic } from "./topics.ts"

/** Ends of both kinds at one moment, by `partitionName`, of partitions that have a leader: nothing between the two can be mirrored yet. */
export interface Ends {
  /** Last stable offsets; high watermarks where the source is not read under read_committed. */
  readonly stable: ReadonlyMap<string, number>
  /** High watermarks. */
  readonly high: ReadonlyMap<string, number>
  /** Epochs of the leaders that told them; -1: not told. */
  readonly epochs: ReadonlyMap<string, number>
}

/** `committed`: the source is read under read_committed. */
export const bothEnds = (
  source: Cluster,
  topics: ReadonlyArray<MirroredTopic>,
  committed: boolean
): Effect.Effect<Ends, WireError> =>
  Effect.gen(function*() {
    const stable = yield* reachableEnds(source, topics, committed)
    const high = committed ? yield* reachableEnds(source, topics, false) : stable
    return { stable: stable.found, high: high.found, epochs: high.epochs }
  })

/**
 * Whether a share group has dealt with all below the last stable offset of a partition, by the broker's count of what
 * is left (KIP-1226; null: it does not tell). Aborted records are given up by the broker itself, which moves no offset
 * that we could see, and records of open transactions count as left. While the last stable offset stands still
 * (`before` and `after` the count agree), left = undone below it + what lies above it; what lies above can only have
 * grown since `before`.
 */
export const nothingUndone = (name: string, left: number | null, before: Ends, after: Ends): boolean => {
  const stable = before.stable.get(name)
  const high = before.high.get(name)
  return left !== null && stable !== undefined && high !== undefined && after.stable.get(name) === stable &&
    left <= Math.max(0, high - stable)
}
