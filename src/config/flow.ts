/**
 * One flow of the file to a ResolvedFlow: its fixed settings, the client overrides, the transforms, and what follows
 * from more than one of them.
 */
import { type CheckedSettings, checkClientSettings, type WrittenSetting } from "./clientSettings.ts"
import { controlOf } from "./controlSettings.ts"
import { type Decoded, decodeMap, unknownKey } from "./decode.ts"
import { checkFlow } from "./flowChecks.ts"
import { flowSettings } from "./flowSettings.ts"
import { offsetsOf } from "./offsetSettings.ts"
import { type ProtocolLevel, resolveGroupProtocol } from "./groupProtocol.ts"
import { type Scope } from "./kafkaSettings.ts"
import { parsePattern } from "./pattern.ts"
import { type Problem, problem, shown } from "./problems.ts"
import { httpSettings, logSettings, topSettings } from "./topSettings.ts"
import { canonicalStartingPoint } from "./setting.ts"
import { type FlowKeys, readTransforms } from "./transforms.ts"
import { isTreeMap, type Path, renderPath, type SourceTree, type Tree, type TreeMap } from "./tree.ts"
import type { ClientSettingValues, GroupProtocol, ResolvedFlow, Sourced, TransformSpec } from "./types.ts"
import { notSupported } from "./unsupported.ts"

export interface FlowContext {
  readonly source: SourceTree
  readonly aliases: ReadonlyArray<string>
  readonly workerProtocol: ProtocolLevel
  readonly shutdownTimeoutMs: number
  /** The folder of the file. */
  readonly folder: string
}

export interface ReadFlow {
  /** null when there is any problem in this flow. */
  readonly flow: ResolvedFlow | null
  /** For the checks between flows; what could not be read is undefined. */
  readonly known: {
    readonly at: string
    readonly name?: string
    readonly source?: string
    readonly groupId?: string
    readonly enabled: boolean
    readonly named: boolean
    readonly groupNamed: boolean
  }
  readonly problems: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<string>
}

type Values = Decoded<typeof flowSettings>
const OVERRIDE = /^(consumer|producer|admin)\.override\.(.+)$/
const BLOCKS = /^(transforms|predicates)(\..+)?$/
const PROTOCOL_OVERRIDE = "consumer.override.group.protocol"

const belongsAbove = (key: string): string | null => {
  if (Object.hasOwn(topSettings, key)) return "belongs at top level"
  if (Object.hasOwn(httpSettings, key)) return "belongs under http"
  if (Object.hasOwn(logSettings, key) || key === "log.level" || key === "log.format") {
    return "belongs under log, at top level"
  }
  return null
}

/** What is wrong with a key of a flow that is none of its fixed settings; null where it is read elsewhere. */
const strangeKey = (at: Path) => (key: string, value: Tree): Problem | null => {
  const path = renderPath([...at, key])
  if (OVERRIDE.test(key) || (BLOCKS.test(key) && !isTreeMap(value))) return null
  const sentence = notSupported(key) ?? belongsAbove(key)
  if (sentence !== null) return problem(path, sentence)
  const override = /^(consumer|producer|admin)(\.override)?$/.exec(key)
  if (override !== null) {
    return problem(
      path,
      isTreeMap(value)
        ? `is a map; write each setting as one dotted key: ${override[1]}.override.NAME`
        : "is not a setting",
      { allowed: `${override[1]}.override.NAME: value` }
    )
  }
  if (BLOCKS.test(key)) {
    return problem(
      path,
      `is a map; write a list of names and each parameter as one dotted key: ${key.split(".")[0]}.NAME.type`
    )
  }
  return unknownKey(path, key, value, Object.keys(flowSettings))
}

