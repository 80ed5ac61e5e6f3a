/**
 * The share group's own settings, kept by the brokers (ConfigResource of type GROUP). Kafka's defaults lose records
 * of a mirror: it would skip what is there already (share.auto.offset.reset=latest), copy aborted records
 * (share.isolation.level=read_uncommitted) and give up a record after five deliveries.
 *
 * Before the first fetch they are brought to what a mirror needs. What the user pinned (consumer.override.share.*)
 * wins over that. A setting that cannot be changed is a warning that names the danger, never a failure.
 *
 * The changes are waited for on every broker: each partition leader reads the settings from its own copy, and a
 * leader that starts a share partition with the old share.auto.offset.reset skips records for good.
 */
import { Effect, Result } from "effect"
import type { Cluster, Destination } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { kafkaError } from "../wire/kafkaErrors.ts"
import { describeConfigs } from "../wire/messages/describeConfigs.ts"
import { incrementalAlterConfigs } from "../wire/messages/incrementalAlterConfigs.ts"
import { nowMs } from "../wire/retry.ts"
import { Code } from "./verdicts.ts"

const GROUP_RESOURCE = 32
const BROKER_RESOURCE = 4
const OPERATION_SET = 0
const API_DESCRIBE = "DescribeConfigs"

export interface SettingChange {
  readonly key: string
  /** null: the brokers do not tell. */
  readonly from: string | null
  readonly to: string
}
export interface SettingWarning {
  readonly key: string
  readonly wanted: string
  readonly current: string | null
  /** What the broker said. */
  readonly why: string
  /** What may happen because of it. */
  readonly danger: string
}
export interface GroupSettings {
  readonly changes: ReadonlyArray<SettingChange>
  readonly warnings: ReadonlyArray<SettingWarning>
  /** What is in force now (mode validate: what would be); empty where the brokers do not tell. */
  readonly values: ReadonlyMap<string, string>
}

export interface GroupSettingsOptions {
  readonly cluster: Cluster
  readonly groupId: string
  /** auto.offset.reset of the flow: earliest, latest or by_duration:... . Default earliest. */
  readonly autoOffsetReset?: string
  /** consumer.override.share.* without `consumer.override.`; keys that are no group settings are left alone. */
  readonly overrides?: Readonly<Record<string, string>>
  /** validate: ask the brokers whether the changes could be made, and change nothing (`check`). Default apply. */
  readonly mode?: "apply" | "validate"
  /** The longest wait for the changes to be on every broker, ms. Default 15000. */
  readonly timeoutMs?: number
}

interface Need {
  readonly key: string
  /** A value, or the broker setting that holds the highest one allowed. */
  readonly wanted: string | { readonly highestOf: string }
  readonly danger: string
}

const needs = (autoOffsetReset: string): ReadonlyArray<Need> => [
  {
    key: "share.auto.offset.reset",
    wanted: autoOffsetReset,
    danger: "records that were on the source before the group started may never be mirrored"
  },
  { key: "share.isolation.level", wanted: "read_committed", danger: "records of aborted transactions are mirrored" },
  {
    key: "share.delivery.count.limit",
    wanted: { highestOf: "group.share.max.delivery.count.limit" },
    danger: "the brokers give up a record after fewer failed deliveries, and then it is not mirrored"
  },
  {
    key: "share.partition.max.record.locks",
    wanted: { highestOf: "group.share.max.partition.max.record.locks" },
    danger: "fewer records of a partition can be under way at once, which bounds the speed"
  },
  {
    key: "share.renew.acknowledge.enable",
    wanted: "true",
    danger: "locks cannot be renewed: a target slower than the lock means duplicates, and deliveries that are spent"
  }
]

/** Brings the group's settings to what a mirror needs. Fails only when no broker answers. */
export const prepareGroup = Effect.fnUntraced(
  function*(options: GroupSettingsOptions): Effect.fn.Return<GroupSettings, WireError> {
    const { cluster, groupId } = options
    const described = yield* describe(cluster, { kind: "any" }, groupId)
    if (!described.ok) {
      return {
        changes: [],
        values: new Map(),
        warnings: needs("").map((n) => ({
          key: n.key,
          wanted: "",
          current: null,
          why: described.why,
          danger: n.danger
        }))
      }
    }
    const wanted = yield* wantedValues(options, described.values)
    const changes: Array<SettingChange> = []
    const warnings: Array<SettingWarning> = []
    for (const want of wanted) {
      const current = described.values.get(want.key) ?? null
      if (current === want.value) continue
      if (!described.values.has(want.key)) {
        warnings.push({
          key: want.key,
          wanted: want.value,
          current,
          why: "these brokers do not know the setting",
          danger: want.danger
        })
        continue
      }
      const outcome = yield* setWithin(options, want.key, want.value)
      if (outcome.ok) {
        if (outcome.value !== current) changes.push({ key: want.key, from: current, to: outcome.value })
      } else warnings.push({ key: want.key, wanted: want.value, current, why: outcome.why, danger: want.danger })
    }
    if (changes.length > 0 && options.mode !== "validate") yield* onEveryBroker(options, changes)
    return {
      changes,
      warnings,
      values: new Map([...described.values, ...changes.map(({ key, to }) => [key, to] as const)])
    }
  }
)

