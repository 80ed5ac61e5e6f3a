/** The registry of the current context as Prometheus text (version 0.0.4). */
import type { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"

export const PROMETHEUS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

export const prometheusText: Effect.Effect<string> = PrometheusMetrics.format()