const flowKeys = (raw: TreeMap, at: Path, source: SourceTree): FlowKeys => {
  const pathOf = (key: string) => renderPath([...at, key])
  return {
    raw,
    pathOf,
    textOf: (key) => {
      const value = raw[key]
      if (value === undefined || value === null) return null
      if (Array.isArray(value)) return value.every((item: Tree) => typeof item === "string") ? value.join(",") : null
      return typeof value === "object"
        ? null
        : typeof value === "string"
        ? value
        : source.written(pathOf(key)) ?? String(value)
    }
  }
}

const overrides = (keys: FlowKeys, scope: Scope, source: SourceTree): CheckedSettings => {
  const written: Array<WrittenSetting> = []
  for (const [key, value] of Object.entries(keys.raw)) {
    const found = OVERRIDE.exec(key)
    if (found?.[1] !== scope || key === PROTOCOL_OVERRIDE) continue
    const path = keys.pathOf(key)
    written.push({ name: found[2] as string, path, value, written: source.written(path) })
  }
  return checkClientSettings(written, scope)
}

const protocolOf = (
  keys: FlowKeys,
  context: FlowContext
): { readonly resolved: Sourced<GroupProtocol>; readonly problems: ReadonlyArray<Problem> } =>
  resolveGroupProtocol([
    context.workerProtocol,
    { path: keys.pathOf("group.protocol"), level: "the flow's group.protocol", value: keys.raw["group.protocol"] },
    {
      path: keys.pathOf(PROTOCOL_OVERRIDE),
      level: "the flow's consumer.override.group.protocol",
      value: keys.raw[PROTOCOL_OVERRIDE]
    }
  ])

interface Parts {
  readonly values: Values
  readonly protocol: Sourced<GroupProtocol>
  readonly consumer: ClientSettingValues
  readonly producer: ClientSettingValues
  readonly admin: ClientSettingValues
  readonly transforms: ReadonlyArray<TransformSpec>
}

/** The pattern as JavaScript takes it; it was checked when it was read. */
const translated = (pattern: string): string => {
  const parsed = parsePattern(pattern)
  return parsed.ok ? parsed.source : pattern
}

const deadLetter = (v: Values): ResolvedFlow["deadLetter"] => {
  const topic = v["errors.deadletterqueue.topic.name"]
  if (topic === undefined) return null
  return {
    topic,
    contextHeaders: v["errors.deadletterqueue.context.headers.enable"],
    replicationFactor: v["errors.deadletterqueue.topic.replication.factor"]
  }
}

export const defaultGroupId = (source: string, target: string): string => `onceover-${source}-to-${target}`
export const defaultFlowName = (source: string, target: string): string => `${source}->${target}`

const compose = (
  { values: v, protocol, consumer, producer, admin, transforms }: Parts,
  shutdownTimeoutMs: number
): ResolvedFlow => ({
  name: v.name ?? defaultFlowName(v.source, v.target),
  enabled: v.enabled,
  source: v.source,
  target: v.target,
  topics: v.topics.map(translated),
  topicsExclude: v["topics.exclude"].map(translated),
  topicMapping: new Map(Object.entries(v["topic.mapping"])),
  refreshTopicsIntervalMs: v["refresh.topics.interval.seconds"] * 1_000,
  replicationPolicy: v["replication.policy"],
  replicationPolicySeparator: v["replication.policy.separator"],
  replicationFactor: v["replication.factor"],
  control: controlOf(v, translated),
  offsets: offsetsOf(v, translated, v["replication.policy.separator"]),
  groupProtocol: protocol,
  groupMembership: v["group.membership"],
  groupId: v["group.id"] ?? defaultGroupId(v.source, v.target),
  autoOffsetReset: canonicalStartingPoint(consumer["auto.offset.reset"] ?? v["auto.offset.reset"]),
  isolationLevel: consumer["isolation.level"]?.toLowerCase() === "read_uncommitted"
    ? "read_uncommitted"
    : "read_committed",
  shareAcknowledgementMode: v["share.acknowledgement.mode"],
  tasksMax: v["tasks.max"],
  deliveryGuarantee: v["delivery.guarantee"],
  exactlyOnceBindings: v["exactly.once.bindings"],
  exactlyOnceFallback: v["exactly.once.fallback"],
  onLedgerLost: v["on.ledger.lost"],
  ledgerPatienceMs: v["ledger.patience.ms"],
  transactionMaxLatencyMs: v["transaction.max.latency.ms"],
  transactionMaxBytes: v["transaction.max.bytes"],
  transactionMaxRecords: v["transaction.max.records"],
  maxInFlightBytes: v["max.in.flight.bytes"],
  offsetCommitIntervalMs: v["offset.flush.interval.ms"],
  onSourceGap: v["on.source.gap"],
  onRecordRefused: v["on.record.refused"],
  errorsTolerance: v["errors.tolerance"],
  deadLetter: deadLetter(v),
  transforms,
  shutdownTimeoutMs: v["shutdown.timeout.ms"] ?? shutdownTimeoutMs,
  consumerOverrides: consumer,
  producerOverrides: producer,
  adminOverrides: admin
})

