/**
 * One assigned partition: where it is in its life and where its position stands. Mutable, owned by the consumer's
 * fibers, which run on one thread; every change of several fields is made without a wait in between.
 *
 * Life: locate (find the starting position) -> validate (see that the log was not truncated) -> ready (fetched),
 * and from ready to validate (another leader), to range (the position is out of range), or to stopped (a problem
 * that needs a person). Revocation ends it from anywhere. `leader` -1 in any stage: the leader has to be looked up.
 *
 * Invariants:
 * 1. `position` is the offset after the last one put into the queue; it moves only with what is put there.
 * 2. An answer is used only when `token` is what it was when the request left (pause, gap and revocation change it),
 *    and one request a partition is in flight: so results stand in the queue in order, without overlap.
 */
import type { PartitionProblem } from "./errors.ts"
import { partitionKey, type TopicPartition } from "./position.ts"

export type Stage = "locate" | "validate" | "ready" | "range" | "stopped" | "revoked"

export interface PartitionState extends TopicPartition {
  readonly key: string
  /** Changes when reading starts over below; what was read under an older one must not be committed. */
  generation: number
  stage: Stage
  paused: boolean
  /** base64url; "" until known; ZERO_UUID on brokers older than 2.8. */
  topicId: string
  /** The topic is another one than that of the position (by its id). */
  recreated: boolean
  /** -1 until located. */
  position: number
  /** Leader epoch of the last record before the position; -1: unknown. */
  positionEpoch: number
  /** Highest position given out by poll: nothing above may be confirmed. */
  deliveredTo: number
  leader: number
  leaderEpoch: number
  /** A follower that the leader recommends (KIP-392); -1: none. */
  replica: number
  /** Monotonic milliseconds until which the recommendation counts. */
  replicaUntil: number
  inFlight: boolean
  token: number
  /** Bytes in the queue. */
  buffered: number
  highWatermark: number
  lastStableOffset: number
  logStart: number
  problem: PartitionProblem | null
  /** The passing trouble that it waits for to end, in words; null when there is none. */
  waiting: string | null
  /** Monotonic milliseconds before which it is not tried again, and how often it was in vain. */
  notBefore: number
  failures: number
  /** Where it stands among the others of its broker: lowest first. Those that gave data go behind. */
  turn: number
}

export const newPartition = (at: TopicPartition, generation: number): PartitionState => ({
  topic: at.topic,
  partition: at.partition,
  key: partitionKey(at),
  generation,
  stage: "locate",
  paused: false,
  topicId: "",
  recreated: false,
  position: -1,
  positionEpoch: -1,
  deliveredTo: -1,
  leader: -1,
  leaderEpoch: -1,
  replica: -1,
  replicaUntil: 0,
  inFlight: false,
  token: 0,
  buffered: 0,
  highWatermark: -1,
  lastStableOffset: -1,
  logStart: -1,
  problem: null,
  waiting: null,
  notBefore: 0,
  failures: 0,
  turn: 0
})

/** To another stage; answers that are still on their way are void. */
export const moveTo = (state: PartitionState, stage: Stage): void => {
  state.stage = stage
  state.token++
}

export const stop = (state: PartitionState, problem: PartitionProblem): void => {
  moveTo(state, "stopped")
  state.problem = problem
  state.waiting = null
}

/** Not again before a back-off that doubles from 100 ms to 5 s; with its leader looked up anew. */
export const backOff = (state: PartitionState, now: number, why: string): void => {
  state.waiting = why
  state.leader = -1
  state.replica = -1
  state.notBefore = now + Math.min(5_000, 100 * 2 ** Math.min(state.failures, 6))
  state.failures++
}

export const recovered = (state: PartitionState): void => {
  state.waiting = null
  state.failures = 0
  state.notBefore = 0
}

/** The broker to fetch from. */
export const fetchFrom = (state: PartitionState): number => state.replica >= 0 ? state.replica : state.leader

/** A leader that is newer than what is known makes the position doubtful until it is validated. */
export const adoptLeader = (state: PartitionState, leader: number, epoch: number): void => {
  state.leader = leader
  state.replica = -1
  if (epoch !== state.leaderEpoch && state.stage === "ready") moveTo(state, "validate")
  state.leaderEpoch = epoch
}
