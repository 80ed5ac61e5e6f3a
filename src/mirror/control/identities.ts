/**
 * Which topic of the source goes into which topic of the target, by the source topic's id: a topic that was deleted
 * and created again under its name is another topic. Pure, over the notes of controlLog.ts.
 *
 * A note is written for each id when it is first seen; the ones of a name, in number, are its generations. The target
 * topic of an id is the name that the naming gives, and a suffix ("" or ".2") that the note keeps.
 */
import type { ControlSettings } from "../../config/controlSettings.ts"
import { ZERO_UUID } from "../../wire/schema.ts"
import type { Notes } from "./controlLog.ts"

export type NoteEntry = readonly [key: string, value: string | null]

const noteKey = (topic: string, id: string): string => JSON.stringify(["topic", topic, id])
export const noteOf = (topic: string, id: string, suffix: string): NoteEntry => [
  noteKey(topic, id),
  JSON.stringify({ suffix })
]
export const noNoteOf = (topic: string, id: string): NoteEntry => [noteKey(topic, id), null]

const remoteKey = (topic: string): string => JSON.stringify(["remote", topic])
/** That a topic whose name says so did come from the target: it stays so when the topic there is deleted. */
export const remoteNote = (topic: string): NoteEntry => [remoteKey(topic), "true"]
export const isRemote = (notes: Notes, topic: string): boolean => notes.has(remoteKey(topic))

/** A value that is none of ours reads as nothing. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Source topic -> id -> suffix, of all notes. */
export type Identities = ReadonlyMap<string, ReadonlyMap<string, string>>

export const identitiesOf = (notes: Notes): Identities => {
  const found = new Map<string, Map<string, string>>()
  for (const [key, value] of notes) {
    const [kind, topic, id] = (parsed(key) ?? []) as ReadonlyArray<unknown>
    if (kind !== "topic" || typeof topic !== "string" || typeof id !== "string") continue
    const suffix = (parsed(value) as { readonly suffix?: unknown } | null)?.suffix
    if (typeof suffix !== "string") continue
    const ids = found.get(topic)
    if (ids === undefined) found.set(topic, new Map([[id, suffix]]))
    else ids.set(id, suffix)
  }
  return found
}

export interface Seen {
  readonly topic: string
  readonly id: string
  /** The name that the naming gives it on the target. */
  readonly base: string
}

export type Standing =
  /** Noted before, or not to be noted (brokers without topic ids). */
  | { readonly kind: "known"; readonly target: string }
  | { readonly kind: "new"; readonly target: string; readonly note: NoteEntry }
  | { readonly kind: "recreated"; readonly target: string; readonly note: NoteEntry; readonly says: string }
  | { readonly kind: "paused"; readonly reason: string }

export interface Situation {
  readonly policy: ControlSettings["onTopicRecreated"]
  readonly identities: Identities
  /** Whether the target has a topic of this name now. */
  readonly onTarget: (target: string) => boolean
  /** Whether another topic of the flow goes there. */
  readonly taken: (target: string) => boolean
}

const recreated = (topic: string): string => `topic ${topic} was deleted and created again on the source`

const freshTarget = (base: string, generations: number, { onTarget, taken }: Situation): string => {
  for (let n = generations + 1;; n++) {
    const suffix = `.${n}`
    if (!onTarget(base + suffix) && !taken(base + suffix)) return suffix
  }
}

/** Where a topic of the source stands. */
export const standingOf = ({ base, id, topic }: Seen, situation: Situation): Standing => {
  const ids = situation.identities.get(topic)
  if (id === ZERO_UUID) return { kind: "known", target: base }
  const suffix = ids?.get(id)
  if (suffix !== undefined) return { kind: "known", target: base + suffix }
  if (ids === undefined || ids.size === 0) return { kind: "new", target: base, note: noteOf(topic, id, "") }
  const last = [...ids.values()].at(-1) ?? ""
  const same = base + last
  if (!situation.onTarget(same)) {
    return {
      kind: "recreated",
      target: same,
      note: noteOf(topic, id, last),
      says: `${recreated(topic)}; the target has no topic ${same}, so it is mirrored there from its beginning`
    }
  }
  switch (situation.policy) {
    case "pause":
      return {
        kind: "paused",
        reason: `${
          recreated(topic)
        } (on.topic.recreated is pause): nothing of the new one is mirrored until on.topic.recreated is restart or new-topic, or the topic ${same} is deleted on the target`
      }
    case "new-topic": {
      const fresh = freshTarget(base, ids.size, situation)
      return {
        kind: "recreated",
        target: base + fresh,
        note: noteOf(topic, id, fresh),
        says: `${recreated(topic)}; the new one is mirrored into ${base + fresh}`
      }
    }
    case "restart":
      return {
        kind: "recreated",
        target: same,
        note: noteOf(topic, id, last),
        says: `${recreated(topic)}; the new one is mirrored from its beginning into ${same}, behind what is there`
      }
  }
}