/** Reads flows[index]. Every problem in it is reported. */
export const readFlow = (raw: Tree, index: number, context: FlowContext): ReadFlow => {
  const at: Path = ["flows", index]
  const path = renderPath(at)
  if (!isTreeMap(raw)) {
    return {
      flow: null,
      known: { at: path, enabled: false, named: false, groupNamed: false },
      problems: [problem(path, `is ${shown(raw, false)}`, { allowed: "a map with source, target and more" })],
      warnings: []
    }
  }
  const keys = flowKeys(raw, at, context.source)
  // group.protocol is read with its levels: here its errors would be reported twice.
  const { "group.protocol": _, ...rest } = raw
  const decoded = decodeMap(flowSettings, rest, at, strangeKey(at))
  const protocol = protocolOf(keys, context)
  const consumer = overrides(keys, "consumer", context.source)
  const producer = overrides(keys, "producer", context.source)
  const admin = overrides(keys, "admin", context.source)
  const transforms = readTransforms(keys, context.folder)
  const checks = checkFlow({
    partial: decoded.partial,
    keys,
    aliases: context.aliases,
    protocol: protocol.resolved.value,
    consumer: consumer.values,
    transforms: transforms.transforms
  })
  const single = [
    ...decoded.problems,
    ...protocol.problems,
    ...consumer.problems,
    ...producer.problems,
    ...admin.problems,
    ...transforms.problems
  ]
  // One value, one problem: what is wrong in itself is not also wrong beside others.
  const problems = [...single, ...checks.problems.filter((p) => !single.some((other) => other.path === p.path))]
  const parts = {
    protocol: protocol.resolved,
    consumer: consumer.values,
    producer: producer.values,
    admin: admin.values,
    transforms: transforms.transforms
  }
  const flow = problems.length > 0 || decoded.value === null
    ? null
    : compose({ values: decoded.value, ...parts }, context.shutdownTimeoutMs)
  return {
    flow,
    known: knownOf(decoded.partial, path),
    problems,
    warnings: [...consumer.warnings, ...producer.warnings, ...admin.warnings, ...checks.warnings]
  }
}

const knownOf = (v: Partial<Values>, at: string): ReadFlow["known"] => {
  const both = v.source !== undefined && v.target !== undefined ? [v.source, v.target] as const : null
  const name = v.name ?? (both === null ? undefined : defaultFlowName(...both))
  const groupId = v["group.id"] ?? (both === null ? undefined : defaultGroupId(...both))
  return {
    at,
    enabled: v.enabled ?? true,
    named: v.name !== undefined,
    groupNamed: v["group.id"] !== undefined,
    ...(name === undefined ? {} : { name }),
    ...(v.source === undefined ? {} : { source: v.source }),
    ...(groupId === undefined ? {} : { groupId })
  }
}
