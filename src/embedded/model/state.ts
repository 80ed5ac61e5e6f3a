/**
 * All that a cluster here knows. Plain data that plain functions change; time comes in as `nowMs`, ids from
 * `options.random`, and what is due later goes into `timers`.
 */
import type { FetchSession } from "./fetchSession.ts"
import type { Group } from "./group.ts"
import type { Log } from "./partitionLog.ts"
import type { ShareGroup } from "./shareGroup.ts"
import type { ShareSession } from "./shareSession.ts"
import { Timers } from "./timers.ts"
import type { PendingMarker, Transaction } from "./transaction.ts"

export interface BrokerState {
  readonly id: number
  readonly rack: string | null
  /** Where clients reach it; the server sets its port. */
  host: string
  port: number
  running: boolean
}

export interface Partition {
  readonly index: number
  /** Brokers that may lead it. */
  replicas: ReadonlyArray<number>
  /** -1: none of the replicas runs. */
  leader: number
  leaderEpoch: number
  readonly log: Log
}

export interface Topic {
  readonly name: string
  /** base64url, 22 characters. */
  readonly id: string
  readonly internal: boolean
  readonly partitions: Array<Partition>
}

/** KIP-1289: off, or on with one of the two drafts of its wire format. */
export type TxnShareDraft = "off" | "A" | "B"

export interface ModelOptions {
  readonly clusterId: string
  readonly brokers: number
  readonly kip1289: TxnShareDraft
  /** Finalized transaction.version. */
  readonly transactionVersion: 0 | 1 | 2
  /** How long after the answer to EndTxn a marker is written; null: only when told (releaseMarkers). */
  readonly markerDelayMs: (() => number) | null
  /** For ids; 0 up to 1. */
  readonly random: () => number
  readonly autoCreateTopics: boolean
}

export interface ClusterState {
  readonly options: ModelOptions
  readonly clusterId: string
  readonly brokers: Map<number, BrokerState>
  readonly topics: Map<string, Topic>
  readonly topicsById: Map<string, Topic>
  /** By transactional id. */
  readonly transactions: Map<string, Transaction>
  readonly markers: Set<PendingMarker>
  readonly groups: Map<string, Group>
  readonly shareGroups: Map<string, ShareGroup>
  readonly shareSessions: Map<string, ShareSession>
  /** By id. */
  readonly fetchSessions: Map<number, FetchSession>
  lastFetchSession: number
  /** Settings that were set, by resource ("topic:orders", "broker:", "group:g"). */
  readonly settings: Map<string, Map<string, string>>
  /** Coordinators that were moved by hand: "group:id", "transaction:id". */
  readonly movedCoordinators: Map<string, number>
  readonly features: Map<string, { readonly min: number; readonly max: number; level: number }>
  readonly timers: Timers
  markerDelayMs: (() => number) | null
  nextProducerId: number
}

export const newState = (options: ModelOptions): ClusterState => {
  const brokers = new Map<number, BrokerState>()
  for (let id = 1; id <= options.brokers; id++) {
    brokers.set(id, { id, rack: null, host: "embedded", port: 9000 + id, running: true })
  }
  const shareVersion = options.kip1289 === "off" ? 2 : 3
  return {
    options,
    clusterId: options.clusterId,
    brokers,
    topics: new Map(),
    topicsById: new Map(),
    transactions: new Map(),
    markers: new Set(),
    groups: new Map(),
    shareGroups: new Map(),
    shareSessions: new Map(),
    fetchSessions: new Map(),
    lastFetchSession: 0,
    settings: new Map(),
    movedCoordinators: new Map(),
    features: new Map([
      ["transaction.version", { min: 0, max: 2, level: options.transactionVersion }],
      ["share.version", { min: 0, max: shareVersion, level: shareVersion }]
    ]),
    timers: new Timers(),
    markerDelayMs: options.markerDelayMs,
    nextProducerId: 1000
  }
}

/** 16 bytes as Kafka prints ids. */
export const newUuid = (state: ClusterState): string => {
  const bytes = Buffer.alloc(16)
  for (let i = 0; i < 16; i++) bytes[i] = Math.floor(state.options.random() * 256)
  return bytes.toString("base64url")
}

export const runningBrokers = (state: ClusterState): ReadonlyArray<BrokerState> =>
  [...state.brokers.values()].filter((broker) => broker.running)

/** The broker that answers as the controller: the first that runs. */
export const controllerId = (state: ClusterState): number => runningBrokers(state)[0]?.id ?? -1

/** As Java's String.hashCode, so that a key has a place of its own, the same in every run. */
const hash = (text: string): number => {
  let value = 0
  for (let i = 0; i < text.length; i++) value = (Math.imul(value, 31) + text.charCodeAt(i)) | 0
  return value & 0x7fffffff
}

/** The broker that coordinates a group or a transactional id now; -1 when none runs. */
export const coordinatorOf = (state: ClusterState, kind: "group" | "transaction", key: string): number => {
  const moved = state.movedCoordinators.get(`${kind}:${key}`)
  if (moved !== undefined && state.brokers.get(moved)?.running === true) return moved
  const running = runningBrokers(state)
  return running[hash(key) % running.length]?.id ?? -1
}
