/**
 * The offsets of the source's groups, on the target: what each is there, and writing it.
 *
 * Guarantees
 * 1. Nothing is skipped: a translated position is never behind a record that the group has not consumed.
 * 2. A group that has members on the target is never touched: the coordinator itself refuses it (groups.ts).
 * 3. No group is ever set back.
 * 4. What cannot be written is told, per partition, with the reason.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import type { Translator } from "../offsets/translator.ts"
import {
  allGroups,
  type Group,
  type GroupKind,
  type GroupPosition,
  isActive,
  moveGroup,
  type Positions,
  positionsOf
} from "./groups.ts"
import { partitionName } from "./offsets.ts"
import type { MirroredTopic } from "./topics.ts"

export type SyncState =
  /** The target has the position, or a later one that it was given or has come to by itself. */
  | "synced"
  /** Not written yet: writing is off, or this was only a look. */
  | "behind"
  /** The group has members on the target. */
  | "active"
  /** Where the records are is not known to the record. */
  | "unmapped"
  | "failed"

export interface GroupOffset {
  readonly group: string
  readonly kind: GroupKind
  /** Of the source. */
  readonly topic: string
  readonly partition: number
  readonly position: number
  readonly targetTopic: string
  readonly targetPartition: number
  /** null: not known. */
  readonly targetPosition: number | null
  /** What the target's group had before; null: nothing. */
  readonly targetCurrent: number | null
  readonly metadata: string
  readonly state: SyncState
  readonly reason: string | null
}

export interface GroupSyncOptions {
  readonly source: Cluster
  readonly target: Cluster
  readonly translator: Translator
  readonly topics: () => ReadonlyArray<MirroredTopic>
  readonly matches: (groupId: string) => boolean
}

export interface SourceGroup extends Group {
  readonly kind: GroupKind
}

/** Groups at a time. */
const CONCURRENCY = 4

const anchored = (patterns: ReadonlyArray<string>): RegExp | null =>
  patterns.length === 0 ? null : new RegExp(`^(?:${patterns.map((p) => `(?:${p})`).join("|")})$`)

/** groups, groups.exclude; `own`: groups of onceover itself. */
export const groupFilter = (
  include: ReadonlyArray<string>,
  exclude: ReadonlyArray<string>,
  own: ReadonlySet<string>
): (groupId: string) => boolean => {
  const wanted = anchored(include)
  const left = anchored(exclude)
  return (groupId) => !own.has(groupId) && wanted?.test(groupId) === true && left?.test(groupId) !== true
}

/** The groups of the source whose offsets are kept. */
export const sourceGroups = (options: GroupSyncOptions): Effect.Effect<ReadonlyArray<SourceGroup>, WireError> =>
  Effect.map(
    allGroups(options.source),
    (groups) =>
      [...groups.values()].flatMap(({ kind, ...group }) =>
        kind === "other" || !options.matches(group.id) ? [] : [{ ...group, kind }]
      ).sort((a, b) => a.id < b.id ? -1 : 1)
  )

interface Standing {
  readonly group: SourceGroup
  /** Why the group cannot be read. */
  readonly problem: string | null
  readonly positions: Positions
}

const standingOf = (options: GroupSyncOptions, group: SourceGroup): Effect.Effect<Standing> =>
  positionsOf(options.source, group.id, group.kind).pipe(
    Effect.map((positions): Standing => ({ group, problem: null, positions })),
    Effect.catch((error) => Effect.succeed({ group, problem: error.message, positions: new Map() }))
  )

