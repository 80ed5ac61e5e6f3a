/**
 * A flow whose group had come some way before it had a ledger (at-least-once before, or MirrorMaker's group): what
 * the group had decided then was mirrored without notes. It is written down as done, once, while the ledger is still
 * empty; without that, repair (R12) would take it for given up and mirror it a second time. Where there is nothing
 * to write down that is noted too: what the group gives up from now on was not mirrored.
 */
import { Effect } from "effect"
import type { BindingStopped } from "../binding.ts"
import type { Producer } from "../producer.ts"
import { type DecidedAt, noteReader, slotsOf, writeDone, writeEntries } from "./regime.ts"
import type { WorkerLedger } from "./worker.ts"

/** Whether no flow has begun with it; read to its end now. The first partition says so: it is written last. */
export const isEmpty = (ledger: WorkerLedger): Effect.Effect<boolean, BindingStopped> =>
  Effect.suspend(() => {
    const reader = noteReader(ledger.readers)
    return Effect.map(reader.toEnd, () => reader.tail().next === 0)
  })

/**
 * Notes the progress, asked for before, in an empty ledger. False: the ledger has entries, and nothing was noted; null:
 * the target did not take it. Two workers that do it at once note the same.
 */
export const adoptProgress = (
  ledger: WorkerLedger,
  producer: Producer,
  decided: ReadonlyArray<DecidedAt>
): Effect.Effect<boolean | null, BindingStopped> =>
  Effect.gen(function*() {
    if (!(yield* isEmpty(ledger))) return false
    const slots = slotsOf(ledger.sourceClusterId, decided)
    const begun = { kind: "snapshot", decidedBelow: 0, slots: [] } as const
    const problem = (yield* writeDone(ledger, producer, slots)) ??
      (yield* writeEntries(producer, ledger.topic.name, noteReader(ledger.readers).partition, [begun]))
    if (problem !== null) return null
    yield* Effect.forEach(ledger.readers, (reader) => reader.toEnd, { discard: true })
    return true
  })
