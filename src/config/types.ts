/**
 * The configuration after reading: every default filled in, every reference replaced, every name checked. Plain
 * read-only values; nothing here knows of YAML.
 *
 * Guarantee: what `loadConfig` returns is consistent (source and target exist and differ, group ids do not collide,
 * patterns compile), so the rest of the program does not check again.
 */

import type { ControlSettings } from "./controlSettings.ts"
import type { OffsetSettings } from "./offsetSettings.ts"

/** Kafka's own setting names to values, as text. Secrets are in here: log it only through `redactSettings`. */
export type ClientSettingValues = Readonly<Record<string, string>>

export interface ResolvedCluster {
  readonly alias: string
  readonly settings: ClientSettingValues
}

export type GroupProtocol = "share" | "consumer"
export type Guarantee = "exactly-once" | "at-least-once"
export type BindingName = "kip-1289" | "ledger"
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal"
export type LogFormat = "auto" | "json" | "pretty"

/** A value and the place that said it, for messages: "the flow's group.protocol (flows[0].group.protocol)". */
export interface Sourced<A> {
  readonly value: A
  readonly origin: string
}

export interface PredicateSpec {
  readonly name: string
  /** Short type name: "TopicNameMatches", "HasHeaderKey", "RecordIsTombstone". */
  readonly type: string
  readonly params: ReadonlyMap<string, string>
}

export interface TransformSpec {
  readonly name: string
  /** Short type name: "InsertHeader", "DropHeaders", "RenameHeader", "RegexRouter", "Filter", or "module". */
  readonly type: string
  /** For "module", `path` is absolute. */
  readonly params: ReadonlyMap<string, string>
  readonly predicate: PredicateSpec | null
  /** Run where the predicate does not hold. */
  readonly negate: boolean
}

export interface DeadLetterSettings {
  /** A topic on the target cluster. */
  readonly topic: string
  /** Adds Connect's `__connect.errors.*` headers. */
  readonly contextHeaders: boolean
  /** -1: the broker's default. */
  readonly replicationFactor: number
}

export interface ResolvedFlow {
  readonly name: string
  readonly enabled: boolean
  /** Cluster aliases. */
  readonly source: string
  readonly target: string
  /** Regular expressions, to be anchored by the reader. */
  readonly topics: ReadonlyArray<string>
  readonly topicsExclude: ReadonlyArray<string>
  /** Source topic to target topic, before the policy. */
  readonly topicMapping: ReadonlyMap<string, string>
  readonly refreshTopicsIntervalMs: number
  readonly replicationPolicy: "default" | "identity"
  readonly replicationPolicySeparator: string
  /** -1: the broker's default. */
  readonly replicationFactor: number
  /** Topics that are created again, settings, rights, loops. */
  readonly control: ControlSettings
  /** The map of offsets, groups, and what MirrorMaker 2's clients read. */
  readonly offsets: OffsetSettings
  readonly groupProtocol: Sourced<GroupProtocol>
  /** How a member of a consumer group joins. */
  readonly groupMembership: "auto" | "classic" | "consumer"
  readonly groupId: string
  /** Where a new group starts: "earliest", "latest", or "by_duration:P1D" (KIP-1106). */
  readonly autoOffsetReset: string
  readonly isolationLevel: "read_committed" | "read_uncommitted"
  readonly shareAcknowledgementMode: "explicit" | "implicit"
  /** Lanes in this process. */
  readonly tasksMax: number
  /** What is wanted; what holds is found out at start. */
  readonly deliveryGuarantee: Guarantee
  readonly exactlyOnceBindings: ReadonlyArray<BindingName>
  readonly exactlyOnceFallback: "at-least-once" | "fail"
  /** The ledger topic is gone: stop, or begin a new one with what the group has done. */
  readonly onLedgerLost: "fail" | "adopt"
  readonly ledgerPatienceMs: number
  readonly transactionMaxLatencyMs: number
  readonly transactionMaxBytes: number
  readonly transactionMaxRecords: number
  /** Bytes that were fetched and are not yet acknowledged, all lanes of the flow together. */
  readonly maxInFlightBytes: number
  /** Consumer mode: how often confirmed positions are committed. */
  readonly offsetCommitIntervalMs: number
  readonly onSourceGap: "fail" | "continue"
  readonly onRecordRefused: "block" | "deadletter"
  readonly errorsTolerance: "none" | "all"
  readonly deadLetter: DeadLetterSettings | null
  readonly transforms: ReadonlyArray<TransformSpec>
  readonly shutdownTimeoutMs: number
  /** Without the prefix and without group.protocol. */
  readonly consumerOverrides: ClientSettingValues
  readonly producerOverrides: ClientSettingValues
  readonly adminOverrides: ClientSettingValues
}

export interface ResolvedConfig {
  /** The file, as it was named on the command line. */
  readonly path: string
  readonly clusters: ReadonlyMap<string, ResolvedCluster>
  /** Enabled and disabled ones, in the file's order. */
  readonly flows: ReadonlyArray<ResolvedFlow>
  /** null: no HTTP server. */
  readonly http: { readonly host: string; readonly port: number } | null
  readonly log: { readonly level: LogLevel; readonly format: LogFormat }
  /** null: the host's name and a number that is free there. */
  readonly instanceId: string | null
  /** The longest of the flows' that run: how long a stop may take in all. */
  readonly shutdownTimeoutMs: number
  /** Settings that have no effect, in sentences, to be logged once at start. */
  readonly warnings: ReadonlyArray<string>
}
