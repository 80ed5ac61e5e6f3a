/**
 * Known-wrong variations of the ledger's rules, each of which the tests must catch when it is switched on (canaries):
 * a test that stays green under one of them proves nothing. Nothing outside test/ ever sets one.
 */
export interface Mutations {
  /** W1: commits without looking for conflicts. Duplicate. */
  readonly skipCheck?: boolean
  /** W2: an undecided earlier entry counts as absent. Duplicate. */
  readonly undecidedIsAbsent?: boolean
  /** W3: acknowledged on the source before the commit is confirmed. Loss. */
  readonly acceptBeforeCommit?: boolean
  /** W4: the tail starts at the log's end. Duplicate. */
  readonly startAtEnd?: boolean
  /** W5: a marker closes by producer id alone. Loss. */
  readonly closeByProducer?: boolean
  /** W5: a marker closes by equal epoch. Outcomes are never seen. */
  readonly closeByEquality?: boolean
  /** W6: a snapshot replaces what is known. Duplicate. */
  readonly snapshotReplaces?: boolean
  /** W7 without (b): prunes below what is read, decided or not. Duplicate. */
  readonly pruneUndecided?: boolean
  /** W7 without (c): prunes before the last stable offset has passed the snapshot. Duplicate together with the next one. */
  readonly pruneEarly?: boolean
  /** R11, last sentence: a transaction goes on although the tail found its offset gone. Alone, (c) makes up for it. */
  readonly goOnWhenPruned?: boolean
  /** W7: prunes without a snapshot. Duplicate. */
  readonly pruneWithoutSnapshot?: boolean
  /** W8: entries of these producers (siblings in the same worker) count as own. Duplicate. */
  readonly siblingIsOwn?: (producerId: number) => boolean
  /** W9: begins again after an unanswered abort without InitProducerId. Output twice. */
  readonly beginWithoutInit?: boolean
  /** W10: aborts on an undecided entry and tries again. Livelock. */
  readonly abortOnUndecided?: boolean
  /** W11: waits for later entries too. Deadlock. */
  readonly waitForLater?: boolean
  /** W12: fences at once. Livelock. */
  readonly noPatience?: boolean
}

export const NO_MUTATIONS: Mutations = {}
