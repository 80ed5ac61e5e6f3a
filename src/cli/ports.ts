/**
 * What the commands need of the pipeline. src/mirror is loaded when a command runs and not before, so that --help
 * and a wrong command line are answered at once, without a native client.
 */
import { Effect } from "effect"
import type { Origin } from "../config/mm2/origins.ts"
import type { ResolvedConfig } from "../config/types.ts"
import type { CheckReport } from "../mirror/check.ts"
import type { OffsetRow, OffsetsRequest } from "../mirror/offsetsService.ts"
import type { TakenOver } from "../mirror/mm2Positions.ts"
import type { VerifyOptions, VerifyProgress } from "../mirror/verify/options.ts"
import type { VerifyReport } from "../mirror/verify/report.ts"

/** Anything the pipeline fails with carries its words in `message`; several lines are several sentences. */
export interface Failure {
  readonly message: string
}

export interface RunOptions {
  /** End when every record that the source had at the start is mirrored and acknowledged. */
  readonly untilCaughtUp: boolean
}

export interface Pipeline {
  readonly runService: (config: ResolvedConfig, options: RunOptions) => Effect.Effect<void, Failure>
  readonly checkService: (config: ResolvedConfig) => Effect.Effect<CheckReport, Failure>
  readonly offsetsOf: (
    config: ResolvedConfig,
    request: OffsetsRequest
  ) => Effect.Effect<ReadonlyArray<OffsetRow>, Failure>
  /** Before the first run from a file of MirrorMaker 2: the groups go on where it stopped. */
  readonly takeMm2Positions: (
    config: ResolvedConfig,
    origins: ReadonlyArray<Origin>
  ) => Effect.Effect<ReadonlyArray<TakenOver>, Failure>
  readonly verifyService: (
    config: ResolvedConfig,
    options: VerifyOptions,
    onProgress: (progress: VerifyProgress) => void
  ) => Effect.Effect<VerifyReport, Failure>
}

/** The pipeline, loaded on first use. */
export const loadPipeline: Effect.Effect<Pipeline> = Effect.promise(async () => {
  const [{ runService }, { checkService }, { offsetsOf }, { takeMm2Positions }, { verifyService }] = await Promise.all([
    import("../mirror/service.ts"),
    import("../mirror/check.ts"),
    import("../mirror/offsetsService.ts"),
    import("../mirror/mm2Positions.ts"),
    import("../mirror/verify/verify.ts")
  ])
  return { runService, checkService, offsetsOf, takeMm2Positions, verifyService }
})
