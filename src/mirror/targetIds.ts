/**
 * Which topics the target has under the names that the flow writes to, by their ids: one that somebody deletes there and
 * makes again is another topic, and what was mirrored into the first is gone without a trace in the new one. What is seen
 * is kept in the flow's notes (control/controlLog.ts), so that it is noticed also of the time when nobody ran.
 *
 * A note is of a pair, the target topic and the id of the source topic: where the source topic is another one, too,
 * everything is mirrored from the beginning, and nothing is missing.
 */
import type { Notes } from "./control/controlLog.ts"
import type { NoteEntry } from "./control/identities.ts"
import { ZERO_UUID } from "../wire/schema.ts"

export interface TargetTopic {
  readonly name: string
  /** base64url; ZERO_UUID where the brokers are older than topic ids. */
  readonly id: string
}

/** What goes there. */
export interface Writer {
  readonly target: string
  readonly sourceId: string
}

export interface Look {
  /** Target topics that are other ones than they were. */
  readonly replaced: ReadonlyArray<string>
  /** To be noted. */
  readonly entries: ReadonlyArray<NoteEntry>
}

const noteKey = ({ sourceId, target }: Writer): string => JSON.stringify(["target", target, sourceId])

export class TargetIds {
  /** What was seen by this process: it tells also where notes cannot be kept. */
  readonly #seen = new Map<string, string>()

  look(writers: ReadonlyArray<Writer>, found: ReadonlyMap<string, TargetTopic>, notes: Notes): Look {
    const replaced: Array<string> = []
    const entries: Array<NoteEntry> = []
    const keys = new Set(writers.map(noteKey))
    for (const key of [...this.#seen.keys()]) if (!keys.has(key)) this.#seen.delete(key)
    for (const writer of writers) {
      const id = found.get(writer.target)?.id ?? ZERO_UUID
      if (id === ZERO_UUID) continue
      const key = noteKey(writer)
      const before = this.#seen.get(key) ?? notes.get(key)
      if (before !== undefined && before !== id) replaced.push(writer.target)
      if (notes.get(key) !== id) entries.push([key, id])
      this.#seen.set(key, id)
    }
    return { replaced, entries }
  }
}

export const replacedSentence = (target: string, source: string): string =>
  `topic ${target} of the target was deleted there and made again: what was mirrored into it before (from ${source}) is gone and is not mirrored again; what comes now is. verify says what is missing; a flow with another name and group.id mirrors all of it again`
