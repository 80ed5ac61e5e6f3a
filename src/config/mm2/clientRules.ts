/**
 * Kafka's client settings in a MirrorMaker 2 file: which are taken, which have no place here and why, which cannot be.
 *
 * What MirrorMaker's users set for speed is no error where it has nothing to do here: it becomes a note. What a login
 * or a certificate rests on and cannot be had is refused.
 */
import { isSecretSetting } from "../../wire/settings.ts"
import { FIXED, KAFKA_SETTINGS, LIBRDKAFKA, namesOf, RANGES, type Scope, whyUnsupported } from "../kafkaSettings.ts"
import { nearest } from "../nearest.ts"
import type { Section } from "./draft.ts"
import type { Written } from "./written.ts"

export type Verdict =
  | { readonly kind: "take" }
  | { readonly kind: "note"; readonly why: string }
  | { readonly kind: "refuse"; readonly what: string; readonly nearest?: string | null }

const note = (why: string): Verdict => ({ kind: "note", why })
const TAKE: Verdict = { kind: "take" }

/** Of these MirrorMaker has its own, whatever a file says; the same holds here. */
const OURS: ReadonlyMap<string, string> = new Map([
  ["group.id", "MirrorMaker's reader is in no group; here the flow's group.id names the one that holds the progress"],
  ["group.instance.id", "members of the flow's group are told apart by the processes themselves"],
  ["transactional.id", "transactional ids are set by onceover: the guarantee rests on them"],
  ["transaction.two.phase.commit.enable", "transactions are onceover's: the guarantee rests on them"],
  ["client.id", "connections are named after the flow and what they are for"]
])

/** Kafka's group.protocol; `share` and nothing else is meant for onceover here. */
const groupProtocol = (value: string): Verdict =>
  value.toLowerCase() === "share"
    ? TAKE
    : note("MirrorMaker's reader is in no group; here group.membership says how members join")

const WRONG_SCOPE: Readonly<Record<Scope, string>> = {
  consumer: "a consumer has no such setting, and Kafka ignores it there",
  producer: "a producer has no such setting, and Kafka ignores it there",
  admin: "an admin client has no such setting, and Kafka ignores it there"
}

const ofOneFlow = new Set(["auto.offset.reset", "isolation.level"])

/** What becomes of one client setting. `scope` null: it stands behind a cluster's alias alone. */
export const clientVerdict = (scope: Scope | null, name: string, value: string): Verdict => {
  const unsupported = whyUnsupported(name)
  if (unsupported !== null) return { kind: "refuse", what: unsupported }
  const setting = KAFKA_SETTINGS.get(name)
  if (setting === undefined) {
    return {
      kind: "refuse",
      what: "is not a setting of MirrorMaker 2 or of a Kafka client",
      nearest: nearest(name, [
        ...namesOf(scope),
        ...LIBRDKAFKA.values()
      ])
    }
  }
  if (setting.ignored !== null) return note(setting.ignored)
  if (name === "group.protocol" && scope === "consumer") return groupProtocol(value)
  const ours = OURS.get(name)
  if (ours !== undefined) return note(ours)
  if (scope === null && (ofOneFlow.has(name) || name === "group.protocol")) {
    return note("MirrorMaker ignores it behind a cluster's alias; it goes behind the flow's, as consumer.override")
  }
  if (scope !== null && !setting.scopes.includes(scope)) return note(WRONG_SCOPE[scope])
  return inForce(name, value)
}

const IN_FLIGHT = "max.in.flight.requests.per.connection"

const inForce = (name: string, value: string): Verdict => {
  const fixed = FIXED.get(name)
  if (fixed !== undefined && !fixed.includes(value.toLowerCase())) {
    return note(
      `it is always ${fixed[0]} here: the guarantee rests on it, and batches are sent several at a time all the same`
    )
  }
  const range = RANGES.get(name)
  if (range !== undefined && /^\d+$/.test(value) && Number(value) > range[1]) {
    const why = name === IN_FLIGHT ? ", beyond which a broker cannot recognise every batch that is sent twice" : ""
    return note(`it is at most ${range[1]} here${why}`)
  }
  return TAKE
}

/** Marks each value that should not be shown around. */
export const SECRET_COMMENT = "A secret in clear text: ${file:PATH:KEY} or ${env:NAME} keep it out of this file."

/** The comment for a value that should not stand in a file that is shown around. */
export const secretComment = (name: string, value: string): string | null =>
  isSecretSetting(name) && value !== "" && !value.includes("${") ? SECRET_COMMENT : null

/** Says in `section` what has no place; true when the setting is to be taken. */
export const judged = (section: Section, scope: Scope | null, name: string, from: Written): boolean => {
  const verdict = clientVerdict(scope, name, from.value)
  if (verdict.kind === "note") section.note(from, verdict.why)
  if (verdict.kind === "refuse") {
    section.refuse(from, verdict.what, verdict.nearest === undefined ? {} : { nearest: verdict.nearest })
  }
  return verdict.kind === "take"
}
