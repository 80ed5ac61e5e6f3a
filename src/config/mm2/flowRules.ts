/**
 * A flow's settings (topics, policies, intervals, guarantees) from MirrorMaker 2's names and values to ours. One rule a
 * setting; what needs none keeps its name and value.
 */
import { flowSettings } from "../flowSettings.ts"
import { parsePattern } from "../pattern.ts"
import type { Section } from "./draft.ts"
import { treatmentOf } from "./settings.ts"
import type { Written } from "./written.ts"

const MIRROR = "org.apache.kafka.connect.mirror"
const POLICIES: ReadonlyMap<string, "default" | "identity"> = new Map([
  [`${MIRROR}.DefaultReplicationPolicy`, "default"],
  [`${MIRROR}.IdentityReplicationPolicy`, "identity"],
  ["io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy", "identity"]
])

const isTrue = (value: string): boolean => value.toLowerCase() === "true"

/** MirrorMaker 2 splits at every comma and joins the parts with "|": what is no pattern in parts may be one joined. */
export const splitPatterns = (
  value: string
): { readonly patterns: ReadonlyArray<string>; readonly comment: string | null } => {
  const parts = value.split(",").map((part) => part.trim()).filter((part) => part !== "")
  const balanced = (part: string): boolean => (part.match(/\{/g) ?? []).length === (part.match(/\}/g) ?? []).length
  if (parts.every((part) => parsePattern(part).ok && balanced(part))) return { patterns: parts, comment: null }
  if (!parts.every(balanced)) {
    return {
      patterns: [value],
      comment: "MirrorMaker splits at the comma inside the braces and refuses the parts; here it is one pattern."
    }
  }
  const joined = parts.join("|")
  return parsePattern(joined).ok
    ? {
      patterns: [joined],
      comment: "MirrorMaker splits at commas and joins with |: written here as what comes of that."
    }
    : { patterns: parts, comment: null }
}

const patternList = (key: string, comment: string | null = null) => (section: Section, from: Written): void => {
  const { comment: about, patterns } = splitPatterns(from.value)
  section.set(key, patterns, from, [comment, about].filter((text) => text !== null).join(" ") || null)
}

const renamed = (key: string) =>
  patternList(key, `Under its name since Kafka 3: ${key}. MirrorMaker 4 no longer reads the old one.`)

const DAY = 86_400

/** Below one second or above a day: as near as can be; a negative one is "never" there. */
const interval = (key: string) => (section: Section, from: Written): void => {
  const seconds = /^-?\d+$/.test(from.value) ? Number(from.value) : null
  const near = seconds === null ? null : seconds < 0 ? DAY : Math.min(DAY, Math.max(1, seconds))
  if (near === null || near === seconds) section.set(key, from.value, from)
  else section.set(key, String(near), from, `${from.value} there; 1 second to one day is what there is here.`)
}
const INTERVALS = [
  "refresh.topics.interval.seconds",
  "sync.topic.configs.interval.seconds",
  "sync.topic.acls.interval.seconds",
  "refresh.groups.interval.seconds",
  "sync.group.offsets.interval.seconds",
  "emit.checkpoints.interval.seconds",
  "emit.heartbeats.interval.seconds"
]

const policy = (section: Section, from: Written): void => {
  const known = POLICIES.get(from.value) ?? POLICIES.get(`${MIRROR}.${from.value}`)
  if (known !== undefined) section.set("replication.policy", known, from)
  else {
    section.refuse(from, `is "${from.value}"; no Java class is loaded, so the names it makes are not known here`, {
      allowed: `${[...POLICIES.keys()].join(", ")}; topic.mapping names single topics`
    })
  }
}

/** `what` is looked for: topics, groups. */
const refresh = (what: "topics" | "groups", news: string) => (section: Section, from: Written): void => {
  const key = `refresh.${what}.interval.seconds`
  if (isTrue(from.value)) section.note(from, `new ${news} are always looked for, every ${key}`)
  else {
    section.set(
      key,
      String(DAY),
      from,
      `It cannot be switched off here (refresh.${what}.enabled: ${from.value}), so once a day.`
    )
  }
}

const tolerance = (section: Section, from: Written): void => {
  if (section.has("transforms") || from.value.toLowerCase() === "none") {
    section.set("errors.tolerance", from.value, from)
  } else {
    section.note(
      from,
      "without transforms nothing is tolerated in silence: a record that the target refuses blocks its partition with the reason in /status, or goes to a dead-letter topic (on.record.refused: deadletter)",
      "lost"
    )
  }
}

