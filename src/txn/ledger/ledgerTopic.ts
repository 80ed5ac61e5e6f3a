/**
 * The ledger's topic on the target: one per flow, kept by settings that never let an entry go that was acknowledged.
 *
 * What it must promise, and is brought to where that is allowed: no unclean leader election (it would forget entries
 * that were acknowledged), no retention by time or size and no compaction (only onceover removes, after a snapshot),
 * min.insync.replicas 2 from three replicas on. What cannot be had is refused in words; a warning is for what makes
 * a loss more likely without breaking a promise.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { Cluster, TopicMetadata } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { createTopics } from "../../wire/messages/createTopics.ts"
import { describeConfigs } from "../../wire/messages/describeConfigs.ts"
import { incrementalAlterConfigs } from "../../wire/messages/incrementalAlterConfigs.ts"
import { ledgerLost } from "./log.ts"

const PREFIX = "__onceover_ledger_"
const MAX_TOPIC_NAME = 249

/**
 * A topic of a flow's own. Two flows never share one: letters, digits and "-" stand for themselves, every other
 * byte is "_" and two hexadecimal digits ("." and "_" too, as Kafka takes a.b and a_b for the same in metrics). A name
 * that would be too long is cut and ends in "_h" and its SHA-256.
 */
export const flowTopicName = (prefix: string, flow: string): string => {
  let name = prefix
  for (const byte of Buffer.from(flow, "utf8")) {
    const char = String.fromCharCode(byte)
    name += /[A-Za-z0-9-]/.test(char) ? char : `_${byte.toString(16).toUpperCase().padStart(2, "0")}`
  }
  if (name.length <= MAX_TOPIC_NAME) return name
  const hash = createHash("sha256").update(flow, "utf8").digest("hex")
  return `${name.slice(0, MAX_TOPIC_NAME - hash.length - 2)}_h${hash}`
}

/** The topic of a flow's ledger. */
export const ledgerTopicName = (flow: string): string => flowTopicName(PREFIX, flow)

export interface LedgerTopic {
  readonly name: string
  readonly id: string
  readonly partitions: number
  /** What was changed, or would be, one sentence each. */
  readonly changes: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
}

export type LedgerTopicResult =
  | { readonly ok: true; readonly topic: LedgerTopic }
  /** forGood: the ledger that is known is lost. */
  | { readonly ok: false; readonly reason: string; readonly forGood?: boolean }

export interface LedgerTopicOptions {
  readonly cluster: Cluster
  readonly flow: string
  /** Partitions when it has to be created. Default 1: one log, one order. */
  readonly partitions?: number
  /** Default: 3, or as many as there are brokers. */
  readonly replicationFactor?: number
  /** The id that it had before in this process: no other topic will do, and none is created. */
  readonly knownId?: string | null
  /** validate: changes nothing. */
  readonly mode: "apply" | "validate"
}

interface Need {
  readonly key: string
  readonly value: string
  readonly holds: (current: string) => boolean
  /** What happens otherwise; null: it is only better so. */
  readonly danger: string | null
}

/** Also the bound of one transaction's entries, which go as one batch (binding.ts says why). */
export const MAX_LEDGER_BATCH_BYTES = 8 * 1024 * 1024

const exactly = (key: string, value: string, danger: string | null): Need => ({
  key,
  value,
  danger,
  holds: (current) => current === value
})
const atLeast = (key: string, value: number, danger: string | null): Need => ({
  key,
  value: String(value),
  danger,
  holds: (current) => Number(current) >= value
})

