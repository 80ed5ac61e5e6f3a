/**
 * Client settings as written (a cluster's map, or one of a flow's `*.override.` prefixes) to checked text values in
 * Kafka's names.
 *
 * Guarantee: every value keeps the text it was written with; a secret one never gets into a problem.
 */
import { isSecretSetting } from "../wire/settings.ts"
import {
  FIXED,
  FORMS,
  KAFKA_SETTINGS,
  type KafkaSetting,
  LIBRDKAFKA,
  MAY_BE_MINUS_ONE,
  namesOf,
  RANGES,
  RESERVED,
  type Scope,
  whyUnsupported,
  WORDS
} from "./kafkaSettings.ts"
import { nearest } from "./nearest.ts"
import { type Problem, problem, shown } from "./problems.ts"
import { isTreeMap, type Tree } from "./tree.ts"

/** One setting as it stands in the file. */
export interface WrittenSetting {
  /** Without prefix. */
  readonly name: string
  /** The whole path, for messages. */
  readonly path: string
  readonly value: Tree
  /** How a number or boolean was written. */
  readonly written: string | null
}

export interface CheckedSettings {
  readonly values: Readonly<Record<string, string>>
  readonly problems: ReadonlyArray<Problem>
  /** What has no effect, in sentences. */
  readonly warnings: ReadonlyArray<string>
}

const TYPE_WORDS = {
  "whole number": "a whole number",
  number: "a number",
  boolean: "true, false",
  text: "text"
} as const

const inRange = (name: string, value: number): boolean => {
  const [min, max] = RANGES.get(name) ?? [0, Infinity]
  return value >= min && value <= max
}

/** What a setting takes, in words. */
const allowedFor = (setting: KafkaSetting): string => {
  const words = FIXED.get(setting.name) ?? WORDS.get(setting.name)
  const range = RANGES.get(setting.name)
  if (words !== undefined) return words.join(", ")
  if (range !== undefined) return `a whole number from ${range[0]} to ${range[1]}`
  return FORMS.get(setting.name)?.[1] ?? TYPE_WORDS[setting.type]
}

const fits = (setting: KafkaSetting, text: string): boolean => {
  switch (setting.type) {
    case "whole number":
      return (/^\d+$/.test(text) && inRange(setting.name, Number(text))) ||
        (text === "-1" && MAY_BE_MINUS_ONE.has(setting.name))
    case "number":
      return /^-?\d+(\.\d+)?$/.test(text)
    case "boolean":
      return /^(true|false)$/i.test(text)
    case "text":
      return FORMS.get(setting.name)?.[0].test(text) ?? true
  }
}

/** A list of scalars is Kafka's comma-separated list. null: a map, or something inside the list. */
const asText = (value: Tree, written: string | null): string | null => {
  if (value === null) return ""
  if (Array.isArray(value)) return value.every((item: Tree) => typeof item !== "object") ? value.join(",") : null
  if (typeof value === "object") return null
  return typeof value === "string" ? value : written ?? String(value)
}

/** bootstrap: { servers: ... } where bootstrap.servers is meant. */
const nestedName = (name: string, value: Tree, known: ReadonlyArray<string>): string | null => {
  if (!isTreeMap(value)) return null
  const inner = Object.entries(value).map(([key, below]) =>
    nestedName(`${name}.${key}`, below, known) ?? (known.includes(`${name}.${key}`) ? `${name}.${key}` : null)
  )
  return inner.find((found) => found !== null) ?? null
}

const unknownSetting = (at: WrittenSetting, scope: Scope | null): Problem => {
  const known = namesOf(scope)
  const nested = nestedName(at.name, at.value, known)
  if (nested !== null) return problem(at.path, `is a map; write it as one dotted key: ${nested}`)
  const elsewhere = KAFKA_SETTINGS.get(at.name)
  if (elsewhere !== undefined) {
    return problem(
      at.path,
      `is a setting of Kafka's ${elsewhere.scopes.join(" and ")} client, not of its ${scope} client`
    )
  }
  return problem(at.path, "is not a Kafka client setting", {
    nearest: nearest(at.name, [...known, ...LIBRDKAFKA.keys()])
  })
}

const checkValue = (setting: KafkaSetting, at: WrittenSetting): Problem | string => {
  const secret = isSecretSetting(setting.name)
  const words = FIXED.get(setting.name) ?? WORDS.get(setting.name)
  const allowed = allowedFor(setting)
  const text = asText(at.value, at.written)
  if (text === null) return problem(at.path, `is ${shown(at.value, secret)}`, { allowed })
  const wrong = words === undefined
    ? !fits(setting, text.trim())
    : !words.some((word) => word.toLowerCase() === text.trim().toLowerCase())
  if (!wrong) return text
  return problem(at.path, `is ${shown(typeof at.value === "string" ? text : at.value, secret)}`, {
    allowed,
    nearest: WORDS.has(setting.name) ? nearest(text, words ?? []) : null
  })
}

/** What concerns one reader and not a cluster. */
const OF_A_FLOW: ReadonlyMap<string, string> = new Map([
  ["group.protocol", "is a setting of a flow, or consumer.group.protocol at top level for all flows"],
  ["auto.offset.reset", "is a setting of a flow: write auto.offset.reset there"],
  ["isolation.level", "is a setting of a flow: write consumer.override.isolation.level there"]
])

/** Checks settings of one place. `scope` null: a cluster, which takes the settings of every client. */
export const checkClientSettings = (written: ReadonlyArray<WrittenSetting>, scope: Scope | null): CheckedSettings => {
  const values = new Map<string, string>()
  const problems: Array<Problem> = []
  const warnings: Array<string> = []
  for (const at of written) {
    const name = LIBRDKAFKA.get(at.name) ?? at.name
    const setting = KAFKA_SETTINGS.get(name)
    const reserved = RESERVED.get(name) ?? whyUnsupported(name) ?? undefined
    if (reserved !== undefined) problems.push(problem(at.path, reserved))
    else if (setting === undefined || (scope !== null && !setting.scopes.includes(scope))) {
      problems.push(unknownSetting(at, scope))
    } else if (scope === null && OF_A_FLOW.has(name)) problems.push(problem(at.path, OF_A_FLOW.get(name) as string))
    else if (values.has(name)) {
      problems.push(problem(at.path, `says ${name} a second time, in librdkafka's name; keep one of the two`))
    } else {
      const value = checkValue(setting, at)
      if (typeof value === "string") values.set(name, value)
      else problems.push(value)
      if (setting.ignored !== null) warnings.push(`${at.path} has no effect: ${setting.ignored}`)
    }
  }
  return { values: Object.fromEntries(values), problems, warnings }
}

/** For logs: the same settings with secrets hidden. */
export const redactSettings = (values: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, isSecretSetting(name) ? "<redacted>" : value])
  )
