/** How many partitions the lanes of a flow have together: each lane tells its own number, the sum is passed on. */

export interface Assignments {
  readonly of: (lane: string) => (partitions: number) => void
}

export const makeAssignments = (onChange: (partitions: number) => void): Assignments => {
  const byLane = new Map<string, number>()
  return {
    of: (lane) => (partitions) => {
      if (partitions === 0) byLane.delete(lane)
      else byLane.set(lane, partitions)
      onChange([...byLane.values()].reduce((sum, n) => sum + n, 0))
    }
  }
}
