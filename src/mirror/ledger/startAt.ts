/** R10: in consumer mode the ledger says where a partition begins; a group's position that says otherwise is told. */
import { Effect } from "effect"
import type { StartAt } from "../../group/shared.ts"
import { knownOf, startPosition } from "../../txn/ledger/positions.ts"
import { noteReader } from "../../txn/ledger/regime.ts"
import type { WorkerLedger } from "../../txn/ledger/worker.ts"
import type { Log } from "../report.ts"

/** A ledger that cannot be read any more ends the flow by itself (ledgerWatch.ts): no position is given meanwhile. */
export const ledgerStart =
  (ledger: WorkerLedger, log: Log): StartAt => ({ partition, topic, topicId }, committed, logStart) =>
    Effect.gen(function*() {
      const { done } = yield* knownOf(ledger, { topic, topicId, partition })
      const notes = noteReader(ledger.readers)
      yield* notes.toEnd
      const place = startPosition({ done, committed, logStart, away: notes.tail().away !== null })
      if (place !== null && committed !== null && place !== committed) {
        log(
          place < committed ? "warn" : "info",
          `${topic}-${partition}: the group's position is ${committed}, the ledger knows all below ${place} to be mirrored: it begins at ${place}`
        )
      }
      return place
    }).pipe(Effect.catch(() => Effect.never))
