/**
 * `sync.topic.deletes`: deletes on the target what this flow mirrored from a topic that was deleted on the source. One
 * pass, with a memory of the one before.
 *
 * Guarantees: deleted is only what the notes say that this flow has mirrored, only when the source says twice in a
 * row, a pass apart, that it has no such topic (a topic that may not be seen any more is another answer), and never
 * what another topic of the flow is mirrored into.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { deleteTopics } from "../../wire/messages/deleteTopics.ts"
import { metadata } from "../../wire/messages/metadata.ts"
import { ZERO_UUID } from "../../wire/schema.ts"
import type { Naming } from "../naming.ts"
import type { ControlLog } from "./controlLog.ts"
import { identitiesOf, noNoteOf } from "./identities.ts"
import type { TaskReport } from "./tasks.ts"
import type { MirroredTopic } from "./topics.ts"

export interface DeletionParts {
  readonly source: Cluster
  readonly targetAdmin: Cluster
  readonly naming: Naming
  readonly notes: ControlLog
  readonly topics: () => ReadonlyArray<MirroredTopic>
  readonly onDeleted: (target: string, sentence: string) => void
}

const UNKNOWN_TOPIC_OR_PARTITION = 3
const NONE = 0
const TIMEOUT_MS = 30_000

/** Those of these topics that the source, asked by name, says it does not have. */
const absent = (source: Cluster, names: ReadonlyArray<string>): Effect.Effect<ReadonlySet<string>, WireError> =>
  Effect.map(
    source.retrying(source.request({ kind: "any" }, metadata, {
      topics: names.map((name) => ({ name })),
      allowAutoTopicCreation: false
    }, { minVersion: 4 })),
    (answer) =>
      new Set(
        answer.topics.flatMap(({ errorCode, name }) =>
          errorCode === UNKNOWN_TOPIC_OR_PARTITION && name !== null ? [name] : []
        )
      )
  )

/** null, or why it is still there. */
const remove = (cluster: Cluster, name: string): Effect.Effect<string | null, WireError> =>
  cluster.retrying(
    Effect.gen(function*() {
      const answer = yield* cluster.request(
        { kind: "controller" },
        deleteTopics,
        (version) =>
          version >= 6
            ? { topics: [{ name, topicId: ZERO_UUID }], timeoutMs: TIMEOUT_MS }
            : { topicNames: [name], timeoutMs: TIMEOUT_MS },
        { timeoutMs: 2 * TIMEOUT_MS }
      )
      const found = answer.responses[0]
      const code = found?.errorCode ?? NONE
      if (code === NONE || code === UNKNOWN_TOPIC_OR_PARTITION) return null
      const detail = found?.errorMessage ?? null
      const error = new BrokerError({ api: "DeleteTopics", code, subject: `topic ${name}`, detail })
      return error.class === "retriable" || error.class === "refresh" ? yield* error : error.message
    }),
    { destination: { kind: "controller" } }
  )

/** The pass; `make` once for each run of a flow. */
export const makeDeletions = (parts: DeletionParts): Effect.Effect<TaskReport, WireError> => {
  /** Absent at the last pass. */
  let before: ReadonlySet<string> = new Set()
  return Effect.gen(function*() {
    const identities = identitiesOf(yield* parts.notes.read)
    const mirrored = new Set(parts.topics().map((topic) => topic.source))
    const targets = new Set(parts.topics().map((topic) => topic.target))
    const noted = [...identities.keys()].filter((topic) => !mirrored.has(topic) && parts.naming.verdict(topic).mirrored)
    const gone = noted.length === 0 ? new Set<string>() : yield* absent(parts.source, noted)
    const problems: Array<string> = []
    let changed = 0
    for (const topic of gone) {
      if (!before.has(topic)) continue
      const ids = identities.get(topic) ?? new Map<string, string>()
      const base = parts.naming.targetName(topic)
      const outputs = [...new Set([...ids.values()].map((suffix) => base + suffix))].filter((name) =>
        !targets.has(name)
      )
      let left = false
      for (const name of outputs) {
        const problem = yield* remove(parts.targetAdmin, name)
        if (problem === null) {
          changed++
          parts.onDeleted(name, `topic ${topic} was deleted on the source: ${name} is deleted (sync.topic.deletes)`)
        } else {
          left = true
          problems.push(`topic ${topic} was deleted on the source, and ${name} cannot be deleted: ${problem}`)
        }
      }
      if (!left) yield* parts.notes.write([...ids.keys()].map((id) => noNoteOf(topic, id)))
    }
    before = gone
    return { changed, problems, notes: [] }
  })
}