/** A group's positions in the flow's topics, translated. */
const translated = (options: GroupSyncOptions, { group, positions }: Standing): ReadonlyArray<GroupOffset> =>
  options.topics().flatMap((topic) =>
    Array.from({ length: topic.partitions }, (_, partition) => partition).flatMap((partition) => {
      const position = positions.get(partitionName(topic.source, partition))
      if (position === undefined) return []
      return options.translator.translate(topic, partition, position.offset).map((to): GroupOffset => {
        const { translation } = to
        return {
          group: group.id,
          kind: group.kind,
          topic: topic.source,
          partition,
          position: position.offset,
          targetTopic: to.topic,
          targetPartition: to.partition,
          targetPosition: translation.kind === "unknown" ? null : translation.offset,
          targetCurrent: null,
          metadata: position.metadata,
          state: translation.kind === "at" ? "behind" : "unmapped",
          reason: translation.kind === "unknown"
            ? translation.reason
            : translation.kind === "about"
            ? "some records behind the position were mirrored before the map began, or so long ago that their places are no longer kept"
            : null
        }
      })
    })
  )

const all = (rows: ReadonlyArray<GroupOffset>, state: SyncState, reason: string): ReadonlyArray<GroupOffset> =>
  rows.map((row) => row.state === "behind" ? { ...row, state, reason } : row)

const targetName = (row: GroupOffset): string => partitionName(row.targetTopic, row.targetPartition)

const moveOf = (row: GroupOffset): GroupPosition => ({
  topic: row.targetTopic,
  partition: row.targetPartition,
  offset: row.targetPosition ?? 0,
  metadata: row.metadata
})

const ACTIVE = "the group has members on the target"

/** Compares with the target, and writes where that is allowed. */
const settle = (
  { target }: GroupSyncOptions,
  group: SourceGroup,
  there: Group | undefined,
  rows: ReadonlyArray<GroupOffset>,
  write: boolean
): Effect.Effect<ReadonlyArray<GroupOffset>, WireError> =>
  Effect.gen(function*() {
    if (rows.every((row) => row.state !== "behind")) return rows
    if (there !== undefined && there.kind !== group.kind && there.empty === false) {
      return all(rows, "failed", "the target has a group of this id that is of another kind")
    }
    const current = there === undefined ? new Map() as Positions : yield* positionsOf(target, group.id, group.kind)
    const compared = rows.map((row): GroupOffset => {
      const targetCurrent = current.get(targetName(row))?.offset ?? null
      const reached = row.state === "behind" && targetCurrent !== null && targetCurrent >= (row.targetPosition ?? 0)
      return { ...row, targetCurrent, ...(reached ? { state: "synced" as const } : {}) }
    })
    if (there?.empty === false) return all(compared, "active", ACTIVE)
    const open = compared.filter((row) => row.state === "behind")
    if (!write || open.length === 0) return compared
    const moved = yield* moveGroup(target, group.id, group.kind, open.map(moveOf))
    return compared.map((row): GroupOffset => {
      if (row.state !== "behind") return row
      const error = moved.get(targetName(row)) ?? null
      if (error === null) return { ...row, state: "synced" }
      return isActive(error)
        ? { ...row, state: "active", reason: ACTIVE }
        : { ...row, state: "failed", reason: error.message }
    })
  })

/**
 * One look at all groups; `write`: and the target brought up to date. The groups' positions are read before the map:
 * what a group has consumed was mirrored later at most.
 */
export const syncGroups = (
  options: GroupSyncOptions,
  groups: ReadonlyArray<SourceGroup>,
  write: boolean
): Effect.Effect<ReadonlyArray<GroupOffset>, WireError> =>
  Effect.gen(function*() {
    const standings = yield* Effect.forEach(groups, (group) => standingOf(options, group), { concurrency: CONCURRENCY })
    yield* options.translator.refresh
    if (groups.length === 0) return []
    const there = yield* allGroups(options.target)
    const found = yield* Effect.forEach(standings, (standing) => {
      const { group, problem } = standing
      if (problem !== null) return Effect.succeed([])
      const rows = translated(options, standing)
      return Effect.catch(
        settle(options, group, there.get(group.id), rows, write),
        (error) => Effect.succeed(all(rows, "failed", error.message))
      )
    }, { concurrency: CONCURRENCY })
    return found.flat()
  })
