/** What `check` says of a flow's ledger as it lies on the target. Reads it, and changes nothing. */
import { Effect, type Scope } from "effect"
import type { ResolvedFlow } from "../../config/types.ts"
import type { BindingName, BindingStopped } from "../../txn/binding.ts"
import { knownTransactions } from "../../txn/ledger/lastRuns.ts"
import { ledgerTopicName } from "../../txn/ledger/ledgerTopic.ts"
import { clusterLog } from "../../txn/ledger/log.ts"
import { makeReader } from "../../txn/ledger/reader.ts"
import type { Away } from "../../txn/ledger/tail.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { groupMembers } from "./groupFacts.ts"

export interface CheckLedgerParts {
  readonly flow: ResolvedFlow
  readonly source: Cluster
  readonly target: Cluster
  /** What would be in force; null: nothing, the flow would not run. */
  readonly binding: BindingName | null
}

export interface CheckedLedger {
  readonly warnings: ReadonlyArray<string>
  readonly problems: ReadonlyArray<string>
}

const NOTHING: CheckedLedger = { warnings: [], problems: [] }

/** The topic is not there although the target remembers lanes that wrote one. */
const lost = ({ binding, flow, target }: CheckLedgerParts, name: string): Effect.Effect<CheckedLedger, WireError> =>
  Effect.gen(function*() {
    if (binding !== "ledger") return NOTHING
    const witness = (yield* knownTransactions(target, flow.name)).find((one) => one.binding === "ledger")
    if (witness === undefined) return NOTHING
    const words =
      `the ledger topic ${name} is not there, but this flow has run with one before (the target knows its transactional id ${witness.transactionalId}): it was deleted, and with it the proof of what is mirrored`
    return flow.onLedgerLost === "adopt"
      ? { ...NOTHING, warnings: [`${words}. on.ledger.lost is adopt: what the group has done would count as mirrored`] }
      : {
        ...NOTHING,
        problems: [
          `${words}. The flow would stop. Set on.ledger.lost: adopt to take for mirrored what the group has done, or use another flow name and group.id to mirror all of it again`
        ]
      }
  })

/** Longer than this nobody waits for `check`, milliseconds. */
const READ_MS = 20_000

const readAway = (target: Cluster, name: string, topicId: string) =>
  Effect.gen(function*() {
    const purpose = `ledger-check-${name}`
    const log = clusterLog({ cluster: target, topic: name, topicId, partition: 0, purpose })
    const reader = yield* makeReader({ log, topic: name })
    yield* Effect.addFinalizer(() => target.release(purpose))
    yield* reader.toEnd
    return reader.tail().away
  })

/** R13: whoever runs without the ledger has noted that. */
const awayWords = (parts: CheckLedgerParts, name: string, away: Away): Effect.Effect<string, WireError> =>
  Effect.gen(function*() {
    const { binding, flow, source } = parts
    const mode = flow.groupProtocol.value
    const said =
      `the ledger ${name} says that workers of this flow are away from it: they run without it (${away.binding}), or ended without coming back`
    if (binding !== "ledger") return `${said}. This flow would run without it too (${binding ?? "not at all"})`
    const members = yield* groupMembers({ groupId: flow.groupId, mode, source })
    const strangers = members.filter((id) => !away.members.has(id)).length
    const who = mode === "consumer"
      ? `stop every worker that is configured without the ledger`
      : strangers > 0
      ? `${strangers} members of group ${flow.groupId} have not said that they work by the ledger: stop those that are configured without it`
      : `no member of group ${flow.groupId} works without it now, so that the next start with the ledger ends this by itself`
    return `${said}. Until that is over nothing is repaired, and what they mirror may be doubled. What to do: ${who}`
  })

const check = (parts: CheckLedgerParts): Effect.Effect<CheckedLedger, WireError | BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const { binding, flow, target } = parts
    const name = ledgerTopicName(flow.name)
    const topic = (yield* target.retrying(target.topics([name]))).get(name)
    if (topic === undefined) return yield* lost(parts, name)
    const away = yield* Effect.timeoutOption(readAway(target, name, topic.id), READ_MS)
    if (away._tag === "None") {
      return { ...NOTHING, warnings: [`the ledger ${name} could not be read to its end within ${READ_MS / 1000} s`] }
    }
    if (away.value !== null) return { ...NOTHING, warnings: [yield* awayWords(parts, name, away.value)] }
    if (binding === "ledger" || binding === null) return NOTHING
    return {
      ...NOTHING,
      warnings: [
        `the flow has a ledger from an earlier time, ${name}, and would run without it (${binding}), which is noted there: what was mirrored and is not acknowledged yet may be doubled`
      ]
    }
  })

const isForbidden = (error: WireError | BindingStopped): boolean =>
  error._tag === "BrokerError" && error.class === "authorization"

/**
 * A flow that would run without a ledger needs no right on one, and none that can be read: what cannot be told of it is
 * no problem then. What a flow with a ledger lacks is one.
 */
export const checkLedger = (
  parts: CheckLedgerParts
): Effect.Effect<CheckedLedger, WireError | BindingStopped, Scope.Scope> =>
  Effect.catch(check(parts), (error) => {
    if (parts.binding === "ledger") return Effect.fail(error)
    if (isForbidden(error)) return Effect.succeed(NOTHING)
    const words = `whether the flow has a ledger from an earlier time cannot be told: ${error.message}`
    return Effect.succeed({ ...NOTHING, warnings: [words] })
  })
