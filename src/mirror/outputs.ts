/**
 * Places on the target by the name of a topic, whoever gave it: the flow's naming, a transform, the dead-letter queue.
 * Made by the rules of the first time when they are missed, also where somebody has deleted them since.
 */
import { Effect } from "effect"
import type { ResolvedFlow } from "../config/types.ts"
import type { Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import type { Output } from "./copyUnit.ts"
import { deadLetter } from "./deadLetters.ts"
import type { FlowTopics } from "./flowTopics.ts"
import type { Letter } from "./laneContext.ts"
import { makePlaces, type Places } from "./places.ts"
import type { Log } from "./report.ts"

export interface OutputsOptions {
  readonly flow: ResolvedFlow
  readonly targetAdmin: Cluster
  readonly topics: Pick<FlowTopics, "find" | "places">
  readonly log: Log
}

export class Outputs {
  readonly #options: OutputsOptions
  /** Of the dead-letter topic, which has a replication factor of its own. */
  readonly #letters: Places | null
  /** Topics that the target did not have although they were there before. */
  readonly #lost = new Set<string>()

  constructor(options: OutputsOptions) {
    const { flow, targetAdmin } = options
    this.#options = options
    this.#letters = flow.deadLetter === null ? null : makePlaces(targetAdmin, flow.deadLetter.replicationFactor)
  }

  /** Null: the dead-letter topic is there, or there is none to be. */
  get ensureLetters(): Effect.Effect<string | null, WireError> {
    const { flow: { deadLetter: settings }, topics: { places } } = this.#options
    if (settings === null || this.#letters === null) return Effect.succeed(null)
    const made = this.#letters.ensure(settings.topic, 1)
    return Effect.flatMap(
      made,
      (problem) => problem === null ? places.ensure(settings.topic, 1) : Effect.succeed(problem)
    )
  }

  /** Null, or why it has no place. A topic that a transform names gets as many partitions as the source topic has. */
  ensure(topic: string, sourceTopic: string, partition: number): Effect.Effect<string | null, WireError> {
    const { flow, topics } = this.#options
    const known = topics.places.partitionsOf(topic)
    if (known > partition) return Effect.succeed(null)
    const source = topics.find(sourceTopic)
    // Deleted with its source (sync.topic.deletes): a last record must not bring it back.
    if (this.#lost.has(topic) && source === undefined) {
      return Effect.succeed(`it was deleted, and its source topic ${sourceTopic} is not mirrored any more`)
    }
    const made = topic === flow.deadLetter?.topic
      ? this.ensureLetters
      : topics.places.ensure(topic, Math.max(partition + 1, source?.partitions ?? 1))
    return Effect.tap(made, (problem) =>
      Effect.sync(() => {
        if (problem === null) this.#lost.delete(topic)
      }))
  }

  /** The target says that it does not have it. */
  missing(topic: string): void {
    const { log, topics } = this.#options
    if (!this.#lost.has(topic)) {
      log(
        "warn",
        `the target has no topic ${topic} now, or not all of it: what is missing is made again; what was in it is not`
      )
    }
    this.#lost.add(topic)
    topics.places.forget(topic)
    this.#letters?.forget(topic)
  }

  /** Dead letters of a lane; null: there are none. */
  letters(lane: number): ((letter: Letter) => Output) | null {
    const { flow: { deadLetter: settings, name }, topics: { places } } = this.#options
    if (settings === null) return null
    return ({ error, executor, record, sourceTopic, stage }) =>
      deadLetter(record, { flow: name, lane, sourceTopic, stage, executor, error }, {
        topic: settings.topic,
        partitions: Math.max(1, places.partitionsOf(settings.topic)),
        contextHeaders: settings.contextHeaders
      })
  }
}