const needs = (replicas: number): ReadonlyArray<Need> => [
  exactly(
    "unclean.leader.election.enable",
    "false",
    "a leader that lags behind could be elected and forget entries that were acknowledged"
  ),
  exactly("cleanup.policy", "delete", "compaction would drop entries"),
  exactly("retention.ms", "-1", "entries would be dropped with time"),
  exactly("retention.bytes", "-1", "entries would be dropped as the log grows"),
  atLeast(
    "min.insync.replicas",
    replicas >= 3 ? 2 : 1,
    "an acknowledged entry could be on one broker only, and be lost with it"
  ),
  exactly("compression.type", "producer", null),
  // Entries carry no time of ours, so a clock that is off cannot make a broker refuse one.
  exactly("message.timestamp.type", "LogAppendTime", null),
  atLeast("max.message.bytes", MAX_LEDGER_BATCH_BYTES, null),
  exactly("segment.bytes", String(64 * 1024 * 1024), null)
]

const TOPIC_RESOURCE = 2
const SET = 0
const TOPIC_ALREADY_EXISTS = 36
const INVALID_REPLICATION_FACTOR = 38

const refusal = (reason: string): LedgerTopicResult => ({ ok: false, reason })

const create = (options: LedgerTopicOptions, name: string): Effect.Effect<string | null, WireError> =>
  options.cluster.retrying(Effect.gen(function*() {
    const brokers = (yield* options.cluster.brokers).length
    const replicationFactor = options.replicationFactor ?? Math.max(1, Math.min(3, brokers))
    const answer = yield* options.cluster.request({ kind: "controller" }, createTopics, {
      topics: [{
        name,
        numPartitions: options.partitions ?? 1,
        replicationFactor,
        assignments: [],
        configs: needs(replicationFactor).map(({ key, value }) => ({ name: key, value }))
      }],
      timeoutMs: 30_000,
      validateOnly: options.mode === "validate"
    })
    const result = answer.topics[0]
    const errorCode = result?.errorCode ?? -1
    if (errorCode === 0 || errorCode === TOPIC_ALREADY_EXISTS) return null
    const error = new BrokerError({
      api: "CreateTopics",
      code: errorCode,
      subject: name,
      detail: result?.errorMessage ?? null
    })
    if (["retriable", "refresh", "coordinator"].includes(error.class) && errorCode !== INVALID_REPLICATION_FACTOR) {
      return yield* error
    }
    return error.message
  }))

type Values = { readonly ok: true; readonly values: ReadonlyMap<string, string> } | {
  readonly ok: false
  readonly reason: string
}

const describe = (cluster: Cluster, name: string): Effect.Effect<Values, WireError> =>
  cluster.retrying(Effect.gen(function*() {
    const answer = yield* cluster.request({ kind: "any" }, describeConfigs, {
      resources: [{
        resourceType: TOPIC_RESOURCE,
        resourceName: name,
        configurationKeys: needs(3).map(({ key }) => key)
      }]
    })
    const result = answer.results[0]
    if (result !== undefined && result.errorCode === 0) {
      return {
        ok: true,
        values: new Map(result.configs.flatMap((c) => c.value === null ? [] : [[c.name, c.value] as const]))
      } as const
    }
    const error = new BrokerError({
      api: "DescribeConfigs",
      code: result?.errorCode ?? -1,
      subject: name,
      detail: result?.errorMessage ?? null
    })
    if (["retriable", "refresh"].includes(error.class)) return yield* error
    return { ok: false, reason: error.message } as const
  }))

/** Null, or why the setting could not be made. */
const set = (
  options: LedgerTopicOptions,
  name: string,
  { key, value }: Need
): Effect.Effect<string | null, WireError> =>
  options.cluster.retrying(Effect.gen(function*() {
    const answer = yield* options.cluster.request({ kind: "any" }, incrementalAlterConfigs, {
      resources: [{
        resourceType: TOPIC_RESOURCE,
        resourceName: name,
        configs: [{ name: key, configOperation: SET, value }]
      }],
      validateOnly: options.mode === "validate"
    })
    const result = answer.responses[0]
    const errorCode = result?.errorCode ?? -1
    if (errorCode === 0) return null
    const error = new BrokerError({
      api: "IncrementalAlterConfigs",
      code: errorCode,
      subject: name,
      detail: result?.errorMessage ?? null
    })
    if (["retriable", "refresh", "coordinator"].includes(error.class)) return yield* error
    return error.message
  }))

