/**
 * A flow whose group had come some way before it had a ledger (at-least-once before, or MirrorMaker's group): what
 * lies below the group's start offset then was mirrored without notes. It is written down as done, once, while the
 * ledger is still empty; without that, repair (R12) would take it for given up and mirror it a second time. Where
 * there is nothing to write down that is noted too: what the group gives up from now on was not mirrored.
 */
import { Effect } from "effect"
import { type BindingStopped } from "../binding.ts"
import type { Producer } from "../producer.ts"
import { ledgerBatches } from "./batches.ts"
import type { SnapshotEntry } from "./entry.ts"
import type { SourcePartition } from "./positions.ts"
import { claimsOf } from "./rules.ts"
import { partitionOfSlot, type WorkerLedger } from "./worker.ts"

export interface Progress extends SourcePartition {
  /** All below is dealt with for the group. */
  readonly below: number
}

/**
 * Notes the progress in an empty ledger. False: the ledger has entries, and nothing was noted; null: the target did
 * not take it. Two workers that do it at once note the same.
 */
export const adoptProgress = (
  worker: WorkerLedger,
  producer: Producer,
  progress: ReadonlyArray<Progress>
): Effect.Effect<boolean | null, BindingStopped> =>
  Effect.gen(function*() {
    yield* Effect.forEach(worker.readers, (reader) => reader.toEnd, { discard: true })
    if (worker.readers.some((reader) => reader.tail().next > 0)) return false
    const begun = progress.filter((at) => at.below > 0)
    const claims = claimsOf(worker.sourceClusterId, begun.map((at) => ({ ...at, first: 0, last: at.below - 1 })))
    for (const reader of worker.readers) {
      const here = claims.filter((claim) => partitionOfSlot(claim.key, worker.readers.length) === reader.partition)
      if (here.length === 0 && (begun.length > 0 || reader.partition > 0)) continue
      const entry: SnapshotEntry = {
        kind: "snapshot",
        decidedBelow: 0,
        slots: here.map(({ ranges, slot }) => ({ slot, done: ranges }))
      }
      const outgoing = ledgerBatches([entry]).map(({ bytes }) => ({
        topic: worker.topic.name,
        partition: reader.partition,
        bytes
      }))
      const produced = yield* Effect.result(producer.produce(outgoing))
      if (produced._tag === "Failure" || produced.success.some((outcome) => !outcome.ok)) return null
    }
    yield* Effect.forEach(worker.readers, (reader) => reader.toEnd, { discard: true })
    return true
  })
