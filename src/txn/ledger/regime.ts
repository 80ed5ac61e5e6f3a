/**
 * R13: a flow whose ledger is there may run without it for a while (another binding, at-least-once, a fallback). The
 * ledger does not have what is mirrored then, and the group will not tell: repair would take it for given up. So the
 * first partition of the ledger says when such a time begins and ends, and the order of its log decides.
 *
 * AWAY   by whoever is about to work without the ledger, before its first record: what the group has decided so far.
 * MEMBER by whoever works by the ledger meanwhile: its member id in the source's group.
 * BACK   by one that works by the ledger, once all members of the group do. What was decided since AWAY is written
 *        down as done before it. It names the newest AWAY, and is none when another came between.
 *
 * Each of them reads the ledger's end before it asks the group, and again after: what it was told belongs to the time
 * between. What was given up while away counts as done, as nobody can tell it from what was mirrored.
 */
import { Effect } from "effect"
import { EMPTY, type RangeSet, subtract } from "../../wire/ranges.ts"
import type { BindingStopped } from "../binding.ts"
import type { Producer } from "../producer.ts"
import { ledgerBatches } from "./batches.ts"
import { type LedgerEntry, type NoteEntry, slotKey } from "./entry.ts"
import type { SourcePartition } from "./positions.ts"
import type { LedgerReader } from "./reader.ts"
import { claimsOf } from "./rules.ts"
import type { Away, SlotDone } from "./tail.ts"
import { partitionOfSlot, type WorkerLedger } from "./worker.ts"

/** What the group has decided of a partition. */
export interface DecidedAt extends SourcePartition {
  readonly ranges: RangeSet
}

/** By slot; what is empty is left out. */
export const slotsOf = (clusterId: string, decided: ReadonlyArray<DecidedAt>): ReadonlyArray<SlotDone> =>
  claimsOf(
    clusterId,
    decided.flatMap(({ ranges, ...at }) => ranges.map((range) => ({ ...at, first: range.first, last: range.last })))
  ).map(({ ranges, slot }) => ({ slot, done: ranges }))

/** What was decided while away. */
export const decidedSince = (away: Away, now: ReadonlyArray<SlotDone>): ReadonlyArray<SlotDone> => {
  const before = new Map(away.slots.map(({ done, slot }) => [slotKey(slot), done]))
  return now.map(({ done, slot }) => ({ slot, done: subtract(done, before.get(slotKey(slot)) ?? EMPTY) }))
    .filter(({ done }) => done.length > 0)
}

/** A partition that takes nothing is not waited for any longer than this, milliseconds. */
const WRITE_MS = 30_000

/** Null, or why the target did not take it. */
export const writeEntries = (
  producer: Producer,
  topic: string,
  partition: number,
  entries: ReadonlyArray<LedgerEntry>
): Effect.Effect<string | null> =>
  producer.produce(ledgerBatches(entries).map(({ bytes }) => ({ topic, partition, bytes }))).pipe(
    Effect.map((outcomes) => outcomes.map((o) => o.ok ? null : o.error.message).find((m) => m !== null) ?? null),
    Effect.catch((error) => Effect.succeed(error.message)),
    Effect.timeoutOrElse({
      duration: WRITE_MS,
      orElse: () =>
        Effect.map(
          producer.stalls,
          (stalls) => stalls[0]?.reason ?? `${topic}-${partition} has not taken it within ${WRITE_MS} ms`
        )
    })
  )

/** Where notes are. */
export const noteReader = (readers: WorkerLedger["readers"]): LedgerReader => readers[0] as LedgerReader

const note = (ledger: WorkerLedger, producer: Producer, entry: NoteEntry): Effect.Effect<string | null> =>
  writeEntries(producer, ledger.topic.name, 0, [entry])

/** These offsets count as done from now on; the first partition comes last. Null, or why the target did not take it. */
export const writeDone = (
  ledger: WorkerLedger,
  producer: Producer,
  slots: ReadonlyArray<SlotDone>
): Effect.Effect<string | null> =>
  Effect.gen(function*() {
    for (const { partition } of ledger.readers.toReversed()) {
      const here = slots.filter(({ slot }) => partitionOfSlot(slotKey(slot), ledger.readers.length) === partition)
      if (here.length === 0) continue
      const entry = { kind: "snapshot", decidedBelow: 0, slots: here } as const
      const problem = yield* writeEntries(producer, ledger.topic.name, partition, [entry])
      if (problem !== null) return problem
    }
    return null
  })

export interface ReturnParts<E> {
  readonly ledger: WorkerLedger
  readonly producer: Producer
  /** Members of the source's group now. */
  readonly members: Effect.Effect<ReadonlyArray<string>, E>
  /** Own members of it, which work by the ledger. */
  readonly own: () => ReadonlyArray<string>
  /** What the group has decided now. Asked between two reads of the ledger's end. */
  readonly decided: Effect.Effect<ReadonlyArray<DecidedAt>, E>
}

export type Returned =
  /** The ledger is in force alone; `adopted` offsets were written down as done by this call. */
  | { readonly kind: "back"; readonly adopted: number; readonly since: string | null }
  /** Somebody works without it, or the ledger cannot be written. */
  | { readonly kind: "away"; readonly binding: string; readonly reason: string }

const announce = <E>(parts: ReturnParts<E>, away: Away): Effect.Effect<string | null> =>
  Effect.gen(function*() {
    for (const id of parts.own().filter((one) => !away.members.has(one))) {
      const problem = yield* note(parts.ledger, parts.producer, { kind: "member", id })
      if (problem !== null) return problem
    }
    return null
  })

const sizeOf = (slots: ReadonlyArray<SlotDone>): number =>
  slots.reduce((sum, { done }) => sum + done.reduce((n, { first, last }) => n + last - first + 1, 0), 0)

/** Ends a time away where that is possible now; does nothing where there is none. */
export const comeBack = <E>(parts: ReturnParts<E>): Effect.Effect<Returned, BindingStopped | E> =>
  Effect.gen(function*() {
    const { ledger, producer } = parts
    const reader = noteReader(ledger.readers)
    yield* reader.toEnd
    const away = reader.tail().away
    if (away === null) return { kind: "back", adopted: 0, since: null } as const
    const still = (reason: string) => ({ kind: "away", binding: away.binding, reason }) as const
    const told = yield* announce(parts, away)
    if (told !== null) return still(told)
    const strangers = (yield* parts.members).filter((id) => !away.members.has(id) && !parts.own().includes(id))
    if (strangers.length > 0) {
      return still(`${strangers.length} members of the group work without the ledger, or have not said otherwise yet`)
    }
    const adopted = decidedSince(away, slotsOf(ledger.sourceClusterId, yield* parts.decided))
    yield* reader.toEnd
    if (reader.tail().away?.last !== away.last) return still("another worker has just begun without the ledger")
    const problem = (yield* writeDone(ledger, producer, adopted)) ??
      (yield* note(ledger, producer, { kind: "back", after: away.last }))
    if (problem !== null) return still(problem)
    yield* Effect.forEach(ledger.readers, (one) => one.toEnd, { discard: true })
    if (reader.tail().away !== null) return still("another worker has just begun without the ledger")
    return { kind: "back", adopted: sizeOf(adopted), since: away.binding } as const
  })