const settle = (
  options: LedgerTopicOptions,
  topic: TopicMetadata,
  created: boolean
): Effect.Effect<LedgerTopicResult, WireError> =>
  Effect.gen(function*() {
    const { cluster } = options
    const replicas = Math.min(...topic.partitions.map((p) => p.replicas.length))
    const described = yield* describe(cluster, topic.name)
    if (!described.ok) {
      return refusal(
        `the settings of ${topic.name} cannot be read, so nobody knows whether it keeps what is written: ${described.reason}`
      )
    }
    const changes: Array<string> = created ? [`${topic.name} created with ${replicas} replicas`] : []
    const warnings: Array<string> = []
    for (const need of needs(replicas)) {
      const current = described.values.get(need.key)
      if (current !== undefined && need.holds(current)) continue
      const problem = yield* set(options, topic.name, need)
      if (problem === null) {
        changes.push(`${need.key} of ${topic.name} set from ${current ?? "unknown"} to ${need.value}`)
      } else if (need.danger !== null) {
        return refusal(
          `${need.key} of ${topic.name} is ${
            current ?? "unknown"
          }, must be ${need.value} (otherwise ${need.danger}), and cannot be set: ${problem}`
        )
      }
    }
    const brokers = (yield* cluster.brokers).length
    if (brokers >= 3 && replicas < 3) {
      warnings.push(`${topic.name} has ${replicas} of 3 replicas: a lost disk may lose the proof of what is mirrored`)
    }
    return {
      ok: true,
      topic: { name: topic.name, id: topic.id, partitions: topic.partitions.length, changes, warnings }
    }
  })

/** Found, be it that it was just created: brokers hear of it one by one. */
const find = (cluster: Cluster, name: string): Effect.Effect<TopicMetadata | null, WireError> =>
  Effect.gen(function*() {
    for (let attempt = 0; attempt < 50; attempt++) {
      const topic = (yield* cluster.retrying(cluster.topics([name]))).get(name)
      if (topic !== undefined && topic.partitions.length > 0) return topic
      yield* Effect.sleep(100)
    }
    return null
  })

const settleKnown = (
  options: LedgerTopicOptions,
  name: string,
  id: string
): Effect.Effect<LedgerTopicResult, WireError> =>
  Effect.gen(function*() {
    const topic = yield* find(options.cluster, name)
    if (topic?.id !== id) return { ok: false, reason: ledgerLost(name, topic !== null).what, forGood: true }
    return yield* settle(options, topic, false)
  })

/**
 * Makes sure that the topic is there and keeps its promises (or, with mode "validate", says whether it would). A
 * refusal is a sentence; failures are of the connection.
 */
export const ensureLedgerTopic = (options: LedgerTopicOptions): Effect.Effect<LedgerTopicResult, WireError> =>
  Effect.gen(function*() {
    const { cluster, flow, mode } = options
    const name = ledgerTopicName(flow)
    if (typeof options.knownId === "string") return yield* settleKnown(options, name, options.knownId)
    const existing = (yield* cluster.retrying(cluster.topics([name]))).get(name)
    if (existing !== undefined && existing.partitions.length > 0) return yield* settle(options, existing, false)
    const problem = yield* create(options, name)
    if (problem !== null) return refusal(`the ledger topic ${name} cannot be created on the target: ${problem}`)
    if (mode === "validate") {
      return {
        ok: true,
        topic: {
          name,
          id: "",
          partitions: options.partitions ?? 1,
          changes: [`${name} would be created`],
          warnings: []
        }
      }
    }
    const topic = yield* find(cluster, name)
    return topic === null
      ? refusal(`the ledger topic ${name} was created, but no broker shows it`)
      : yield* settle(options, topic, true)
  })
