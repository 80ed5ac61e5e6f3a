/**
 * What a flow knows of itself, for /status, health and the log: one mutable object per flow, changed by its lanes
 * and read by the HTTP server. Every state that is not "running" carries a reason in words.
 */
import { type RangeSet, union } from "../wire/ranges.ts"

export type FlowStateName = "starting" | "running" | "blocked" | "retrying" | "failed" | "stopping" | "stopped"
export type PartitionStateName = "running" | "blocked" | "failed"

export interface GuaranteeState {
  readonly wanted: string
  readonly effective: string
  /** "ledger", "kip-1289" or "at-least-once". */
  readonly binding: string
  /** Why each binding that was tried cannot hold. */
  readonly reasons: ReadonlyArray<string>
}

export interface PartitionState {
  readonly topic: string
  readonly partition: number
  targetTopic: string
  /** The next source offset that is not known to be mirrored and acknowledged; null until known. */
  position: number | null
  lag: number | null
  mirrored: number
  /** From the oldest record's timestamp to the target's confirmation, of the batch mirrored last. */
  latencySeconds: number | null
  state: PartitionStateName
  reason: string | null
}

/** A control task of the flow: settings, acls, deletes. */
export interface TaskState {
  /** elsewhere: another process of the flow does it. */
  readonly state: "ok" | "problem" | "elsewhere"
  /** What could not be done; then what is worth knowing. */
  readonly reasons: ReadonlyArray<string>
  /** When it was done last, by this process. */
  readonly atMs: number | null
}

const partitionKey = (topic: string, partition: number): string => `${topic}-${partition}`

export class FlowState {
  readonly name: string
  readonly source: string
  readonly target: string
  readonly mode: "share" | "consumer"
  readonly lanes: number
  state: FlowStateName = "starting"
  reason: string | null = null
  sinceMs: number
  guarantee: GuaranteeState
  mirrored = 0
  bytes = 0
  filtered = 0
  deadLettered = 0
  skipped = 0
  refusedAcknowledgements = 0
  redelivered = 0
  readonly partitions = new Map<string, PartitionState>()
  readonly #acknowledged = new Map<string, RangeSet>()
  readonly tasks = new Map<string, TaskState>()
  /** Reasons that hold for a while (the target is down), by who said it. */
  readonly #stalls = new Map<string, string>()

  constructor(
    options: {
      name: string
      source: string
      target: string
      mode: "share" | "consumer"
      lanes: number
      wanted: string
      nowMs: number
    }
  ) {
    this.name = options.name
    this.source = options.source
    this.target = options.target
    this.mode = options.mode
    this.lanes = options.lanes
    this.sinceMs = options.nowMs
    this.guarantee = { wanted: options.wanted, effective: "unknown", binding: "none", reasons: [] }
  }

  become(state: FlowStateName, reason: string | null, nowMs: number): void {
    if (this.state !== state) this.sinceMs = nowMs
    this.state = state
    this.reason = reason
  }

  /** A new run of the flow: what stood still in the one before is to be found out anew. */
  begin(): void {
    this.#stalls.clear()
    for (const at of this.partitions.values()) {
      at.state = "running"
      at.reason = null
    }
  }

  task(name: string, state: TaskState): void {
    this.tasks.set(name, state)
  }

  /** Marks that bytes do not move, with the reason; `who` ends it with `null`. */
  stall(who: string, reason: string | null): void {
    if (reason === null) this.#stalls.delete(who)
    else this.#stalls.set(who, reason)
  }

  get stalls(): ReadonlyArray<string> {
    return [...new Set(this.#stalls.values())]
  }

  partition(topic: string, partition: number, targetTopic: string): PartitionState {
    const key = partitionKey(topic, partition)
    let known = this.partitions.get(key)
    if (known === undefined) {
      known = {
        topic,
        partition,
        targetTopic,
        position: null,
        lag: null,
        mirrored: 0,
        latencySeconds: null,
        state: "running",
        reason: null
      }
      this.partitions.set(key, known)
    }
    return known
  }

  /** Share mode: the source's brokers have confirmed these. */
  acknowledged(topic: string, partition: number, ranges: RangeSet): void {
    const key = partitionKey(topic, partition)
    this.#acknowledged.set(key, union(this.#acknowledged.get(key) ?? [], ranges))
  }

  /** The same by the partition's name, as far as it is not forgotten. */
  acknowledgedIn(key: string): RangeSet {
    return this.#acknowledged.get(key) ?? []
  }

  /** The end of what is acknowledged without a hole from `start` on. */
  acknowledgedFrom(key: string, start: number): number {
    const first = this.acknowledgedIn(key).find((range) => range.last >= start)
    return first !== undefined && first.first <= start ? first.last + 1 : start
  }

  /** What lies below `start` is of no use any more. */
  forgetAcknowledged(key: string, start: number): void {
    const above = this.acknowledgedIn(key).filter((range) => range.last >= start)
    if (above.length > 0) this.#acknowledged.set(key, above)
    else this.#acknowledged.delete(key)
  }

  /** The topic is gone, or is another one under its name. */
  forgetTopic(topic: string): void {
    for (const [key, at] of [...this.partitions]) {
      if (at.topic !== topic) continue
      this.partitions.delete(key)
      this.#acknowledged.delete(key)
    }
  }

  get blocked(): ReadonlyArray<PartitionState> {
    return [...this.partitions.values()].filter((p) => p.state !== "running")
  }
}
