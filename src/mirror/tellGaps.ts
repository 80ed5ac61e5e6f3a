/** What becomes of a gap that was found on the source: counted, said, and by on.source.gap the end of the flow. */
import { Deferred, Effect } from "effect"
import type { ResolvedFlow } from "../config/types.ts"
import type { FlowMetrics } from "../metrics/flowMetrics.ts"
import { gapSentence, type SourceGap } from "./gaps.ts"
import type { Log } from "./report.ts"
import { type Truncation, truncationSentence } from "./truncation.ts"

export interface GapListener {
  readonly handle: {
    readonly flow: Pick<ResolvedFlow, "onSourceGap">
    readonly metrics: Pick<FlowMetrics, "sourceGap">
  }
  readonly log: Log
  /** Completed with the reason when a gap is to end the flow. */
  readonly gap: Deferred.Deferred<string>
}

/** A gap is counted and said. Under on.source.gap fail it ends the flow, unless nobody can tell that it is one. */
export const tellGap = (running: GapListener, gap: SourceGap): void => {
  const { flow, metrics } = running.handle
  const stops = flow.onSourceGap === "fail" && gap.atLeast > 0
  const words = gapSentence(gap)
  metrics.sourceGap(gap.atMost)
  running.log(stops ? "error" : "warn", words)
  if (stops) Deferred.doneUnsafe(running.gap, Effect.succeed(`${words} (on.source.gap is fail)`))
}

/** Under on.source.gap fail it ends the flow: what comes at those offsets would be left out. */
export const tellTruncation = (running: GapListener, cut: Truncation): void => {
  const { flow, metrics } = running.handle
  const stops = flow.onSourceGap === "fail"
  const words = truncationSentence(cut)
  metrics.sourceGap(cut.before - cut.at)
  running.log(stops ? "error" : "warn", words)
  if (stops) Deferred.doneUnsafe(running.gap, Effect.succeed(`${words} (on.source.gap is fail)`))
}
