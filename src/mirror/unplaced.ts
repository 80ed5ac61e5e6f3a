/**
 * Topics that match a flow and have no place on the target, in a run that is to end when it has caught up.
 *
 * Guarantee: such a run never ends as if all were mirrored while a topic that matches was left out. It waits a while
 * for the target to take the topics; what it does not take is said, the others are mirrored, and the run fails.
 */
import { type Deferred, Effect } from "effect"
import type { WireError } from "../wire/errors.ts"
import type { TopicProblem } from "./control/topics.ts"
import type { Goal } from "./progress.ts"

/** Brokers that have just started, or cannot be reached by their controller, take topics some seconds later. */
const PATIENCE_MS = 30_000
const AGAIN_MS = 1_000

/** The end of a run that ends when it has caught up. */
export interface CaughtUp {
  readonly reached: Deferred.Deferred<void>
  /** Taken at the first start and kept through retries. */
  goal: Goal | null
  /** Topics that had no place when the goal was taken: whatever is reached, they are not mirrored. */
  missed: ReadonlyArray<TopicProblem>
}

/** What is looked at. */
export interface Placing {
  /** Topics that match and are not mirrored now. */
  readonly unplaced: () => ReadonlyArray<TopicProblem>
  readonly refresh: Effect.Effect<unknown, WireError>
  readonly stopping: () => boolean
}

/** Waits until every topic has its place, at most 30 seconds. Gives those that have none. */
export const untilPlaced = (
  { refresh, stopping, unplaced }: Placing
): Effect.Effect<ReadonlyArray<TopicProblem>, WireError> =>
  Effect.gen(function*() {
    for (let left = PATIENCE_MS; left > 0 && unplaced().length > 0 && !stopping(); left -= AGAIN_MS) {
      yield* Effect.sleep(AGAIN_MS)
      yield* refresh
    }
    return unplaced()
  })

/** One line for each topic that the run has left out. */
export const unplacedLines = (flow: string, missed: ReadonlyArray<TopicProblem>): ReadonlyArray<string> =>
  missed.map(({ reason, topic }) => `flow ${flow}: topic ${topic} is not mirrored: ${reason}`)
