/**
 * Which topics the target has under the names that the flow writes to, by their ids: one that somebody deletes there and
 * makes again is another topic, and what was mirrored into the first is gone without a trace in the new one. For as long
 * as a flow runs; what happened while nobody ran is `verify`'s to find.
 */
import { ZERO_UUID } from "../wire/schema.ts"

export interface TargetTopic {
  readonly name: string
  /** base64url; ZERO_UUID where the brokers are older than topic ids. */
  readonly id: string
}

export class TargetIds {
  readonly #ids = new Map<string, string>()

  /** The names among these that are other topics than at the look before. Names that are not asked for are forgotten. */
  look(names: ReadonlySet<string>, found: Iterable<TargetTopic>): ReadonlyArray<string> {
    for (const name of [...this.#ids.keys()]) if (!names.has(name)) this.#ids.delete(name)
    const replaced: Array<string> = []
    for (const { id, name } of found) {
      if (!names.has(name) || id === ZERO_UUID) continue
      const before = this.#ids.get(name)
      if (before !== undefined && before !== id) replaced.push(name)
      this.#ids.set(name, id)
    }
    return replaced
  }
}

export const replacedSentence = (target: string, source: string): string =>
  `topic ${target} of the target was deleted there and made again: what was mirrored into it before (from ${source}) is gone and is not mirrored again; what comes now is. verify says what is missing; a flow with another name and group.id mirrors all of it again`
