/** What every suite gets. */
import type { Options } from "../options.ts"
import type { Clusters } from "../run.ts"

export interface Context extends Clusters {
  readonly options: Options
  /** Whether there is time to begin something more. */
  readonly inTime: () => boolean
  readonly say: (line: string) => void
  /** Also told at once; it becomes a part of the result. */
  readonly fail: (line: string) => void
}
