/**
 * A flow that is about to run without its ledger, which is there from an earlier time (R13): notes that in the ledger
 * before its first record, so that a return does not take for lost what was mirrored meanwhile. It does not run where
 * that cannot be noted.
 */
import { Effect, type Scope } from "effect"
import { BindingStopped, type BindingName } from "../../txn/binding.ts"
import type { AwayEntry } from "../../txn/ledger/entry.ts"
import { ledgerTopicName } from "../../txn/ledger/ledgerTopic.ts"
import { clusterLog } from "../../txn/ledger/log.ts"
import { type LedgerReader, makeReader } from "../../txn/ledger/reader.ts"
import { slotsOf, writeEntries } from "../../txn/ledger/regime.ts"
import { makeProducer } from "../../txn/producer.ts"
import type { Cluster } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import type { Log } from "../report.ts"
import { atMost, groupFacts, type GroupOptions } from "./groupFacts.ts"

export interface LedgerLeaveOptions extends GroupOptions {
  readonly target: Cluster
  /** The source cluster's id. */
  readonly sourceId: string
  readonly flow: string
  readonly binding: BindingName
  readonly log: Log
}

/** Runs beside the lanes; never ends by itself. */
export type Watch = Effect.Effect<never, BindingStopped>

/** Null: this principal may not see whether it is there. */
const findLedger = (target: Cluster, name: string): Effect.Effect<{ readonly id: string } | "none" | null, WireError> =>
  target.retrying(target.topics([name])).pipe(
    Effect.map((found) => found.get(name) ?? "none" as const),
    Effect.catch((error) =>
      error instanceof BrokerError && error.class === "authorization" ? Effect.succeed(null) : Effect.fail(error)
    )
  )

const refused = (options: LedgerLeaveOptions, name: string, problem: string): BindingStopped =>
  new BindingStopped({
    binding: options.binding,
    what:
      `the flow has a ledger, ${name}, and it has to be noted there that records are mirrored without it now; otherwise all of them would be mirrored again as soon as the ledger is in force. It could not be noted: ${problem}. Let the flow write ${name}, or give this one another flow name and group.id`
  })

/** Somebody has ended the time away although we still work: it is begun again, from where it began. */
const keepAway = (
  options: LedgerLeaveOptions,
  reader: LedgerReader,
  write: (entry: AwayEntry) => Effect.Effect<string | null>,
  entry: AwayEntry
): Effect.Effect<never, BindingStopped> =>
  Effect.gen(function*() {
    const name = ledgerTopicName(options.flow)
    while (true) {
      yield* reader.until((tail) => tail.away === null)
      const problem = yield* write(entry)
      if (problem !== null) return yield* refused(options, name, problem)
      options.log(
        "warn",
        `another worker of this flow runs with the ledger ${name}, and this one without it: noted again`
      )
      yield* reader.until((tail) => tail.away !== null)
    }
  })

/** Call before the flow's first lane starts. Null: there is no ledger. */
export const leaveLedger = (
  options: LedgerLeaveOptions
): Effect.Effect<Watch | null, WireError | BindingStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const { binding, flow, log, sourceId, target } = options
    const name = ledgerTopicName(flow)
    const topic = yield* findLedger(target, name)
    if (topic === "none") return null
    if (topic === null) {
      log(
        "warn",
        `this flow may not see whether it has a ledger (${name}) from an earlier time: if it has, what is mirrored now is mirrored again when the ledger is in force again`
      )
      return null
    }
    const facts = atMost(yield* groupFacts(options))
    const producer = yield* makeProducer({ cluster: target, purpose: `ledger-leave-${flow}` })
    const write = (entry: AwayEntry) => writeEntries(producer, name, 0, [entry])
    const entry: AwayEntry = { kind: "away", binding, slots: slotsOf(sourceId, facts) }
    const problem = yield* write(entry)
    if (problem !== null) return yield* refused(options, name, problem)
    log(
      "warn",
      `the flow has a ledger, ${name}, and runs without it now (${binding}), which is noted there: what was mirrored and is not acknowledged yet may be doubled`
    )
    const reader = yield* makeReader({
      log: clusterLog({
        cluster: target,
        topic: name,
        topicId: topic.id,
        partition: 0,
        purpose: `ledger-leave-${flow}-log`
      }),
      topic: name
    })
    yield* Effect.addFinalizer(() => target.release(`ledger-leave-${flow}-log`))
    yield* reader.toEnd
    // The first note of the time away counts.
    const { away } = reader.tail()
    return keepAway(options, reader, write, away === null ? entry : { ...entry, slots: away.slots })
  })
