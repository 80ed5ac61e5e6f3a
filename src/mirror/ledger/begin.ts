/**
 * What a flow does with its ledger before its first lane: a new ledger takes over what the group has done; one that is
 * gone is told from a new one; a time without the ledger is ended (R13), or waited out.
 */
import { Effect, type Scope } from "effect"
import { BindingStopped } from "../../txn/binding.ts"
import { adoptProgress, isEmpty } from "../../txn/ledger/adopt.ts"
import { knownTransactions } from "../../txn/ledger/lastRuns.ts"
import { comeBack, noteReader, type Returned } from "../../txn/ledger/regime.ts"
import type { WorkerLedger } from "../../txn/ledger/worker.ts"
import { makeProducer, type Producer } from "../../txn/producer.ts"
import { defaultProducerSettings } from "../../txn/producerSettings.ts"
import { takeOver } from "../../txn/takeOver.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import type { Log } from "../report.ts"
import type { ControlLog } from "../control/controlLog.ts"
import { assertGroupKnown, noteFirstGroup } from "./knownGroups.ts"
import { groupFacts, groupMembers, type GroupFact, type GroupOptions, unknownIn } from "./groupFacts.ts"

export interface LedgerBeginOptions extends GroupOptions {
  readonly target: Cluster
  readonly ledger: WorkerLedger
  readonly flow: string
  /** Member ids of this process's lanes, where they are members of a share group. */
  readonly ownMembers: () => ReadonlyArray<string>
  /** on.ledger.lost */
  readonly onLedgerLost: "fail" | "adopt"
  /** Where it is noted whose work the ledger knows. */
  readonly notes: ControlLog
  readonly log: Log
}

export interface LedgerBegun {
  /** Whether the ledger alone is in force now; ends a time away where that has become possible. */
  readonly inForce: Effect.Effect<boolean, WireError | BindingStopped>
}

const stopped = (what: string, forGood = false): BindingStopped =>
  new BindingStopped({ binding: "ledger", what, forGood })

/** The ledger is empty, and the target remembers transactions that only a ledger's lanes have. */
const assertNotLost = ({ flow, ledger, target }: LedgerBeginOptions): Effect.Effect<void, WireError | BindingStopped> =>
  Effect.gen(function*() {
    const witness = (yield* knownTransactions(target, flow)).find(({ binding }) => binding === "ledger")
    // Another process may have begun it in between.
    if (witness === undefined || !(yield* isEmpty(ledger))) return
    return yield* stopped(
      `the ledger topic ${ledger.topic.name} is new, but this flow has run with one before (the target knows its transactional id ${witness.transactionalId}): the old one was deleted, and with it the proof of what is mirrored. Set on.ledger.lost: adopt to take for mirrored what the group has done, and begin a new one (what was mirrored and not acknowledged is mirrored again, what the group gave up unmirrored is not looked for); or use another flow name and group.id to mirror all of it again`,
      true
    )
  })

/** A transaction of KIP-1289 that was left open may still decide records: none is when the group is asked. */
const endOpen = ({ flow, log, target }: LedgerBeginOptions): Effect.Effect<void, WireError | BindingStopped> =>
  Effect.gen(function*() {
    for (const { binding, open, transactionalId } of yield* knownTransactions(target, flow)) {
      if (binding !== "kip-1289" || !open) continue
      log("info", `ledger: the transaction that ${transactionalId} has left open is ended first`)
      yield* takeOver({ ...defaultProducerSettings, cluster: target, transactionalId, purpose: `ledger-notes-${flow}` })
        .pipe(Effect.mapError((error) => stopped(error.message)))
    }
  })

const sayUnknown = ({ groupId, log }: LedgerBeginOptions, facts: ReadonlyArray<GroupFact>): void => {
  const count = unknownIn(facts)
  if (count === 0) return
  log(
    "warn",
    `ledger: ${
      count === null ? "some" : `${count}`
    } records of group ${groupId} were done out of turn before, and the source does not tell which (it needs CLUSTER_ACTION on the source's cluster): they are mirrored a second time when the group comes by them. This happens once`
  )
}

/** Asked before the ledger is looked at: what is told then was done without it. */
const first = (options: LedgerBeginOptions, producer: Producer) =>
  Effect.gen(function*() {
    const { groupId, ledger, log } = options
    yield* endOpen(options)
    const members = yield* groupMembers(options)
    const facts = yield* groupFacts(options)
    const adopted = yield* adoptProgress(ledger, producer, facts)
    // Without the note repair would take all of it for given up.
    if (adopted === null) {
      return yield* stopped(`what group ${groupId} had done before could not be noted in ${ledger.topic.name}`)
    }
    if (!adopted || facts.length === 0) return
    log("warn", `the ledger is new: what group ${groupId} had done before counts as mirrored`)
    sayUnknown(options, facts)
    if (members.length > 0) {
      log(
        "warn",
        `ledger: ${members.length} other members are in group ${groupId}: what those mirror that run without the ledger is mirrored twice. Stop them`
      )
    }
  })

const returning = (
  options: LedgerBeginOptions,
  producer: Producer
): Effect.Effect<Returned, WireError | BindingStopped> =>
  Effect.gen(function*() {
    const { groupId, ledger, log, ownMembers } = options
    let facts: ReadonlyArray<GroupFact> = []
    const decided = Effect.gen(function*() {
      yield* endOpen(options)
      facts = yield* groupFacts(options)
      return facts
    })
    const back = yield* comeBack({ ledger, producer, members: groupMembers(options), own: ownMembers, decided })
    if (back.kind === "back" && back.since !== null) {
      log(
        "warn",
        `the ledger is in force again: ${back.adopted} offsets that group ${groupId} did without it (binding ${back.since}) count as mirrored`
      )
      sayUnknown(options, facts)
    }
    return back
  })

/** Call before the flow's first lane starts. */
export const beginWithLedger = (
  options: LedgerBeginOptions
): Effect.Effect<LedgerBegun, WireError | BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const { flow, ledger, log, onLedgerLost, target } = options
    const producer = yield* makeProducer({ cluster: target, purpose: `ledger-notes-${flow}` })
    if (yield* isEmpty(ledger)) {
      if (onLedgerLost === "fail") yield* assertNotLost(options)
      yield* first(options, producer)
      yield* noteFirstGroup(options)
    } else if (noteReader(ledger.readers).tail().away === null) yield* assertGroupKnown(options)
    let told: string | null = null
    const inForce = Effect.gen(function*() {
      const { away } = noteReader(ledger.readers).tail()
      const back = away === null ? null : yield* returning(options, producer)
      const reason = back?.kind === "away" ? `${back.binding}: ${back.reason}` : null
      if (reason !== null && reason !== told) {
        log(
          "warn",
          `the ledger is not in force alone (${reason}): nothing is repaired until it is, and what others mirror without it may be doubled`
        )
      }
      told = reason
      return reason === null
    })
    yield* inForce
    return { inForce }
  })
