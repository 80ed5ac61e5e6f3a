/**
 * Which groups of the source a flow's ledger knows: those it was begun with, or that had done nothing it did not know.
 * Another group, with positions of its own, did its work without the ledger, if it was work for this target at all; what
 * it has done would be taken for given up, and mirrored again, or for mirrored, and lost. So it is refused.
 */
import { Effect } from "effect"
import { BindingStopped } from "../../txn/binding.ts"
import { knownOf } from "../../txn/ledger/positions.ts"
import type { WorkerLedger } from "../../txn/ledger/worker.ts"
import type { WireError } from "../../wire/errors.ts"
import { rangeSet, size, subtract, union } from "../../wire/ranges.ts"
import type { ControlLog, Notes } from "../control/controlLog.ts"
import { startOffsets } from "../control/logOffsets.ts"
import { partitionName } from "../control/offsets.ts"
import { groupFacts, type GroupOptions } from "./groupFacts.ts"

export interface KnownGroupsOptions extends GroupOptions {
  readonly ledger: WorkerLedger
  readonly notes: ControlLog
}

const KIND = "ledger-group"
const keyOf = (groupId: string): string => JSON.stringify([KIND, groupId])

/** Groups that the ledger has worked with, by the notes of its flow. */
export const notedGroups = (notes: Notes): ReadonlyArray<string> =>
  [...notes.keys()].filter((key) => key.startsWith(`["${KIND}",`)).map((key) =>
    (JSON.parse(key) as [string, string])[1]
  )

/** The ledger has just been begun with this group: what was noted belongs to one that is gone. */
export const noteFirstGroup = ({ groupId, notes }: KnownGroupsOptions): Effect.Effect<void, WireError> =>
  Effect.gen(function*() {
    const others = notedGroups(yield* notes.read).filter((other) => other !== groupId)
    yield* notes.write([...others.map((other) => [keyOf(other), null] as const), [keyOf(groupId), "true"]])
  })

/** Offsets that the group has done, the log still holds, and the ledger does not know. */
const strange = (options: KnownGroupsOptions): Effect.Effect<number, WireError | BindingStopped> =>
  Effect.gen(function*() {
    const facts = yield* groupFacts(options)
    const begun = new Set(facts.map(({ topic }) => topic))
    const starts = yield* startOffsets(options.source, options.topics().filter(({ source }) => begun.has(source)))
    let count = 0
    for (const { ranges, ...at } of facts) {
      const { done, undecided } = yield* knownOf(options.ledger, at)
      const start = starts.get(partitionName(at.topic, at.partition)) ?? 0
      const known = union(union(done, rangeSet(undecided.flat())), rangeSet([{ first: 0, last: start - 1 }]))
      count += size(subtract(ranges, known))
    }
    return count
  })

/** Call where the ledger is in force and has entries; refuses a group that it does not know. */
export const assertGroupKnown = (options: KnownGroupsOptions): Effect.Effect<void, WireError | BindingStopped> =>
  Effect.gen(function*() {
    const { groupId, ledger, notes } = options
    const known = notedGroups(yield* notes.read)
    if (known.includes(groupId)) return
    // A ledger of before this was noted: it is taken for this group's.
    const count = known.length === 0 ? 0 : yield* strange(options)
    if (count === 0) return yield* notes.write([[keyOf(groupId), "true"]])
    return yield* new BindingStopped({
      binding: "ledger",
      forGood: true,
      what: `the ledger ${ledger.topic.name} knows the work of group ${
        known.join(" and ")
      }, but group.id is ${groupId} now, and that group has done ${count} offsets that the ledger does not know of: nobody can tell whether they are mirrored. Set group.id to ${
        known.at(-1)
      }, or to a group that has not read these topics yet (nothing is mirrored twice then), or use another flow name`
    })
  })
