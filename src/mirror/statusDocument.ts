/** The flows' states as the status document of /status. */
import type { Reading } from "../metrics/history.ts"
import type { StatusInput } from "../metrics/status.ts"
import type { FlowHandle } from "./flow.ts"
import type { FlowState, PartitionState } from "./state.ts"

const iso = (ms: number): string => new Date(ms).toISOString()
const MILLIS = 1000

/** Records a second since the last look, per partition. */
export class Rates {
  readonly #seen = new Map<
    PartitionState,
    { readonly mirrored: number; readonly atMs: number; readonly rate: number }
  >()

  of(partition: PartitionState, nowMs: number): number {
    const before = this.#seen.get(partition)
    // Two looks in a short time (two readers of /status) share one rate.
    if (before !== undefined && nowMs - before.atMs < MILLIS) return before.rate
    const rate = before === undefined ? 0 : (partition.mirrored - before.mirrored) / ((nowMs - before.atMs) / MILLIS)
    this.#seen.set(partition, { mirrored: partition.mirrored, atMs: nowMs, rate })
    return rate
  }
}

/** "running" means that bytes can move: a stalled target or blocked partitions show as "blocked". */
export const visibleState = (
  state: FlowState
): { readonly state: FlowState["state"]; readonly reason: string | null } => {
  if (state.state !== "running") return { state: state.state, reason: state.reason }
  const reasons = [...state.stalls, ...state.blocked.map((p) => `${p.topic}-${p.partition}: ${p.reason ?? "blocked"}`)]
  if (reasons.length === 0) return { state: "running", reason: null }
  return {
    state: "blocked",
    reason: reasons.slice(0, 3).join("; ") + (reasons.length > 3 ? `; and ${reasons.length - 3} more` : "")
  }
}

/** What the plots are drawn from. */
export const readings = (handles: ReadonlyArray<FlowHandle>): ReadonlyArray<Reading> =>
  handles.map(({ metrics, state }) => {
    const lags = [...state.partitions.values()].flatMap((p) => p.lag === null ? [] : [p.lag])
    const { bytesMirrored, recordsMirrored } = metrics.totals()
    const lag = lags.length === 0 ? null : lags.reduce((sum, one) => sum + one, 0)
    return { flow: state.name, records: recordsMirrored, bytes: bytesMirrored, lag }
  })

export const statusDocument = (
  handles: ReadonlyArray<FlowHandle>,
  service: { readonly version: string; readonly startedAtMs: number; readonly nowMs: number },
  rates: Rates
): StatusInput => ({
  service: { name: "onceover", version: service.version },
  startedAt: iso(service.startedAtMs),
  uptimeSeconds: (service.nowMs - service.startedAtMs) / MILLIS,
  flows: handles.map(({ metrics, state }) => {
    const known = state.guarantee.effective !== "unknown"
    return {
      name: state.name,
      source: state.source,
      target: state.target,
      mode: state.mode,
      guarantee: {
        wanted: state.guarantee.wanted,
        effective: known ? state.guarantee.effective : null,
        binding: known ? state.guarantee.binding : null,
        reasons: state.guarantee.reasons
      },
      ...visibleState(state),
      since: iso(state.sinceMs),
      lanes: state.lanes,
      totals: metrics.totals(),
      control: [...state.tasks].map(([task, { atMs, reasons, state: stands }]) => ({
        task,
        state: stands,
        reasons,
        at: atMs === null ? null : iso(atMs)
      })),
      partitions: [...state.partitions.values()].map((p) => ({
        topic: p.topic,
        partition: p.partition,
        targetTopic: p.targetTopic,
        position: p.position,
        lag: p.lag,
        rate: rates.of(p, service.nowMs),
        latencySeconds: p.latencySeconds,
        state: p.state === "failed" ? "blocked" as const : p.state,
        reason: p.reason
      }))
    }
  })
})
