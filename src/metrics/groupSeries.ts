/** Series of groups whose offsets are kept: those of the last pass, and no others. */
import type { Gauge, Labels } from "./series.ts"

/** One group at one pass. */
export interface GroupStanding {
  readonly group: string
  /** State to number of partitions. */
  readonly partitions: ReadonlyMap<string, number>
  /** Records that it would read again on the target. */
  readonly behind: number
}

interface Maker {
  readonly gauge: (
    name: "onceover_group_partitions" | "onceover_group_behind_records",
    labels: Labels
  ) => Gauge | null
  readonly drop: (made: Gauge | null) => void
}

export const makeGroupSeries = (make: Maker) => {
  const open = new Map<string, Gauge | null>()
  return (standings: ReadonlyArray<GroupStanding>): void => {
    const now = new Map<string, number>()
    for (const { behind, group, partitions } of standings) {
      const put = (name: Parameters<Maker["gauge"]>[0], labels: Labels, value: number): void => {
        const key = JSON.stringify([name, labels])
        if (!open.has(key)) open.set(key, make.gauge(name, labels))
        now.set(key, value)
      }
      put("onceover_group_behind_records", { group }, behind)
      for (const [state, count] of partitions) put("onceover_group_partitions", { group, state }, count)
    }
    for (const [key, gauge] of open) {
      const value = now.get(key)
      if (value !== undefined) gauge?.set(value)
      else {
        make.drop(gauge)
        open.delete(key)
      }
    }
  }
}
