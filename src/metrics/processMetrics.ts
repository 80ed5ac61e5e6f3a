/** What the process uses: memory, processor time, and how late its event loop is. Names as Prometheus clients have them. */
import { Effect, type Scope } from "effect"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { makeSeries } from "./series.ts"

const NANOS = 1e9
const MICROS = 1e6

/** Registers the gauges; they vanish with the scope. `version` is onceover's. */
export const processMetrics = (version: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    const context = yield* Effect.context<never>()
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const series = makeSeries(context)
        const delay = monitorEventLoopDelay({ resolution: 20 })
        delay.enable()
        const readDelay = (): number => {
          const worst = delay.count === 0 ? 0 : delay.percentile(99) / NANOS
          delay.reset()
          return worst
        }
        const info = series.gauge("onceover_build_info", "1; the version is the label.", { version })
        info.set(1)
        return [
          info,
          series.observedGauge("process_resident_memory_bytes", "Resident memory size in bytes.", {}, () =>
            process.memoryUsage.rss()),
          series.observedCounter("process_cpu_seconds_total", "User and system processor time in seconds.", {}, () => {
            const used = process.cpuUsage()
            return (used.user + used.system) / MICROS
          }),
          series.observedGauge(
            "nodejs_eventloop_delay_seconds",
            "99th percentile of the event loop's delay since the last reading; includes the 20 ms of the measuring timer.",
            {},
            readDelay
          ),
          {
            remove: () =>
              void delay.disable()
          }
        ]
      }),
      (made) =>
        Effect.sync(() =>
          made.forEach((one) => one.remove())
        )
    )
  })
