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

/** `isSure`: it is a loss for certain. Under on.source.gap fail only such a one ends the flow. */
const tell = ({ gap, handle, log }: GapListener, words: string, records: number, isSure: boolean): void => {
  const stops = handle.flow.onSourceGap === "fail" && isSure
  handle.metrics.sourceGap(records)
  log(stops ? "error" : "warn", words)
  if (stops) Deferred.doneUnsafe(gap, Effect.succeed(`${words} (on.source.gap is fail)`))
}

/** A gap is counted and said. Under on.source.gap fail it ends the flow, unless nobody can tell that it is one. */
export const tellGap = (running: GapListener, gap: SourceGap): void =>
  tell(running, gapSentence(gap), gap.atMost, gap.atLeast > 0)

/** Under on.source.gap fail it ends the flow: what comes at those offsets would be left out. */
export const tellTruncation = (running: GapListener, cut: Truncation): void =>
  tell(running, truncationSentence(cut), cut.before - cut.at, true)
