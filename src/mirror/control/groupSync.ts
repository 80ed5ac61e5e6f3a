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
import type { GroupStanding } from "../../metrics/groupSeries.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import type { Translator } from "../offsets/translator.ts"
import { type GroupPosition, type Positions, positionsOfAll } from "./groupPositions.ts"
import { allGroups, type Group, type GroupKind, isActive, moveGroup } from "./groups.ts"
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

/** groups, groups.exclude; `own`: groups of onceover itself, as they are known when it is asked. */
export const groupFilter = (
  include: ReadonlyArray<string>,
  exclude: ReadonlyArray<string>,
  own: () => ReadonlySet<string>
): (groupId: string) => boolean => {
  const wanted = anchored(include)
  const left = anchored(exclude)
  return (groupId) => !own().has(groupId) && wanted?.test(groupId) === true && left?.test(groupId) !== true
}

/** The groups of the source whose offsets are kept. */
export const sourceGroups = (
  options: Pick<GroupSyncOptions, "source" | "matches">
): Effect.Effect<ReadonlyArray<SourceGroup>, WireError> =>
  Effect.map(
    allGroups(options.source),
    (groups) =>
      [...groups.values()].flatMap(({ kind, ...group }) =>
        kind === "other" || !options.matches(group.id) ? [] : [{ ...group, kind }]
      ).sort((a, b) => a.id < b.id ? -1 : 1)
  )

/** A group's positions in the flow's topics, translated. */
const translated = (
  options: GroupSyncOptions,
  group: SourceGroup,
  positions: Positions
): ReadonlyArray<GroupOffset> =>
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

/** What is translated of a group and may have to be written, and what the target has of it. */
interface Open {
  readonly group: SourceGroup
  readonly there: Group | undefined
  readonly rows: ReadonlyArray<GroupOffset>
}

const ofAnotherKind = ({ group, there }: Open): boolean =>
  there !== undefined && there.kind !== group.kind && there.empty === false

/** Compares with the target, and writes where that is allowed. */
const settle = (
  { target }: GroupSyncOptions,
  { group, rows, there }: Open,
  current: Positions,
  write: boolean
): Effect.Effect<ReadonlyArray<GroupOffset>, WireError> =>
  Effect.gen(function*() {
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
    const standings = yield* positionsOfAll(options.source, groups)
    yield* options.translator.refresh
    if (groups.length === 0) return []
    const there = yield* allGroups(options.target)
    const settled: Array<GroupOffset> = []
    const open: Array<Open> = []
    for (const group of groups) {
      const positions = standings.get(group.id)
      // Gone since it was listed, or not to be read: it is looked at again.
      if (!(positions instanceof Map)) continue
      const one = { group, there: there.get(group.id), rows: translated(options, group, positions) }
      if (one.rows.every((row) => row.state !== "behind")) settled.push(...one.rows)
      else if (ofAnotherKind(one)) {
        settled.push(...all(one.rows, "failed", "the target has a group of this id that is of another kind"))
      } else open.push(one)
    }
    // Also of those that are not listed: one that may not be seen must not be set back.
    const currents = yield* positionsOfAll(
      options.target,
      open.map(({ group, there: known }) => ({ id: group.id, kind: group.kind, broker: known?.broker ?? null }))
    )
    const found = yield* Effect.forEach(open, (one) => {
      const current = currents.get(one.group.id)
      if (!(current instanceof Map)) {
        return Effect.succeed(
          all(one.rows, "failed", current === undefined ? "not asked" : (current as WireError).message)
        )
      }
      return Effect.catch(
        settle(options, one, current, write),
        (error) => Effect.succeed(all(one.rows, "failed", error.message))
      )
    }, { concurrency: CONCURRENCY })
    return [...settled, ...found.flat()]
  })

/** For the metrics: one row a group. */
export const standingsOf = (rows: ReadonlyArray<GroupOffset>): ReadonlyArray<GroupStanding> =>
  [...Map.groupBy(rows, ({ group }) => group)].map(([group, of]) => ({
    group,
    partitions: new Map([...Map.groupBy(of, ({ state }) => state)].map(([state, list]) => [state, list.length])),
    // What was written in this pass is not behind any more.
    behind: of.reduce(
      (sum, { state, targetCurrent, targetPosition }) =>
        state === "synced" || targetCurrent === null || targetPosition === null
          ? sum
          : sum + Math.max(0, targetPosition - targetCurrent),
      0
    )
  }))
