/**
 * Membership of a share group (ShareGroupHeartbeat, KIP-932). The member id is ours for the whole life of the
 * consumer; the coordinator hands out the epoch and the assignment, both in the answers to heartbeats.
 *
 * Being fenced (the coordinator lost or forgot the member) is not the end: the member joins again with epoch 0 under
 * its old id. What it holds it keeps: acquisitions belong to the member id on the partition's leader, which does not
 * ask the coordinator.
 */
import { Effect, Random, Result } from "effect"
import { BrokerError, isOwnMistake, type WireError } from "../wire/errors.ts"
import { shareGroupHeartbeat } from "../wire/messages/shareGroupHeartbeat.ts"
import type { ResponseOf } from "../wire/schema.ts"
import { nowMs } from "../wire/retry.ts"
import { backoffMs, type ShareCore } from "./core.ts"
import { NO_SHARE_GROUPS, ShareError } from "./errors.ts"
import { Code, type HeartbeatVerdict, heartbeatVerdict } from "./verdicts.ts"

type Heartbeat = ResponseOf<typeof shareGroupHeartbeat>

/** A random UUID (RFC 9562, version 4) from Effect's Random, so that a simulation can seed it. */
export const newMemberId = Effect.gen(function*() {
  let hex = ""
  for (let i = 0; i < 8; i++) {
    hex += (yield* Random.nextIntBetween(0, 0x10000, { halfOpen: true })).toString(16).padStart(4, "0")
  }
  const variant = "89ab"[Number.parseInt(hex[16] as string, 16) & 3]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`
})

/** What the last answered heartbeat told, so that an unchanged list is not sent again. */
export interface MembershipState {
  sentTopics: ReadonlyArray<string> | null
  intervalMs: number
  failures: number
  joins: number
  /** Heartbeats still to be sent in quick succession. */
  hurry: number
}
export const newMembership = (): MembershipState => ({
  sentTopics: null,
  intervalMs: 5000,
  failures: 0,
  joins: 0,
  hurry: 0
})

/**
 * The coordinator assigns some time after a join or a changed subscription (it first makes the share partitions'
 * state, which takes milliseconds), and tells in the answer to the next heartbeat. Some quick ones, ever slower, make that
 * two tenths of a second instead of two intervals.
 */
const QUICK_MS: ReadonlyArray<number> = [50, 100, 100, 200, 200, 500, 500, 500, 500, 500, 500, 500, 500]

const HEARTBEAT_TIMEOUT_MS = 10_000
const LEAVE_EPOCH = -1

const send = (
  core: ShareCore,
  epoch: number,
  topics: ReadonlyArray<string> | null,
  timeoutMs: number
): Effect.Effect<Heartbeat, WireError> =>
  core.cluster.request({ kind: "group", key: core.groupId }, shareGroupHeartbeat, {
    groupId: core.groupId,
    memberId: core.memberId,
    memberEpoch: epoch,
    rackId: epoch === 0 ? core.rack : null,
    subscribedTopicNames: topics
  }, { timeoutMs })

/**
 * One heartbeat and what follows from it: "ok", or what to do before the next. Fails with what no further heartbeat
 * can mend.
 */
export const heartbeat = Effect.fnUntraced(
  function*(core: ShareCore, state: MembershipState): Effect.fn.Return<Exclude<HeartbeatVerdict, "fatal">, ShareError> {
    const epoch = core.memberEpoch
    const topics = core.subscription
    const changed = epoch === 0 || state.sentTopics === null || !sameList(state.sentTopics, topics)
    const result = yield* Effect.result(send(core, epoch, changed ? topics : null, HEARTBEAT_TIMEOUT_MS))
    if (Result.isFailure(result)) {
      const error = result.failure
      // Not known to have arrived: say it again.
      state.sentTopics = null
      if (error._tag === "UnsupportedError") {
        return yield* new ShareError({ reason: "unsupported", groupId: core.groupId, what: NO_SHARE_GROUPS })
      }
      if (isOwnMistake(error)) {
        return yield* new ShareError({ reason: "internal", groupId: core.groupId, what: error.message })
      }
      if (error._tag === "BrokerError") {
        const verdict = heartbeatVerdict(error.code, epoch > 0)
        if (verdict === "fatal") return yield* fatal(core, error.code, error.detail)
      }
      yield* core.cluster.invalidateCoordinator({ kind: "group", key: core.groupId })
      return "coordinator"
    }
    const answer = result.success
    const verdict = heartbeatVerdict(answer.errorCode, epoch > 0)
    switch (verdict) {
      case "ok":
        state.hurry = changed ? QUICK_MS.length : Math.max(0, state.hurry - 1)
        state.sentTopics = topics
        applyHeartbeat(core, state, answer)
        return verdict
      case "rejoin":
        core.emit({ kind: "fenced", why: errorOf(core, answer.errorCode, answer.errorMessage).message })
        core.memberEpoch = 0
        state.sentTopics = null
        return verdict
      case "coordinator":
        state.sentTopics = null
        yield* core.cluster.invalidateCoordinator({ kind: "group", key: core.groupId })
        return verdict
      case "retry":
        state.sentTopics = null
        return verdict
      case "fatal":
        return yield* fatal(core, answer.errorCode, answer.errorMessage)
    }
  }
)

const errorOf = (core: ShareCore, code: number, detail: string | null): BrokerError =>
  new BrokerError({ api: "ShareGroupHeartbeat", code, subject: `group ${core.groupId}`, detail })

const fatal = (core: ShareCore, code: number, detail: string | null): ShareError => {
  const error = errorOf(core, code, detail)
  const failed = (reason: ShareError["reason"], what: string) => new ShareError({ reason, groupId: core.groupId, what })
  switch (code) {
    case Code.unsupportedVersion:
      return failed("unsupported", NO_SHARE_GROUPS)
    case Code.groupMaxSizeReached:
      return failed(
        "full",
        "the group is full (group.share.max.size): lower tasks.max, stop other members, or raise the limit"
      )
    case Code.groupAuthorizationFailed:
      return failed("authorization", "the principal may not READ the group")
    case Code.topicAuthorizationFailed:
      return failed("authorization", "the principal may not DESCRIBE one of the subscribed topics")
    case Code.groupIdNotFound:
      return failed(
        "refused",
        `${detail ?? "the group id belongs to a group of another type"} Choose another group.id, or delete that group.`
      )
    default:
      return failed("refused", error.message)
  }
}

const applyHeartbeat = (core: ShareCore, state: MembershipState, answer: Heartbeat): void => {
  if (core.memberEpoch === 0 && answer.memberEpoch > 0) {
    core.emit({ kind: "joined", epoch: answer.memberEpoch, again: state.joins++ > 0 })
  }
  core.memberEpoch = answer.memberEpoch
  // A broker's interval of nothing would be a busy loop.
  state.intervalMs = Math.max(100, answer.heartbeatIntervalMs)
  if (answer.assignment === null) return
  const assignment = new Map<string, ReadonlyArray<number>>()
  let partitions = 0
  for (const topic of answer.assignment.topicPartitions) {
    assignment.set(topic.topicId, topic.partitions)
    partitions += topic.partitions.length
  }
  core.assignment = assignment
  core.emit({ kind: "assigned", partitions })
  core.routing.openUnsafe()
}

const sameList = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a.length === b.length && a.every((name, i) => name === b[i])

/** How long until the next heartbeat after one that ended so. */
export const pauseAfter = (
  core: ShareCore,
  state: MembershipState,
  verdict: Exclude<HeartbeatVerdict, "fatal">
): number => {
  if (verdict === "ok") {
    state.failures = 0
    return Math.min(QUICK_MS[QUICK_MS.length - state.hurry] ?? Infinity, state.intervalMs)
  }
  state.failures++
  // Fenced once: join at once. Fenced again and again (two members with one id): not in a tight circle.
  if (verdict === "rejoin" && state.failures === 1) return 0
  return backoffMs(core.options, state.failures)
}

/**
 * Heartbeats until interrupted. A subscription that changes goes out at once. Never fails: what is fatal becomes the
 * consumer's failure.
 */
export const keepMembership = Effect.fnUntraced(
  function*(core: ShareCore, state: MembershipState, firstPauseMs: number) {
    let pauseMs = firstPauseMs
    while (true) {
      yield* core.heartbeatNow.await.pipe(Effect.timeoutOption(Math.max(1, pauseMs)))
      core.heartbeatNow.closeUnsafe()
      const verdict = yield* Effect.result(heartbeat(core, state))
      if (Result.isFailure(verdict)) return core.fail(verdict.failure)
      pauseMs = pauseAfter(core, state, verdict.success)
    }
  }
)

/**
 * The first join. Waits out what passes by itself (a coordinator that loads, a connection that is refused) for at
 * most `timeoutMs`; fails with the reason.
 */
export const join = Effect.fnUntraced(
  function*(core: ShareCore, state: MembershipState, timeoutMs: number): Effect.fn.Return<void, ShareError> {
    const until = (yield* nowMs) + timeoutMs
    while (true) {
      const verdict = yield* heartbeat(core, state)
      if (verdict === "ok") return
      const pauseMs = pauseAfter(core, state, verdict)
      if ((yield* nowMs) + pauseMs > until) {
        return yield* new ShareError({
          reason: "refused",
          groupId: core.groupId,
          what: `the group's coordinator did not let the member join within ${timeoutMs} ms`
        })
      }
      yield* Effect.sleep(pauseMs)
    }
  }
)

/** Leaves the group, so that its partitions move at once instead of after the session timeout. */
export const leave = (core: ShareCore): Effect.Effect<void> =>
  Effect.suspend(() =>
    core.memberEpoch === 0
      ? Effect.void
      : send(core, LEAVE_EPOCH, null, core.options.closeTimeoutMs).pipe(Effect.ignore)
  )