const wantedValues = Effect.fnUntraced(function*(options: GroupSettingsOptions, current: ReadonlyMap<string, string>) {
  const overrides = new Map(Object.entries(options.overrides ?? {}))
  const listed = needs(options.autoOffsetReset ?? "earliest")
  const highest = yield* brokerMaxima(options.cluster, listed)
  const wanted: Array<{ readonly key: string; readonly value: string; readonly danger: string }> = []
  for (const need of listed) {
    const pinned = overrides.get(need.key)
    const value = pinned ??
      (typeof need.wanted === "string" ? need.wanted : highest.get(need.wanted.highestOf) ?? BEYOND_ANY_LIMIT)
    wanted.push({ key: need.key, value, danger: need.danger })
    overrides.delete(need.key)
  }
  for (const [key, value] of overrides) {
    if (current.has(key)) wanted.push({ key, value, danger: "the configured value is not in force" })
  }
  return wanted
})

/** Asked for where the limit is not known: the broker refuses it with the range, which is then used. */
const BEYOND_ANY_LIMIT = "2147483647"
/** "share.delivery.count.limit must be in the range 2 to 10 inclusive." (Kafka 4.4.0, GroupConfig) */
const RANGE_IN_WORDS = /range (\d+) to (\d+)/

/** The limits from a broker's own settings; empty when it does not tell (no DESCRIBE_CONFIGS on the cluster). */
const brokerMaxima = Effect.fnUntraced(function*(cluster: Cluster, listed: ReadonlyArray<Need>) {
  const keys = listed.flatMap((n) => (typeof n.wanted === "string" ? [] : [n.wanted.highestOf]))
  const brokers = yield* Effect.result(cluster.brokers)
  const broker = Result.isSuccess(brokers) ? brokers.success[0] : undefined
  if (broker === undefined) return new Map<string, string>()
  const answer = yield* Effect.result(cluster.request({ kind: "broker", id: broker.id }, describeConfigs, {
    resources: [{ resourceType: BROKER_RESOURCE, resourceName: String(broker.id), configurationKeys: keys }]
  }))
  const configs = Result.isSuccess(answer) ? answer.success.results[0]?.configs ?? [] : []
  return new Map(configs.flatMap((c) => (c.value === null ? [] : [[c.name, c.value] as const])))
})

type Described = { readonly ok: true; readonly values: ReadonlyMap<string, string> } | {
  readonly ok: false
  readonly why: string
}

const describe = (cluster: Cluster, to: Destination, groupId: string): Effect.Effect<Described, WireError> =>
  cluster.retrying(Effect.gen(function*() {
    const answer = yield* cluster.request(to, describeConfigs, {
      resources: [{ resourceType: GROUP_RESOURCE, resourceName: groupId, configurationKeys: null }]
    })
    const result = answer.results[0]
    if (result === undefined) return { ok: false, why: "the broker answered nothing" } as const
    const { errorCode } = result
    if (errorCode === Code.none) {
      const values = new Map(result.configs.flatMap((c) => (c.value === null ? [] : [[c.name, c.value] as const])))
      return { ok: true, values } as const
    }
    const error = new BrokerError({
      api: API_DESCRIBE,
      code: errorCode,
      subject: `group ${groupId}`,
      detail: result.errorMessage
    })
    if (passes(errorCode)) return yield* error
    return { ok: false, why: error.message } as const
  }))

const passes = (code: number): boolean => ["retriable", "refresh", "coordinator"].includes(kafkaError(code).class)

type SetOutcome = { readonly ok: true; readonly value: string } | { readonly ok: false; readonly why: string }

/** Sets one value; where it is beyond the broker's range, the highest one within. */
const setWithin = Effect.fnUntraced(
  function*(options: GroupSettingsOptions, key: string, value: string): Effect.fn.Return<SetOutcome, WireError> {
    const first = yield* setOne(options, key, value)
    if (first.code === Code.none) return { ok: true, value }
    const range = first.code === Code.invalidConfig && value === BEYOND_ANY_LIMIT
      ? RANGE_IN_WORDS.exec(first.why)
      : null
    if (range === null) return { ok: false, why: first.why }
    const highest = range[2] as string
    const second = yield* setOne(options, key, highest)
    return second.code === Code.none ? { ok: true, value: highest } : { ok: false, why: second.why }
  }
)

const setOne = ({ cluster, groupId, mode }: GroupSettingsOptions, key: string, value: string) =>
  cluster.retrying(Effect.gen(function*() {
    const answer = yield* cluster.request({ kind: "any" }, incrementalAlterConfigs, {
      resources: [{
        resourceType: GROUP_RESOURCE,
        resourceName: groupId,
        configs: [{ name: key, configOperation: OPERATION_SET, value }]
      }],
      validateOnly: mode === "validate"
    })
    const code = answer.responses[0]?.errorCode ?? Code.unknownServerError
    const error = new BrokerError({
      api: "IncrementalAlterConfigs",
      code,
      subject: `${key} of group ${groupId}`,
      detail: answer.responses[0]?.errorMessage ?? null
    })
    if (passes(code)) return yield* error
    return { code, why: error.message }
  }))

/** Waits until each broker that answers has the new values. */
const onEveryBroker = Effect.fnUntraced(
  function*({ cluster, groupId, timeoutMs = 15_000 }: GroupSettingsOptions, changes: ReadonlyArray<SettingChange>) {
    const until = (yield* nowMs) + timeoutMs
    const waiting = new Set((yield* cluster.brokers).map((b) => b.id))
    while (waiting.size > 0 && (yield* nowMs) < until) {
      for (const id of waiting) {
        const told = yield* Effect.result(describe(cluster, { kind: "broker", id }, groupId))
        // A broker that is down reads the settings anew when it starts.
        if (Result.isFailure(told) || !told.success.ok) waiting.delete(id)
        else {
          const { values } = told.success
          if (changes.every((c) => values.get(c.key) === c.to)) waiting.delete(id)
        }
      }
      if (waiting.size > 0) yield* Effect.sleep(50)
    }
  }
)