/** The connector's `exactly.once.support` and the worker's `exactly.once.source.support`. */
const exactlyOnce = (section: Section, from: Written): void => {
  const value = from.value.toLowerCase()
  const [name, fallback] = ["delivery.guarantee", "exactly.once.fallback"]
  if (value === "required") {
    section.set(name, "exactly-once", from)
    section.set(fallback, "fail", from, "`required` there: refused rather than run with less.")
  } else if (value === "enabled" || value === "preparing") {
    section.set(name, "exactly-once", from, value === "enabled" ? null : "Nothing has to be prepared here.")
  } else if (value === "disabled") {
    section.set(
      name,
      "at-least-once",
      from,
      "exactly.once.source.support is disabled there; without this line records are mirrored exactly once."
    )
  } else if (value === "requested") section.note(from, "exactly-once is what is wanted unless it is said otherwise")
  else section.refuse(from, `is "${from.value}"`, { allowed: "disabled, preparing, enabled, requested, required" })
}

type Rule = (section: Section, from: Written) => void

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ["topics", patternList("topics")],
  ["topics.exclude", patternList("topics.exclude")],
  ["topics.blacklist", renamed("topics.exclude")],
  [
    "groups.blacklist",
    (section: Section, from: Written) => keep(section, { ...from, key: from.key }, "groups.exclude")
  ],
  ["config.properties.exclude", patternList("config.properties.exclude")],
  ["config.properties.blacklist", renamed("config.properties.exclude")],
  ["replication.policy.class", policy],
  ["tasks.max", (section: Section, from: Written) => section.set("tasks.max", from.value, from)],
  ["refresh.topics.enabled", refresh("topics", "topics and partitions")],
  ["refresh.groups.enabled", refresh("groups", "groups")],
  ...INTERVALS.map((key) => [key, interval(key)] as const),
  ["errors.tolerance", tolerance],
  ["exactly.once.support", exactlyOnce],
  ["exactly.once.source.support", exactlyOnce]
])

const isOurs = (name: string): boolean =>
  Object.hasOwn(flowSettings, name) || /^(transforms|predicates)(\.|$)/.test(name)

/** Same name, same value. */
const keep = (section: Section, from: Written, name: string): void => {
  if (isOurs(name)) {
    if (name === "groups" || name === "groups.exclude") patternList(name)(section, from)
    else section.set(name, from.value, from)
    return
  }
  section.note(from, "is not in this version", "lost")
}

const javaClass = (
  section: Section,
  from: Written,
  own: ReadonlyArray<string>,
  instead: string
): void => {
  if (own.some((name) => from.value === name || from.value === name.slice(name.lastIndexOf(".") + 1))) {
    section.note(from, "it is what is built in here")
  } else {section.refuse(from, `is "${from.value}"; no Java class is loaded`, {
      allowed: `${own.join(", ")}; write ${instead}`
    })}
}

/**
 * Takes one setting of a flow into its section; false when MirrorMaker has none of this name and neither have we. A
 * setting of ours is taken as it is: a MirrorMaker file may say more than MirrorMaker understands.
 */
export const takeFlowSetting = (section: Section, name: string, from: Written): boolean => {
  const rule = RULES.get(name)
  const treatment = treatmentOf(name)
  if (rule !== undefined) rule(section, from)
  else if (treatment?.kind === "keep") keep(section, from, name)
  else if (treatment?.kind === "unneeded" && !isOurs(name)) section.note(from, treatment.why)
  else if (treatment?.kind === "class") javaClass(section, from, treatment.own, treatment.instead)
  else if (isOurs(name) && name !== "source" && name !== "target") section.set(name, from.value, from)
  else return treatment?.kind === "structure"
  return true
}

/** The order in which rules run: what looks at another setting comes after it. */
export const RULE_ORDER: ReadonlyArray<string> = [
  "transforms",
  "exactly.once.source.support",
  "exactly.once.support",
  "delivery.guarantee",
  "topics.blacklist",
  "topics.exclude",
  "refresh.topics.interval.seconds",
  "refresh.topics.enabled",
  "refresh.groups.interval.seconds",
  "refresh.groups.enabled"
]
