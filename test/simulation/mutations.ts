/** The known-wrong variations of the ledger's rules, by the names they have in docs/ledger.md. */
import type { Mutations } from "../../src/txn/ledger/mutations.ts"

export const MUTATIONS: Readonly<Record<string, Mutations>> = {
  W1: { skipCheck: true },
  W2: { undecidedIsAbsent: true },
  W3: { acceptBeforeCommit: true },
  W4: { startAtEnd: true },
  W5: { closeByProducer: true },
  W5b: { closeByEquality: true },
  W6: { snapshotReplaces: true },
  // Going on over what was cut off goes with it: each of the two rules makes up for the other.
  W7: { pruneEarly: true, goOnWhenPruned: true },
  W7b: { pruneUndecided: true },
  W7s: { pruneWithoutSnapshot: true },
  W8: { siblingIsOwn: () => true },
  W9: { beginWithoutInit: true },
  W10: { abortOnUndecided: true },
  W11: { waitForLater: true },
  W12: { noPatience: true }
}
